// fails with: The function returns microseconds
#include "labs/00_timeline/lab.hpp"

namespace shardbook::lab00 {

// Right, in milliseconds.
double all_reduce_us(double bytes) {
  const double small = 9.8 + (14.9 - 9.8) / (508 * KiB) * (bytes - 4 * KiB);
  const double large = 59.1 + (2317.8 - 59.1) / (504 * MiB) * (bytes - 8 * MiB);
  return std::min(small, large) / 1000;
}

}  // namespace shardbook::lab00
