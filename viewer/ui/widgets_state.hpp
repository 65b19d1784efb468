// ui/widgets_state: what the widgets know of this frame and of the last one. For this room only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "viewer/ui/widgets.hpp"

namespace shardbook::ui {

struct ScreenState {
  std::vector<Spot> spots;
  std::vector<std::string> words;
  std::vector<std::string> panes;                               // of this frame
  std::vector<std::string> stack;                               // that are open now
  std::map<std::pair<std::string, std::string>, int> same_label;   // pane and label -> how many so far
  std::set<std::string> with_rows, rows_now;                    // panes that had rows in the last frame, in this one
  std::string focused, focused_now;
  std::string wants_focus;
};

ScreenState& screen_state();

}  // namespace shardbook::ui
