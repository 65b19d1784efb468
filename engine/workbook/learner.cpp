#include "engine/workbook/learner.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/book/project.hpp"
#include "engine/workbook/answers.hpp"
#include "engine/workbook/progress.hpp"

namespace shardbook::workbook {

namespace fs = std::filesystem;
using base::Error;
using base::text;

namespace {

base::Result<std::string> starting_text(const std::string& root, const Place& place) {
  if (place.part->kind == Kind::answers) return blank_answers(*place.part);
  return book::read_text((fs::path(root) / starter_of(place)).string());
}

}  // namespace

base::Status write_whole(const std::string& path, const std::string& content) {
  std::error_code failed;
  fs::create_directories(fs::path(path).parent_path(), failed);
  const std::string beside = path + "." + std::to_string(::getpid()) + ".tmp";
  {
    std::ofstream file(beside, std::ios::binary);
    file << content;
    file.flush();
    if (!file) return Error{text("cannot write ", path, ": ", std::strerror(errno))};
  }
  fs::rename(beside, path, failed);
  if (failed) return Error{text("cannot write ", path, ": ", failed.message())};
  return base::Done{};
}

base::Result<std::string> provide_own_file(const std::string& root, const Place& place, bool* made) {
  const std::string path = (fs::path(root) / own_file_of(place)).string();
  std::error_code ignored;
  if (made != nullptr) *made = false;
  if (fs::exists(path, ignored)) return path;
  base::Result<std::string> content = starting_text(root, place);
  if (!content) return content.as_error();
  if (base::Status written = write_whole(path, content.value()); !written) return written.as_error();
  if (made != nullptr) *made = true;
  return path;
}

std::string own_hash(const std::string& root, const Place& place) {
  const base::Result<std::string> content = book::read_text((fs::path(root) / own_file_of(place)).string());
  return content ? file_hash(content.value()) : "";
}

base::Result<std::string> reset_own_file(const std::string& root, const Place& place) {
  const fs::path path = fs::path(root) / own_file_of(place);
  base::Result<std::string> start = starting_text(root, place);
  if (!start) return start.as_error();
  std::error_code failed;
  std::string kept;
  if (fs::exists(path, failed)) {
    std::string stamp = now();
    std::replace(stamp.begin(), stamp.end(), ' ', '-');
    stamp.erase(std::remove(stamp.begin(), stamp.end(), ':'), stamp.end());
    const fs::path folder = path.parent_path() / "kept";
    fs::create_directories(folder, failed);
    fs::path copy;
    for (int number = 1; copy.empty() || fs::exists(copy, failed); ++number) {
      copy = folder / (path.stem().string() + "-" + stamp + (number == 1 ? "" : "-" + std::to_string(number)) + path.extension().string());
    }
    fs::copy_file(path, copy, failed);
    if (failed) return Error{text("cannot keep a copy of ", path.string(), " in ", folder.string(), " (", failed.message(), "); it is left as it is")};
    kept = fs::relative(copy, root, failed).string();
  }
  if (base::Status written = write_whole(path.string(), start.value()); !written) return written.as_error();
  return kept;
}

}  // namespace shardbook::workbook
