// lanes/parts: the pieces of a plot, each drawn into a rectangle that plot.cpp deals out.
#pragma once

#include "viewer/lanes/paint.hpp"
#include "viewer/lanes/placing.hpp"
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

// --- band.cpp -------------------------------------------------------------------------------------
// Phases and layers of the rank that is looked at; how high they are, 0 of a rank without any.
float band_height(const scene::Scene& scene, const PlotState& state);
void draw_band(ImDrawList* list, const scene::Scene& scene, const PlotState& state, const Frame& names, const Frame& band);

// --- minimap.cpp ----------------------------------------------------------------------------------
// Exposed communication of all ranks over the whole run; the view is a window in it that a press moves.
void draw_minimap(ImDrawList* list, const scene::Scene& scene, PlotState& state, const Frame& frame);

// --- body.cpp -------------------------------------------------------------------------------------
// Names, items, labels, selection of the rows in sight. Returns intents of the names (open, focus); sets state.items.
ui::Intents draw_rows(ImDrawList* list, const scene::Scene& scene, PlotState& state, const std::vector<Placed>& placed,
                      const Frame& names, const Frame& body);

// --- arrows.cpp -----------------------------------------------------------------------------------
// What the selected span waited for and what waited for it. Nothing to or from rows that are not there.
void draw_arrows(ImDrawList* list, const scene::Scene& scene, const PlotState& state, const std::vector<Placed>& placed, const Frame& body);
// One line along the rows that are there, where they were what the step waited for.
void draw_critical_path(ImDrawList* list, const scene::Scene& scene, const PlotState& state, const std::vector<Placed>& placed, const Frame& body);

// --- tooltip.cpp ----------------------------------------------------------------------------------
// Of state.hovered, else of the row at this time.
void draw_tooltip(const scene::Scene& scene, const PlotState& state, const scene::Row& row, base::Nanoseconds time);

}  // namespace shardbook::lanes
