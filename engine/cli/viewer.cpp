// cli/viewer: hands over to the viewer's program; see viewer.hpp.
#include "engine/cli/viewer.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <ostream>

#include "engine/base/check.hpp"
#include "engine/cli/command.hpp"
#include "engine/cli/open_trace.hpp"

namespace shardbook::cli {

namespace {

namespace fs = std::filesystem;

// Beside this program, or where the launcher builds it: build/viewer beside build/host and build/cuda. "" if nowhere.
std::string viewer_path() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return "";
  for (const fs::path& path : {folder / "shardbook-viewer", folder.parent_path() / "viewer" / "shardbook-viewer"}) {
    if (fs::is_regular_file(path, error) && access(path.c_str(), X_OK) == 0) return path.string();
  }
  return "";
}

}  // namespace

std::string viewer_problem() {
  if (!viewer_path().empty()) return "";
  return "the viewer is not built; `./shardbook view` at the root of the project builds it (it needs Dear ImGui, GLFW 3.3, EGL, "
         "md4c, Graphviz and libpng; on Debian: libimgui-dev libglfw3-dev libgl-dev libegl-dev libmd4c-dev libgraphviz-dev libpng-dev)";
}

int viewer_command(const std::string& name, const Line& line, Console& console) {
  const std::string path = viewer_path();
  if (path.empty()) {
    return refuse(console, base::text("`", name, "` belongs to the viewer, and ", viewer_problem(),
                                      "; until then `shardbook show` draws the timeline in the terminal"));
  }
  if (name == "view") {
    if (base::Status finished = finish_killed_runs(line.places, console); !finished) return refuse(console, finished.error());
  }
  // The same words, in place of this program.
  std::vector<std::string> words = {path, name};
  words.insert(words.end(), line.places.begin(), line.places.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  console.out.flush();
  execv(path.c_str(), arguments.data());
  return refuse(console, base::text(path, " cannot be started: ", std::strerror(errno)));
}

}  // namespace shardbook::cli
