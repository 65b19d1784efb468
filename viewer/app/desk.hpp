// app/desk: everything that is open, and what is done with it.
//
// The desk owns runs, pages and the state of each view; it draws one frame by asking the views, and
// carries out the intents that they and the keys return. It knows ImGui and nothing of windows or GL,
// so that a window, a picture without display and a test are the same desk on another stage.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "viewer/ui/widgets.hpp"

namespace shardbook::app {

struct DeskOptions {
  std::string root;                    // of the project; "" if there is none: then no labs, no notes
  std::vector<std::string> open;       // runs, traces, packs, labs; as the command line names them
  bool dark = false;
  bool remember = true;                // read and write the settings of the user and notes.json of runs
  std::string layout;                  // "read", "split", "trace"; "" = as remembered, else by what is open
  std::string view;                    // a trace: link to begin with
};

class Desk {
 public:
  explicit Desk(DeskOptions options);
  ~Desk();

  // One frame: between ImGui::NewFrame and ImGui::Render.
  void draw();
  void act(const ui::Intent& intent);

  // Something is read or computed beside the frames.
  bool at_work() const;
  // Nothing is loading, nothing will change by itself: a picture taken now is the final one.
  bool idle() const;
  // Waits for the sentence that says why each open run takes what it takes; it comes by itself otherwise.
  void find_causes();
  // What state is called so: "selected", "view.start", "view.end", "page", "source", "problem", "runs",
  // "area.exposed_ns" ...; none for an unknown name. For scripts and tests.
  std::optional<std::string> value(const std::string& name) const;
  // The first thing that could not be done since it was last asked, one sentence; "" if none.
  std::string problem();

  bool wants_to_quit() const;
  // The file that a picture of the window was asked for, once; "" if none.
  std::string picture_wanted();
  bool dark() const;
  float scale() const;                 // that the user chose, times the screen's
  void set_screen_scale(float scale);
  std::string title() const;           // of the window

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace shardbook::app
