#include "engine/cause/whatif.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/nearest.hpp"
#include "engine/cause/text.hpp"
#include "engine/metrics/exposure.hpp"

namespace shardbook::cause {

using base::Error;
using base::text;
using metrics::duration_text;
using program::CommandKind;

const std::vector<ScaleKey>& scale_keys() {
  using simulate::Scale;
  static const std::vector<ScaleKey> keys = {
      {"host", "what each call costs the host", &Scale::host},
      {"launch", "from the host's call, or an awaited event, to the start on the device", &Scale::launch},
      {"alpha", "what the smallest collective of its kind takes, of every collective", &Scale::latency},
      {"beta", "what a collective takes beyond that, for its size", &Scale::bandwidth},
      {"comm", "every collective", &Scale::communication},
      {"compute", "every kernel that computes, with the gap behind it, which stays", &Scale::compute},
      {"memory", "every copy and fill", &Scale::memory},
      {"contention", "by how much running together slows", &Scale::contention},
  };
  return keys;
}

namespace {

const std::vector<std::pair<std::string, program::EdgeKind>>& wait_kinds() {
  static const std::vector<std::pair<std::string, program::EdgeKind>> kinds = {
      {"event", program::EdgeKind::event},     {"host", program::EdgeKind::host},
      {"limiter", program::EdgeKind::limiter}, {"buffer_reuse", program::EdgeKind::buffer_reuse},
      {"communicator", program::EdgeKind::communicator}};
  return kinds;
}

// "host=0" in two. Errors: no "=".
base::Result<std::pair<std::string, std::string>> halves(const std::string& word, const char* form) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) return Error{text("'", word, "' must be ", form)};
  return std::pair(word.substr(0, equals), word.substr(equals + 1));
}

base::Status add_scale(const Study& study, const std::string& word, simulate::Change& change) {
  const auto both = halves(word, "KEY=FACTOR, as in comm=0.5");
  if (!both) return both.as_error();
  auto [key, value] = both.value();
  double factor = -1;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), factor);
  if (problem != std::errc{} || end != value.data() + value.size() || !(factor >= 0) || factor > 1e6) {
    return Error{text(word, ": the factor must be a number from 0 up, not '", value, "'")};
  }
  // Of one rank?
  simulate::Scale* scale = &change.scale;
  if (const std::size_t point = key.find('.'); key.starts_with("rank") && point != std::string::npos) {
    Rank rank = -1;
    std::from_chars(key.data() + 4, key.data() + point, rank);
    const auto& steps = study.replay.steps();
    const bool given = std::any_of(steps.begin(), steps.end(), [&](const auto& one) { return one.rank == rank; });
    if (study.replay.is_symmetric()) {
      return Error{text(word, ": the ranks of this modelled run all do the same, and one stands for all; use the key without rank")};
    }
    if (!given) return Error{text(word, ": there is no rank ", key.substr(4, point - 4), " in this run")};
    scale = &change.of_rank[rank];
    key.erase(0, point + 1);
    if (key == "launch" || key == "contention") return Error{text(word, ": launch and contention are the machine's, not one rank's")};
  }
  const auto& keys = scale_keys();
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const ScaleKey& one) { return key == one.name; });
  if (found == keys.end()) {
    std::vector<std::string> names;
    for (const ScaleKey& one : keys) names.emplace_back(one.name);
    return Error{text("there is no cost '", key, "' to scale; the nearest is ", base::nearest(key, names), ", and `shardbook whatif --help` lists all")};
  }
  scale->*(found->factor) *= factor;
  return base::Done{};
}

// All lines at which something was issued that `wanted` accepts, as "file:line".
template <class Wanted>
std::set<std::string> lines_of(const Study& study, Wanted wanted) {
  std::set<std::string> lines;
  for (const simulate::RankSteps& rank : study.replay.steps()) {
    const program::Program& program = *rank.steps.back().program;
    for (const program::Command& command : program.commands) {
      if (wanted(command, program)) lines.insert(line_of(command.kind == CommandKind::op ? program.ops[command.op].where : command.where));
    }
  }
  return lines;
}

// The recorded line that ends in what was typed: "schedule.cpp:64" is enough where one ends so.
base::Result<program::SourceLine> recorded_line(const Study& study, const std::string& typed, const std::set<std::string>& lines, const char* what) {
  std::vector<std::string> fitting;
  for (const std::string& line : lines) {
    const bool fits = line == typed || (line.ends_with(typed) && line[line.size() - typed.size() - 1] == '/');
    if (fits) fitting.push_back(line);
  }
  if (fitting.size() != 1) {
    std::string list;
    std::size_t named = 0;
    for (const std::string& line : fitting.empty() ? std::vector<std::string>(lines.begin(), lines.end()) : fitting) {
      if (named++ == 8) break;
      list += (list.empty() ? "" : ", ") + line;
    }
    if (lines.empty()) return Error{text("this run has no ", what)};
    return Error{text(fitting.empty() ? "there is no " : "there are several ", what, " at ", typed, "; this run has ", list)};
  }
  for (const simulate::RankSteps& rank : study.replay.steps()) {
    const program::Program& program = *rank.steps.back().program;
    for (const program::Command& command : program.commands) {
      const program::SourceLine& where = command.kind == CommandKind::op ? program.ops[command.op].where : command.where;
      if (line_of(where) == fitting.front()) return where;
    }
  }
  return Error{"a line that was found is gone"};
}

base::Status add_drop(const Study& study, const std::string& word, simulate::Change& change) {
  const auto both = halves(word, "wait=FILE:LINE or waits=KIND");
  if (!both) return both.as_error();
  const auto& [key, value] = both.value();
  if (key == "waits") {
    std::vector<std::string> names;
    for (const auto& [name, kind] : wait_kinds()) {
      names.push_back(name);
      if (name != value) continue;
      change.without.push_back(kind);
      return base::Done{};
    }
    return Error{text("there is no kind of wait '", value, "'; the nearest is ", base::nearest(value, names))};
  }
  if (key != "wait") return Error{text("--drop takes wait=FILE:LINE or waits=KIND, not ", word)};
  const auto lines = lines_of(study, [](const program::Command& command, const program::Program&) { return command.kind != CommandKind::op; });
  const auto line = recorded_line(study, value, lines, "wait or record");
  if (!line) return line.as_error();
  change.without_waits.push_back(line.value());
  return base::Done{};
}

metrics::Partition partition_of(const Timeline& timeline, Window window) {
  return metrics::partition(timeline, timeline.ranks.front().rank, window);
}

std::string phrase_of(const Asked& asked) {
  std::string phrase;
  const auto add = [&](const std::string& part) { phrase += (phrase.empty() ? "" : ", ") + part; };
  for (const std::string& word : asked.set) add(word);
  for (const std::string& word : asked.scale) add(word);
  for (const std::string& word : asked.drop) add("without " + word);
  for (const std::string& word : asked.earlier) add("issued earlier: " + word);
  if (asked.alike) add("all ranks alike");
  return phrase.empty() ? "nothing changed" : phrase;
}

}  // namespace

base::Result<simulate::Change> change_of(const Study& study, const Asked& asked) {
  simulate::Change change;
  for (const std::string& word : asked.scale) {
    if (const base::Status added = add_scale(study, word, change); !added) return added.as_error();
  }
  for (const std::string& word : asked.drop) {
    if (const base::Status added = add_drop(study, word, change); !added) return added.as_error();
  }
  for (const std::string& word : asked.earlier) {
    const auto lines = lines_of(study, [](const program::Command& command, const program::Program& program) {
      return command.kind == CommandKind::op && program::class_of(program.ops[command.op].desc.kind) == program::OpClass::communication;
    });
    const auto line = recorded_line(study, word, lines, "collective");
    if (!line) return line.as_error();
    change.earlier.push_back(line.value());
  }
  change.alike = asked.alike;
  return change;
}

namespace {

// `other` has the step that is resolved: the study's own, or one that was issued otherwise.
base::Result<WhatIf> answered(const Study& study, const Study& other, const Asked& asked) {
  const base::Result<simulate::Change> change = change_of(other, asked);
  if (!change) return change.as_error();
  const base::Result<simulate::Replayed> changed = other.replay.resolve(change.value());
  if (!changed) return changed.as_error();
  const Timeline timeline = timeline_of(other.replay, changed.value(), study.clock, study.profile);
  WhatIf answer;
  answer.asked = phrase_of(asked);
  answer.before_ns = study.step_ns();
  answer.after_ns = study.step_ns() + changed.value().step_ns() - study.replayed_ns;
  answer.before = partition_of(study.timeline, study.window);
  answer.after = partition_of(timeline, {changed.value().begin, changed.value().end});
  answer.rank = timeline.ranks.front().rank;
  answer.error = study.error;
  simulate::Change at_its_clock = change.value();
  at_its_clock.same_clock = true;
  if (const base::Result<simulate::Replayed> same = other.replay.resolve(at_its_clock)) answer.clock_ns = changed.value().step_ns() - same.value().step_ns();
  answer.free_communication = change.value().scale.communication == 0;
  answer.scaled_compute = change.value().scale.compute != 1;
  return answer;
}

}  // namespace

base::Result<WhatIf> what_if(const Study& study, const Asked& asked) { return answered(study, study, asked); }

base::Result<WhatIf> what_if(const Study& study, const Asked& asked, const Issued& issued) {
  std::vector<simulate::RankProgram> ranks;
  for (const program::Record& record : issued.records) ranks.push_back({record.rank, &record.catalogue, record.programs.back().get()});
  Study other;
  other.clock = study.clock;
  other.profile = study.profile;
  simulate::Kept kept;
  base::Result<simulate::Replay> replay = base::Error{"this run has no profile to resolve another step by"};
  if (study.replay.is_measured()) {
    replay = study.replay.issued_otherwise(ranks, study.model ? &*study.model : nullptr, study.conditions, issued.conditions, kept);
  } else if (study.model) {
    replay = simulate::Replay::modelled(ranks, simulate::CostModel(study.model->profile(), issued.conditions));
  }
  if (!replay) return replay.as_error();
  other.replay = std::move(replay).value();
  base::Result<WhatIf> answer = answered(study, other, asked);
  if (answer && study.replay.is_measured()) answer.value().kept = kept;
  return answer;
}

std::string to_text(const Study& study, const WhatIf& answer) {
  constexpr Nanoseconds shown_ns = 500;   // less is written as 0.000 ms
  const auto ms = [](Nanoseconds ns) { return milliseconds(ns); };
  const auto row = [&](const char* name, Nanoseconds before, Nanoseconds after) {
    char line[96];
    std::snprintf(line, sizeof line, "  %-24s %10s   %10s   %+10.3f\n", name, ms(before).c_str(), ms(after).c_str(),
                  static_cast<double>(after - before) / 1e6);
    return std::string(line);
  };
  std::string out = paragraph("What if: " + answer.asked);
  out += paragraph("A model, not a measurement: " + basis_of(study));
  if (answer.kept) {
    out += paragraph(text("The step was issued again with the switch: ", answer.kept->measured, " of its ops take what they took when it was measured, ",
                          answer.kept->alike, " what ops of their size took, and ", answer.kept->modelled, " what the profile says."));
  }
  out += "\n  ms                           as it is      would be   difference\n";
  char step[128];
  std::snprintf(step, sizeof step, "  %-24s %10s   %10s   %+10.3f   %+.1f %%\n", "the step", ms(answer.before_ns).c_str(),
                ms(answer.after_ns).c_str(), static_cast<double>(answer.after_ns - answer.before_ns) / 1e6, 100 * answer.change());
  out += step;
  out += text("  of rank ", answer.rank, ", as resolved\n");
  out += row("  compute", answer.before.compute_ns, answer.after.compute_ns);
  out += row("  exposed communication", answer.before.exposed_communication_ns, answer.after.exposed_communication_ns);
  out += row("  exposed memory", answer.before.exposed_memory_ns, answer.after.exposed_memory_ns);
  out += row("  idle", answer.before.idle_ns, answer.after.idle_ns);
  if (answer.free_communication && answer.after.exposed_communication_ns >= shown_ns) {
    out += "\n" + paragraph("What is exposed still is no transfer: a collective waits for the rank that comes last, whatever it costs.");
  }
  if (answer.scaled_compute) {
    out += "\n" + paragraph("A kernel is scaled with the gap behind it, and the gap stays as it is: where kernels are short, compute changes by more than its factor.");
  }
  if (100 * answer.clock_ns > answer.before_ns) {
    out += "\n" + paragraph(text(duration_text(answer.clock_ns), " of that step are the clock's: a GPU at its limit of power computes more slowly the less it rests. At the clock that it had, it would take ",
                                 duration_text(answer.after_ns - answer.clock_ns), "."));
  }
  return out;
}

nlohmann::json to_json(const Study& study, const WhatIf& answer) {
  const auto parts = [](const metrics::Partition& of) {
    return nlohmann::json{{"compute_ns", of.compute_ns},
                          {"exposed_communication_ns", of.exposed_communication_ns},
                          {"exposed_memory_ns", of.exposed_memory_ns},
                          {"idle_ns", of.idle_ns}};
  };
  nlohmann::json json = {{"asked", answer.asked},
                         {"is", "a model, not a measurement"},
                         {"clock", timeline::name_of(study.clock)},
                         {"profile", study.profile},
                         {"step_ns", answer.before_ns},
                         {"would_be_ns", answer.after_ns},
                         {"of_the_clock_ns", answer.clock_ns},
                         {"error_unchanged", answer.error},
                         {"rank", answer.rank},
                         {"as_it_is", parts(answer.before)},
                         {"would_be", parts(answer.after)}};
  if (answer.kept) json["ops"] = {{"measured", answer.kept->measured}, {"alike", answer.kept->alike}, {"modelled", answer.kept->modelled}};
  json["step"] = study.step ? nlohmann::json(*study.step) : nlohmann::json();
  return json;
}

}  // namespace shardbook::cause
