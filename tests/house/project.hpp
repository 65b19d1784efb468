// The project that the house's rules are run on, read once, and how what they find is printed.
#pragma once

#include <string>

#include "engine/config/config.hpp"
#include "tests/house/note_rules.hpp"

namespace shardbook::tests {

inline const Tree& project() {
  static const Tree tree = [] {
    Tree read = read_tree(SHARDBOOK_SOURCE_DIR);
    for (const config::Option& option : config::options()) read.options.insert(option.name);
    return read;
  }();
  return tree;
}

// One sentence a line, so that a failure reads like a list.
inline std::string listed(const Problems& problems) {
  std::string all;
  for (const std::string& problem : problems) all += problem + "\n";
  return all;
}

// A project of one file, for a rule to be shown on.
inline Tree page(const std::string& text, const std::string& path = "notes/page.md") {
  Tree tree;
  tree.add(path, text);
  return tree;
}

}  // namespace shardbook::tests
