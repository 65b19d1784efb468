// scene/compare_words: where in the step did the change act?
//
// The sentence over a comparison, and the sums that it rests on, are those of engine/cause (diff.hpp), as on the command line.
// Here is what the picture adds: the difference of two steps as a sum over the phases, and where the same layer begins in both.
#pragma once

#include <string>
#include <vector>

#include "viewer/scene/compare.hpp"

namespace shardbook::scene {

// "By phase, on rank 0: forward +5.1 ms, backward +9.8 ms", the largest first. A phase begins where the one before it has
// computed its last, so what is waited for before its own first op is its own, and they sum to the step. "" where the two
// have different phases.
std::string by_phase(const Scene& a, const Scene& b, const Comparison& comparison);

// Where the same layer, or phase, of the first common rank begins in both, from the begin of the step; ascending in `a`.
struct Alignment {
  Nanoseconds a = 0, b = 0;
  bool phase = false;                // a phase begins here
};
std::vector<Alignment> alignment(const Scene& a, const Scene& b, const Comparison& comparison);

}  // namespace shardbook::scene
