// scene/alike: which ranks need not be drawn one by one?
//
// Two ranks behave alike if they have the same device streams with the same number of spans on each, and
// if in each step (without steps: in the whole run) none of the four parts of their time (compute,
// exposed communication, exposed memory, idle) differs by more than 5 % of the step. A rank folds into the
// first rank below it that it is alike with and that does not fold itself. Rank 0 and the straggler
// keep their rows whatever they are alike with.
#pragma once

#include <vector>

#include "viewer/scene/scene.hpp"

namespace shardbook::scene {

constexpr double alike_share = 0.05;

bool behave_alike(const Scene& scene, Rank a, Rank b);

// For each entry of scene.ranks(): the ranks that fold into it; whether it folds into another.
void make_alike(const Scene& scene, std::vector<std::vector<Rank>>& alike, std::vector<bool>& folded);

}  // namespace shardbook::scene
