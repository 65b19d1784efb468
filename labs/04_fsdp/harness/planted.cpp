// What checks lab 04c. Not needed to solve it.
//
// Which of the host's waits are left says which line was deleted; the price is the step with that wait put back, less the
// step without it.
#include <cmath>

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

struct Waits {
  int count = 0;
  program::SourceLine where;
};
Waits waits_of(const Plan& plan, Kind kind) {
  Waits waits;
  for (const Action& action : plan.actions) {
    if (action.kind != kind) continue;
    if (waits.count++ == 0) waits.where = action.where;
  }
  return waits;
}

Plan without(const Plan& plan, Kind kind) {
  Plan left;
  for (const Action& action : plan.actions) {
    if (action.kind != kind) left.add(action);
  }
  return left;
}

// The costly wait put back: the host waits for compute before it issues a gather.
Plan with_wait_before_gathers(const Plan& plan) {
  Plan slower;
  bool computed = false;
  for (const Action& action : plan.actions) {
    if (action.kind == Kind::gather && computed) slower.add(synchronize());
    computed = computed || plan::computes(action.kind);
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

  const Waits costly = waits_of(made, Kind::synchronize), cheap = waits_of(made, Kind::limit);
  const double step = step_of(config, made), solution = static_cast<double>(labs::Clock(own).step_ns());
  verdict.figure("step_ms", step / 1e6);
  verdict.figure("solution_step_ms", solution / 1e6);
  if (costly.count > 0 && cheap.count > 0) {
    return fail("host", text("the host waits ", costly.count, " times a step at ", labs::line(costly.where), " and ", cheap.count, " times at ", labs::line(cheap.where), ", in a step of ", ms(step), ". One of them keeps the host from asking for the next gather while compute has work; which? Delete that line alone"), costly.where);
  }
  if (costly.count > 0) {
    int held = 0;
    for (const Action& action : made.actions) held += action.kind == Kind::gather && network.units[static_cast<std::size_t>(action.unit)].shares_gathered;
    return fail("decoy", text("the wait that you deleted costs next to nothing: the step still takes ", ms(step), "; the other, ", labs::line(costly.where), ", holds back ", held, " gathers"), costly.where);
  }
  if (cheap.count == 0) {
    return fail("both", text("neither wait is left, and the step takes ", ms(step), "; one of them costs next to nothing, and bounds how far the host runs ahead: put it back, delete one line only"));
  }
  if (step > most_step * solution) return fail("step", text("the step takes ", ms(step), ", and ", ms(solution), " where each gather is asked for beside the block before: leave the order as it was, and delete one line"), cheap.where);

  const double with_wait = step_of(config, with_wait_before_gathers(made));
  const double price = (with_wait - step) / 1e6, given = price_ms();
  verdict.figure("with_wait_ms", with_wait / 1e6);
  verdict.figure("price_ms", price);
  verdict.figure("decoy_ms", (step - step_of(config, without(made, Kind::limit))) / 1e6);
  if (std::abs(given - price) <= within * price) return;
  const bool whole = std::abs(given - with_wait / 1e6) < 0.05 * with_wait / 1e6;
  fail("price", text("the right line is gone; price_ms says ", given, whole ? std::string(", but that is the whole step: subtract what it takes without the wait") : "; the step takes " + ms(step) + " now: put the wait back, and this check says what it takes then"));
}

}  // namespace
}  // namespace shardbook::lab04

int main(int argc, char** argv) { return shardbook::labs::run(argc, argv, shardbook::lab04::judge); }
