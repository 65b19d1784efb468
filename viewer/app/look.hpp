// app/look: theme and fonts of an ImGui context, changed between frames.
#pragma once

#include <imgui.h>

namespace shardbook::app {

class Look {
 public:
  // Sets what has changed; true: the atlas is another one, so its texture must be made again before NewFrame.
  // A font that is missing is said on the error stream, once.
  bool follow(bool dark, float scale);

 private:
  bool first_ = true, dark_ = false, said_ = false;
  float scale_ = 0;
};

// What every stage asks of ImGui: no file of its own, keys by GLFW's codes, a cursor that does not blink.
void prepare_imgui();

}  // namespace shardbook::app
