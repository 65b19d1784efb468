// The project as a Tree.
#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/house/markdown.hpp"
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

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// One line of a .gitignore: what it says is ignored in or below `folder`.
struct Ignored {
  std::string folder;    // "" is the root, else it ends in '/'
  std::string pattern;
  bool anchored = false;   // from the folder, not at any depth below it
  bool only_folders = false;
};

// The lines of a .gitignore. Negations and `**`, which this project has none of, are passed over.
std::vector<Ignored> ignored_by(const std::string& content, const std::string& folder) {
  std::vector<Ignored> all;
  for (std::string line : lines_of(content)) {
    while (line.ends_with(' ') || line.ends_with('\r')) line.pop_back();
    if (line.empty() || line[0] == '#' || line[0] == '!' || line.find("**") != std::string::npos) continue;
    Ignored one{folder.empty() ? "" : folder + "/", line};
    one.only_folders = one.pattern.ends_with('/');
    if (one.only_folders) one.pattern.pop_back();
    one.anchored = one.pattern.find('/') != std::string::npos;
    if (one.pattern.starts_with('/')) one.pattern.erase(0, 1);
    all.push_back(one);
  }
  return all;
}

bool is_ignored(const std::vector<Ignored>& rules, const std::string& path, bool is_folder) {
  return std::any_of(rules.begin(), rules.end(), [&](const Ignored& rule) {
    if (!path.starts_with(rule.folder) || (rule.only_folders && !is_folder)) return false;
    const std::string below = rule.anchored ? path.substr(rule.folder.size()) : fs::path(path).filename().string();
    return fnmatch(rule.pattern.c_str(), below.c_str(), FNM_PATHNAME) == 0;
  });
}

// Data of tests may be pages on purpose broken; tests/data itself would be a room's.
bool is_data_of_a_test(const fs::path& relative) {
  const fs::path parent = relative.parent_path();
  return relative.string().starts_with("tests") && parent.filename() == "data" && parent.parent_path() != "tests";
}

bool is_hidden(const fs::path& relative) {
  const std::string name = relative.filename().string();
  return name.starts_with(".") && name != ".ci";
}

bool is_read(const std::string& path) {
  if (path.ends_with(".md")) return true;
  const bool is_source = path.ends_with(".cpp") || path.ends_with(".hpp") || path.ends_with(".cu") || path.ends_with(".cuh") ||
                         path.ends_with("CMakeLists.txt");
  return is_source && (path.starts_with("engine/") || path.starts_with("viewer/") || path.starts_with("tests/"));
}

}  // namespace

Tree read_tree(const std::string& root) {
  Tree tree;
  std::vector<Ignored> rules = ignored_by(text_of(fs::path(root) / ".gitignore"), "");
  fs::recursive_directory_iterator at(root, fs::directory_options::skip_permission_denied), end;
  for (; at != end; ++at) {
    const fs::path relative = at->path().lexically_relative(root);
    const std::string path = relative.generic_string();
    // What git does not keep is not part of the project: no page of it counts, and no link may lead there.
    const bool ignored = is_ignored(rules, path, at->is_directory());
    if (ignored || is_hidden(relative) || is_data_of_a_test(relative)) {
      if (at->is_directory()) at.disable_recursion_pending();
      if (!ignored) tree.paths.insert(path);
      continue;
    }
    tree.paths.insert(path);
    if (at->is_directory()) {
      for (const Ignored& rule : ignored_by(text_of(at->path() / ".gitignore"), path)) rules.push_back(rule);
    }
    if (at->is_regular_file() && is_read(path)) tree.add(path, text_of(at->path()));
  }
  return tree;
}

}  // namespace shardbook::tests
