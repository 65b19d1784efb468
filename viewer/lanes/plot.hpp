// lanes/plot: a run as rows over time, and the hand in it.
//
// Names of the rows on the left; to their right, under one scale of time: the minimap of exposed
// communication over the whole run, the ruler with steps, and the rows. Only rows in sight are asked
// for items. The mouse moves the view itself (wheel zooms at the pointer, right-drag and Shift-drag
// pan, drag selects an area); everything else that it means is returned as intents: select, open, pin.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "viewer/lanes/area.hpp"
#include "viewer/lanes/camera.hpp"
#include "viewer/lanes/marks.hpp"
#include "viewer/scene/scene.hpp"
#include "viewer/scene/sidecar.hpp"
#include "viewer/ui/widgets.hpp"

namespace shardbook::lanes {

// What the user has chosen to see; the desk owns one a run.
struct PlotState {
  scene::TimeView view;
  scene::RowChoices choices;
  float scroll = 0;                         // pixels into the rows
  float scroll_rest = 0;                    // moved, but not yet to the next whole row
  scene::SpanRef selected, hovered;
  std::string focus_row;                    // of the selection, or chosen by Ctrl+Up and Down
  bool reveal = false;                      // scroll so that focus_row is in sight, once
  bool show_critical = false;
  bool show_exposed = true;
  bool show_idle_causes = false;
  std::optional<Area> area;
  std::vector<scene::Range> ranges;         // kept ones
  std::optional<metrics::Window> temporary; // a range that is not kept
  std::vector<scene::Annotation> annotations;
  Marks marked;                             // what find has found: ticks above the rows

  // The rectangle that is being dragged: where it began.
  struct Drag {
    bool active = false;
    double from_time = 0;
    std::size_t from_row = 0;
  } drag;

  // Made when first asked for: why each stream of a rank stood still.
  std::map<base::Rank, std::vector<metrics::IdleGap>> idle_gaps;

  // The minimap's shares; made when its width changes.
  std::vector<float> exposed_columns;

  // Of the frame that was drawn last.
  std::vector<scene::Row> rows;
  int items = 0;                            // rectangles drawn
  float body_height = 0;                    // of the rows' pane
  float pointer_x = -1;                     // of the mouse over the rows, in pixels of the view; -1 elsewhere
};

// Draws into the current window's remaining content region of this size; nothing if that is too small for one row.
// REQUIRES: view.end > view.start.
ui::Intents draw_plot(const scene::Scene& scene, PlotState& state, ImVec2 size);

}  // namespace shardbook::lanes
