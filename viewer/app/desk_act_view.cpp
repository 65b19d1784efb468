// app/desk_act_view: commands that change where one looks.
//
// A jump is kept in the run's history, so that Backspace returns; small moves by a held key are not.
#include <algorithm>
#include <cmath>

#include "viewer/app/desk_act.hpp"
#include "viewer/lanes/camera.hpp"

namespace shardbook::app {

namespace {

constexpr double zoom_a_frame = 1.07;        // while a key is held
constexpr double pan_a_frame = 0.03;
constexpr float scroll_a_frame = 24, scroll_a_page = 300;
constexpr std::size_t most_history = 100;

// At the pointer, else in the middle.
void zoom(lanes::PlotState& plot, double factor, metrics::Window whole) {
  lanes::zoom(plot.view, factor, plot.pointer_x >= 0 ? plot.pointer_x : plot.view.width / 2, whole);
}

// From one side of the history to the other.
void turn_history(OpenRun& run, std::vector<scene::TimeView>& from, std::vector<scene::TimeView>& to) {
  if (from.empty()) return;
  to.push_back(run.plot.view);
  run.plot.view = from.back();
  from.pop_back();
}

// The place among the recorded steps of the one in view, or `none`.
int place_in_view(const scene::Scene& scene, const lanes::PlotState& plot, int none) {
  const int now = views::step_in_view(scene, plot).number;
  const auto& steps = scene.steps();
  const auto found = std::find_if(steps.begin(), steps.end(), [&](const auto& step) { return step.number == now; });
  return found == steps.end() ? none : static_cast<int>(found - steps.begin());
}

}  // namespace

const Desk::Impl::RunActions& Desk::Impl::view_actions() {
  static const RunActions table = {
      // --- Small moves --------------------------------------------------------------------------------
      {"view.zoom_in", [](const OnRun& on) { zoom(on.plot, 1 / zoom_a_frame, on.whole()); }},
      {"view.zoom_out", [](const OnRun& on) { zoom(on.plot, zoom_a_frame, on.whole()); }},
      {"view.pan_left", [](const OnRun& on) { lanes::pan(on.plot.view, -pan_a_frame, on.whole()); }},
      {"view.pan_right", [](const OnRun& on) { lanes::pan(on.plot.view, pan_a_frame, on.whole()); }},
      {"scroll.up", [](const OnRun& on) { on.plot.scroll -= scroll_a_frame; }},
      {"scroll.down", [](const OnRun& on) { on.plot.scroll += scroll_a_frame; }},
      {"scroll.page_up", [](const OnRun& on) { on.plot.scroll -= scroll_a_page; }},
      {"scroll.page_down", [](const OnRun& on) { on.plot.scroll += scroll_a_page; }},

      // --- Jumps --------------------------------------------------------------------------------------
      {"view.fit", [](const OnRun& on) { on.desk.jump(on.run, on.whole()); }},
      {"view.center", [](const OnRun& on) { on.desk.center(on); }},
      {"view.zoom_area", [](const OnRun& on) {
         if (on.plot.area) on.desk.jump(on.run, on.plot.area->window);
         else on.desk.zoom_selected(on);
       }},
      {"view.zoom_selected", [](const OnRun& on) { on.desk.zoom_selected(on); }},
      {"view.back", [](const OnRun& on) { turn_history(on.run, on.run.back, on.run.forward); }},
      {"view.forward", [](const OnRun& on) { turn_history(on.run, on.run.forward, on.run.back); }},
      {"step", [](const OnRun& on) { on.desk.show_step(on.run, number_of(on.argument) - 1); }},
      {"step.next", [](const OnRun& on) { on.desk.show_step(on.run, place_in_view(on.scene, on.plot, -1) + 1); }},
      {"step.previous", [](const OnRun& on) {
         const auto count = static_cast<int>(on.scene.steps().size());
         on.desk.show_step(on.run, place_in_view(on.scene, on.plot, count) - 1);
       }},
      {"show.header", [](const OnRun& on) { on.run.overview.unfolded = !on.run.overview.unfolded; }},
      {"link.copy", [](const OnRun& on) {
         const std::string link = on.desk.link_to_view();
         ImGui::SetClipboardText(link.c_str());
         on.desk.hint = "copied: " + link;
       }},
  };
  return table;
}

// --- Jumps ----------------------------------------------------------------------------------------
void Desk::Impl::keep_view() {
  OpenRun* one = run();
  one->back.push_back(one->plot.view);
  one->forward.clear();
  if (one->back.size() > most_history) one->back.erase(one->back.begin());
}

void Desk::Impl::jump(OpenRun& one, metrics::Window window, double air) {
  keep_view();
  lanes::show(one.plot.view, window, one.scene->whole(), air);
}

void Desk::Impl::center(const OnRun& on) {
  const scene::TimeView before = on.plot.view;
  if (!on.selected()) {
    jump(on.run, on.whole());
    return;
  }
  keep_view();
  lanes::center(on.plot.view, on.selection(), on.whole());
  // F again, where the selection is in the middle already, shows the whole run.
  if (std::abs(on.plot.view.start - before.start) < 1 && std::abs(on.plot.view.end - before.end) < 1) lanes::show(on.plot.view, on.whole(), on.whole());
  on.plot.reveal = true;
}

void Desk::Impl::zoom_selected(const OnRun& on) {
  if (!on.selected()) return;
  jump(on.run, on.selection(), 0.5);
  on.plot.reveal = true;
}

void Desk::Impl::show_step(OpenRun& one, int place) {
  const auto& steps = one.scene->steps();
  if (place < 0 || place >= static_cast<int>(steps.size())) {
    hint = base::text("this run has ", steps.size(), " recorded steps");
    return;
  }
  jump(one, steps[static_cast<std::size_t>(place)].window, 0.01);
}

}  // namespace shardbook::app
