// The twin of the viewer's commands for a build without viewer.
#include "engine/cli/viewer.hpp"

namespace shardbook::cli {

std::string viewer_problem() {
  return "this build has no viewer; it needs Dear ImGui, GLFW 3.3 and OpenGL (on Debian: libimgui-dev libglfw3-dev libgl-dev)";
}

int viewer_command(const std::string& name, const Line&, Console& console) {
  return refuse(console, base::text("`", name, "` belongs to the viewer, and ", viewer_problem(),
                                    "; until then `shardbook show` draws the timeline in the terminal"));
}

}  // namespace shardbook::cli
