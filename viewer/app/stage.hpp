// app/stage: where frames go: a window, or a picture in memory.
//
// The only place that knows GLFW, EGL and OpenGL. Both stages drive the same Desk. The one without a
// display needs no X and no GPU: EGL's surfaceless platform on Mesa's software renderer. Sizes are pixels of the
// picture; screen_scale says how large an inch of it is, and the desk makes letters and panes that much larger.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "viewer/app/desk.hpp"

namespace shardbook::app {

struct Pixels {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;       // rows from the top
};
// Errors: the path and why. Written beside and renamed.
base::Status write_png(const Pixels& pixels, const std::string& path);

// A stage without a display. Frames are 1/60 s apart whatever the clock says. Each is laid out, and only one whose pixels are
// asked for is painted.
class Picture {
 public:
  static base::Result<std::unique_ptr<Picture>> make(int width, int height, float screen_scale);
  virtual ~Picture() = default;
  virtual void resize(int width, int height, float screen_scale) = 0;
  virtual float screen_scale() const = 0;
  // One frame with ImGui's inputs as they are in ImGui::GetIO(). A picture that the desk wants is saved.
  void frame(Desk& desk);
  // The same of anything that is drawn between NewFrame and Render, in this theme and scale.
  virtual void frame_of(bool dark, float scale, const std::function<void()>& draw) = 0;
  virtual Pixels pixels() = 0;         // of the last frame
};

// Draws a frame; and while something is at work beside it, rests three times as long, so that the work has the processor.
void frame_beside_work(Desk& desk, Picture& picture);

// Opens a window and runs until the user closes it. Errors: no display (what to do without one).
// `scale`: on top of the screen's own.
base::Status run_window(Desk& desk, float scale = 1);

}  // namespace shardbook::app
