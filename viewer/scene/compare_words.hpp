// scene/compare_words: what did the change do, in one sentence, and where?
//
// The sentence says what was changed, what the step lost or gained, and the kind of communication that had the most to do
// with it. Below it, figures that add up: a rank's step is compute + exposed communication + exposed copies + idle, to the
// nanosecond, so the difference of two steps is the sum of four differences; and it is the sum over the phases. That is
// how +29 ms of exposed time can be +15 ms of step.
#pragma once

#include <string>
#include <vector>

#include "viewer/scene/compare.hpp"

namespace shardbook::scene {

// Steps whose lengths differ by less than this share of the longer one are called equal.
constexpr double equal_share = 0.005;

struct ComparisonWords {
  bool equal = false;
  std::string sentence;
  std::vector<std::string> sums;     // "A rank's step +15.1 ms = exposed +29.0, compute −13.9, ...", "by phase: ..."
};
ComparisonWords words_of(const Scene& a, const Scene& b, const Comparison& comparison);

// Where the same layer, or phase, of the first common rank begins in both, from the begin of the step; ascending in `a`.
struct Alignment {
  Nanoseconds a = 0, b = 0;
  bool phase = false;                // a phase begins here
};
std::vector<Alignment> alignment(const Scene& a, const Scene& b, const Comparison& comparison);

}  // namespace shardbook::scene
