// lanes/paint: what does an item look like?
//
// Shape as well as colour, so that the picture can be read without telling colours apart: compute is
// plain, communication is hatched (its waiting part in outline, its queued part a thin lead), copies carry a line through the
// middle, idle time is an empty frame, exposed communication is cross-hatched. A slice that stands for
// many spans is a column as high as the share of its time that was busy, never a solid block.
#pragma once

#include <imgui.h>

#include <string>

#include "viewer/scene/items.hpp"

namespace shardbook::lanes {

// Where a row is on the screen: `left` is the plot's x of view.start; items carry x from there.
struct RowRect {
  float left = 0, top = 0, bottom = 0;
  float height() const { return bottom - top; }
};

// Hatching costs a line every few pixels; a frame has a budget, and its lines grow sparser beyond.
class Hatch {
 public:
  explicit Hatch(float step) : step_(step) {}
  // Diagonal lines through the rectangle; equal x give equal lines, so that neighbours join.
  void fill(ImDrawList* list, ImVec2 from, ImVec2 to, ImU32 colour, bool both_ways = false);
  int lines() const { return lines_; }

 private:
  float step_;
  int lines_ = 0;
  static constexpr int lines_a_step_ = 4000, most_lines_ = 16000;
};

void draw_item(ImDrawList* list, const scene::Item& item, const RowRect& row, Hatch& hatch);
// A collective that stands before a full device, from x0 to x1 on the screen: a thin hatched lead, and no block, since nothing moves.
void draw_queued(ImDrawList* list, float x0, float x1, const RowRect& row, Hatch& hatch);
// What stands behind words on this fill: its own colour where a pattern would cross them, 0 where there is none.
ImU32 plate_of(scene::Paint paint);
// The words on a span, cut to its width with an ellipsis; nothing if less than three letters fit.
// `ground`: drawn behind the words, where what is below would cross them; 0 = nothing.
void draw_label(ImDrawList* list, const std::string& words, float x0, float x1, const RowRect& row, ImU32 colour, ImU32 ground = 0);
// A frame around a span: selected (thick) or hovered.
void draw_frame(ImDrawList* list, float x0, float x1, const RowRect& row, bool selected);

}  // namespace shardbook::lanes
