#include "viewer/lanes/placing.hpp"

#include <algorithm>

#include "viewer/ui/theme.hpp"

namespace shardbook::lanes {

using scene::Row;
using scene::RowKind;
using ui::px;

namespace {

constexpr int most_levels = 6;

int levels_of(const Row& row) { return std::clamp(row.depth, 1, most_levels); }

float height_of(const Row& row) {
  switch (row.kind) {
    case RowKind::rank: return px(26);
    case RowKind::stream: return px(26);
    case RowKind::exposed: return px(20);
    case RowKind::idle: return px(16);
    case RowKind::critical: return px(18);
    case RowKind::marks: return px(14);
    case RowKind::host: return px(4 + 15 * static_cast<float>(levels_of(row)));
    case RowKind::memory: return px(48);
  }
  return px(20);
}

float level_height(const Row& row, const RowRect& rect) { return rect.height() / static_cast<float>(levels_of(row)); }

}  // namespace

float remark_height() { return px(18); }

std::vector<Label> place_labels(const std::vector<Label>& wanted, float whole) {
  std::vector<Label> labels;
  float taken = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const float x = std::max(taken, std::min(wanted[i].x, whole - wanted[i].width));
    const float end = i + 1 < wanted.size() ? std::max(x, std::min(wanted[i + 1].x, whole)) : whole;
    labels.push_back({x, std::clamp(end - x, 0.0f, wanted[i].width)});
    taken = x + labels.back().width;
  }
  return labels;
}

std::vector<Placed> place_rows(const std::vector<Row>& rows, const std::set<std::string>& remarked) {
  std::vector<Placed> placed;
  placed.reserve(rows.size());
  float top = 0;
  for (const Row& row : rows) {
    if (row.kind == RowKind::rank && top > 0) top += px(4);
    if (remarked.contains(row.name)) top += remark_height();
    placed.push_back({top, height_of(row)});
    top = placed.back().bottom();
  }
  return placed;
}

float whole_height(const std::vector<Placed>& placed) { return placed.empty() ? 0 : placed.back().bottom(); }

int row_at(const std::vector<Placed>& placed, float y) {
  const auto after = std::partition_point(placed.begin(), placed.end(), [&](const Placed& row) { return row.bottom() <= y; });
  return after == placed.end() || y < after->top ? -1 : static_cast<int>(after - placed.begin());
}

std::size_t nearest_row(const std::vector<Placed>& placed, float y) {
  const auto below = std::partition_point(placed.begin(), placed.end(), [&](const Placed& row) { return row.top <= y; });
  return below == placed.begin() ? 0 : static_cast<std::size_t>(below - placed.begin()) - 1;
}

RowRect rect_of(const Placed& placed, float left, float origin) {
  return {left, origin + placed.top + px(3), origin + placed.bottom() - px(3)};
}

RowRect level_of(const Row& row, const RowRect& rect, int depth) {
  if (row.depth <= 1) return rect;
  const float each = level_height(row, rect), top = rect.top + each * static_cast<float>(std::clamp(depth, 0, levels_of(row) - 1));
  return {rect.left, top, top + each - 1};
}

int level_at(const Row& row, const RowRect& rect, float y) {
  return std::clamp(static_cast<int>((y - rect.top) / level_height(row, rect)), 0, levels_of(row) - 1);
}

float scroll_to(const Placed& row, float scroll, float pane, float air) {
  if (row.bottom() > scroll + pane) scroll = row.bottom() + air - pane;
  if (row.top < scroll) scroll = row.top - air;
  return std::max(0.0f, scroll);
}

float whole_rows_from(const std::vector<Placed>& placed, float scroll, float pane) {
  if (placed.empty() || scroll <= 0) return 0;
  // A row begins where the one before it ends: its air and its remarks are its own.
  const auto at = std::partition_point(placed.begin(), placed.end(), [&](const Placed& row) { return row.bottom() <= scroll + 0.5f; });
  if (at == placed.end()) return scroll;
  const float begin = at == placed.begin() ? 0 : std::prev(at)->bottom();
  if (at->bottom() - begin > pane / 2) return scroll;
  const bool at_end = scroll + pane >= whole_height(placed) - 0.5f;
  return begin >= scroll - 0.5f ? begin : at_end ? at->bottom() : begin;
}

float from_a_whole_row(const std::vector<Placed>& placed, const Placed& row, float scroll) {
  for (const Placed& one : placed) {
    if (one.height <= 0 || one.bottom() <= scroll) continue;
    return one.top >= scroll ? scroll : std::min(one.bottom(), row.top);
  }
  return scroll;
}

Handle handle_of(float scroll, float whole, float pane, float least) {
  const float length = std::max(least, pane * pane / whole);
  return {scroll / (whole - pane) * (pane - length), length};
}

float scroll_of_handle(float y, float whole, float pane, float least) {
  const float length = handle_of(0, whole, pane, least).length;
  return std::clamp((y - length / 2) / (pane - length), 0.0f, 1.0f) * (whole - pane);
}

}  // namespace shardbook::lanes
