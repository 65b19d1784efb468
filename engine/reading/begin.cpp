#include "engine/reading/begin.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "engine/base/sha256.hpp"
#include "engine/book/project.hpp"
#include "engine/reading/note.hpp"

namespace shardbook::reading {

namespace fs = std::filesystem;
using base::Error;
using base::text;

namespace {

constexpr const char* heading = "### TODO: what are these lines for?";
constexpr int tries = 3;

// Where line `number` begins, from 1; the end where there are fewer. Lines end as words_of has it.
std::size_t begin_of_line(const std::string& bytes, int number) {
  std::size_t at = bytes.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  for (int line = 1; line < number && at < bytes.size(); ++line) {
    at = std::min(bytes.find_first_of("\r\n", at), bytes.size());
    at += bytes.compare(at, 2, "\r\n") == 0 ? 2 : 1;
  }
  return std::min(at, bytes.size());
}

struct Change {
  std::string bytes;
  int line = 0;
};

base::Result<Change> with_choice(const std::string& file, const std::string& bytes, const std::string& place) {
  base::Result<Words> words = words_of(bytes);
  if (!words) return Error{text(file, " ", words.error(), "; nothing was added")};
  const int lines = static_cast<int>(words.value().lines.size());
  const Note note = parse_note(file, std::move(words.value().lines));
  if (!note.fences.empty() && !note.fences.back().closed) {
    return Error{text(file, ":", note.fences.back().line - 1, ": a fence opens here and does not close, and what is added would stand in it: close it first")};
  }
  const std::string end = bytes.find("\r\n") == std::string::npos ? "\n" : "\r\n";
  const bool before_closing = note.has_closing;
  const std::size_t at = before_closing ? begin_of_line(bytes, note.closing_line) : bytes.size();
  // A blank line on each side, where there is none yet.
  std::string added;
  int line = before_closing ? note.closing_line : lines + 1;
  const bool open_end = at > 0 && bytes[at - 1] != '\n' && bytes[at - 1] != '\r';
  if (open_end) added += end;
  const std::size_t above = static_cast<std::size_t>(line) - 1;
  if (above > 0 && !trimmed(note.lines[above - 1]).empty()) {
    added += end;
    ++line;
  }
  added += heading + end + end + "`" + place + "`" + end + (before_closing ? end : "");
  return Change{bytes.substr(0, at) + added + bytes.substr(at), line + 2};
}

base::Status write_all(const std::string& path, const std::string& bytes, mode_t mode) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return Error{text("cannot write ", path, ": ", std::strerror(errno))};
  std::size_t done = 0;
  bool whole = mode == 0 || ::fchmod(file, mode) == 0;
  while (whole && done < bytes.size()) {
    const ssize_t put = ::write(file, bytes.data() + done, bytes.size() - done);
    if (put < 0 && errno == EINTR) continue;
    whole = put > 0;
    if (whole) done += static_cast<std::size_t>(put);
  }
  whole = whole && ::fsync(file) == 0;
  const int failure = errno;
  ::close(file);
  if (whole) return base::Done{};
  ::unlink(path.c_str());
  return Error{text("cannot write ", path, ": ", std::strerror(failure))};
}

// The folder, locked until this goes: of two windows that add at once one waits for the other. What it cannot lock it does not.
class Locked {
 public:
  explicit Locked(const std::string& folder) : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    while (folder_ >= 0 && ::flock(folder_, LOCK_EX) != 0 && errno == EINTR) {}
  }
  ~Locked() {
    if (folder_ >= 0) ::close(folder_);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  int folder_;
};

// kept/NAME.DIGEST.md: the same bytes are kept once.
base::Result<std::string> keep(const fs::path& path, const std::string& bytes) {
  const fs::path folder = path.parent_path() / "kept";
  std::error_code failed;
  fs::create_directories(folder, failed);
  const fs::path copy = folder / (path.stem().string() + "." + base::hex_of(base::sha256(bytes)).substr(0, 8) + path.extension().string());
  if (const base::Result<std::string> there = book::read_text(copy.string()); there && there.value() == bytes) return copy.string();
  if (base::Status written = write_all(copy.string(), bytes, 0); !written) return Error{text("no copy of ", path.filename().string(), " can be kept (", written.error(), "), so it is left as it is")};
  return copy.string();
}

}  // namespace

base::Result<Begun> begin_choice(const std::string& folder, const std::string& file, const std::string& place) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) return Error{text("cannot make ", folder, ": ", failed.message())};
  const Locked locked(folder);
  fs::path path = fs::path(folder) / file;
  // A link stays one.
  if (fs::is_symlink(path, failed)) path = fs::weakly_canonical(path, failed);
  for (int i = 0; i < tries; ++i) {
    struct stat about{};
    const bool is_there = ::stat(path.c_str(), &about) == 0;
    base::Result<std::string> before = is_there ? book::read_text(path.string()) : base::Result<std::string>(std::string());
    if (!before) return before.as_error();
    base::Result<Change> change = with_choice(file, before.value(), place);
    if (!change) return change.as_error();
    std::string kept;
    if (is_there) {
      base::Result<std::string> copy = keep(path, before.value());
      if (!copy) return copy.as_error();
      kept = copy.value();
    }
    const std::string beside = text(path.string(), ".", ::getpid(), ".tmp");
    if (base::Status written = write_all(beside, change.value().bytes, is_there ? about.st_mode & 07777 : 0); !written) return written.as_error();
    // An editor may have saved since: then begin with that.
    const base::Result<std::string> now = fs::exists(path, failed) ? book::read_text(path.string()) : base::Result<std::string>(std::string());
    if (!now || now.value() != before.value()) {
      ::unlink(beside.c_str());
      continue;
    }
    fs::rename(beside, path, failed);
    if (!failed) return Begun{change.value().line, kept};
    ::unlink(beside.c_str());
    return Error{text("cannot write ", path.string(), ": ", failed.message())};
  }
  return Error{text(file, " is being written by another program: nothing was added, try again")};
}

}  // namespace shardbook::reading
