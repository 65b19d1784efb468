// app/desk_act_marks: commands on what the user notes about a run: ranges of time, and remarks.
//
// The panel lists ranges first, then remarks; a place in it counts through both.
#include "viewer/app/desk_act.hpp"
#include "viewer/lanes/camera.hpp"

namespace shardbook::app {

namespace {

// What a mark would cover: the area, else the selection.
std::optional<metrics::Window> window_of_mark(const lanes::PlotState& plot, const scene::Scene& scene) {
  if (plot.area) return plot.area->window;
  if (!plot.selected.valid()) return std::nullopt;
  return metrics::Window{scene.timeline().start(plot.selected), scene.timeline().end(plot.selected)};
}

}  // namespace

const Desk::Impl::RunActions& Desk::Impl::mark_actions() {
  static const RunActions table = {
      {"range.temporary", [](const OnRun& on) { on.plot.temporary = window_of_mark(on.plot, on.scene); }},
      {"range.keep", [](const OnRun& on) {
         const std::optional<metrics::Window> window = window_of_mark(on.plot, on.scene);
         if (!window) return;
         on.plot.ranges.push_back({*window, on.argument});
         on.desk.show_panel("marks");
       }},
      {"annotate", [](const OnRun& on) {
         if (on.argument.empty()) on.desk.begin_remark();
         else on.desk.keep_remark(on);
       }},
      {"annotation.keep", [](const OnRun& on) { on.desk.keep_remark(on); }},
      {"delete", [](const OnRun& on) { on.desk.delete_mark(on.plot); }},
      {"mark.show", [](const OnRun& on) { on.desk.show_mark(on, number_of(on.argument)); }},
  };
  return table;
}

void Desk::Impl::begin_remark() {
  show_panel("marks");
  marks.writing = marks.take_focus = true;
  marks.draft.clear();
}

void Desk::Impl::keep_remark(const OnRun& on) {
  on.plot.annotations.push_back({on.plot.focus_row, on.time(), on.argument});
  marks.writing = false;
  show_panel("marks");
  remember(on.run);
}

// The chosen one, else the last.
void Desk::Impl::delete_mark(lanes::PlotState& plot) {
  const auto ranges = static_cast<int>(plot.ranges.size()), all = ranges + static_cast<int>(plot.annotations.size());
  const int chosen = marks.selected >= 0 ? marks.selected : all - 1;
  if (chosen >= 0 && chosen < ranges) plot.ranges.erase(plot.ranges.begin() + chosen);
  else if (chosen >= ranges && chosen < all) plot.annotations.erase(plot.annotations.begin() + (chosen - ranges));
  marks.selected = -1;
  plot.temporary.reset();
}

void Desk::Impl::show_mark(const OnRun& on, int place) {
  const auto ranges = static_cast<int>(on.plot.ranges.size()), all = ranges + static_cast<int>(on.plot.annotations.size());
  marks.selected = place;
  keep_view();
  if (place >= 0 && place < ranges) {
    lanes::show(on.plot.view, on.plot.ranges[static_cast<std::size_t>(place)].window, on.whole(), 0.3);
  } else if (place >= ranges && place < all) {
    const scene::Annotation& annotation = on.plot.annotations[static_cast<std::size_t>(place - ranges)];
    lanes::center(on.plot.view, {annotation.time, annotation.time + 1}, on.whole());
    on.plot.focus_row = annotation.row;
    on.plot.reveal = true;
  }
}

}  // namespace shardbook::app
