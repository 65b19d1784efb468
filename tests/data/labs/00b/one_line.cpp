// fails with: one line cannot do it
#include "labs/00_timeline/lab.hpp"

namespace shardbook::lab00 {

// The single line that errs least; it still errs by 19 %.
double all_reduce_us(double bytes) {
  const double alpha = 11.62, beta = 4.995e-6;
  return alpha + beta * bytes;
}

}  // namespace shardbook::lab00
