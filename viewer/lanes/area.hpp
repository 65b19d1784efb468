// lanes/area: which rows does a selected rectangle cover?
//
// An area knows its rows by name, so that it stays where it is when rows open and close. A pinned row stands twice, at the
// top and in its place: of the pairs that the two names have, the one that lies closest is meant.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/metrics/partition.hpp"
#include "viewer/scene/rows.hpp"

namespace shardbook::lanes {

// A time window over the rows between two, by name ("" for all).
struct Area {
  metrics::Window window;
  std::string first_row, last_row;
  friend bool operator==(const Area&, const Area&) = default;
};

// The first and the last of its rows among these; where one of the two names is not there, the other alone. None if
// neither is.
std::optional<std::pair<std::size_t, std::size_t>> places_of_area(const std::vector<scene::Row>& rows, const Area& area);
std::vector<scene::Row> rows_of_area(const std::vector<scene::Row>& rows, const Area& area);

}  // namespace shardbook::lanes
