// fails with: the host needs
#include "labs/02_tensor_parallel/lab.hpp"

namespace shardbook::lab02 {

double predict_ns(const Costs& costs) {
  return costs.compute + costs.exposed_sums;
}

}  // namespace shardbook::lab02
