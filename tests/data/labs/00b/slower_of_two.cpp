// fails with: Below where the two lines cross the other one holds
#include "labs/00_timeline/lab.hpp"

namespace shardbook::lab00 {

// The two right lines, and the larger of them.
double all_reduce_us(double bytes) {
  const double small_beta = (14.9 - 9.8) / (512 * KiB - 4 * KiB), small_alpha = 9.8 - small_beta * 4 * KiB;
  const double large_beta = (2317.8 - 59.1) / (512 * MiB - 8 * MiB), large_alpha = 59.1 - large_beta * 8 * MiB;
  return std::max(small_alpha + small_beta * bytes, large_alpha + large_beta * bytes);
}

}  // namespace shardbook::lab00
