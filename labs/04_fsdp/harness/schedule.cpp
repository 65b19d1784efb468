// What checks lab 04a. Not needed to solve it.
//
// The learner's list is the step of gpt-1.3b over eight ranks (on no device) and of the tutor over two (with numbers).
// Judged in order: can it be carried out (plan/verify); does the host wait; how many buffers does it need; are the
// numbers the engine's under three drain seeds; is the step as short as the engine's own with one block ahead.
#include <algorithm>
#include <cmath>

#include "engine/plan/verify.hpp"
#include "labs/04_fsdp/lab.hpp"
#include "labs/harness/bench.hpp"
#include "labs/harness/verdict.hpp"

namespace shardbook::lab04 {

namespace {

using base::text;
using labs::Issued;
using labs::line;
using labs::ms;
using labs::Timing;
using program::Op;
using program::OpIndex;
using program::OpKind;
using program::Phase;

constexpr const char* page = "04_fsdp#04a";
constexpr int most_buffers = 2;
constexpr double most_step = 1.03;   // of the engine's own

labs::Options large() { return {{"device", "meta"}, {"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequences", "16"}}; }

// Can it be carried out?
bool legal(const Plan& made, const Network& network, labs::Verdict& verdict) {
  const auto misnamed = plan::misnamed(made, network);
  const Plan finished = misnamed ? made : train::finished(made, network).plan;
  const auto problem = misnamed ? misnamed : plan::problem_of(finished, network);
  if (!problem) return true;
  labs::Finding finding{"order", problem->sentence, 0, -1, "", "", {}, page};
  if (problem->action < finished.actions.size()) {
    const plan::Action& action = finished.actions[problem->action];
    finding.phase = program::name_of(action.phase);
    finding.span = plan::name_of(action.kind);
    finding.where = action.where;
    if (action.layer >= 0) finding.layer = network.layers[static_cast<std::size_t>(action.layer)].number;
  }
  verdict.fail(finding);
  return false;
}

// The gather that makes one unit more whole at once than there may be.
const plan::Action* one_too_many(const Plan& plan, const Network& network) {
  int whole = 0;
  for (const plan::Action& action : plan.actions) {
    const bool shares = action.unit >= 0 && network.units[static_cast<std::size_t>(action.unit)].shares_gathered;
    if (action.kind == plan::Kind::gather && shares && ++whole > most_buffers) return &action;
    if (action.kind == plan::Kind::release && shares) --whole;
  }
  return nullptr;
}

// How much of the step a stream is busy.
double busy_share(const Issued& issued, const Timing& timing, const std::string& stream) {
  double busy = 0;
  for (OpIndex op = 0; op < issued.program().ops.size(); ++op) {
    if (issued.catalogue().streams[issued.program().ops[op].stream].name == stream) busy += static_cast<double>(timing.took[op]);
  }
  return busy / static_cast<double>(timing.step_ns);
}

// Why a gather lies open: what stood before it in its queue, and what was asked of compute meanwhile.
struct Late {
  OpIndex op = 0;
  bool behind_reduction = false;   // issued behind a reduction, with no work of compute between
};

std::vector<Late> late_gathers(const Issued& issued, const Timing& timing) {
  std::vector<Late> late;
  const std::vector<Op>& ops = issued.program().ops;
  bool reduced = false;
  for (OpIndex op = 0; op < ops.size(); ++op) {
    if (ops[op].desc.kind == OpKind::reduce_scatter) reduced = true;
    if (program::class_of(ops[op].desc.kind) == program::OpClass::compute) reduced = false;
    if (ops[op].desc.kind != OpKind::all_gather) continue;
    // Of blocks, but not the first one's in forward, which has nothing to hide behind; a fifth of it open is late
    if (ops[op].key.layer < 0 || (ops[op].key.layer == 0 && ops[op].key.phase == Phase::forward) || timing.exposed_of[op] * 5 < timing.took[op]) continue;
    late.push_back({op, reduced});
  }
  return late;
}

void explain_slow(const Issued& issued, const Timing& timing, double solution, labs::Verdict& verdict) {
  const std::vector<Op>& ops = issued.program().ops;
  const std::vector<Late> late = late_gathers(issued, timing);
  const std::string step = text("the step takes ", ms(static_cast<double>(timing.step_ns)), ", and ", ms(solution), " with the next block gathered ahead");
  if (late.empty()) return verdict.fail({"step", text("rank 0: ", step, "; no gather lies open, so look at what else stands on the fsdp stream, and at the order in which it comes"), 0, -1, "", "", {}, page});
  double open = 0;
  std::vector<std::string> lines;
  bool forward = false, backward = false, all_behind = true;
  for (const Late& one : late) {
    open += static_cast<double>(timing.exposed_of[one.op]);
    const std::string where = line(labs::line_of(issued.command_of(one.op)));
    if (std::find(lines.begin(), lines.end(), where) == lines.end()) lines.push_back(where);
    (ops[one.op].key.phase == Phase::forward ? forward : backward) = true;
    if (ops[one.op].key.phase == Phase::backward) all_behind = all_behind && one.behind_reduction;
  }
  std::string where;
  for (const std::string& one : lines) where += (where.empty() ? "" : ", ") + one;
  const char* phase = forward && backward ? "forward and backward" : forward ? "forward" : "backward";
  const Op& first = ops[late.front().op];
  const std::string why = !forward && all_behind
                              ? "each queued behind the reduce-scatter of the block before, in one stream with it, and needed at once: list the gather before that block's backward, or at least before its reduction"
                              : "each is listed where its block is needed, so compute stands still for all of it";
  verdict.fail({"exposed", text("rank 0, ", phase, ": ", late.size(), " all-gathers (", where, "), ", ms(open), " exposed: ", why, "; ", step), 0, first.key.layer, phase, first.desc.name, labs::line_of(issued.command_of(late.front().op)), page});
}

void judge(const labs::Request& request, labs::Verdict& verdict) {
  const config::RunConfig config = labs::config_of(large());
  const Issued own(config, {});
  const Network& network = own.trainer().network();
  const Plan made = a_step(network);
  if (!legal(made, network, verdict)) return;

  const Issued issued(config, {a_step, {}});
  const Timing timing = labs::Clock(issued).timing();
  const double solution = static_cast<double>(labs::Clock(own).step_ns());
  const plan::Needs needs = plan::needs_of(issued.trainer().plan(), network);
  verdict.figure("step_ms", static_cast<double>(timing.step_ns) / 1e6);
  verdict.figure("solution_step_ms", solution / 1e6);
  labs::Options forward_only = large();
  forward_only.push_back({"set", "fsdp.backward_prefetch=none"});
  const Issued in_forward(labs::config_of(forward_only), {});
  verdict.figure("forward_only_step_ms", static_cast<double>(labs::Clock(in_forward).step_ns()) / 1e6);
  verdict.figure("exposed_ms", static_cast<double>(timing.exposed_ns) / 1e6);
  verdict.figure("buffers", needs.gathered);

  if (const auto waits = issued.host_waits(); !waits.empty()) {
    return verdict.fail({"host", text("rank 0: the host waits ", waits.size(), " times a step (", line(waits.front()), ") and lists nothing meanwhile: ", ms(static_cast<double>(timing.step_ns)), " for ", ms(solution), "; no order needs that"), 0, -1, "", "the host's wait", waits.front(), page});
  }
  if (const plan::Action* more = needs.gathered > most_buffers ? one_too_many(made, network) : nullptr) {
    char gain[48], share[16];
    std::snprintf(gain, sizeof gain, "%+.1f %%", 100 * (static_cast<double>(timing.step_ns) / solution - 1));
    std::snprintf(share, sizeof share, "%.0f", 100 * busy_share(issued, timing, "fsdp"));
    return verdict.fail({"memory", text("rank 0: ", needs.gathered, " blocks are whole at once (the third is gathered at ", line(more->where), "), where ", most_buffers, " do: ", needs.gathered - most_buffers, needs.gathered - most_buffers == 1 ? " more buffer, " : " more buffers, ",
                                        (needs.gathered - most_buffers) * (network.units[1].gathered >> 20), " MiB, for ", gain, " of the step; the fsdp stream is busy for ", share, " % of it as it is"), 0, -1, program::name_of(more->phase), "all_gather", more->where, page});
  }

  // Numbers, in three legal orders of the queues
  const config::RunConfig tutor = labs::config_of({{"device", "host"}, {"fsdp", "2"}, {"sequences", "4"}, {"seed", std::to_string(request.seed)}});
  const labs::Numbers expected = labs::on_host(tutor, {}, 0);
  for (std::uint64_t drain : {0, 3, 7}) {
    const labs::Numbers found = labs::on_host(tutor, {a_step, {}}, drain);
    if (!found.error.empty()) return verdict.fail({"numbers", text("on two ranks of the grammar tutor: ", found.error), -1, -1, "", "", {}, page});
    if (!labs::agree(found, expected)) {
      return verdict.fail({"numbers", text("on two ranks of the grammar tutor, drain seed ", drain, ": norm ", found.norms[0], ", expected ", expected.norms[0], "; the order lists other work than a step's"), 0, -1, "", "", {}, page});
    }
  }
  if (static_cast<double>(timing.step_ns) > most_step * solution) explain_slow(issued, timing, solution, verdict);
}

}  // namespace
}  // namespace shardbook::lab04

int main(int argc, char** argv) { return shardbook::labs::run(argc, argv, shardbook::lab04::judge); }
