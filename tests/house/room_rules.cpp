// Rules on the rooms of engine/ and viewer/: floors, includes, libraries, their pages, the map.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <regex>
#include <sstream>

#include "engine/base/check.hpp"
#include "tests/house/markdown.hpp"
#include "tests/house/note_rules.hpp"

namespace shardbook::tests {

using base::text;

namespace {

// What CMake is told of a room. Its name is that of its folder; of the viewer's rooms it begins with viewer_.
struct Room {
  std::string floor;
  std::string folder;   // "engine/fsdp", "viewer/scene"
  std::set<std::string> uses;
  bool of_viewer() const { return folder.starts_with("viewer/"); }
};
using Rooms = std::map<std::string, Room>;

// All that the viewer may use of the engine: what needs no CUDA, no NCCL, no threads of a run.
const std::set<std::string> pure_rooms{"base", "workbook",     "config", "mesh", "diagram", "program",  "shard",
                                       "timeline", "data",   "book", "metrics", "simulate", "check", "cause", "reading"};

Rooms find_rooms(const Tree& tree, Problems& problems) {
  static const std::regex call(R"(shardbook_room\(\s*(\w+)\s+FLOOR\s+(\d+)([^)]*)\))");
  Rooms rooms;
  for (const auto& [path, content] : tree.texts) {
    std::smatch match;
    if (!path.ends_with("CMakeLists.txt") || path.starts_with("tests/") || !std::regex_search(content, match, call)) continue;
    const std::string name = match[1];
    if (room_of(path) != name) problems.push_back(text(path, ": the room of this folder is not named ", name));
    Room& room = rooms[name];
    room.floor = match[2];
    room.folder = std::filesystem::path(path).parent_path().generic_string();
    std::istringstream words(match[3]);
    bool in_uses = false;
    for (std::string word; words >> word;) {
      if (word == "SOURCES" || word == "LIBRARIES") in_uses = false;
      else if (word == "USES") in_uses = true;
      else if (in_uses) room.uses.insert(word);
    }
  }
  return rooms;
}

Rooms find_rooms(const Tree& tree) {
  Problems unused;
  return find_rooms(tree, unused);
}

// Calls act(path, line number, what is included) for each include of engine/ and viewer/.
template <class Act>
void for_each_include(const Tree& tree, Act act) {
  static const std::regex include(R"re(^\s*#\s*include\s+["<]([^">]+)[">])re");
  for (const auto& [path, content] : tree.texts) {
    if (!path.starts_with("engine/") && !path.starts_with("viewer/")) continue;
    int number = 0;
    for (const std::string& line : lines_of(content)) {
      ++number;
      std::smatch match;
      if (std::regex_search(line, match, include)) act(path, number, match[1].str());
    }
  }
}

}  // namespace

std::string room_of(const std::string& path) {
  static const std::regex place(R"(^(engine|viewer)/(\w+)/.*)");
  std::smatch match;
  if (!std::regex_match(path, match, place)) return "";
  return match[1] == "viewer" ? "viewer_" + match[2].str() : match[2].str();
}

Problems missing_rooms(const Tree& tree) {
  Problems problems;
  const Rooms rooms = find_rooms(tree, problems);
  const std::string index = tree.texts.contains("notes/README.md") ? tree.texts.at("notes/README.md") : "";
  for (const auto& [name, room] : rooms) {
    const std::string path = "notes/rooms/" + name + ".md";
    if (!tree.texts.contains(path)) {
      problems.push_back(text("room ", name, " has no page ", path));
      continue;
    }
    const std::string& page = tree.texts.at(path);
    const std::string floor = text("\n\nFloor ", room.floor, ", [", room.folder, "](../../", room.folder, ").\n");
    if (!page.starts_with(text("# ", name, ": ")) || page.find(floor) != page.find('\n')) {
      problems.push_back(text(path, " must begin with its name and question, then floor ", room.floor, " and its folder"));
    }
    const std::string row = text("| ", room.floor, " |");
    const std::size_t line = index.find(row), link = index.find(text("[", name, "](rooms/", name, ".md)"), line);
    const std::size_t next = index.find('\n', std::min(line, index.size()));
    if (line == std::string::npos || link == std::string::npos || link < line || link > next) {
      problems.push_back(text("notes/README.md: ", name, " is missing from floor ", room.floor));
    }
  }
  for (const std::string& page : tree.pages()) {
    if (!page.starts_with("notes/rooms/")) continue;
    const std::string name = std::filesystem::path(page).stem().string();
    if (!rooms.contains(name)) problems.push_back(text(page, ": there is no room ", name));
  }
  return problems;
}

Problems upward_includes(const Tree& tree) {
  const Rooms rooms = find_rooms(tree);
  Problems problems;
  for (const auto& [name, room] : rooms) {
    for (const std::string& used : room.uses) {
      const auto below = rooms.find(used);
      if (below == rooms.end() || std::stoi(below->second.floor) >= std::stoi(room.floor)) {
        problems.push_back(text("room ", name, " on floor ", room.floor, " may not use ", used));
      } else if (!room.of_viewer() && below->second.of_viewer()) {
        problems.push_back(text("room ", name, " of the engine may not use ", used));
      } else if (room.of_viewer() && !below->second.of_viewer() && !pure_rooms.contains(used)) {
        problems.push_back(text("room ", name, " may use the engine's pure rooms only, and ", used, " is none"));
      }
    }
  }
  for_each_include(tree, [&](const std::string& path, int line, const std::string& included) {
    const auto room = rooms.find(room_of(path));
    const std::string target = room_of(included);
    if (room == rooms.end() || target.empty() || target == room->first || room->second.uses.contains(target)) return;
    problems.push_back(text(path, ":", line, ": room ", room->first, " includes ", target, ", which it does not use"));
  });
  return problems;
}

Problems unlinked_packages(const Tree& tree) {
  static const std::map<std::string, std::string> packages{{"nlohmann", "shardbook_json"}, {"CLI", "shardbook_cli11"}};
  const Rooms rooms = find_rooms(tree);
  const std::function<bool(const std::string&, const std::string&)> links = [&](const std::string& name, const std::string& package) {
    const auto room = rooms.find(name);
    if (room == rooms.end()) return false;
    if (tree.texts.at(room->second.folder + "/CMakeLists.txt").find(package) != std::string::npos) return true;
    return std::any_of(room->second.uses.begin(), room->second.uses.end(), [&](const std::string& used) { return links(used, package); });
  };
  Problems problems;
  for_each_include(tree, [&](const std::string& path, int line, const std::string& included) {
    const auto package = packages.find(included.substr(0, included.find('/')));
    const std::string room = room_of(path);
    if (package == packages.end() || !rooms.contains(room) || links(room, package->second)) return;
    problems.push_back(text(path, ":", line, ": room ", room, " includes ", included, ", and nothing that it links is ", package->second));
  });
  return problems;
}

Problems stray_libraries(const Tree& tree) {
  // Where the headers of a library may be included: below these paths, or in these files. (ui takes its names of
  // keys from GLFW, and nothing else of it.)
  struct Library {
    const char* name;
    std::regex header;
    std::vector<std::string> places;
  };
  static const std::vector<Library> libraries = {
      {"Dear ImGui", std::regex("^(backends/)?imgui.*"), {"viewer/ui/", "viewer/lanes/", "viewer/views/", "viewer/app/"}},
      {"GLFW", std::regex("^(GLFW/|backends/imgui_impl_glfw).*"), {"viewer/app/", "viewer/ui/keys.cpp", "viewer/ui/imgui_version.cpp"}},
      {"OpenGL and EGL", std::regex("^(GL|GLES[0-9]*|EGL|KHR|backends/imgui_impl_opengl.*|glad|epoxy)(/.*|\\.h)"), {"viewer/app/"}},
      {"md4c", std::regex("^md4c.*"), {"viewer/page/markdown.cpp"}},
      {"Graphviz", std::regex("^(graphviz/.*|gvc\\.h|cgraph\\.h)"), {"viewer/page/graphviz.cpp"}},
  };
  Problems problems;
  for_each_include(tree, [&](const std::string& path, int line, const std::string& included) {
    for (const Library& library : libraries) {
      if (!std::regex_match(included, library.header)) continue;
      const bool may = std::any_of(library.places.begin(), library.places.end(), [&](const std::string& place) { return path.starts_with(place); });
      if (!may) problems.push_back(text(path, ":", line, ": ", library.name, " is not known here (", included, ")"));
    }
  });
  return problems;
}

Problems clocks_that_jump(const Tree& tree) {
  static const std::regex jumps(R"(system_clock|CLOCK_REALTIME|gettimeofday|\btime\((nullptr|NULL|0)\))");
  // A day or a name that no other has
  static const std::vector<std::string> may{"engine/launch/run_folder.cpp", "engine/launch/checkpoints.cpp", "engine/workbook/progress.cpp", "engine/cli/calibrate_command.cpp"};
  Problems problems;
  for (const auto& [path, content] : tree.texts) {
    const bool ours = path.starts_with("engine/") || path.starts_with("viewer/") || path.starts_with("labs/");
    if (!ours || !(path.ends_with(".cpp") || path.ends_with(".hpp") || path.ends_with(".cu")) || std::find(may.begin(), may.end(), path) != may.end()) continue;
    int number = 0;
    for (const std::string& line : lines_of(content)) {
      ++number;
      if (std::regex_search(line, jumps)) problems.push_back(text(path, ":", number, ": this clock jumps when somebody sets it; std::chrono::steady_clock does not"));
    }
  }
  return problems;
}

Problems json_as_text(const Tree& tree) {
  static const std::regex names(R"([jJ]son::(parse|accept|sax_parse)\(|\.dump\()");
  Problems problems;
  for (const auto& [path, content] : tree.texts) {
    if (!(path.ends_with(".cpp") || path.ends_with(".hpp")) || path.starts_with("tests/house/") || path == "engine/base/json.cpp") continue;
    int number = 0;
    for (const std::string& line : lines_of(content)) {
      ++number;
      if (std::regex_search(line, names)) problems.push_back(text(path, ":", number, ": base/json.hpp parses and writes JSON; here it would be compiled anew"));
    }
  }
  return problems;
}

Problems strangers_to_switches(const Tree& tree) {
  Problems problems;
  for_each_include(tree, [&](const std::string& path, int line, const std::string& included) {
    if (included != "engine/config/switches.hpp" || path.starts_with("engine/config/")) return;
    if (path == "engine/train/seams.cpp" || path == "engine/cli/switches_command.cpp") return;
    // Their names alone, to look them up in notes.
    if (path == "engine/cli/notes_command.cpp" || path == "viewer/app/desk_reading.cpp") return;
    problems.push_back(text(path, ":", line, ": only train/seams.cpp turns switches into choices; take a number, a function or a piece"));
  });
  return problems;
}

Problems impure_schedules(const Tree& tree) {
  static const std::regex schedule(R"(^engine/(fsdp|data_parallel)/schedule\.(cpp|hpp)$)"), allowed(R"(^engine/(plan|base)/.*)");
  Problems problems;
  for_each_include(tree, [&](const std::string& path, int line, const std::string& included) {
    if (!std::regex_match(path, schedule) || !included.starts_with("engine/") || std::regex_match(included, allowed)) return;
    if (included == "engine/" + room_of(path) + "/schedule.hpp") return;
    problems.push_back(text(path, ":", line, ": a schedule is an order of the plan, and knows no ", included));
  });
  return problems;
}

Problems kernels_that_do_not_wait(const Tree& tree) {
  constexpr int within = 10;   // lines behind __global__: its name, what it takes, what its block shares
  Problems problems;
  const auto does_not = [&](const std::string& path, int& line) {
    problems.push_back(text(path, ":", line, ": this kernel does not wait for the one before it"));
    line = 0;
  };
  for (const auto& [path, content] : tree.texts) {
    if (!path.starts_with("engine/kernels/cuda/") || !(path.ends_with(".cu") || path.ends_with(".cuh"))) continue;
    int number = 0, begun = 0;
    for (const std::string& line : lines_of(content)) {
      ++number;
      if (line.find("<<<") != std::string::npos) problems.push_back(text(path, ":", number, ": a kernel is launched by launch() of common.cuh"));
      if (line.find("wait_for_kernel_before();") != std::string::npos || line.find("before.wait();") != std::string::npos) begun = 0;
      const bool begins = line.find("__global__ ") < line.find("//");
      if (begun != 0 && (begins || number == begun + within)) does_not(path, begun);
      if (begins) begun = number;
    }
    if (begun != 0) does_not(path, begun);
  }
  return problems;
}

Problems kernels_without_a_floor(const Tree& tree) {
  static const std::regex file(R"(^engine/.*\.cu$|^engine/kernels/cuda/cudnn/attention\.cpp$)");
  Problems problems;
  for (const auto& [path, content] : tree.texts) {
    if (!std::regex_match(path, file)) continue;
    std::string head;
    for (const std::string& line : lines_of(content)) {
      if (!line.starts_with("//")) break;
      head += line + "\n";
    }
    for (const auto& [word, pattern] : {std::pair{"flops", "[Ff]lops"}, {"bytes", "[Bb]ytes"}, {"floor", "[Ff]loor"}, {"reference", "[Rr]eferences?"}}) {
      if (!std::regex_search(head, std::regex(text("\\b", pattern, "\\b")))) problems.push_back(text(path, ":1: its head does not say the kernels' ", word));
    }
  }
  return problems;
}

Problems false_arrows(const Tree& tree) {
  const std::string page = "notes/map.md";
  const Rooms rooms = find_rooms(tree);
  if (!tree.texts.contains(page)) return {page + " is missing"};
  std::vector<Fence> diagrams = parse_markdown(tree.texts.at(page)).fences;
  std::erase_if(diagrams, [](const Fence& fence) { return fence.info != "mermaid"; });
  if (diagrams.empty()) return {page + " has no diagram"};
  diagrams.resize(std::min<std::size_t>(diagrams.size(), 2));   // the engine's rooms and the viewer's

  Problems problems;
  std::set<std::string> drawn;
  for (const Fence& diagram : diagrams) {
    for (const std::string& line : diagram.content) {
      std::istringstream in(line);
      std::string from, arrow, to, more;
      if (!(in >> from >> arrow >> to) || arrow != "-->" || in >> more) continue;
      drawn.insert({from, to});
      const auto room = rooms.find(from);
      if (room == rooms.end() || !room->second.uses.contains(to)) problems.push_back(text(page, ": ", from, " does not use ", to));
    }
  }
  for (const auto& [name, room] : rooms) {
    if (name != "base" && !drawn.contains(name)) problems.push_back(text(page, ": the room ", name, " is not on the map"));
  }
  return problems;
}

}  // namespace shardbook::tests
