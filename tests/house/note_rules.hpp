// tests/house/note_rules: what must be true of the house, its notes, the labs' texts and the README?
//
// Each rule is a function from a Tree to sentences, one for each thing that is wrong: "notes/map.md:12: ...".
// A Tree is the project as paths and texts, read from disk or written down in a test, so that each rule can be
// shown to fail.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace shardbook::tests {

struct Tree {
  std::map<std::string, std::string> texts;   // by path from the root: all .md; sources of engine/, viewer/, tests/
  std::set<std::string> paths;                // every file and folder
  std::set<std::string> options;              // names of options that a training command takes

  // Puts a file, and the folders above it, in place.
  void add(const std::string& path, const std::string& text);
  // Paths of the markdown files, ascending.
  std::vector<std::string> pages() const;
};

// Everything below root but what git ignores (builds, runs, third parties, node_modules) and what begins with a dot.
Tree read_tree(const std::string& root);

using Problems = std::vector<std::string>;

// "engine/fsdp/schedule.cpp" is of fsdp, "viewer/scene/rows.cpp" of viewer_scene; what is in no room is of "".
std::string room_of(const std::string& path);

// Every relative link leads to a file or folder, and its anchor to a heading or id. Every link of the viewer
// (trace: lab: note: room: span: source:) leads to a run, pack, page, span or line.
Problems broken_links(const Tree& tree);
// On the web a link of the viewer is dead: a plain link or a command of ./shardbook stands in its line, too.
Problems links_for_the_viewer_alone(const Tree& tree);
// Where each span of the engine is, by name; what is wrong with their marks is added to the problems.
std::map<std::string, std::string> find_spans(const Tree& tree, Problems& problems);
// Spans of the engine (`//@ room.topic: Title.` to `//@end`) have one place each, are closed, and are named by the
// room they are in. What a note weaves in exists, and a link to its file stands before it.
Problems broken_spans(const Tree& tree);
// Every room of engine/ and viewer/ is named by its folder and has its page in notes/rooms/, with its name, floor
// and question, and the index knows it.
Problems missing_rooms(const Tree& tree);
// Every arrow of the first two diagrams in notes/map.md is a USES of that room, and every room is on one of them.
Problems false_arrows(const Tree& tree);
// A room includes itself and the rooms that it USES, and those stand on lower floors. The viewer's rooms use the
// engine's pure rooms only, and no room of the engine uses the viewer's.
Problems upward_includes(const Tree& tree);
// Libraries that only some rooms know: Dear ImGui, GLFW, OpenGL and EGL, md4c, Graphviz.
Problems stray_libraries(const Tree& tree);
// A room that includes a header package links it, itself or by a room that it USES: else it is found only where the system has it.
Problems unlinked_packages(const Tree& tree);
// A clock that is set, by hand or by the network, names files and days and measures nothing: whoever waits, measures or
// gives up goes by one that only runs.
Problems clocks_that_jump(const Tree& tree);
// JSON is parsed and written by base/json.hpp: whoever names nlohmann's parser or writer compiles it anew.
Problems json_as_text(const Tree& tree);
// Switches are known to their table, to the command that prints it, and to train/seams.cpp, which says what a value
// does. All other rooms get numbers, functions and pieces.
Problems strangers_to_switches(const Tree& tree);
// A schedule is an order and nothing else: fsdp/schedule.* and data_parallel/schedule.* include the plan and base.
Problems impure_schedules(const Tree& tree);
// A kernel of kernels/cuda is let in before the one ahead of it has ended (device/cuda/early.cuh), so each says wait_for_kernel_before()
// or before.wait() within its first lines, and none is launched another way.
Problems kernels_that_do_not_wait(const Tree& tree);
// A file of kernels begins with what bounds them: flops, bytes, the floor that both set, and the reference that they are held to.
Problems kernels_without_a_floor(const Tree& tree);
// Every fence is closed; a diagram begins with a kind that Mermaid knows and has something in it.
Problems broken_fences(const Tree& tree);
// Each source of engine/ and viewer/ includes, itself or by what it includes, a header of each name it uses that the rule
// knows: many of the standard library's, some of the system's, and those of the rooms.
Problems missing_includes(const Tree& tree);
// Names of another namespace that a file calls as its own, though only another file of its room says `using` of them.
Problems names_without_using(const Tree& tree);
// No two files of a room give one name to two things that are their own.
Problems names_given_twice(const Tree& tree);
// What stands after ./shardbook is a command, its options are known, and its lab or note is there.
Problems unknown_commands(const Tree& tree);
// A test that a note names, as [`Suite.Name`](file), is in that file.
Problems missing_tests(const Tree& tree);
// No path of somebody's machine; one title a page, first.
Problems foreign_paths(const Tree& tree);
Problems bad_titles(const Tree& tree);
// A translation has the anchors, fenced blocks and links of its original.
Problems stray_translations(const Tree& tree);

}  // namespace shardbook::tests
