#include "engine/workbook/learner.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "engine/base/signals.hpp"
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

Lock::~Lock() {
  if (file_ >= 0) ::close(file_);
}

base::Result<Lock> lock_checks(const std::string& root, const std::string& part, double seconds, const std::function<void()>& waits) {
  const fs::path path = fs::path(root) / "experiments" / ".check.lock";
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  Lock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  const int file = lock.file();
  if (file < 0) return Error{text("cannot write ", path.string(), ": ", std::strerror(errno))};
  bool said = false;
  const auto begin = std::chrono::steady_clock::now();
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (base::stop_signal() != 0) return Error{text("stopped, as asked, before ", part, " was checked")};
    if (std::chrono::steady_clock::now() - begin >= std::chrono::duration<double>(seconds)) {
      return Error{text("another terminal is in the middle of a check, so ", part, " was not checked: try again when it is done")};
    }
    if (!said && waits) waits();
    said = true;
    ::usleep(50000);
  }
  return lock;
}

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
  if (place.part->kind == Kind::notes) {
    // Notes begin with nothing.
    std::error_code failed;
    fs::create_directories(path, failed);
    if (failed) return Error{text("cannot make ", path, ": ", failed.message())};
    if (made != nullptr) *made = true;
    return path;
  }
  base::Result<std::string> content = starting_text(root, place);
  if (!content) return content.as_error();
  // Written beside, and given its name only where nothing has it by now: another terminal may have been faster.
  const std::string beside = path + "." + std::to_string(::getpid()) + ".new";
  if (base::Status written = write_whole(beside, content.value()); !written) return written.as_error();
  const bool is_new = ::link(beside.c_str(), path.c_str()) == 0;
  const int why = is_new ? 0 : errno;
  fs::remove(beside, ignored);
  // A disk without links: as well as can be.
  if (!is_new && why != EEXIST) {
    if (base::Status written = write_whole(path, content.value()); !written) return written.as_error();
  }
  if (made != nullptr) *made = why != EEXIST;
  return path;
}

std::map<std::string, std::string> own_files(const std::string& root, const Place& place) {
  constexpr std::uintmax_t largest = 256 * 1024;
  const fs::path path = fs::path(root) / own_file_of(place);
  std::map<std::string, std::string> files;
  std::error_code ignored;
  const auto take = [&](const fs::path& file) {
    if (!fs::is_regular_file(file, ignored) || fs::file_size(file, ignored) > largest) return;
    if (base::Result<std::string> content = book::read_text(file.string())) files[fs::relative(file, root, ignored).generic_string()] = content.value();
  };
  if (!fs::is_directory(path, ignored)) take(path);
  else for (const fs::directory_entry& entry : fs::directory_iterator(path, ignored)) take(entry.path());
  return files;
}

std::string own_look(const std::string& root, const Place& place) {
  const fs::path path = fs::path(root) / own_file_of(place);
  std::vector<fs::path> files;
  std::error_code ignored;
  if (place.part->kind != Kind::notes) {
    files.push_back(path);
  } else {
    for (const fs::directory_entry& entry : fs::directory_iterator(path, ignored)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
  }
  std::string look;
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    const bool passing = name.front() == '.' || name.front() == '#' || name.back() == '~' || name.ends_with(".tmp") || name.ends_with(".swp") || name == "4913";
    struct stat about{};
    if (passing || ::stat(file.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) continue;
    look += text(name, " ", about.st_ino, " ", about.st_size, " ", about.st_mtim.tv_sec, ".", about.st_mtim.tv_nsec, "\n");
  }
  return look;
}

namespace {

// Without lines that are comments alone: an explanation at the end of an exercise re-opens nothing.
std::string code_lines(const std::string& content) {
  std::string code;
  std::istringstream lines(content);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin != std::string::npos && line.compare(begin, 2, "//") != 0) code += line + "\n";
  }
  return code;
}

}  // namespace

std::string own_hash(const std::string& root, const Place& place) {
  const std::map<std::string, std::string> files = own_files(root, place);
  if (place.part->kind == Kind::notes) return files.empty() ? "" : "notes";
  if (files.empty()) return "";
  const std::string& content = files.begin()->second;
  return file_hash(place.part->kind == Kind::exercise ? code_lines(content) : content);
}

base::Result<std::string> reset_own_file(const std::string& root, const Place& place) {
  const fs::path path = fs::path(root) / own_file_of(place);
  if (place.part->kind == Kind::notes) return Error{text("notes are not begun again for you: ", own_file_of(place), " is all yours")};
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
