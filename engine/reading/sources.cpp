#include "engine/reading/sources.hpp"

#include <algorithm>
#include <filesystem>

#include "engine/base/sha256.hpp"
#include "engine/book/project.hpp"
#include "engine/reading/words.hpp"

namespace shardbook::reading {

namespace fs = std::filesystem;

std::string Sources::place_of(std::string_view repository, std::string_view commit, std::string_view path) const {
  std::string owner(repository);
  std::replace(owner.begin(), owner.end(), '/', '+');
  return (fs::path(folder_) / owner / commit / path).string();
}

SourceFile Sources::file(const std::string& repository, const std::string& commit, const std::string& path) const {
  SourceFile found;
  found.facts = facts_.file(repository, commit, path);
  // A path that leaves the folder is nobody's file.
  if (path.empty() || path.front() == '/' || holds(path, "..") || commit.empty()) return found;
  const std::string place = place_of(repository, commit, path);
  auto [at, is_new] = loaded_.try_emplace(place);
  Loaded& loaded = at->second;
  std::error_code ignored;
  if (is_new && fs::is_regular_file(place, ignored)) {
    base::Result<std::string> bytes = book::read_text(place);
    if (!bytes) {
      loaded.problem = bytes.error();
    } else if (found.facts != nullptr && base::hex_of(base::sha256(bytes.value())) != found.facts->sha256) {
      loaded.problem = base::text(place, " is not the file of commit ", commit.substr(0, 8), ": its sha256 differs from that of the table; fetch it again (`shardbook notes sources`)");
    } else if (base::Result<Words> words = words_of(bytes.value()); !words) {
      loaded.problem = base::text(place, " ", words.error());
    } else {
      loaded.lines = std::move(words.value().lines);
      loaded.here = true;
    }
  }
  if (loaded.here) found.lines = &loaded.lines;
  found.problem = loaded.problem;
  return found;
}

std::vector<std::string> Sources::paths(const std::string& repository, const std::string& commit) const {
  std::vector<std::string> found;
  if (commit.empty()) return found;
  const fs::path root = place_of(repository, commit, "");
  std::error_code ignored;
  for (fs::recursive_directory_iterator entry(root, ignored), end; entry != end; entry.increment(ignored)) {
    if (entry->is_regular_file(ignored)) found.push_back(fs::relative(entry->path(), root, ignored).generic_string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool Sources::knows(const std::string& repository, const std::string& commit) const {
  const Project* project = facts_.project(repository);
  return (project != nullptr && project->commit == commit) || !paths(repository, commit).empty();
}

std::string Sources::missing(const std::string& commit) const {
  const auto found = missing_.find(commit);
  return found == missing_.end() ? "" : found->second;
}

}  // namespace shardbook::reading
