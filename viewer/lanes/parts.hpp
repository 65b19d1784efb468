// lanes/parts: the pieces of a plot, each drawn into a rectangle that plot.cpp deals out.
#pragma once

#include "viewer/lanes/paint.hpp"
#include "viewer/lanes/plot.hpp"

namespace shardbook::lanes {

struct Frame {
  ImVec2 from, to;
  float width() const { return to.x - from.x; }
  float height() const { return to.y - from.y; }
};

// --- ruler.cpp ------------------------------------------------------------------------------------
// Steps as alternating bands with their numbers, ticks at 1, 2 or 5 times a power of ten, lines down
// through `body`. Times count from the start of the run's device work.
void draw_ruler(ImDrawList* list, const scene::Scene& scene, const PlotState& state, const Frame& ruler, const Frame& body);
// The distance of ticks for this scale: 1, 2 or 5 times a power of ten, at least `least_px` apart.
double tick_ns(double ns_per_pixel, float least_px);

// --- minimap.cpp ----------------------------------------------------------------------------------
// Exposed communication of all ranks over the whole run; the view is a window in it that a press moves.
void draw_minimap(ImDrawList* list, const scene::Scene& scene, PlotState& state, const Frame& frame);

// --- body.cpp -------------------------------------------------------------------------------------
// Where each row stands, in pixels from the first row's top.
struct Placed {
  float top = 0, height = 0;
};
std::vector<Placed> place_rows(const std::vector<scene::Row>& rows);
// Names, items, labels, selection. Returns intents of the names (open, pin); sets state.hovered.
ui::Intents draw_rows(ImDrawList* list, const scene::Scene& scene, PlotState& state, const std::vector<Placed>& placed,
                      const Frame& names, const Frame& body);

// --- arrows.cpp -----------------------------------------------------------------------------------
void draw_arrows(ImDrawList* list, const scene::Scene& scene, const PlotState& state, const std::vector<Placed>& placed, const Frame& body);
void draw_critical_path(ImDrawList* list, const scene::Scene& scene, const PlotState& state, const std::vector<Placed>& placed, const Frame& body);

// --- tooltip.cpp ----------------------------------------------------------------------------------
void draw_tooltip(const scene::Scene& scene, const PlotState& state, const scene::Row& row, base::Nanoseconds time);

}  // namespace shardbook::lanes
