// fails with: stand where nothing can run beside them
#include "labs/02_tensor_parallel/lab.hpp"

#include <algorithm>

namespace shardbook::lab02 {

double predict_ns(const Costs& costs) {
  return std::max(costs.host, costs.compute);
}

}  // namespace shardbook::lab02
