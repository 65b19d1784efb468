#include "engine/cli/report.hpp"

#include <algorithm>
#include <cmath>

#include "engine/cause/why.hpp"
#include "engine/cli/console.hpp"
#include "engine/config/in_force.hpp"
#include "engine/metrics/critical_path.hpp"
#include "engine/metrics/exposed_kinds.hpp"
#include "engine/metrics/exposure.hpp"
#include "engine/metrics/table.hpp"

namespace shardbook::cli {

using base::text;
using config::Clock;
using config::DeviceKind;

namespace {

constexpr std::size_t most_rows = 16;   // of a table in a report; `metrics` prints all
constexpr std::size_t most_kinds_named = 5;

std::string percent(double share) { return share < 0 ? "none" : fixed(100 * share, 1) + " %"; }

// A paragraph whose lines all begin alike.
std::string lines_of(const std::string& indent, const std::string& paragraph) {
  std::string out;
  for (const std::string& line : wrap(paragraph, plain_columns - width_of(indent))) out += indent + line + "\n";
  return out;
}

// "  clock   MODELLED h200x8"
std::string field(const std::string& name, const std::string& value) {
  return wrapped("  " + pad_right(name, 8), value, plain_columns);
}

const char* where_ranks_live(const config::RunConfig& config) {
  switch (config.device) {
    case DeviceKind::host: return config.launch == config::Launch::processes ? "processes of this machine (--device host)" : "threads of this machine (--device host)";
    case DeviceKind::meta: return "shapes only, nothing is computed (--device meta)";
    case DeviceKind::cuda: return "a process and a GPU each (--device cuda)";
  }
  return "";
}

// The modelled clock stands for another machine than the one that computes.
std::string numbers_phrase(const config::RunConfig& config) {
  const std::string nominal = config::name_of(config.precision);
  if (config.device == DeviceKind::cuda) return nominal + (config.precision == config::Precision::bf16 ? " with fp32 masters" : "");
  if (config.device == DeviceKind::meta) return nominal + " sizes";
  return text(config.host_dtype == config::HostDtype::f64 ? "fp64" : "fp32", " on the CPU, sizes counted as ", nominal);
}

std::string loss_line(const config::RunConfig& config, const launch::Outcome& outcome) {
  if (config::only_times_count(config)) return "No losses: with these switches only times count.\n";
  if (outcome.results.empty()) return "No losses: this device computes shapes only.\n";
  const train::StepResult& first = outcome.results.front();
  const train::StepResult& last = outcome.results.back();
  std::string line = text("Loss ", fixed(first.loss, 3), " at first, ", fixed(last.loss, 3), " in step ", last.step,
                          " (nats a token; a guess among ", config.model.vocab, " costs ", fixed(std::log(config.model.vocab), 3), ").\n");
  if (outcome.stopped_early) line = text("Stopped after ", last.step + 1, " of ", config.steps, " steps. ") + line;
  if (!outcome.failure.empty()) line += lines_of("", text("FAILED: ", outcome.failure));
  return line;
}

// "1.23 GiB", "41 MiB"
std::string memory_text(double bytes) {
  const double mebibytes = bytes / (1024.0 * 1024);
  return mebibytes < 1024 ? fixed(mebibytes, mebibytes < 10 ? 1 : 0) + " MiB" : fixed(mebibytes / 1024, 2) + " GiB";
}

std::string duration(double ns) { return metrics::duration_text(std::llround(ns)); }
// Of a step, which is compared with another's: to a hundredth of a millisecond.
std::string step_text(double ns) { return ns < 1e6 ? duration(ns) : fixed(ns / 1e6, 2) + " ms"; }

std::string figures(const config::RunConfig& config, const launch::Outcome& outcome, const Totals& totals) {
  const launch::Speed& speed = outcome.speed;
  const bool measured = speed.clock == Clock::measured;
  std::string out = text("All ranks together, ", clock_phrase(config), "\n");
  std::string rate = text(speed.clock == Clock::modelled ? "≈ " : "", short_number(speed.tokens_per_second), " tokens/s · ",
                          step_text(speed.step_ns), " a step");
  if (measured) {
    rate += text(" (median of ", speed.steps_counted, ", ", duration(speed.step_min_ns), " to ", duration(speed.step_max_ns), ")");
  }
  if (speed.mfu >= 0) rate += text(" · MFU ", percent(speed.mfu), " of ", std::round(speed.peak_flops / 1e12), " TFLOP/s a GPU");
  out += field("speed", rate);
  if (totals.window_ns > 0) {
    out += field("overlap", text(percent(totals.overlap()), " of communication ran under compute · exposed communication was ",
                                 percent(totals.exposed_share()), " of the time"));
  }
  // Known of the marks that a step has whose host is ahead
  const std::string on_stream = speed.tracing_pair_ns > 0 ? text(", ", duration(speed.tracing_pair_ns), " an op on its stream") : "";
  if (speed.replayed > 0) {
    out += field("graph", text(speed.replayed, " steps were one launch each of a graph of ", speed.graph.nodes, " nodes; speed is theirs. Traced steps, which timeline and table show, were issued one by one: ",
                               duration(speed.traced_step_ns), " a step with what tracing costs", on_stream));
  } else if (measured) {
    out += field("tracing", text("costs ", fixed(100 * speed.tracing_cost, 1), " % of a traced step", on_stream,
                                 "; steps that are not traced pay nothing"));
  } else if (speed.traced_step_ns > 0 && duration(speed.traced_step_ns) != duration(speed.step_ns)) {
    out += field("tracing", text("writing the timeline costs time: its steps, and the table's, take ", duration(speed.traced_step_ns), speed.as_graph ? "; launched by one call, and without tracing, a step takes " : "; without tracing a step takes ", duration(speed.step_ns), ", as speed and sentence say"));
  }
  if (speed.peak_memory_bytes > 0) out += field("memory", text(memory_text(speed.peak_memory_bytes), config.device == config::DeviceKind::meta ? " that rank 0 of a GPU run would allocate; `plan --memory` derives it" : " allocated by rank 0"));
  return out;
}

// What was saved, and what the steps had of it.
std::string saved_text(const config::RunConfig& config, const launch::Saves& saves) {
  if (saves.count == 0) return "";
  return text("Saved ", config.checkpoint, "\n") +
         lines_of("      ", text(count_text(saves.count, "checkpoint"), " of ", short_number(static_cast<double>(saves.bytes), " "), "B, each written in ",
                                 duration(static_cast<double>(saves.writing) / saves.count), " by the wall's clock, beside the steps, which waited ",
                                 duration(static_cast<double>(saves.waited)), " in all.")) +
         (saves.left.empty() ? "" : lines_of("      ", text("Older ones are there still: ", saves.left, "."))) +
         text("      ./shardbook train --resume ", shell_word(config.checkpoint), "\n");
}

std::string table_part(const timeline::Timeline& timeline) {
  std::vector<metrics::RankRow> rows = metrics::rank_rows(timeline);
  const std::size_t all = rows.size();
  if (all > most_rows) rows.resize(most_rows);
  std::string out = metrics::table_text(timeline, rows);
  if (all > most_rows) out += text("  … and ", all - most_rows, " ranks more: `./shardbook metrics` prints all of them\n");
  return out;
}

std::vector<metrics::ExposedKind> kinds_of(const timeline::Timeline& timeline) {
  return metrics::exposed_kinds(timeline, metrics::common_window(timeline));
}

// Steps count from 0: in progress lines, tables and timelines as in --trace-steps.
std::string steps_phrase(const timeline::Timeline& timeline) {
  const auto [first, last] = std::minmax_element(timeline.steps.begin(), timeline.steps.end(), [](const auto& left, const auto& right) {
    return left.number < right.number;
  });
  if (first->number == last->number) return text("in step ", first->number);
  return text("in steps ", first->number, " to ", last->number);
}

// "./shardbook show x" and what it is good for, in two columns; a long command stands alone.
std::string next_steps(const launch::Outcome& outcome, bool has_timeline, const std::optional<book::Lab>& lab) {
  std::vector<std::pair<std::string, std::string>> steps;
  if (!outcome.folder.empty() && has_timeline) {
    steps.emplace_back("./shardbook view " + shell_word(outcome.folder), "see it beside the notes");
    steps.emplace_back("./shardbook show " + shell_word(outcome.folder), "the same in the terminal");
    steps.emplace_back("./shardbook why " + shell_word(outcome.folder), "all causes, with what each costs");
  }
  if (lab) steps.emplace_back("./shardbook read labs/" + lab->name, "the lab's text, and its questions");
  if (lab) steps.emplace_back("./shardbook next", "what the labs ask next");
  steps.emplace_back("./shardbook read " + (lab && !lab->note.empty() ? lab->note : std::string("04")), "why it is so");
  constexpr int command_columns = 40;
  std::string out;
  for (const auto& [command, reason] : steps) {
    const bool fits = width_of(command) <= command_columns;
    out += (out.empty() ? "Next  " : "      ") + (fits ? pad_right(command, command_columns + 2) + reason : command) + "\n";
  }
  return out;
}

}  // namespace

std::string clock_phrase(const config::RunConfig& config) {
  switch (config.clock) {
    case Clock::measured: return "measured on the GPUs";
    case Clock::modelled: return "MODELLED " + config.profile;
    case Clock::wall: return "wall clock of this CPU";
  }
  return "";
}

Totals totals_of(const timeline::Timeline& timeline) {
  Totals totals;
  for (const metrics::RankRow& row : metrics::rank_rows(timeline)) {
    totals.window_ns += row.partition.window.length();
    totals.communication_ns += row.partition.communication_ns;
    totals.overlapped_ns += row.partition.overlapped_ns;
    totals.exposed_ns += row.partition.exposed_communication_ns;
  }
  return totals;
}

std::string heading_text(const config::RunConfig& config, const std::optional<book::Lab>& lab) {
  std::string out;
  if (lab) out += text("Lab ", lab->name.substr(0, lab->name.find('_')), " · ", lab->title, "\n");
  const config::ModelConfig& model = config.model;
  out += field("where", text(count_text(config.ranks, "rank"), " = tp ", config.tp, " × fsdp ", config.fsdp, config.dp > 1 ? text(" × dp ", config.dp) : "", " · ",
                             where_ranks_live(config), " · ", numbers_phrase(config)));
  out += field("clock", clock_phrase(config));
  out += field("model", text(model.preset, ": ", model.layers, " layers, d ", model.width, ", ", model.heads, " heads, vocabulary ",
                             model.vocab, ", ", short_number(static_cast<double>(config::parameter_count(model)), " "), " parameters"));
  std::string data;
  for (const std::string& name : config.data) data += (data.empty() ? "" : ", ") + name;
  out += field("batch", text(config.sequences, " sequences of ", model.sequence, " tokens a step, in ",
                             config.micro_batches, config.micro_batches == 1 ? " micro-batch" : " micro-batches", " a rank · ",
                             count_text(config.steps, "step"), " · data: ", data));
  return out;
}

cause::Recorded recorded_of(launch::Outcome& outcome) {
  cause::Recorded recorded;
  recorded.records = std::move(outcome.records);
  recorded.info = outcome.info;
  return recorded;
}

std::string outcome_text(const config::RunConfig& config, const launch::Outcome& outcome, const cause::Recorded& recorded,
                         const std::optional<book::Lab>& lab) {
  std::string out = loss_line(config, outcome) + "\n";
  const bool has_timeline = outcome.timeline.spans() > 0 && !outcome.timeline.steps.empty();
  if (has_timeline) {
    out += text("Where the time of each rank went ", steps_phrase(outcome.timeline), "; the four parts sum to the window\n");
    out += table_part(outcome.timeline) + "\n";
  } else {
    const bool too_early = outcome.stopped_early && !outcome.results.empty() && outcome.results.back().step < config.trace_steps.begin;
    out += (too_early ? text("It was stopped before step ", config.trace_steps.begin, ", the first that is traced, so there is no timeline.")
                      : std::string("No step was traced, so there is no timeline: --trace-steps A:B names the steps to record.")) + "\n\n";
  }
  if (outcome.speed.step_ns > 0) out += figures(config, outcome, has_timeline ? totals_of(outcome.timeline) : Totals{}) + "\n";
  if (has_timeline) {
    const std::string kinds = metrics::kinds_text(outcome.timeline, kinds_of(outcome.timeline), most_kinds_named);
    if (!kinds.empty()) out += "Which communication was exposed, in sum over all ranks\n" + kinds + "\n";
    out += text("What bounds the step, ", clock_phrase(config), "\n");
    out += lines_of("  ", cause::headline_of(outcome.timeline, recorded) + ".");
    out += "The longest exposure that blocked a step\n";
    out += lines_of("  ", metrics::exposure_sentence(outcome.timeline, metrics::common_window(outcome.timeline)) + ".") + "\n";
  }
  if (!outcome.folder.empty()) out += text("Run   ", outcome.folder, "\n");
  out += saved_text(config, outcome.saves);
  return out + next_steps(outcome, has_timeline, lab);
}

nlohmann::json outcome_json(const config::RunConfig& config, const launch::Outcome& outcome, const cause::Recorded& recorded) {
  const launch::Speed& speed = outcome.speed;
  nlohmann::json losses = nlohmann::json::array();
  for (const train::StepResult& result : outcome.results) losses.push_back(result.loss);
  nlohmann::json json = {
      {"lab", config.lab},
      {"model", config.model.preset},
      {"parameters", config::parameter_count(config.model)},
      {"device", config::name_of(config.device)},
      {"ranks", config.ranks},
      {"tp", config.tp},
      {"fsdp", config.fsdp},
      {"dp", config.dp},
      {"clock", config::name_of(config.clock)},
      {"profile", config.clock == Clock::modelled ? config.profile : ""},
      {"losses", losses},
      {"stopped_early", outcome.stopped_early},
      {"failure", outcome.failure},
      {"step_ns", speed.step_ns},
      {"step_min_ns", speed.step_min_ns},
      {"step_max_ns", speed.step_max_ns},
      {"steps_counted", speed.steps_counted},
      {"tokens_per_second", speed.tokens_per_second},
      {"allocated_bytes", speed.peak_memory_bytes},
      {"folder", outcome.folder}};
  json["mfu"] = speed.mfu >= 0 ? nlohmann::json(speed.mfu) : nlohmann::json();
  if (speed.traced_step_ns > 0) json["traced_step_ns"] = speed.traced_step_ns;
  if (speed.replayed > 0) json["graph"] = {{"replayed", speed.replayed}, {"nodes", speed.graph.nodes}, {"made_in_ns", speed.graph.made_in}};
  if (speed.clock == Clock::measured) {
    json["tracing_cost"] = speed.tracing_cost;
    json["tracing_pair_ns"] = speed.tracing_pair_ns;
  }
  if (outcome.timeline.spans() == 0 || outcome.timeline.steps.empty()) return json;
  const Totals totals = totals_of(outcome.timeline);
  const auto share = [](double value) { return value >= 0 ? nlohmann::json(value) : nlohmann::json(); };
  json["overlap"] = share(totals.overlap());
  json["exposed_share"] = share(totals.exposed_share());
  json["tables"] = metrics::table_json(outcome.timeline, metrics::rank_rows(outcome.timeline));
  json["exposed_kinds"] = metrics::kinds_json(outcome.timeline, kinds_of(outcome.timeline));
  json["sentence"] = cause::headline_of(outcome.timeline, recorded);
  json["exposure"] = metrics::exposure_sentence(outcome.timeline, metrics::common_window(outcome.timeline));
  return json;
}

}  // namespace shardbook::cli
