// scene/row_busy: the four figures of a row in columns; what Item::busy and Scene::busy mean by them.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "viewer/scene/scene.hpp"

namespace shardbook::scene {

using Busy = std::array<Nanoseconds, 4>;

// out[i] = busy ns of [edges[i], edges[i + 1]) at this depth; edges ascend. Memory rows are never busy.
void busy_columns(const Scene& scene, const Row& row, int depth, std::span<const Nanoseconds> edges, std::vector<Busy>& out);

}  // namespace shardbook::scene
