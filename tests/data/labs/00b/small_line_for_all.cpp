// fails with: their line goes through 8 MiB and 512 MiB
#include "labs/00_timeline/lab.hpp"

namespace shardbook::lab00 {

// A second line, but with the small buffers' cost of a byte kept for the large ones.
double all_reduce_us(double bytes) {
  const double small = 9.8 + (14.9 - 9.8) / (508 * KiB) * (bytes - 4 * KiB);
  const double large = 59.1 + (59.1 - 14.9) / (8 * MiB - 512 * KiB) * (bytes - 8 * MiB);
  return bytes < 8 * MiB ? small : large;
}

}  // namespace shardbook::lab00
