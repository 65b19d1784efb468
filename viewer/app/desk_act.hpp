// app/desk_act: what a command on a run works with. Private to desk_act*.cpp.
#pragma once

#include <cstdlib>
#include <set>
#include <string>

#include "viewer/app/desk_state.hpp"

namespace shardbook::app {

// The run in front, what of it is asked for most, and the words that came with the command.
struct Desk::Impl::OnRun {
  Impl& desk;
  OpenRun& run;
  lanes::PlotState& plot;              // the run's
  const scene::Scene& scene;           // the run's
  const std::string& argument;

  metrics::Window whole() const { return scene.whole(); }
  bool selected() const { return plot.selected.valid(); }
  // REQUIRES: selected().
  metrics::Window selection() const { return {scene.timeline().start(plot.selected), scene.timeline().end(plot.selected)}; }
  // Of what is selected, else the middle of what is seen.
  base::Nanoseconds time() const { return selected() ? selection().start : plot.view.time_at(plot.view.width / 2); }
};

inline int number_of(const std::string& words) { return std::atoi(words.c_str()); }

// In if it was out, out if it was in.
inline void turn(std::set<std::string>& names, const std::string& name) {
  if (names.erase(name) == 0) names.insert(name);
}

}  // namespace shardbook::app
