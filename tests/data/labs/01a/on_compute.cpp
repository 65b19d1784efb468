// fails with: 13 all-reduces (line 7) stand on r.compute itself, and backward behind them
#include "labs/01_data_parallel/lab.hpp"

namespace shardbook::lab01 {

void part_is_written(Replica& r, std::size_t i) {
  r.group.all_reduce(r.compute, r.parts[i].gradient, r.parts[i].gradient);
}

void backward_is_over(Replica&) {}

}  // namespace shardbook::lab01
