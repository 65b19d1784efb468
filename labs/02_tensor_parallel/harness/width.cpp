// What checks lab 02c. Not needed to solve it.
//
// The grammar tutor at other widths (32 numbers a head, 2048 tokens), on one GPU and on two. The learner's function is
// given what each kind of work costs alone, and must come close to the resolved step everywhere; then to the width at
// which two GPUs begin to win, which is bracketed by steps that are resolved.
#include <cmath>
#include <cstdio>
#include <map>
#include <vector>

#include "labs/02_tensor_parallel/lab.hpp"
#include "labs/harness/bench.hpp"
#include "labs/harness/verdict.hpp"

namespace shardbook::lab02 {

namespace {

using base::text;
using labs::ms;
using program::Phase;

constexpr const char* page = "02_tensor_parallel#02c";
constexpr double within = 0.15;

// A step of one width and tp: what it costs by kinds, and how long it is.
struct Known {
  Costs costs{};
  double step_ns = 0;
};

Known known_of(int width, int tp) {
  const labs::Issued issued(labs::config_of({{"device", "meta"}, {"width", std::to_string(width)}, {"heads", std::to_string(width / 32)}, {"tp", std::to_string(tp)}}), {});
  const labs::Clock clock(issued);
  Known known;
  known.step_ns = static_cast<double>(clock.step_ns());
  simulate::Change host_alone, kernels_alone, device_alone;
  host_alone.scale = {.compute = 0, .communication = 0, .memory = 0, .launch = 0, .contention = 0};
  kernels_alone.scale = {.communication = 0, .host = 0, .contention = 0};
  device_alone.scale = {.host = 0, .contention = 0};
  known.costs.host = static_cast<double>(clock.step_ns(host_alone));
  known.costs.compute = static_cast<double>(clock.step_ns(kernels_alone));
  const labs::Timing device = clock.timing(device_alone);
  const std::vector<program::Op>& ops = issued.program().ops;
  for (program::OpIndex op = 0; op < ops.size(); ++op) {
    const double took = static_cast<double>(device.took[op]);
    const bool talks = program::class_of(ops[op].desc.kind) == program::OpClass::communication;
    if (talks) (ops[op].key.phase == Phase::backward ? known.costs.hidden_sums : known.costs.exposed_sums) += took;
    const std::string_view name = ops[op].desc.name;
    if (ops[op].desc.kind == program::OpKind::gemm && name.find("weight_gradient") != std::string_view::npos) known.costs.weight_gradients += took;
  }
  return known;
}

const Known& known_at(int width, int tp) {
  static std::map<std::pair<int, int>, Known> all;
  const auto found = all.find({width, tp});
  return found != all.end() ? found->second : all[{width, tp}] = known_of(width, tp);
}

double resolved(int width, int tp) { return known_at(width, tp).step_ns; }
double predicted(int width, int tp) { return predict_ns(known_at(width, tp).costs); }

// The first width of a multiple of 64 at which two GPUs win; 0: at none up to 4096.
template <class Step>
int turning(const Step& step) {
  // Wide steps first, for each costs a model
  int coarse = 128;
  while (coarse < 4096 && step(coarse, 2) >= step(coarse, 1)) coarse += 256;
  if (coarse >= 4096) return 0;
  int width = coarse;
  while (width > 128 && step(width - 64, 2) < step(width - 64, 1)) width -= 64;
  return width;
}

// With a digit more than ms() gives: near the turn two steps differ in it.
std::string exact(double ns) {
  char shown[32];
  std::snprintf(shown, sizeof shown, "%.3f ms", ns / 1e6);
  return shown;
}

// What the prediction has forgotten, by which of the costs explains the gap.
std::string reason(const Costs& costs, double given, double right, int tp) {
  const double device = costs.compute + costs.exposed_sums;
  if (given < right && costs.host > 1.1 * device) return text("the host needs ", ms(costs.host), " to issue this step, and the device has nothing to do before");
  if (given > right && std::abs(given - (costs.host + device)) < 0.1 * right) return "host and device work side by side, so the step is as long as the longer of the two, and not as their sum";
  if (given < right && tp > 1) return text("forward's sums, ", ms(costs.exposed_sums), ", stand where nothing can run beside them");
  if (given < right) return text("the kernels alone take ", ms(costs.compute));
  if (tp > 1 && given > device + 0.9 * costs.hidden_sums) return text("backward's sums, ", ms(costs.hidden_sums), ", run beside weight gradients of ", ms(costs.weight_gradients));
  return "which of the costs is there twice, or is no part of the step?";
}

// The widths of the text; a student's seed adds one of its own.
std::vector<int> widths(const labs::Request& request) {
  std::vector<int> all = {128, 512, 1024, 2048};
  if (request.seed != labs::Request{}.seed) all.push_back(192 + 64 * static_cast<int>(request.seed % 24));
  return all;
}

void judge(const labs::Request& request, labs::Verdict& verdict) {
  double worst = 0;
  for (int width : widths(request)) {
    for (int tp : {1, 2}) {
      const double right = resolved(width, tp), given = predicted(width, tp);
      verdict.figure(text("step_ms_width", width, "_tp", tp), right / 1e6);
      verdict.figure(text("predicted_ms_width", width, "_tp", tp), given / 1e6);
      worst = std::max(worst, std::abs(given / right - 1));
    }
  }
  verdict.figure("worst_error_percent", 100 * worst);
  for (int width : widths(request)) {
    for (int tp : {1, 2}) {
      const double right = resolved(width, tp), given = predicted(width, tp);
      if (std::abs(given - right) <= within * right) continue;
      char percent[16];
      std::snprintf(percent, sizeof percent, "%+.0f %%", 100 * (given / right - 1));
      return verdict.fail({"prediction", text("at width ", width, ", tp ", tp, ", you predict ", ms(given), " and the step takes ", ms(right), " (", percent, "): ", reason(known_at(width, tp).costs, given, right, tp)), -1, -1, "", "", {}, page});
    }
  }
  const int found = turning(resolved), given = turning(predicted);
  verdict.figure("turning_width", found);
  verdict.figure("predicted_turning_width", given);
  verdict.figure("gain_before", resolved(found - 64, 1) / resolved(found - 64, 2));
  verdict.figure("gain_at", resolved(found, 1) / resolved(found, 2));
  if (given == 0 || std::abs(given - found) > within * found) {
    verdict.fail({"turning", text("by your prediction two GPUs win from width ", given, " on, and they do from ", found, " (", exact(resolved(found, 2)), " for ", exact(resolved(found, 1)), "; at ", found - 64, " ", exact(resolved(found - 64, 2)), " for ", exact(resolved(found - 64, 1)), "): near the turn small errors decide. Of backward's sums only what is longer than the weight gradients costs; each of forward's costs all of it"), -1, -1, "", "", {}, page});
  }
}

}  // namespace
}  // namespace shardbook::lab02

int main(int argc, char** argv) { return shardbook::labs::run(argc, argv, shardbook::lab02::judge); }
