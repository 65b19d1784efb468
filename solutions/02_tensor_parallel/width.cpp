// Lab 02c, solved: host and device work side by side, so the longer of the two is the step.
#include "labs/02_tensor_parallel/lab.hpp"

#include <algorithm>

namespace shardbook::lab02 {

double predict_ns(const Costs& costs) {
  const double left_open = std::max(0.0, costs.hidden_sums - costs.weight_gradients);
  const double device = costs.compute + costs.exposed_sums + left_open;
  return std::max(costs.host, device);
}

}  // namespace shardbook::lab02
