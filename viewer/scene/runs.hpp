// scene/runs: columns that differ by little become one.
//
// A pixel is too little for a rectangle: neighbouring columns join while their shares differ by no more than
// a tolerance, which starts at a thirty-sixth (less than a pixel of a row's height) and triples to a quarter
// until there are few enough. If there are still too many, narrow neighbours join whatever they hold. A run
// knows its columns, so no time is lost; and until that last resort what stood still never joins what did
// not, so that a gap stays a gap.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "viewer/scene/coverage.hpp"

namespace shardbook::scene {

// Of a column, in 255ths; 0 only if there was nothing at all.
using Shares = std::array<std::uint8_t, 4>;
Shares shares_of(const std::array<Nanoseconds, 4>& busy, Nanoseconds length);

struct Run {
  Nanoseconds start = 0, end = 0;
  std::uint32_t first = 0, last = 0;         // its columns: [first, last)
  Shares least{}, most{};                    // of its columns
  bool any() const { return (most[0] | most[1] | most[2] | most[3]) != 0; }
};

class Runs {
 public:
  void clear() { runs_.clear(); }
  // The next column. REQUIRES: end > start, and not before the last one's end.
  void add(Nanoseconds start, Nanoseconds end, std::uint32_t column, const Shares& shares);
  // Joins runs that touch in time until at most `most` of them are busy at all, or runs are `longest` ns wide.
  void reduce(std::size_t most, double column_ns, double longest);
  const std::vector<Run>& all() const { return runs_; }

 private:
  template <class Alike>
  std::size_t pass(Alike alike);
  std::vector<Run> runs_;
};

}  // namespace shardbook::scene
