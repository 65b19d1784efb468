// What several tests of the page need: files of the project, and all of its pages.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "engine/book/excerpts.hpp"
#include "viewer/page/markdown.hpp"
#include "viewer/page/measure.hpp"

namespace shardbook::page::test {

inline std::string content(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

// All Markdown files under notes/ and labs/, ascending, from the root.
inline std::vector<std::string> project_pages() {
  std::vector<std::string> found;
  for (const char* folder : {"notes", "labs"}) {
    const std::filesystem::path root = std::filesystem::path(SHARDBOOK_SOURCE_DIR);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() == ".md") found.push_back(std::string(folder) + "/" + std::filesystem::relative(entry.path(), root / folder).string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

inline const std::vector<book::Excerpt>& excerpts() {
  static const std::vector<book::Excerpt> all = [] {
    auto read = book::all_excerpts(SHARDBOOK_SOURCE_DIR);
    return read ? read.value() : std::vector<book::Excerpt>{};
  }();
  return all;
}

inline Document project_page(const std::string& name) {
  return parse_markdown(content(std::filesystem::path(SHARDBOOK_SOURCE_DIR) / name), name, excerpts());
}

// All blocks, with those inside others.
inline void each_block(const std::vector<Block>& blocks, const auto& act) {
  for (const Block& block : blocks) {
    act(block);
    each_block(block.children, act);
  }
}

inline const PlainMeasure measure(16);

}  // namespace shardbook::page::test
