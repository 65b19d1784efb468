#include "labs/00_timeline/lab.hpp"

namespace shardbook::lab00 {

// All-reduce over 4 GPUs. Given: 4 KiB 9.8 µs, 512 KiB 14.9, 8 MiB 59.1, 512 MiB 2317.8.
double all_reduce_us(double bytes) {
  const double alpha = 9.8, beta = 4.2e-6;  // one line: TODO
  return alpha + beta * bytes;
}

}  // namespace shardbook::lab00
