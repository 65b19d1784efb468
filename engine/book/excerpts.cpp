#include "engine/book/excerpts.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "engine/book/project.hpp"

namespace shardbook::book {

namespace fs = std::filesystem;
using base::Error;
using base::text;

namespace {

std::size_t indent_of(const std::string& line) { return std::min(line.find_first_not_of(' '), line.size()); }

// Takes off the blanks that all lines with text begin with.
void move_left(std::vector<std::string>& lines) {
  std::size_t least = std::string::npos;
  for (const std::string& line : lines) {
    if (indent_of(line) < line.size()) least = std::min(least, indent_of(line));
  }
  for (std::string& line : lines) line.erase(0, std::min(least, line.size()));
}

bool is_source(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".cpp" || extension == ".hpp" || extension == ".cu" || extension == ".cuh";
}

}  // namespace

base::Result<std::vector<Excerpt>> excerpts_of(const std::string& content, const std::string& path) {
  std::vector<Excerpt> done, open;
  std::istringstream lines(content);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::size_t begin = indent_of(line);
    if (line.compare(begin, 3, "//@") != 0) {
      for (Excerpt& excerpt : open) {
        if (excerpt.text.empty()) excerpt.line = number;
        excerpt.text.push_back(line);
      }
      continue;
    }
    const std::string marker = line.substr(begin + 3);
    if (marker == "end") {
      if (open.empty()) return Error{text(path, ":", number, ": this //@end ends no span")};
      move_left(open.back().text);
      done.push_back(std::move(open.back()));
      open.pop_back();
      continue;
    }
    const std::size_t colon = marker.find(": ");
    if (marker.size() < 2 || marker[0] != ' ' || colon == std::string::npos) {
      return Error{text(path, ":", number, ": a span begins with `//@ name: title`, not `//@", marker, "`")};
    }
    open.push_back({marker.substr(1, colon - 1), marker.substr(colon + 2), path, number + 1, {}});
  }
  if (!open.empty()) return Error{text(path, ": the span ", open.back().name, " has no //@end")};
  std::sort(done.begin(), done.end(), [](const Excerpt& left, const Excerpt& right) { return left.line < right.line; });
  return done;
}

base::Result<std::vector<Excerpt>> all_excerpts(const std::string& root) {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(root) / "engine", ignored)) {
    if (entry.is_regular_file() && is_source(entry.path())) paths.push_back(fs::relative(entry.path(), root).generic_string());
  }
  std::sort(paths.begin(), paths.end());

  std::vector<Excerpt> all;
  std::map<std::string, std::string> seen;
  for (const std::string& path : paths) {
    base::Result<std::string> content = read_text((fs::path(root) / path).string());
    if (!content) return content.as_error();
    if (content.value().find("//@") == std::string::npos) continue;
    base::Result<std::vector<Excerpt>> found = excerpts_of(content.value(), path);
    if (!found) return found.as_error();
    for (Excerpt& excerpt : found.value()) {
      const auto [place, is_new] = seen.emplace(excerpt.name, excerpt.path);
      if (!is_new) return Error{text("the span ", excerpt.name, " stands in ", place->second, " and in ", excerpt.path, "; its name must be its own")};
      all.push_back(std::move(excerpt));
    }
  }
  return all;
}

}  // namespace shardbook::book
