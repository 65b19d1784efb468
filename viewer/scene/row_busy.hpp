// scene/row_busy: the four figures of a row in columns; what Item::busy and Scene::busy mean by them.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "viewer/scene/scene.hpp"

namespace shardbook::scene {

using Busy = std::array<Nanoseconds, 4>;

// busy ns of each column and class; of a class that the row never has, no columns.
class BusyColumns {
 public:
  // Column i is [edges[i], edges[i + 1]); edges ascend. Memory rows are never busy. `depth` > 0: of host rows.
  void fill(const Scene& scene, const Row& row, int depth, std::span<const Nanoseconds> edges);
  Busy at(std::size_t column) const {
    Busy out{};
    for (std::size_t c = 0; c < 4; ++c) {
      if (!of_[c].empty()) out[c] = of_[c][column];
    }
    return out;
  }

 private:
  void put(const Coverage& coverage, std::size_t place, std::span<const Nanoseconds> edges);
  std::array<std::vector<Nanoseconds>, 4> of_;
};

}  // namespace shardbook::scene
