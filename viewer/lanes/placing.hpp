// lanes/placing: where does each row stand, and which row is under the hand?
//
// Pure arithmetic in pixels from the first row's top. Rows follow each other without gap, but for a little air above each
// rank, and a line of air above a row that bears remarks, where these stand. Nested calls have levels of equal height within their row; what lies deeper is drawn on the last of them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "viewer/lanes/paint.hpp"
#include "viewer/scene/rows.hpp"

namespace shardbook::lanes {

struct Placed {
  float top = 0, height = 0;
  float bottom() const { return top + height; }
};

// One for each row; `remarked`: names of the rows that bear remarks.
std::vector<Placed> place_rows(const std::vector<scene::Row>& rows, const std::set<std::string>& remarked = {});
// How high the line of remarks above a row is.
float remark_height();

// Where labels of these widths stand that belong to ascending places: each at its own, or further left where it would run
// out of `whole`, but never over the one before it. A label has the room up to the next one's place, so it may be cut.
struct Label {
  float x = 0, width = 0;
};
std::vector<Label> place_labels(const std::vector<Label>& wanted, float whole);
// Of all rows together.
float whole_height(const std::vector<Placed>& placed);
// The row at this height, or -1: above the first, in the air between two, below the last.
int row_at(const std::vector<Placed>& placed, float y);
// The row that a drag to this height reaches, wherever it is: the row above an air. REQUIRES: a row.
std::size_t nearest_row(const std::vector<Placed>& placed, float y);

// What is drawn of a row whose first row's top is at `origin` on the screen: a little ground is left above and below.
RowRect rect_of(const Placed& placed, float left, float origin);
// The part of it where spans of this depth are drawn, and the depth of what is drawn at this height of the screen.
RowRect level_of(const scene::Row& row, const RowRect& rect, int depth);
int level_at(const scene::Row& row, const RowRect& rect, float y);

// The scroll that shows the row whole, or its top where it is higher than the pane, with the least move.
float scroll_to(const Placed& row, float scroll, float pane, float air);
// The scroll nearest below `scroll` at which the first row in sight is whole; the end of the list is always reached, so
// there it is the nearest above. A row higher than half of the pane may be cut.
float whole_rows_from(const std::vector<Placed>& placed, float scroll, float pane);
// A little further, so that no row above `row` is cut at the upper edge.
float from_a_whole_row(const std::vector<Placed>& placed, const Placed& row, float scroll);

// The handle of a scrollbar as long as the pane, for `whole` pixels of rows of which the pane shows some from `scroll`
// on; and the scroll that puts the handle's middle at `y`. REQUIRES: whole > pane > least.
struct Handle {
  float from = 0, length = 0;
};
Handle handle_of(float scroll, float whole, float pane, float least);
float scroll_of_handle(float y, float whole, float pane, float least);

}  // namespace shardbook::lanes
