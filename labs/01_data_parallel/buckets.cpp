// Lab 01a. Right, and slow: every parameter is summed by itself, when backward is over.
// Make it as fast as it can be: few sums, begun while backward still runs. About ten lines.
#include "labs/01_data_parallel/lab.hpp"

namespace shardbook::lab01 {

// All that writes r.parts[i].gradient has been issued to r.compute.
void part_is_written(Replica&, std::size_t) {}

// What r.compute does next must see the sums.
void backward_is_over(Replica& r) {
  for (Part& part : r.parts)
    for (Tensor& g : part.parameters) r.group.all_reduce(r.compute, g, g);
}

}  // namespace shardbook::lab01

// Explain, in at most 60 words:
//
