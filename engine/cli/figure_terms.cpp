// The terms of figures.hpp: what can be asked of a run on meta, of the profile, and of the formulas of notes 03 and 04.
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include "engine/cause/whatif.hpp"
#include "engine/cli/figures.hpp"
#include "engine/cli/report.hpp"
#include "engine/cli/train_config.hpp"
#include "engine/launch/launch.hpp"
#include "engine/launch/rank.hpp"
#include "engine/simulate/cost.hpp"
#include "engine/simulate/profile.hpp"
#include "engine/train/planned.hpp"

namespace shardbook::cli {

using base::Error;
using base::Result;
using base::text;

namespace {

const char* const profile_name = "h200x8";

std::vector<std::string> words_in(std::string_view line) {
  std::istringstream stream{std::string(line)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// ---- Of a run ------------------------------------------------------------------------------------

// A modelled run of options of `train`, and its step ready to be resolved again. Each line of options is run once.
struct Modelled {
  cause::Recorded recorded;
  std::optional<cause::Study> study;   // of what is recorded, once it was asked for
  double step_ns = 0;
  std::size_t calls = 0, collectives = 0;   // of a step of rank 0
};

Result<Modelled*> modelled(const std::string& options) {
  static std::map<std::string, Modelled> known;
  if (const auto found = known.find(options); found != known.end()) return &found->second;
  Result<launch::Outcome> outcome = run_on_meta(words_in(options), false);
  if (!outcome) return outcome.as_error();
  Modelled made;
  made.step_ns = outcome.value().speed.step_ns;
  made.recorded = recorded_of(outcome.value());
  const program::Program& program = *made.recorded.records.front().programs.back();
  made.calls = program.commands.size();
  for (const program::Op& op : program.ops) made.collectives += program::class_of(op.desc.kind) == program::OpClass::communication;
  return &known.emplace(options, std::move(made)).first->second;
}

// "--tp 2 with comm=0": the step with that change, or as it is.
Result<cause::WhatIf> resolved(std::string_view arguments) {
  const std::size_t with = arguments.find(" with ");
  const Result<Modelled*> run = modelled(std::string(arguments.substr(0, with)));
  if (!run) return run.as_error();
  std::optional<cause::Study>& study = run.value()->study;
  if (!study) {
    Result<cause::Study> made = cause::study_of(run.value()->recorded, std::nullopt);
    if (!made) return made.as_error();
    study = std::move(made).value();
  }
  cause::Asked asked;
  if (with == std::string_view::npos) asked.scale = {"compute=1"};
  else for (const std::string& word : words_in(arguments.substr(with + 6))) (word.starts_with("wait") ? asked.drop : asked.scale).push_back(word);
  return cause::what_if(*study, asked);
}

Result<double> step(std::string_view arguments) {
  if (arguments.find(" with ") == std::string_view::npos) {
    const Result<Modelled*> run = modelled(std::string(arguments));
    if (!run) return run.as_error();
    return run.value()->step_ns;
  }
  const Result<cause::WhatIf> answer = resolved(arguments);
  if (!answer) return answer.as_error();
  return static_cast<double>(answer.value().after_ns);
}

Result<double> exposed(std::string_view arguments) {
  const Result<cause::WhatIf> answer = resolved(arguments);
  if (!answer) return answer.as_error();
  return static_cast<double>(answer.value().after.exposed_communication_ns);
}

Result<double> calls(std::string_view arguments) {
  const Result<Modelled*> run = modelled(std::string(arguments));
  if (!run) return run.as_error();
  return static_cast<double>(run.value()->calls);
}

Result<double> collectives(std::string_view arguments) {
  const Result<Modelled*> run = modelled(std::string(arguments));
  if (!run) return run.as_error();
  return static_cast<double>(run.value()->collectives);
}

// "memory gradient --fsdp 8": what rank 0 sets aside of a kind, of "all", or in "host" memory, in bytes.
Result<double> memory(std::vector<std::string> words) {
  const std::string kind = words.empty() ? "" : words.front();
  if (!words.empty()) words.erase(words.begin());
  const Result<config::RunConfig> config = config_on_meta(words);
  if (!config) return config.as_error();
  const Result<train::PlannedRank> planned = train::planned(config.value(), launch::mesh_of(config.value()), 0);
  if (!planned) return planned.as_error();
  if (kind == "host") return static_cast<double>(planned.value().on_host);
  bool known = kind == "all";
  double bytes = 0;
  for (const program::MemoryKind one : {program::MemoryKind::parameter, program::MemoryKind::gathered, program::MemoryKind::gradient, program::MemoryKind::optimizer,
                                        program::MemoryKind::activation, program::MemoryKind::workspace, program::MemoryKind::input}) {
    if (kind != "all" && kind != program::name_of(one)) continue;
    known = true;
    const auto found = planned.value().buffers.find(one);
    bytes += found == planned.value().buffers.end() ? 0 : static_cast<double>(found->second);
  }
  if (!known) return Error{text("`memory` takes a kind of memory, `all` or `host`, then options of a run, not '", kind, "'")};
  return bytes;
}

// ---- Of the profile --------------------------------------------------------------------------------

const simulate::CostModel& machine() {
  static const simulate::CostModel model{simulate::find_profile(profile_name).value()};
  return model;
}

using Numbers = std::vector<double>;

Result<const simulate::Curve*> curve_of(const std::string& kind, int ranks) {
  for (const auto& [of, curves] : machine().profile().collectives) {
    if (program::name_of(of) != kind) continue;
    const auto found = curves.find(ranks);
    if (found != curves.end()) return &found->second;
  }
  return Error{text("the profile has no ", kind, " over ", ranks, " ranks")};
}

// α: what the smallest buffer takes, ns. β: the slope between the two largest, ns a byte.
double alpha(const simulate::Curve& curve) { return curve.front().ns; }
double beta(const simulate::Curve& curve) {
  const simulate::CurvePoint &last = curve.back(), &before = curve[curve.size() - 2];
  return (last.ns - before.ns) / static_cast<double>(last.bytes - before.bytes);
}
// Where the line through the two largest meets no bytes: what a large buffer seems to pay before its first byte.
double large_alpha(const simulate::Curve& curve) { return at(curve, 8 << 20) - beta(curve) * (8 << 20); }

double rate(double m, double n, double k) {
  const program::GemmSize size{.m = static_cast<std::int64_t>(m), .n = static_cast<std::int64_t>(n), .k = static_cast<std::int64_t>(k), .batch = 1};
  return 2 * m * n * k / machine().gemm_ns(size, base::DType::bf16);
}
// P: what large matmuls reach, flops a ns.
double peak() { return rate(4096, 4096, 4096); }

const simulate::Curve& sums_over(double ranks) { return *curve_of("all_reduce", static_cast<int>(ranks)).value(); }
const simulate::Curve& gathers_over(double ranks) { return *curve_of("all_gather", static_cast<int>(ranks)).value(); }
const simulate::Curve& scatters_over(double ranks) { return *curve_of("reduce_scatter", static_cast<int>(ranks)).value(); }

struct Formula {
  std::size_t numbers;
  std::function<double(const Numbers&)> value;
};

// Formulas of the notes, by name. d: width, N: tokens, t and n: ranks.
const std::map<std::string, Formula, std::less<>>& formulas() {
  static const std::map<std::string, Formula, std::less<>> table = {
      {"matmul", {3, [](const Numbers& a) { return 2 * a[0] * a[1] * a[2] / rate(a[0], a[1], a[2]); }}},
      {"rate", {3, [](const Numbers& a) { return rate(a[0], a[1], a[2]); }}},
      // note 03: d N t
      {"tp_compute", {3, [](const Numbers& a) { return 72 * a[1] * a[0] * a[0] / (a[2] * peak()); }}},
      {"tp_sums", {3, [](const Numbers& a) { return 4 * at(sums_over(a[2]), static_cast<base::Bytes>(2 * a[0] * a[1])); }}},
      {"tp_width", {1, [](const Numbers& a) { return beta(sums_over(a[0])) * peak() * a[0] / (9 * (a[0] - 1)); }}},
      {"tp_tokens", {2, [](const Numbers& a) {
         const simulate::Curve& sums = sums_over(a[1]);
         return large_alpha(sums) / (a[0] * (18 * a[0] * (1 - 1 / a[1]) / peak() - 2 * beta(sums)));
       }}},
      {"tp_hides_width", {1, [](const Numbers& a) { return beta(sums_over(a[0])) * peak() * a[0] / 4; }}},
      // note 04: n
      {"fsdp_forward_tokens", {1, [](const Numbers& a) { return peak() * beta(gathers_over(a[0])); }}},
      {"fsdp_backward_tokens", {1, [](const Numbers& a) { return peak() * (beta(gathers_over(a[0])) / 2 + beta(scatters_over(a[0]))); }}},
      {"fsdp_bf16_tokens", {1, [](const Numbers& a) { return peak() * (beta(gathers_over(a[0])) + beta(scatters_over(a[0]))) / 2; }}},
      {"fsdp_tutor_tokens", {1, [](const Numbers& a) { return peak() * (beta(gathers_over(a[0])) + alpha(gathers_over(a[0])) / (2 * 198272.0)); }}},
  };
  return table;
}

Result<double> number_in(const std::string& word) {
  std::size_t end = 0;
  double number = 0;
  try {
    number = std::stod(word, &end);
  } catch (const std::exception&) {
    return Error{text("'", word, "' is no number")};
  }
  const std::string unit = word.substr(end);
  if (unit == "KiB") return number * 1024;
  if (unit == "MiB") return number * 1048576;
  if (!unit.empty()) return Error{text("'", word, "' is no number")};
  return number;
}

// "alpha all_reduce 2", "collective all_gather 8 64MiB".
Result<double> of_collective(const std::string& name, const std::vector<std::string>& words) {
  const bool sized = name == "collective" || name == "line_short";
  if (words.size() != (sized ? 3u : 2u)) return Error{text("`", name, "` takes a kind and a number of ranks", sized ? ", and a size" : "")};
  const Result<double> ranks = number_in(words[1]);
  if (!ranks) return ranks;
  const Result<const simulate::Curve*> curve = curve_of(words[0], static_cast<int>(ranks.value()));
  if (!curve) return curve.as_error();
  if (name == "alpha") return alpha(*curve.value());
  if (name == "beta") return beta(*curve.value()) * 1000;   // ps a byte
  if (name == "large_alpha") return large_alpha(*curve.value());
  const Result<double> bytes = number_in(words[2]);
  if (!bytes) return bytes;
  const double measured = at(*curve.value(), static_cast<base::Bytes>(bytes.value()));
  if (name == "collective") return measured;
  return 1 - (alpha(*curve.value()) + beta(*curve.value()) * bytes.value()) / measured;
}

Result<double> of_formula(const std::string& name, const Formula& formula, const std::vector<std::string>& words) {
  if (words.size() != formula.numbers) return Error{text("`", name, "` takes ", formula.numbers, " numbers")};
  Numbers numbers;
  for (const std::string& word : words) {
    const Result<double> number = number_in(word);
    if (!number) return number;
    numbers.push_back(number.value());
  }
  return formula.value(numbers);
}

Result<double> one_term(std::string_view term) {
  const std::vector<std::string> words = words_in(term);
  if (words.empty()) return Error{"an empty term"};
  const std::string& name = words[0];
  const std::string_view rest = term.substr(term.find(name) + name.size());
  const std::vector<std::string> arguments(words.begin() + 1, words.end());
  if (name == "step") return step(rest);
  if (name == "exposed") return exposed(rest);
  if (name == "calls") return calls(rest);
  if (name == "collectives") return collectives(rest);
  if (name == "memory") return memory(arguments);
  if (name == "alpha" || name == "beta" || name == "large_alpha" || name == "collective" || name == "line_short") return of_collective(name, arguments);
  if (const auto formula = formulas().find(name); formula != formulas().end()) return of_formula(name, formula->second, arguments);
  std::string known = "step, exposed, calls, collectives, memory, alpha, beta, large_alpha, collective, line_short";
  for (const auto& [one, formula] : formulas()) known += ", " + one;
  return Error{text("there is no term '", name, "'; there are ", known)};
}

}  // namespace

Result<double> value_of_term(std::string_view term) {
  // A sum of products would need a grammar; two terms are all that texts have needed.
  for (const std::string_view sign : {"below", "/", "-", "*"}) {
    const std::string between = text(" ", sign, " ");
    const std::size_t at = term.find(between);
    if (at == std::string_view::npos) continue;
    const Result<double> left = one_term(term.substr(0, at)), right = one_term(term.substr(at + between.size()));
    if (!left) return left;
    if (!right) return right;
    if (sign == "below") return 1 - left.value() / right.value();   // what is saved, as a share
    return sign == "/" ? left.value() / right.value() : sign == "-" ? left.value() - right.value() : left.value() * right.value();
  }
  return one_term(term);
}

}  // namespace shardbook::cli
