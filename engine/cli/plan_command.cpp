#include "engine/cli/plan_command.hpp"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <ostream>

#include "engine/base/json.hpp"
#include "engine/cli/plan_parameters.hpp"
#include "engine/cli/train_config.hpp"
#include "engine/launch/launch.hpp"
#include "engine/launch/rank.hpp"
#include "engine/plan/verify.hpp"
#include "engine/train/planned.hpp"

namespace shardbook::cli {

using base::text;
using plan::Action;
using train::PlannedRank;

namespace {

// ---- The list ----------------------------------------------------------------------------------

// Do shards live in host memory, and so the CPU updates?
bool in_host_memory(const plan::Network& network) {
  return std::any_of(network.units.begin(), network.units.end(), [](const plan::Unit& unit) { return unit.on_host; });
}

std::string subject_of(const Action& action, const plan::Network& network) {
  if (plan::computes(action.kind)) return network.layers[static_cast<std::size_t>(action.layer)].name;
  if (action.kind == plan::Kind::update && in_host_memory(network)) return "by the CPU";
  if (action.kind == plan::Kind::states) return "the first pieces";
  if (action.unit < 0) return "";
  std::string words = network.units[static_cast<std::size_t>(action.unit)].name;
  if (action.units > 1) words += text(" … ", network.units[static_cast<std::size_t>(action.unit + action.units - 1)].name);
  if (*action.axis != 0) words += text(" over ", action.axis);
  return words;
}

// "fsdp/schedule.cpp:20"; without its folder where it would be too wide.
std::string planned_at(const Action& action, int width) {
  std::string place = plan::line_of(action);
  if (place.starts_with("engine/")) place.erase(0, 7);
  return width_of(place) <= width ? place : place.substr(place.rfind('/') + 1);
}

std::string row(const std::string& number, const std::string& kind, const std::string& subject, const std::string& batch,
                const std::string& buffer, const std::string& planned) {
  return text(pad_left(number, 5), "  ", pad_right(kind, 11), " ", pad_right(subject, 26), " ", pad_left(batch, 5), " ", pad_left(buffer, 6), "  ", planned, "\n");
}

std::string row_of(std::size_t at, const PlannedRank& rank) {
  const Action& action = rank.plan.actions[at];
  const std::size_t behind_update = rank.plan.actions.size() - plan::for_the_next_step(rank.plan).size();
  const std::string batch = action.micro_batch < 0 ? "" : at >= behind_update ? "next" : std::to_string(action.micro_batch);
  return row(std::to_string(at), plan::name_of(action.kind), subject_of(action, rank.network), batch,
             action.slot >= 0 ? std::to_string(action.slot) : action.kind == plan::Kind::to_device || action.kind == plan::Kind::to_host ? "@" + std::to_string(action.shard_slot) : "", planned_at(action, plain_columns - 60));
}

// Prints a list with repetitions left out: a stretch that is the same again and again, but for its layers, buffers and
// micro-batches, shows its first time and its last.
class Folded {
 public:
  Folded(const PlannedRank& rank, bool all) : rank_(rank), actions_(rank.plan.actions), all_(all) {}

  std::string list(std::size_t begin, std::size_t end) const {
    std::string out;
    for (std::size_t at = begin; at < end;) {
      const auto [period, times] = repeated(at, end);
      if (all_ || times < 4) {
        out += row_of(at++, rank_);
        continue;
      }
      const std::size_t last = at + period * (times - 1);
      out += list(at, at + period);
      out += text("       … the same ", times - 2, " times more: actions ", at + period, " to ", last - 1, " (--all shows them)\n");
      out += list(last, last + period);
      at = last + period;
    }
    return out;
  }

 private:
  bool alike(std::size_t one, std::size_t other) const {
    const Action &a = actions_[one], &b = actions_[other];
    return a.kind == b.kind && a.phase == b.phase && a.where.line == b.where.line && std::string_view(a.where.file) == b.where.file && std::string_view(a.axis) == b.axis;
  }
  // The stretch from here on that is repeated and covers most, the shortest of those: its length and how often it is there.
  std::pair<std::size_t, std::size_t> repeated(std::size_t begin, std::size_t end) const {
    std::pair<std::size_t, std::size_t> best{1, 1};
    for (std::size_t period = 1; begin + 4 * period <= end; ++period) {
      std::size_t same = 0;
      while (begin + same + period < end && alike(begin + same, begin + same + period)) ++same;
      const std::size_t times = 1 + same / period;
      if (times >= 4 && times * period > best.first * best.second) best = {period, times};
    }
    return best;
  }

  const PlannedRank& rank_;
  const std::vector<Action>& actions_;
  bool all_;
};

// ---- Memory ------------------------------------------------------------------------------------

base::Bytes set_aside(const PlannedRank& rank, program::MemoryKind kind) {
  const auto found = rank.buffers.find(kind);
  return found == rank.buffers.end() ? 0 : found->second;
}

int calls_of(const PlannedRank& rank) {
  return static_cast<int>(std::count_if(rank.plan.actions.begin(), rank.plan.actions.end(), [](const Action& action) { return plan::communicates(action.kind); }));
}

std::string memory_text(const PlannedRank& rank) {
  using program::MemoryKind;
  const plan::Needs& needs = rank.needs;
  auto line = [](const std::string& what, base::Bytes bytes, const std::string& why) {
    return wrapped(text("  ", pad_right(what, 24), pad_left(bytes_text(bytes), 9), "  "), why, plain_columns);
  };
  const bool away = in_host_memory(rank.network);
  std::string out = "\nAt its fullest, this rank holds\n";
  out += line("parameters, whole", needs.gathered_bytes, needs.gathered > 0 ? text("with ", count_text(needs.gathered, "unit"), " at once in shared buffers") : "none in shared buffers");
  if (needs.kept_bytes > 0) out += line("parameters, parts kept", needs.kept_bytes, "of units, from their forward on, to be gathered among ranks near each other");
  out += line("gradients, whole", needs.gradient_bytes, needs.gradient > 0 ? text("with ", count_text(needs.gradient, "unit"), " at once in shared buffers") : "none in shared buffers");
  out += line("activations", set_aside(rank, MemoryKind::activation), text("of ", needs.in_flight == 1 ? "1 micro-batch" : text(needs.in_flight, " micro-batches"), " between forward and backward"));
  out += "and it sets aside\n";
  base::Bytes all = 0;
  for (const auto& [kind, bytes] : rank.buffers) {
    const std::map<MemoryKind, const char*> whys = {
        {MemoryKind::parameter, away ? "places for shards on their way from host memory" : "the shards that it computes with"}, {MemoryKind::gathered, "buffers for units that are whole, or kept in part"},
        {MemoryKind::gradient, away ? "buffers for whole gradients, and places for sums on their way" : "buffers for whole gradients, and shards of their sums"}, {MemoryKind::optimizer, "masters and moments of its shards"},
        {MemoryKind::activation, ""}, {MemoryKind::workspace, ""}, {MemoryKind::input, "tokens"}};
    out += line(program::name_of(kind), bytes, whys.at(kind));
    all += bytes;
  }
  out += line("in all", all, "");
  return rank.on_host == 0 ? out : out + line("and in host memory", rank.on_host, away ? "its shards, their gradients, masters and moments" : "masters and moments of its shards");
}

// ---- Memory by formula -------------------------------------------------------------------------

base::Bytes laid_out(const PlannedRank& rank, plan::Held held) {
  const auto found = rank.laid_out.find(held);
  return found == rank.laid_out.end() ? 0 : found->second;
}

// What was laid out and has no line in the formulas.
base::Bytes forgotten(const PlannedRank& rank) {
  base::Bytes bytes = 0;
  for (const auto& [kind, set_aside] : rank.buffers) bytes += set_aside;
  for (const plan::HeldLine& line : rank.holding.lines) bytes -= line.on_host ? 0 : laid_out(rank, line.held);
  return bytes;
}

// "12 345 678"
std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, " ");
  return digits;
}

std::string derivation_text(const PlannedRank& rank) {
  auto line = [](const std::string& what, base::Bytes formula, base::Bytes lies) {
    return text(pad_right(what, 44), pad_left(bytes_text(formula), 14), pad_left(bytes_text(lies), 14), "\n");
  };
  std::string out;
  for (const plan::Letter& letter : rank.holding.letters) {
    out += wrapped(text("  ", pad_right(letter.letter, 11), pad_left(grouped(letter.value), 14), "  "), letter.meaning, plain_columns);
  }
  out += "\n" + text(pad_right("", 44), pad_left("by formula", 14), pad_left("laid out", 14), "\n");
  const program::MemoryKind* before = nullptr;
  for (const plan::HeldLine& held : rank.holding.lines) {
    if (held.on_host) continue;
    if (before == nullptr || *before != held.kind) out += line(program::name_of(held.kind), rank.holding.bytes(held.kind), set_aside(rank, held.kind));
    before = &held.kind;
    out += line(text("  ", plan::name_of(held.held)), held.bytes, laid_out(rank, held.held)) + wrapped("      ", held.formula, plain_columns);
  }
  base::Bytes lies = 0;
  for (const auto& [kind, bytes] : rank.buffers) lies += bytes;
  out += line("in all", rank.holding.all(), lies);
  if (rank.on_host != 0) out += line("and in host memory", rank.holding.on_host(), rank.on_host);
  for (const plan::HeldLine& held : rank.holding.lines) {
    if (held.on_host) out += line(text("  ", plan::name_of(held.held)), held.bytes, laid_out(rank, held.held)) + wrapped("      ", held.formula, plain_columns);
  }
  return out;
}

// Whether the formulas and the layout agree, in a sentence.
std::string agreement(const PlannedRank& rank) {
  std::string apart;
  bool exact = forgotten(rank) == 0;
  for (const plan::HeldLine& line : rank.holding.lines) {
    const base::Bytes lies = laid_out(rank, line.held), by = std::abs(line.bytes - lies);
    exact = exact && by == 0;
    if (100 * by > lies) apart += text(apart.empty() ? "" : ", ", plan::name_of(line.held), " (", line.bytes, " B and ", lies, " B)");
  }
  if (forgotten(rank) != 0) apart += text(apart.empty() ? "" : ", ", forgotten(rank), " B that have no formula");
  if (exact) return "Formulas and layout agree to the byte.";
  if (apart.empty()) return "Formulas and layout agree within 1 %: widths of a rank that are no multiple of 8 leave gaps.";
  return text("They differ by more than 1 %, so a formula is wrong here: ", apart, ".");
}

nlohmann::json derivation_json(const PlannedRank& rank) {
  nlohmann::json letters = nlohmann::json::array(), lines = nlohmann::json::array();
  for (const plan::Letter& letter : rank.holding.letters) letters.push_back({{"letter", letter.letter}, {"value", letter.value}, {"meaning", letter.meaning}});
  for (const plan::HeldLine& line : rank.holding.lines) {
    lines.push_back({{"kind", program::name_of(line.kind)}, {"what", plan::name_of(line.held)}, {"formula", line.formula}, {"bytes", line.bytes}, {"laid_out_bytes", laid_out(rank, line.held)}, {"in_host_memory", line.on_host}});
  }
  return {{"letters", std::move(letters)}, {"lines", std::move(lines)}, {"bytes", rank.holding.all()}, {"host_bytes", rank.holding.on_host()}, {"forgotten_bytes", forgotten(rank)}};
}

// ---- Verdict -----------------------------------------------------------------------------------

// What the verifier says over all ranks.
struct PlanVerdict {
  std::string problem;   // "" if there is none
  std::string sentence;
};

PlanVerdict verdict_over(const std::vector<PlannedRank>& ranks) {
  std::vector<plan::Plan> plans;
  std::vector<plan::Network> networks;
  for (const PlannedRank& rank : ranks) {
    plans.push_back(rank.plan);
    networks.push_back(rank.network);
  }
  if (const auto problem = plan::problem_of(plans, networks)) return {problem->sentence, problem->sentence};
  const int calls = calls_of(ranks.front());
  std::string sentence = "every unit is whole where it is used and freed after, every gradient is summed once and in time";
  if (ranks.size() > 1) sentence += text(", and all ", ranks.size(), " ranks call the same ", calls, " gathers and reductions in one order");
  return {"", sentence};
}

// ---- JSON --------------------------------------------------------------------------------------

nlohmann::json json_of(const PlannedRank& rank, const config::RunConfig& config, int number, const PlanVerdict& verdict) {
  nlohmann::json actions = nlohmann::json::array();
  for (const Action& action : rank.plan.actions) {
    nlohmann::json one = {{"kind", plan::name_of(action.kind)}, {"phase", program::name_of(action.phase)}, {"planned", plan::line_of(action)}};
    if (action.micro_batch >= 0) one["micro_batch"] = action.micro_batch;
    if (action.layer >= 0) one["layer"] = rank.network.layers[static_cast<std::size_t>(action.layer)].name;
    if (action.unit >= 0) one["unit"] = rank.network.units[static_cast<std::size_t>(action.unit)].name;
    if (action.units > 1) one["units"] = action.units;
    if (action.slot >= 0) one["buffer"] = action.slot;
    if (*action.axis != 0) one["axis"] = action.axis;
    actions.push_back(std::move(one));
  }
  nlohmann::json buffers = nlohmann::json::object();
  for (const auto& [kind, bytes] : rank.buffers) buffers[program::name_of(kind)] = bytes;
  return {{"rank", number}, {"ranks", config.ranks}, {"tp", config.tp}, {"fsdp", config.fsdp}, {"dp", config.dp}, {"micro_batches", config.micro_batches},
          {"actions", std::move(actions)},
          {"peak", {{"gathered_bytes", rank.needs.gathered_bytes}, {"gathered_in_shared_buffers", rank.needs.gathered}, {"kept_bytes", rank.needs.kept_bytes},
                    {"gradient_bytes", rank.needs.gradient_bytes}, {"gradients_in_shared_buffers", rank.needs.gradient},
                    {"micro_batches_in_flight", rank.needs.in_flight}, {"activation_bytes", set_aside(rank, program::MemoryKind::activation)}}},
          {"buffers_bytes", std::move(buffers)}, {"host_bytes", rank.on_host},
          {"memory", derivation_json(rank)},
          {"parameters", parameters_json(rank)},
          {"problem", verdict.problem.empty() ? nlohmann::json() : nlohmann::json(verdict.problem)}};
}

std::string heading(const char* what, const config::RunConfig& config, int number) {
  return text(what, " of rank ", number, " of ", config.ranks, ": ", config.model.preset, " · tp ", config.tp, " × fsdp ", config.fsdp,
              config.dp > 1 ? text(" × dp ", config.dp) : "", " · ", config.micro_batches, config.micro_batches == 1 ? " micro-batch" : " micro-batches", "\n");
}

}  // namespace

std::vector<Switch> plan_switches() {
  std::vector<Switch> switches = {{"rank", "N", "The rank whose plan is printed.", "0"},
                                  {"all", "", "Print every action, and with --parameters every unit; else those that repeat are folded.", ""},
                                  {"parameters", "", "Print what the rank holds of each parameter, and what the others do, instead of the actions.", ""},
                                  {"memory", "", "Print what the rank sets aside, by formula, instead of the actions.", ""}};
  const std::vector<Switch> training = training_switches();
  switches.insert(switches.end(), training.begin(), training.end());
  return switches;
}

int plan_of(const Line& line, Console& console) {
  if (line.has("memory") && line.has("parameters")) {
    return refuse(console, "--memory and --parameters are two lists, each in the place of the actions: ask for one of them, or for --json, which has both");
  }
  base::Result<TrainingConfig> made = config_of_shapes(line, launch::gpus_available());
  if (!made) return refuse(console, made.error());
  const config::RunConfig& config = made.value().config;
  int number = 0;
  if (line.has("rank")) {
    base::Result<int> asked = whole_number("rank", line.value("rank"));
    if (!asked) return refuse(console, asked.error());
    number = asked.value();
  }
  if (number >= config.ranks) return refuse(console, text("there is no rank ", number, ": this layout has ranks 0 to ", config.ranks - 1));

  std::vector<PlannedRank> ranks;
  for (int rank = 0; rank < config.ranks; ++rank) {
    base::Result<PlannedRank> planned = train::planned(config, launch::mesh_of(config), rank);
    if (!planned) return refuse(console, planned.error());
    ranks.push_back(std::move(planned).value());
  }
  const PlannedRank& shown = ranks[static_cast<std::size_t>(number)];
  const PlanVerdict verdict = verdict_over(ranks);
  if (config.json) {
    console.out << base::json_text_or_throw(json_of(shown, config, number, verdict), 2) << "\n";
    return verdict.problem.empty() ? exit_ok : exit_bad_input;
  }
  for (const std::string& sentence : made.value().said) console.out << wrapped("note: ", sentence, plain_columns);
  std::string last = text(verdict.problem.empty() ? "Verified: " : "Refused: ", verdict.sentence, ".");
  if (line.has("memory")) {
    console.out << heading("Memory", config, number) << "\n" << derivation_text(shown) << "\n";
    if (verdict.problem.empty()) last = agreement(shown);
  } else if (line.has("parameters")) {
    console.out << heading("Parameters", config, number) << "\n" << parameters_text(shown, line.has("all")) << "\n";
  } else {
    console.out << heading("A step", config, number) << count_text(static_cast<long long>(shown.plan.actions.size()), "action") << "\n\n"
                << row("", "action", "of", "batch", "buffer", "planned at") << Folded(shown, line.has("all")).list(0, shown.plan.actions.size())
                << memory_text(shown) << "\n";
  }
  console.out << wrapped("", last, plain_columns);
  return verdict.problem.empty() ? exit_ok : exit_bad_input;
}

}  // namespace shardbook::cli
