// fails with: ends before it begins: the first is the smaller
#include "labs/01_data_parallel/lab.hpp"

namespace shardbook::lab01 {

void part_is_written(Replica& r, std::size_t) { (void)r; }

void backward_is_over(Replica& r) {
  const Tensor all = r.bucket(r.parts.size() - 1, 0);
  r.group.all_reduce(r.compute, all, all);
}

}  // namespace shardbook::lab01
