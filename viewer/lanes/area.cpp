#include "viewer/lanes/area.hpp"

#include <algorithm>

namespace shardbook::lanes {

std::optional<std::pair<std::size_t, std::size_t>> places_of_area(const std::vector<scene::Row>& rows, const Area& area) {
  if (rows.empty()) return std::nullopt;
  if (area.first_row.empty()) return std::pair{std::size_t{0}, rows.size() - 1};
  // The closest pair: the last place of either name before each place of the other.
  std::optional<std::size_t> first, last;
  std::optional<std::pair<std::size_t, std::size_t>> best;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].name == area.first_row) first = i;
    if (rows[i].name == area.last_row) last = i;
    if (!first || !last || (*first != i && *last != i)) continue;
    const std::pair<std::size_t, std::size_t> pair = std::minmax(*first, *last);
    if (!best || pair.second - pair.first <= best->second - best->first) best = pair;
  }
  if (best) return best;
  if (first) return std::pair{*first, *first};
  if (last) return std::pair{*last, *last};
  return std::nullopt;
}

std::vector<scene::Row> rows_of_area(const std::vector<scene::Row>& rows, const Area& area) {
  const auto places = places_of_area(rows, area);
  if (!places) return {};
  return {rows.begin() + static_cast<std::ptrdiff_t>(places->first), rows.begin() + static_cast<std::ptrdiff_t>(places->second) + 1};
}

}  // namespace shardbook::lanes
