#include "engine/cause/causes.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/cause/lines.hpp"
#include "engine/cause/recorded.hpp"
#include "engine/cause/remedies.hpp"
#include "engine/cause/text.hpp"
#include "engine/cause/without.hpp"
#include "engine/metrics/exposure.hpp"
#include "engine/timeline/from_program.hpp"

namespace shardbook::cause {

using base::text;
using program::Command;
using program::CommandKind;
using program::OpClass;
using program::OpKind;
using simulate::Change;

namespace {

class Search {
 public:
  Search(const Study& study, const Recorded& recorded) : study_(study), without_(study), remedies_(recorded) {}

  Findings run() {
    lines_ = collectives_of(study_);
    measure_regimes();
    const std::optional<Cause> cpu = cause_of_cpu(without_);
    if (cpu) add(*cpu);
    // What issuing costs is the rest
    Cause calls = cause_of_host(without_, remedies_, out_);
    if (cpu) calls.gain_ns -= std::min(calls.gain_ns, cpu->gain_ns);
    add(std::move(calls));
    // What begins too late comes first: the others are what they are once that is mended.
    for (const auto& [line, collectives] : lines_) find_late(line, collectives);
    // What others still cost is asked of the mended step, so it is that one in which they lie open, or are covered.
    if (mended_ns_ > 0) measure_what_is_open(study_, mended_, lines_);
    for (const auto& [line, collectives] : lines_) add_line(line, collectives);
    add_without_rest();
    add_edges();
    add_late_sums();
    for (Cause& cause : causes_of_machines(without_, remedies_, out_)) add(std::move(cause));
    std::stable_sort(out_.causes.begin(), out_.causes.end(), [](const Cause& a, const Cause& b) {
      return a.avoidable != b.avoidable ? a.avoidable : a.gain_ns > b.gain_ns;
    });
    lead_with_a_wait();
    return std::move(out_);
  }

 private:
  // All calls of the host together gain what one wait among them gains, and a little more. Where that is all, the wait is why,
  // and not what some of the calls cost.
  void lead_with_a_wait() {
    std::vector<Cause>& causes = out_.causes;
    const auto calls = std::find_if(causes.begin(), causes.end(), [](const Cause& one) { return one.regime == Regime::host && !one.is_host_wait; });
    const auto wait = std::find_if(calls, causes.end(), [](const Cause& one) { return one.is_host_wait; });
    if (wait != causes.end() && 10 * wait->gain_ns >= 9 * out_.host_ns) std::rotate(calls, wait, std::next(wait));
  }

  Nanoseconds gain(const Change& change) const { return without_.gain(change); }
  Nanoseconds gain_of(double simulate::Scale::*factor) const { return without_.gain_of(factor); }
  bool is_worth(Nanoseconds ns) const { return without_.is_worth(ns); }
  void add(Cause cause) {
    if (is_worth(cause.gain_ns)) out_.causes.push_back(std::move(cause));
  }

  void measure_regimes() {
    using simulate::Scale;
    out_.host_ns = gain_of(&Scale::host);
    out_.latency_ns = gain_of(&Scale::latency);
    out_.bandwidth_ns = gain_of(&Scale::bandwidth);
    out_.memory_ns = gain_of(&Scale::memory);
    out_.compute_ns = gain_of(&Scale::compute);
    Change alike;
    alike.alike = true;
    const bool one_for_all = study_.replay.is_symmetric() || study_.replay.steps().size() == 1;
    out_.rank_ns = one_for_all ? 0 : gain(alike);
    Change ideal;
    ideal.alike = !one_for_all;
    ideal.same_clock = true;   // what the step waits for is no matter of how fast it then computes
    ideal.scale = {.communication = 0, .memory = 0, .host = 0, .launch = 0, .contention = 0};
    out_.all_but_compute_ns = gain(ideal);
  }

  // The gain without these ops, each scaled by `rest` of what it takes.
  template <class Rest>
  Nanoseconds gain_without(const std::map<Rank, Members>& of_rank, std::set<program::OpIndex> Members::*which, Rest rest,
                             Change change = {}) const {
    change.factor = [&](Rank rank, program::OpIndex op) {
      const auto members = of_rank.find(rank);
      return members != of_rank.end() && (members->second.*which).contains(op) ? rest(op) : 1.0;
    };
    return gain(change);
  }

  // The part of a collective's time that its size takes.
  double beyond_latency(program::OpIndex op) const {
    const simulate::Costs& costs = *study_.replay.steps().front().steps.back().costs;
    if (costs.fixed_ns.empty() || op >= costs.op_ns.size()) return 1;
    const double period_ns = static_cast<double>(std::max<Nanoseconds>(1, costs.op_ns[op] + costs.gap_ns));
    return std::max(0.0, 1 - static_cast<double>(costs.fixed_ns[op]) / period_ns);
  }

  // Would they hide, were each issued one place earlier?
  void find_late(const Line& line, const Collectives& collectives) {
    if (collectives.inside == 0) return;
    Change earlier;
    earlier.earlier = {line.where};
    const Nanoseconds earlier_ns = gain(earlier);
    const Nanoseconds free_ns = gain_without(collectives.of_rank, &Members::inside, [](program::OpIndex) { return 0.0; });
    if (!is_worth(earlier_ns) || 4 * earlier_ns <= free_ns) return;
    late_.insert(line);
    Cause cause;
    cause.regime = regime_of(collectives, &Members::inside, free_ns);
    cause.count = collectives.open > 0 ? collectives.open : collectives.inside;
    cause.gain_ns = earlier_ns;
    name_lines(collectives.open > 0 ? collectives.lines_open : collectives.lines_inside, cause);
    name_places(collectives.open > 0 ? collectives.open_at : collectives.inside_at, cause);
    cause.what = counted(cause.count, noun_of(line.kind)) + (cause.count == 1 ? " waits" : " wait") + " that nothing hides";
    const bool at_once = 2 * collectives.needed_at_once > collectives.inside + collectives.edge;
    cause.because = at_once ? "none is issued before what needs it" : "each is issued too late to hide behind what computes";
    cause.remedy = remedies_.earlier(line.kind, line.axis);
    cause.is_resolved = remedies_.is_one_place_earlier(cause.remedy);
    cause.note = line.axis == "tp" ? "03" : "04";
    if (earlier_ns > mended_ns_) {
      mended_ns_ = earlier_ns;
      mended_ = earlier;
    }
    add(std::move(cause));
  }

  // Of those that `which` names: is it their number or their bytes? `free_ns` is what the step gains without them, once it is mended.
  Regime regime_of(const Collectives& collectives, std::set<program::OpIndex> Members::*which, Nanoseconds free_ns, const Change& mended = {},
                   Nanoseconds mended_ns = 0) const {
    const Nanoseconds latency_ns = gain_without(collectives.of_rank, which, [&](program::OpIndex op) { return beyond_latency(op); }, mended) - mended_ns;
    return 2 * latency_ns > free_ns ? Regime::latency : Regime::bandwidth;
  }

  void add_line(const Line& line, const Collectives& collectives) {
    if (collectives.inside == 0 || late_.contains(line)) return;
    const std::string noun = noun_of(line.kind);
    const auto nothing = [](program::OpIndex) { return 0.0; };
    const Nanoseconds free_ns = gain_without(collectives.of_rank, &Members::inside, nothing, mended_) - mended_ns_;
    add_calls(line, collectives, noun, free_ns);
    if (!is_worth(free_ns)) return;
    // Where compute covers them, all that they cost is what running together does: a cause of its own, but if fewer would do, or
    // if their stream has next to no rest
    const bool is_covered = 2 * collectives.open_ns < free_ns;
    const double busy = busy_share(collectives);
    const bool has_no_rest = busy >= 0.75, is_summed_each = remedies_.is_summed_each(line.kind, line.axis);
    if (is_covered && !has_no_rest && !is_summed_each) return;
    Cause cause;
    name_lines(collectives.lines_inside, cause);
    name_places(collectives.inside_at, cause);
    cause.count = collectives.inside;
    cause.gain_ns = free_ns;
    cause.regime = regime_of(collectives, &Members::inside, free_ns, mended_, mended_ns_);
    const bool at_once = 2 * collectives.needed_at_once > collectives.inside + collectives.edge;
    const bool just_made = 2 * collectives.made_just_before > collectives.inside + collectives.edge;
    if (is_covered && !is_summed_each) {
      cause.what = counted(cause.count, noun) + " of " + line.axis + (cause.count == 1 ? " takes" : " take") + " as long as what hides " + (cause.count == 1 ? "it" : "them");
      cause.because = "their stream is busy for " + percent(busy) + " of the step, and running together slows both";
    } else if (is_covered) {
      cause.what = counted(cause.count, noun) + " of " + line.axis + (cause.count == 1 ? " slows" : " slow") + " the kernels that hide them";
    } else if (at_once && just_made) {
      cause.what = counted(cause.count, noun) + " of " + line.axis + (cause.count == 1 ? " stands" : " stand") + " between kernels";
      cause.because = line.kind == OpKind::all_gather ? "each brings together what was just computed, and what comes next needs all of it"
                      : line.kind == OpKind::shift    ? "each carries what was just computed, and what comes next needs it"
                                                      : "each sums what was just computed, and what comes next needs the sum";
    } else {
      cause.what = counted(cause.count, noun) + " of " + line.axis + (cause.count == 1 ? " takes" : " take") + " longer than compute covers";
      if (has_no_rest) cause.because = "their stream is busy for " + percent(busy) + " of the step";
    }
    cause.remedy = remedies_.less_of(line.kind, line.axis, cause.regime);
    cause.note = line.axis == "tp" ? "03" : "04";
    if (is_covered && !is_summed_each) {
      without_rest_.push_back(std::move(cause));
      return;
    }
    names_open_ = true;
    add(std::move(cause));
  }

  // A stream without rest is a cause where none of its collectives lies open for most of what it costs.
  void add_without_rest() {
    for (Cause& cause : without_rest_) {
      if (!names_open_ && late_.empty()) add(std::move(cause));
    }
  }

  // The part of the step in which the stream of these collectives is busy.
  double busy_share(const Collectives& collectives) const {
    const simulate::RankSteps& rank = study_.replay.steps().front();
    const program::Program& program = *rank.steps.back().program;
    const auto found = collectives.of_rank.find(rank.rank);
    if (found == collectives.of_rank.end()) return 0;   // it is of other ranks
    const Members& members = found->second;
    const program::OpIndex one = *(members.inside.empty() ? members.edge : members.inside).begin();
    const std::int64_t stream = timeline::stream_number(program.ops[one].stream);
    for (const metrics::StreamBusy& busy : metrics::stream_busy(study_.timeline, rank.rank, study_.window)) {
      if (busy.stream == stream) return static_cast<double>(busy.busy_ns) / static_cast<double>(study_.window.length());
    }
    return 0;
  }

  // What issuing them costs the host, beyond what they cost themselves.
  void add_calls(const Line& line, const Collectives& collectives, const std::string& noun, Nanoseconds free_ns) {
    if (!is_worth(out_.host_ns)) return;
    Change change = mended_;
    change.factor = [&](Rank rank, program::OpIndex op) {
      const Members& members = collectives.of_rank.at(rank);
      return members.inside.contains(op) || members.edge.contains(op) ? 0.0 : 1.0;
    };
    change.issue_factor = [&](Rank rank, std::uint32_t command) {
      return collectives.of_rank.at(rank).commands.contains(command) ? 0.0 : 1.0;
    };
    const Nanoseconds gain_ns = gain(change) - mended_ns_;
    if (gain_ns < 2 * free_ns || !is_worth(gain_ns)) return;
    const simulate::RankSteps& rank = study_.replay.steps().front();
    Nanoseconds host_ns = 0;
    for (std::uint32_t command : collectives.of_rank.at(rank.rank).commands) host_ns += rank.steps.back().costs->issue_ns[command];
    Cause cause;
    cause.regime = Regime::host;
    cause.count = collectives.inside + collectives.edge;
    cause.gain_ns = gain_ns;
    name_lines(collectives.lines_inside, cause);
    if (collectives.edge == 0) name_places(collectives.inside_at, cause);
    cause.what = "issuing " + counted(cause.count, noun) + " of " + line.axis + " costs the host " +
                 metrics::duration_text(host_ns / cause.count) + (cause.count == 1 ? "" : " each");
    // More than the host's cost alone can be gained: without them, what they take themselves is gone, too.
    cause.because = gain_ns > out_.host_ns ? "each is a call with its records and waits, and takes time of its own" : "each is a call with its records and waits";
    cause.remedy = remedies_.fewer_calls_of(line.axis);
    cause.note = line.axis == "tp" ? "03" : "04";
    add(std::move(cause));
  }

  // Sums of gradients over replicas, where nothing but the choice of when keeps them behind backward: none is asked for before
  // its end, or one bucket holds all that smaller ones would part.
  bool is_kept_late(const Line& line, const Collectives& collectives) const {
    if (std::string_view(line.where.file).find("data_parallel/") == std::string_view::npos) return false;
    return remedies_.sums_await_backward() || (collectives.inside == 0 && collectives.edge == 1 && remedies_.has_smaller_bucket());
  }

  void add_late_sums() {
    for (const auto& [line, collectives] : lines_) {
      if (collectives.edge == 0 || !is_kept_late(line, collectives)) continue;
      Cause cause;
      cause.gain_ns = gain_without(collectives.of_rank, &Members::edge, [](program::OpIndex) { return 0.0; });
      // The last of them would lie open all the same
      cause.is_bound = true;
      cause.regime = regime_of(collectives, &Members::edge, cause.gain_ns);
      cause.count = collectives.edge;
      name_lines(collectives.lines_at_edge, cause);
      cause.what = counted(cause.count, noun_of(line.kind)) + " of " + line.axis + (cause.count == 1 ? " begins" : " begin") + " only when backward is over";
      cause.because = remedies_.sums_await_backward() ? "none is issued while it runs" : "one bucket holds all gradients";
      cause.remedy = remedies_.sums_in_backward();
      cause.note = "04";
      add(std::move(cause));
    }
  }

  // The gather before the first kernel, the reduction after the last.
  void add_edges() {
    std::map<Rank, Members> all;
    std::map<std::string, std::int64_t> counts;
    Lines lines;
    Cause cause;
    for (const auto& [line, collectives] : lines_) {
      if (collectives.edge == 0 || is_kept_late(line, collectives)) continue;
      counts[noun_of(line.kind)] += collectives.edge;
      if (cause.remedy.empty()) cause.remedy = remedies_.of_ends(line.axis);
      for (const auto& [where, number] : collectives.lines_at_edge) lines[where] += number;
      for (const auto& [rank, members] : collectives.of_rank) all[rank].edge.insert(members.edge.begin(), members.edge.end());
    }
    if (counts.empty()) return;
    cause.regime = Regime::bandwidth;
    cause.avoidable = false;
    name_lines(lines, cause);
    cause.gain_ns = gain_without(all, &Members::edge, [](program::OpIndex) { return 0.0; });
    for (const auto& [noun, count] : counts) {
      cause.what += (cause.what.empty() ? "" : ", ") + counted(count, noun);
      cause.count += count;
    }
    cause.what += " before the first kernel or after the last of backward";
    cause.because = "there is nothing to hide behind";
    if (!cause.remedy.empty()) cause.note = "04";
    add(std::move(cause));
  }

  const Study& study_;
  const Without without_;
  const Remedies remedies_;
  CollectivesByLine lines_;
  std::set<Line> late_;            // those that would hide if they began earlier
  Change mended_;                  // the one of them that gains most
  Nanoseconds mended_ns_ = 0;
  std::vector<Cause> without_rest_;
  bool names_open_ = false;        // a cause is named of collectives that lie open
  Findings out_;
};

}  // namespace

Nanoseconds Findings::of(Regime regime) const {
  switch (regime) {
    case Regime::host: return host_ns;
    case Regime::latency: return latency_ns;
    case Regime::bandwidth: return bandwidth_ns;
    case Regime::rank: return rank_ns;
    case Regime::memory: return memory_ns;
    case Regime::compute: return compute_ns;
    case Regime::unexplained: break;
  }
  return 0;
}

Findings find_causes(const Study& study, const Recorded& recorded) { return Search(study, recorded).run(); }

}  // namespace shardbook::cause
