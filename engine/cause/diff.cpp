#include "engine/cause/diff.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "engine/cause/recorded.hpp"
#include "engine/cause/text.hpp"
#include "engine/cause/without.hpp"
#include "engine/metrics/critical_path.hpp"
#include "engine/metrics/exposed_kinds.hpp"
#include "engine/metrics/exposure.hpp"

namespace shardbook::cause {

using base::Error;
using base::text;
using metrics::duration_text;
using timeline::Class;

namespace {

// Options that change what is printed or where it goes, not the step.
const std::set<std::string> beside_the_step = {"out", "progress", "steps", "trace-steps", "lab", "json", "config", "launch", "checkpoint", "save-every",
                                               "keep-checkpoints", "resume"};
// Measured steps of one program differ by so much from run to run.
constexpr double noise = 0.02;

// One step of a run, and where it lies.
struct Shown {
  std::optional<Study> study;
  const Timeline* timeline = nullptr;
  Window window;
  const Timeline& spans() const { return timeline != nullptr ? *timeline : study->timeline; }
};

base::Result<Shown> show(const DiffSide& side, std::optional<int> step) {
  Shown shown;
  const bool modelled = side.recorded.has_record() && side.recorded.info->clock == timeline::name_of(timeline::Clock::modelled);
  if (modelled && !side.recorded.records.front().programs.empty()) {
    base::Result<Study> study = study_of(side.recorded, step);
    if (!study) return study.as_error();
    shown.study = std::move(study).value();
    shown.window = shown.study->window;
    return shown;
  }
  shown.timeline = &side.timeline;
  shown.window = metrics::common_window(side.timeline);
  if (step) {
    const std::optional<Window> asked = metrics::common_step_window(side.timeline, *step);
    if (!asked) return Error{text("there is no step ", *step, " in ", side.recorded.info ? "this run" : "this timeline")};
    shown.window = *asked;
    return shown;
  }
  // The step that is explained where none is asked for.
  const base::Result<Why> why = why_of(side.timeline, side.recorded, {});
  if (!why) return why.as_error();
  if (why.value().step) shown.window = metrics::common_step_window(side.timeline, *why.value().step).value_or(shown.window);
  return shown;
}

// How many calls the host issues of a step that is bound by them: it would gain more without what they cost than without all
// communication. 0 where it would not, and where nothing can be resolved.
std::int64_t calls_that_bind(const Shown& shown) {
  if (!shown.study) return 0;
  const Without without(*shown.study);
  const Nanoseconds host = without.gain_of(&simulate::Scale::host);
  const bool binds = without.is_worth(host) && host > without.gain_of(&simulate::Scale::communication);
  return binds ? static_cast<std::int64_t>(shown.study->replay.steps().front().steps.back().program->commands.size()) : 0;
}

std::vector<Changed> changed_options(const Recorded& before, const Recorded& after) {
  std::vector<Changed> changed;
  std::set<std::string> names;
  for (const Recorded* one : {&before, &after}) {
    if (!one->info) return {};
    for (const auto& [name, value] : one->info->config.items()) names.insert(name);
  }
  // Switches, by their keys, if both runs know them: "set" has only those that are not at their defaults
  const nlohmann::json &before_switches = before.info->switches, &after_switches = after.info->switches;
  const bool with_switches = !before_switches.empty() && !after_switches.empty();
  if (with_switches) {
    names.erase("set");
    names.erase("wrong");
  }
  std::vector<Changed> options;
  for (const std::string& name : names) {
    const std::string was = before.option(name), is = after.option(name);
    if (was != is && !beside_the_step.contains(name)) options.push_back({name, was, is});
  }
  for (const auto& [key, value] : after_switches.items()) {
    if (!with_switches || !before_switches.contains(key) || before_switches[key] == value) continue;
    const std::string was = before_switches[key], is = value;
    const bool is_option = std::any_of(options.begin(), options.end(), [&, &key = key](const Changed& one) {
      return timeline::may_be_another_name(key, one.option) && one.before == was && one.after == is;
    });
    if (!is_option) changed.push_back({key, was, is});
  }
  changed.insert(changed.end(), options.begin(), options.end());
  return changed;
}

struct Parts {
  double compute = 0, communication = 0, memory = 0, idle = 0, hidden = 0;
};

Parts parts_of(const Timeline& timeline, Window window) {
  Parts parts;
  const auto ranks = static_cast<double>(timeline.ranks.size());
  for (const timeline::Provenance& rank : timeline.ranks) {
    const metrics::Partition partition = metrics::partition(timeline, rank.rank, window);
    parts.compute += static_cast<double>(partition.compute_ns) / ranks;
    parts.communication += static_cast<double>(partition.exposed_communication_ns) / ranks;
    parts.memory += static_cast<double>(partition.exposed_memory_ns) / ranks;
    parts.idle += static_cast<double>(partition.idle_ns) / ranks;
    parts.hidden += static_cast<double>(partition.overlapped_ns) / ranks;
  }
  return parts;
}

using RowKey = std::pair<Class, std::string>;

void add_rows(const Shown& shown, double DiffRow::*column, std::map<RowKey, DiffRow>& rows) {
  const Timeline& timeline = shown.spans();
  const auto ranks = static_cast<double>(timeline.ranks.size());
  const auto add = [&](Class cls, const std::string& name, const std::string& part, const std::string& line, Nanoseconds ns) {
    DiffRow& row = rows[{cls, name}];
    row.cls = cls;
    row.name = name;
    row.part = part;
    if (!line.empty()) row.line = line;
    row.*column += static_cast<double>(ns) / ranks;
  };
  for (const metrics::ExposedKind& kind : metrics::exposed_kinds(timeline, shown.window)) {
    add(Class::communication, kind.name, kind.op, line_text(timeline, kind.line), kind.exposed_ns);
  }
  for (const timeline::Provenance& rank : timeline.ranks) {
    timeline::for_each_device_span(timeline, rank.rank, [&](SpanRef span) {
      if (timeline.cls(span) == Class::communication) return;
      const Nanoseconds ns = std::min(timeline.end(span), shown.window.end) - std::max(timeline.start(span), shown.window.start);
      if (ns <= 0) return;
      const timeline::Detail& detail = timeline.detail(span);
      add(timeline.cls(span), metrics::kind_name(timeline, span), std::string(timeline.strings[detail.part]), line_text(timeline, detail.source), ns);
    });
  }
}

// An op of a rank, and how much of it was exposed. The last number counts its likes in the same layer: a run without some
// other ops of the layer has it under the same key.
using OpKey = std::tuple<std::string, std::string, std::string, int, int, int, int>;
struct OpSeen {
  Class cls{};
  std::string name;
  double exposed = 0;    // part of its span
};

std::map<OpKey, OpSeen> ops_of(const Shown& shown) {
  const Timeline& timeline = shown.spans();
  std::map<OpKey, OpSeen> ops;
  std::map<OpKey, int> likes;
  const Rank rank = timeline.ranks.front().rank;
  const metrics::DeviceSets sets = metrics::clip(metrics::device_sets(timeline, rank), shown.window);
  timeline::for_each_device_span(timeline, rank, [&](SpanRef span) {
    if (timeline.start(span) < shown.window.start || timeline.start(span) >= shown.window.end) return;
    const timeline::Detail& detail = timeline.detail(span);
    OpKey key{std::string(timeline.strings[detail.op]), std::string(timeline.strings[detail.part]), std::string(timeline.strings[detail.phase]),
              detail.micro_batch, detail.chunk, detail.layer, 0};
    std::get<6>(key) = likes[key]++;
    const Nanoseconds length = std::max<Nanoseconds>(1, timeline.end(span) - timeline.start(span));
    ops[key] = {timeline.cls(span), metrics::kind_name(timeline, span), static_cast<double>(metrics::exposed_ns(timeline, sets, span)) / static_cast<double>(length)};
  });
  return ops;
}

void align(const Shown& before, const Shown& after, Diff& diff) {
  const auto was = ops_of(before), is = ops_of(after);
  std::map<std::string, std::int64_t> exposed, hidden;
  for (const auto& [key, op] : is) {
    const auto found = was.find(key);
    if (found == was.end()) {
      ++diff.only_after;
      continue;
    }
    if (op.cls != Class::communication) continue;
    exposed[op.name] += found->second.exposed < 0.25 && op.exposed > 0.5;
    hidden[op.name] += found->second.exposed > 0.5 && op.exposed < 0.25;
  }
  for (const auto& [key, op] : was) diff.only_before += !is.contains(key);
  for (const auto& [name, count] : exposed) diff.newly_exposed += count;
  for (const auto& [name, count] : hidden) diff.newly_hidden += count;
  const auto& of = diff.newly_exposed >= diff.newly_hidden ? exposed : hidden;
  std::vector<std::pair<std::int64_t, std::string>> kinds;
  for (const auto& [name, count] : of) kinds.emplace_back(count, name);
  std::sort(kinds.rbegin(), kinds.rend());
  for (const auto& [count, name] : kinds) {
    if (count > 0) diff.newly += (diff.newly.empty() ? "" : " and ") + counted(count, name);
  }
}

std::string signed_text(double ns) {
  const auto whole = static_cast<Nanoseconds>(std::llround(std::abs(ns)));
  return (ns < 0 ? "-" : "+") + duration_text(whole);
}

std::string clock_of(const Timeline& timeline) {
  return timeline.ranks.empty() ? "no clock" : timeline::clock_text(timeline.ranks.front());
}

std::string changes_text(const Diff& diff) {
  std::string out;
  for (const Changed& one : diff.changed) {
    out += (out.empty() ? "" : ", ") + one.option + (one.before.empty() ? " is " + one.after : " was " + one.before + " and is " + (one.after.empty() ? "not given" : one.after));
  }
  return out;
}

}  // namespace

base::Result<Diff> diff_of(const DiffSide& before, const DiffSide& after, std::optional<int> step) {
  Diff diff;
  diff.clock = clock_of(before.timeline);
  if (diff.clock != clock_of(after.timeline)) {
    return Error{text("the first run's clock is ", diff.clock, " and the second's ", clock_of(after.timeline),
                      ": times of two clocks are not compared")};
  }
  const base::Result<Shown> was = show(before, before.step ? before.step : step), is = show(after, after.step ? after.step : step);
  if (!was) return was.as_error();
  if (!is) return is.as_error();
  diff.changed = changed_options(before.recorded, after.recorded);
  diff.before_ns = was.value().window.length();
  diff.after_ns = is.value().window.length();
  const Parts first = parts_of(was.value().spans(), was.value().window), second = parts_of(is.value().spans(), is.value().window);
  diff.compute_ns = second.compute - first.compute;
  diff.exposed_communication_ns = second.communication - first.communication;
  diff.exposed_memory_ns = second.memory - first.memory;
  diff.idle_ns = second.idle - first.idle;
  diff.hidden_communication_ns = second.hidden - first.hidden;
  std::map<RowKey, DiffRow> rows;
  add_rows(was.value(), &DiffRow::before_ns, rows);
  add_rows(is.value(), &DiffRow::after_ns, rows);
  for (auto& [key, row] : rows) diff.rows.push_back(row);
  std::stable_sort(diff.rows.begin(), diff.rows.end(), [](const DiffRow& a, const DiffRow& b) { return a.difference() > b.difference(); });
  align(was.value(), is.value(), diff);
  diff.calls_before = calls_that_bind(was.value());
  diff.calls_after = calls_that_bind(is.value());
  const bool exact = was.value().study.has_value();
  const double apart = std::abs(static_cast<double>(diff.after_ns - diff.before_ns)) / static_cast<double>(std::max<Nanoseconds>(1, diff.before_ns));
  diff.equal = diff.changed.empty() && diff.only_before == 0 && diff.only_after == 0 && (exact ? diff.after_ns == diff.before_ns : apart <= noise);
  return diff;
}

namespace {

// Rows that differ of the same part as one: collectives of a kind, wherever in a step, and with `of_layers` also what computes in
// the same part of a layer. A collective that has one such row keeps its name and line.
std::vector<DiffRow> by_part(const std::vector<DiffRow>& rows, bool of_layers) {
  std::vector<DiffRow> out;
  std::map<std::pair<bool, std::string>, std::size_t> places;
  for (const DiffRow& row : rows) {
    const bool crosses = row.cls == Class::communication, sums = !row.part.empty() && row.difference() != 0 && (crosses || of_layers);
    const auto [found, is_new] = sums ? places.try_emplace({crosses, row.part}, out.size()) : std::pair(places.end(), true);
    if (is_new) out.push_back(row);
    if (!sums || (is_new && crosses)) continue;
    DiffRow& sum = out[found->second];
    sum.name = row.part;
    if (!crosses || sum.line != row.line) sum.line = "";
    if (is_new) continue;
    sum.before_ns += row.before_ns;
    sum.after_ns += row.after_ns;
  }
  return out;
}

// The `top` rows that differ most, in their order.
std::vector<const DiffRow*> largest(const std::vector<const DiffRow*>& rows, std::size_t top) {
  std::vector<const DiffRow*> by_size = rows;
  std::stable_sort(by_size.begin(), by_size.end(), [](const DiffRow* a, const DiffRow* b) { return std::abs(a->difference()) > std::abs(b->difference()); });
  const std::set<const DiffRow*> kept(by_size.begin(), by_size.begin() + static_cast<std::ptrdiff_t>(std::min(top, rows.size())));
  std::vector<const DiffRow*> out;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(out), [&](const DiffRow* row) { return kept.contains(row); });
  return out;
}

}  // namespace

std::string headline(const Diff& diff) {
  if (diff.equal) {
    const std::string same = "the two runs are equal: the same options, the same ops, and steps of " + duration_text(diff.before_ns);
    return diff.before_ns == diff.after_ns ? same : same + " and " + duration_text(diff.after_ns) + ", which is no difference";
  }
  const Nanoseconds by = diff.after_ns - diff.before_ns;
  const double part = static_cast<double>(by) / static_cast<double>(std::max<Nanoseconds>(1, diff.before_ns));
  std::string out = diff.changed.empty() ? "no option differs" : changes_text(diff);
  if (by == 0) return out + ": the step takes the same " + duration_text(diff.after_ns);
  out += text(": the step takes ", duration_text(std::abs(by)), by > 0 ? " more (+" : " less (-", percent(std::abs(part)), ")");
  const std::int64_t count = by > 0 ? diff.newly_exposed : diff.newly_hidden;
  if (count > 0) {
    out += text(", ", diff.newly, by > 0 ? (count == 1 ? " waits that was hidden" : " wait that were hidden")
                                                         : (count == 1 ? " is hidden that waited" : " are hidden that waited"));
  }
  // Where: of those that changed sides the kind that lost or gained most, else the largest row of all; where ops came and went,
  // all of a part: what went of attention says nothing without what came.
  const DiffRow* most = nullptr;
  const std::vector<DiffRow> rows = by_part(diff.rows, count == 0 && diff.only_before + diff.only_after > 0);
  for (const DiffRow& row : rows) {
    const bool counts = count == 0 || row.cls == Class::communication;
    if (counts && (most == nullptr || (by > 0 ? row.difference() > most->difference() : row.difference() <= most->difference()))) most = &row;
  }
  if (most == nullptr || (by > 0) != (most->difference() > 0)) return out;
  const bool is_most = std::abs(most->difference()) > std::abs(static_cast<double>(by)) / 2;
  out += text(count > 0 ? "; " : ", ", is_most ? "most of it " : "the largest part ", count > 0 ? "is " : "", most->name, ", ", signed_text(most->difference()),
              most->cls == Class::communication ? " exposed" : "", most->line.empty() ? "" : " (" + most->line + ")");
  // What lies open then waits for calls, so its own time is not what the step loses
  if (diff.calls_before > 0 && diff.calls_after > 0 && diff.calls_before != diff.calls_after) {
    out += text("; both steps are bound by their host, which issues ", diff.calls_after, " calls for ", diff.calls_before);
  }
  return out;
}

// The same kernels in another time, and more or less communication beside them: why what is exposed and what the step loses
// need not be alike. "" where it is not so.
std::string why_compute_moved(const Diff& diff) {
  const bool same_ops = diff.only_before == 0 && diff.only_after == 0;
  const bool moved = std::abs(diff.compute_ns) >= 0.01 * static_cast<double>(diff.before_ns);
  const bool with_what_runs_beside = diff.compute_ns * diff.hidden_communication_ns > 0 && diff.compute_ns * diff.exposed_communication_ns < 0;
  if (!same_ops || !moved || !with_what_runs_beside) return "";
  return diff.compute_ns < 0 ? "the same kernels take less time with fewer collectives beside them, so not all that is exposed is lost"
                             : "the same kernels take more time with collectives beside them, so not all that is hidden is won";
}

std::string reconciliation(const Diff& diff) {
  if (diff.equal) return "";
  const double step = static_cast<double>(diff.after_ns - diff.before_ns);
  std::string out = signed_text(step) + " =";
  bool first = true;
  for (const auto& [name, ns] : {std::pair{"compute", diff.compute_ns}, std::pair{"exposed communication", diff.exposed_communication_ns},
                                 std::pair{"exposed memory", diff.exposed_memory_ns}, std::pair{"idle", diff.idle_ns}}) {
    if (std::abs(ns) < std::max(500.0, 1e-4 * static_cast<double>(diff.before_ns))) continue;
    out += text(first ? " " : ", ", name, " ", signed_text(ns));
    first = false;
  }
  if (first) return "";
  const std::string why = why_compute_moved(diff);
  return why.empty() ? out : out + ": " + why;
}

std::string to_text(const Diff& diff, std::size_t top) {
  std::string out = paragraph(headline(diff) + ".");
  if (diff.equal) return out;
  char row[192];
  out += text("\nWhy the step differs by ", signed_text(static_cast<double>(diff.after_ns - diff.before_ns)), " (", diff.clock, ", mean over ranks)\n");
  const auto line = [&](const char* name, double ns) {
    std::snprintf(row, sizeof row, "  %-30s %+12.3f ms\n", name, ns / 1e6);
    out += row;
  };
  line("compute", diff.compute_ns);
  line("exposed communication", diff.exposed_communication_ns);
  line("exposed memory", diff.exposed_memory_ns);
  line("idle", diff.idle_ns);
  line("the step", static_cast<double>(diff.after_ns - diff.before_ns));
  if (std::string why = why_compute_moved(diff); !why.empty()) {
    why[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(why[0])));
    out += paragraph(why + ".");
  }
  const auto table = [&](bool communication, const char* title) {
    std::vector<const DiffRow*> shown;
    for (const DiffRow& one : diff.rows) {
      if ((one.cls == Class::communication) == communication && std::abs(one.difference()) >= 500) shown.push_back(&one);
    }
    if (shown.empty()) return;
    const std::size_t all = shown.size();
    shown = largest(shown, top);
    std::string rows;
    for (const DiffRow* one : shown) {
      std::snprintf(row, sizeof row, "  %-34.34s %9.3f %9.3f %+10.3f", one->name.c_str(), one->before_ns / 1e6, one->after_ns / 1e6, one->difference() / 1e6);
      rows += row;
      rows += one->line.size() > 12 ? "\n      " + one->line + "\n" : "  " + one->line + "\n";
    }
    if (shown.size() < all) rows += text("  and ", counted(static_cast<std::int64_t>(all - shown.size()), "row"), " that differ less (--top)\n");
    out += text("\n", title, "\n  ms                                    before     after difference\n", rows);
  };
  table(true, "Exposed communication, by kind");
  table(false, "Compute and copies, by kernel");
  if (diff.only_before + diff.only_after > 0) {
    out += "\n" + paragraph(text("Of rank 0's ops ", diff.only_before, " are in the first run alone and ", diff.only_after, " in the second alone."));
  }
  return out;
}

nlohmann::json to_json(const Diff& diff, std::size_t top) {
  nlohmann::json changed = nlohmann::json::array(), rows = nlohmann::json::array();
  for (const Changed& one : diff.changed) changed.push_back({{"option", one.option}, {"before", one.before}, {"after", one.after}});
  std::vector<const DiffRow*> all;
  for (const DiffRow& row : diff.rows) all.push_back(&row);
  for (const DiffRow* row : largest(all, top)) {
    rows.push_back({{"class", timeline::name_of(row->cls)}, {"name", row->name}, {"line", row->line}, {"before_ns", row->before_ns}, {"after_ns", row->after_ns}});
  }
  return {{"sentence", headline(diff)}, {"reconciliation", reconciliation(diff)}, {"equal", diff.equal}, {"clock", diff.clock}, {"changed", changed},
          {"before_ns", diff.before_ns}, {"after_ns", diff.after_ns}, {"compute_ns", diff.compute_ns},
          {"exposed_communication_ns", diff.exposed_communication_ns}, {"exposed_memory_ns", diff.exposed_memory_ns}, {"idle_ns", diff.idle_ns},
          {"newly_exposed", diff.newly_exposed}, {"newly_hidden", diff.newly_hidden}, {"only_before", diff.only_before}, {"only_after", diff.only_after},
          {"rows", rows}};
}

}  // namespace shardbook::cause
