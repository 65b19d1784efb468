// What checks lab 02b. Not needed to solve it.
//
// Each number is resolved now, on the same profile: the steps of tp 1, 2 and 4, and the counterfactuals that decide which
// cause is one. A cause is found when removing it removes the effect.
#include <cmath>
#include <cstdio>

#include "labs/02_tensor_parallel/lab.hpp"
#include "labs/harness/bench.hpp"
#include "labs/harness/verdict.hpp"

namespace shardbook::lab02 {

namespace {

using base::text;
using labs::Clock;
using labs::Issued;
using labs::ms;

constexpr const char* page = "02_tensor_parallel#02b";
constexpr double within = 0.05;   // the arithmetic is exact

labs::Options tutor(int tp) { return {{"device", "meta"}, {"tp", std::to_string(tp)}}; }

simulate::Change scaled(double simulate::Scale::*of, double factor) {
  simulate::Change change;
  change.scale.*of = factor;
  return change;
}

bool close(double given, double right) { return std::abs(given - right) <= within * std::abs(right); }

std::string us(double ns) {
  char shown[32];
  std::snprintf(shown, sizeof shown, "%.0f µs", ns / 1e3);
  return shown;
}

void judge(const labs::Request&, labs::Verdict& verdict) {
  const Issued one(labs::config_of(tutor(1)), {}), two(labs::config_of(tutor(2)), {}), four(labs::config_of(tutor(4)), {});
  const Clock clock_one(one), clock_two(two), clock_four(four);
  const double tp1 = static_cast<double>(clock_one.step_ns()), tp2 = static_cast<double>(clock_two.step_ns()), tp4 = static_cast<double>(clock_four.step_ns());
  const double free_network = static_cast<double>(clock_two.step_ns(scaled(&simulate::Scale::communication, 0)));
  const simulate::HostCosts& host = clock_two.profile().host;
  const double a_sum = host.collective_ns + 2 * host.record_ns + 2 * host.wait_ns;
  const std::size_t sums = two.collectives().size();
  verdict.figure("step_tp1_ms", tp1 / 1e6);
  verdict.figure("step_tp2_ms", tp2 / 1e6);
  verdict.figure("step_tp4_ms", tp4 / 1e6);
  verdict.figure("step_tp2_free_network_ms", free_network / 1e6);
  verdict.figure("host_us_per_sum", a_sum / 1e3);
  verdict.figure("sums", static_cast<double>(sums));

  const Why given = why();
  const auto fail = [&](const char* rule, std::string message) { verdict.fail({rule, std::move(message), -1, -1, "", "", {}, page}); };
  // Of a number that is off: which way, and where to read it
  const auto off = [&](const char* key, double value, double right, const std::string& how) {
    if (close(value, right)) return false;
    char shown[48];
    std::snprintf(shown, sizeof shown, "%.4g", value);
    fail(key, text(key, " = ", shown, " is too ", value < right ? "small" : "large", ": ", how));
    return true;
  };
  if (off("step_tp2_ms", given.step_tp2_ms, tp2 / 1e6, text("a step of one GPU takes ", ms(tp1), ", and halved matmuls do not halve what else is in it; run ./shardbook run 02 --tp 2 --fsdp 1 and read 'ms a step'"))) return;
  if (off("step_tp4_ms", given.step_tp4_ms, tp4 / 1e6, "run ./shardbook run 02 --tp 4 --fsdp 1; why is it tp 2's to the nanosecond?")) return;
  if (off("step_tp2_free_network_ms", given.step_tp2_free_network_ms, free_network / 1e6, "run ./shardbook whatif RUN --scale comm=0 on the run of tp 2")) return;
  if (off("host_us_per_sum", given.host_us_per_sum, a_sum / 1e3, text("it is what the host pays to issue one, and not what it takes: a call, two records and two waits; the profile has each under \"host\" (", sums, " sums a step)"))) return;

  const double grows = free_network - tp1;
  const double faster_host = static_cast<double>(clock_two.step_ns(scaled(&simulate::Scale::host, 0.5)));
  const double faster_compute = static_cast<double>(clock_two.step_ns(scaled(&simulate::Scale::compute, 0.5)));
  const double no_beta = static_cast<double>(clock_two.step_ns(scaled(&simulate::Scale::bandwidth, 0)));
  simulate::Change host_alone;
  host_alone.scale = {.compute = 0, .communication = 0, .memory = 0, .launch = 0, .contention = 0};
  const std::string issued = text("the host issues for ", ms(static_cast<double>(clock_two.step_ns(host_alone))), " of ", ms(tp2), "; with a host of half the cost it takes ", ms(faster_host));
  if (given.cause == Cause::latency) fail("cause", text("not latency: with collectives that cost nothing your step still grows by ", us(grows), ": ", issued));
  if (given.cause == Cause::bandwidth) fail("cause", text("not bandwidth: with bytes that cost nothing the step still takes ", ms(no_beta), ", and one GPU's ", ms(tp1), ": ", issued));
  if (given.cause == Cause::compute) fail("cause", text("not compute: with kernels twice as fast the step still takes ", ms(faster_compute), ": ", issued));
}

}  // namespace
}  // namespace shardbook::lab02

int main(int argc, char** argv) { return shardbook::labs::run(argc, argv, shardbook::lab02::judge); }
