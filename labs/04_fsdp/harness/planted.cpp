// What checks lab 04c. Not needed to solve it.
//
// The host's waits are told apart by their lines. What the step takes without those that are left says which line was
// deleted; the price is the step with the other put back, less the step without it.
#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/plan/verify.hpp"
#include "labs/04_fsdp/lab.hpp"
#include "labs/harness/bench.hpp"
#include "labs/harness/verdict.hpp"

namespace shardbook::lab04 {

namespace {

using base::text;
using labs::ms;
using plan::Action;
using plan::Kind;

constexpr const char* page = "04_fsdp#04c";
constexpr double within = 0.10, most_step = 1.03;

// The host's waits of one line of the learner's.
struct Waits {
  program::SourceLine where;
  int count = 0;
};

bool is_wait(const Action& action) { return action.kind == Kind::synchronize || action.kind == Kind::limit; }

// By their lines, as they come.
std::vector<Waits> waits_of(const Plan& plan) {
  std::vector<Waits> all;
  for (const Action& action : plan.actions) {
    if (!is_wait(action)) continue;
    const auto known = std::find_if(all.begin(), all.end(), [&](const Waits& one) { return one.where == action.where; });
    if (known == all.end()) all.push_back({action.where, 1});
    else ++known->count;
  }
  return all;
}

Plan without(const Plan& plan, const Waits& waits) {
  Plan left;
  for (const Action& action : plan.actions) {
    if (!is_wait(action) || !(action.where == waits.where)) left.add(action);
  }
  return left;
}

// The costly wait put back: the host waits for compute before it issues a gather. Both waits stood in the same phases but where
// one is left in forward alone: the other was of backward.
Plan with_wait_before_gathers(const Plan& plan) {
  const auto is_backward = [](const Action& action) { return action.kind == Kind::backward; };
  const bool backward_alone = std::none_of(std::find_if(plan.actions.begin(), plan.actions.end(), is_backward), plan.actions.end(), is_wait);
  Plan slower;
  bool computed = false, backward = false;
  for (const Action& action : plan.actions) {
    if (action.kind == Kind::gather && computed && (backward || !backward_alone)) slower.add(synchronize());
    computed = computed || plan::computes(action.kind);
    backward = backward || action.kind == Kind::backward;
    slower.add(action);
  }
  return slower;
}

double step_of(const config::RunConfig& config, const Plan& plan) {
  const labs::Issued issued(config, {[&plan](const Network&) { return plan; }, {}});
  return static_cast<double>(labs::Clock(issued).step_ns());
}

void judge(const labs::Request&, labs::Verdict& verdict) {
  const config::RunConfig config = labs::config_of({{"device", "meta"}, {"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequences", "16"}});
  const labs::Issued own(config, {});
  const Network& network = own.trainer().network();
  const Plan made = planted_step(network);
  const auto fail = [&](const char* rule, std::string message, program::SourceLine where = {}) { verdict.fail({rule, std::move(message), -1, -1, "", "the host's wait", where, page}); };
  const auto misnamed = plan::misnamed(made, network);
  if (const auto problem = misnamed ? misnamed : plan::problem_of(train::finished(made, network).plan, network)) return fail("order", problem->sentence);

  const std::vector<Waits> waits = waits_of(made);
  const double step = step_of(config, made), solution = static_cast<double>(labs::Clock(own).step_ns());
  verdict.figure("step_ms", step / 1e6);
  verdict.figure("solution_step_ms", solution / 1e6);
  if (waits.empty()) {
    return fail("both", text("neither wait is left, and the step takes ", ms(step), "; one of them costs next to nothing: put it back, delete one line only"));
  }
  if (waits.size() > 1) {
    return fail("host", text("the host waits ", waits[0].count, " times a step at ", labs::line(waits[0].where), " and ", waits[1].count, " times at ", labs::line(waits[1].where), ", in a step of ", ms(step), ". One of them keeps the host from asking for the next gather while compute has work; which? Delete that line alone"), waits[0].where);
  }
  const double alone = step_of(config, without(made, waits[0]));
  if (step > most_step * solution && alone <= most_step * solution) {
    int held = 0;   // gathers of blocks right behind that line
    for (std::size_t at = 1; at < made.actions.size(); ++at) {
      const Action& action = made.actions[at];
      held += action.kind == Kind::gather && network.units[static_cast<std::size_t>(action.unit)].shares_gathered && is_wait(made.actions[at - 1]);
    }
    return fail("decoy", text("the wait that you deleted costs next to nothing: the step still takes ", ms(step), "; the other, ", labs::line(waits[0].where), ", holds back ", held, " gathers"), waits[0].where);
  }
  if (step > most_step * solution) return fail("step", text("the step takes ", ms(step), ", and ", ms(solution), " where each gather is asked for beside the block before: leave the order as it was, and delete one line"), waits[0].where);

  const double with_wait = step_of(config, with_wait_before_gathers(made));
  const double price = (with_wait - step) / 1e6, given = price_ms();
  verdict.figure("with_wait_ms", with_wait / 1e6);
  verdict.figure("price_ms", price);
  verdict.figure("decoy_ms", (step - alone) / 1e6);
  if (std::abs(given - price) <= within * price) return;
  const bool whole = std::abs(given - with_wait / 1e6) < 0.05 * with_wait / 1e6;
  fail("price", text("the right line is gone; price_ms says ", given, whole ? std::string(", but that is the whole step: subtract what it takes without the wait") : "; the step takes " + ms(step) + " now: put the wait back, and this check says what it takes then"));
}

}  // namespace
}  // namespace shardbook::lab04

int main(int argc, char** argv) { return shardbook::labs::run(argc, argv, shardbook::lab04::judge); }
