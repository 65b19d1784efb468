// fails with: the kernels alone take
#include "labs/02_tensor_parallel/lab.hpp"

namespace shardbook::lab02 {

double predict_ns(const Costs& costs) {
  return costs.host;
}

}  // namespace shardbook::lab02
