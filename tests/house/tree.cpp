// The project as a Tree.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/house/note_rules.hpp"

namespace shardbook::tests {

namespace fs = std::filesystem;

void Tree::add(const std::string& path, const std::string& text) {
  texts[path] = text;
  for (fs::path at = path; !at.empty(); at = at.parent_path()) paths.insert(at.generic_string());
}

std::vector<std::string> Tree::pages() const {
  std::vector<std::string> found;
  for (const auto& [path, text] : texts) {
    if (path.ends_with(".md")) found.push_back(path);
  }
  return found;
}

namespace {

bool is_passed_over(const fs::path& relative) {
  const std::string name = relative.filename().string();
  const std::string parent = relative.parent_path().filename().string();
  return (name.starts_with(".") && name != ".ci") || name.starts_with("build") || name == "third_party" ||
         (name == "runs" && relative.string().starts_with("experiments")) ||
         (parent == "data" && relative.parent_path().parent_path() != "tests" && relative.string().starts_with("tests"));
}

bool is_read(const std::string& path) {
  if (path.ends_with(".md")) return true;
  const bool is_source = path.ends_with(".cpp") || path.ends_with(".hpp") || path.ends_with(".cu") || path.ends_with(".cuh") ||
                         path.ends_with("CMakeLists.txt");
  return is_source && (path.starts_with("engine/") || path.starts_with("tests/"));
}

}  // namespace

Tree read_tree(const std::string& root) {
  Tree tree;
  fs::recursive_directory_iterator at(root, fs::directory_options::skip_permission_denied), end;
  for (; at != end; ++at) {
    const fs::path relative = at->path().lexically_relative(root);
    if (is_passed_over(relative)) {
      if (at->is_directory()) at.disable_recursion_pending();
      tree.paths.insert(relative.generic_string());
      continue;
    }
    const std::string path = relative.generic_string();
    tree.paths.insert(path);
    if (!at->is_regular_file() || !is_read(path)) continue;
    std::ifstream file(at->path(), std::ios::binary);
    tree.add(path, {std::istreambuf_iterator<char>(file), {}});
  }
  return tree;
}

}  // namespace shardbook::tests
