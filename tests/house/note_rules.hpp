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
  std::map<std::string, std::string> texts;   // by path from the root: all .md, engine/, tests/, labs/
  std::set<std::string> paths;                // every file and folder
  std::set<std::string> options;              // names of options that a training command takes

  // Puts a file, and the folders above it, in place.
  void add(const std::string& path, const std::string& text);
  // Paths of the markdown files, ascending.
  std::vector<std::string> pages() const;
};

// Everything below root but builds, runs, third parties and what begins with a dot.
Tree read_tree(const std::string& root);

using Problems = std::vector<std::string>;

// Every relative link leads to a file or folder, and its anchor to a heading or id.
Problems broken_links(const Tree& tree);
// Spans of the engine (`//@ room.topic: Title.` to `//@end`) have one place each, are closed, and are named by the
// room they are in. What a note weaves in exists, and a link to its file stands before it.
Problems broken_spans(const Tree& tree);
// Every room has its page in notes/rooms/, with its name, floor and question, and the index knows it.
Problems missing_rooms(const Tree& tree);
// Every arrow of the first diagram in notes/map.md is a USES of that room.
Problems false_arrows(const Tree& tree);
// A room includes itself and the rooms that it USES, and those stand on lower floors.
Problems upward_includes(const Tree& tree);
// Every fence is closed; a diagram begins with a kind that Mermaid knows and has something in it.
Problems broken_fences(const Tree& tree);
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
