#include "engine/workbook/progress.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/base/printable.hpp"
#include "engine/book/project.hpp"
#include "engine/timeline/strings.hpp"

namespace shardbook::workbook {

namespace fs = std::filesystem;
using base::Error;
using base::text;

namespace {

constexpr int longest_break_minutes = 30;

std::string hex(std::uint64_t number, int digits) {
  static constexpr char letters[] = "0123456789abcdef";
  std::string out(static_cast<std::size_t>(digits), '0');
  for (int i = digits - 1; i >= 0; --i, number >>= 4) out[static_cast<std::size_t>(i)] = letters[number & 15];
  return out;
}

// The low bits of FNV-1a mix worst, so all of them are folded together.
std::uint64_t mixed(std::uint64_t hash) {
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccdULL;
  return hash ^ (hash >> 33);
}

std::string seal_of(const std::string& line, int seed) {
  return hex(mixed(timeline::fnv1a(line + "\n" + std::to_string(seed))), 4);
}

bool is_digits(const std::string& word, const char* shape) {
  if (word.size() != std::strlen(shape)) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const bool digit = word[i] >= '0' && word[i] <= '9';
    if (shape[i] == '0' ? !digit : word[i] != shape[i]) return false;
  }
  return true;
}

const std::vector<std::string>& words_known() {
  static const std::vector<std::string> all = {"opened", "predicted", "failed", "passed", "hint", "card", "solution", "reset", "seed", "traced"};
  return all;
}

// The event of a line, or why it is none.
base::Result<Event> event_of(std::string line, int seed) {
  Event event;
  // What stands in quotes ends the line.
  if (const std::size_t quote = line.find('"'); quote != std::string::npos) {
    const std::size_t end = line.rfind('"');
    if (end == quote) return Error{"its quote does not end"};
    event.said = line.substr(quote + 1, end - quote - 1);
  }
  const std::string words_only = line.substr(0, line.find('"'));
  std::istringstream words(words_only);
  std::string date, time;
  words >> date >> time >> event.part >> event.what;
  if (!is_digits(date, "0000-00-00") || !is_digits(time, "00:00")) return Error{"it does not begin with a date and a time"};
  event.time = date + " " + time;
  const auto& known = words_known();
  if (std::find(known.begin(), known.end(), event.what) == known.end()) return Error{text("'", event.what, "' is no event")};
  std::string seal;
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) continue;
    if (word.compare(0, 5, "seal=") == 0) seal = word.substr(5);
    else event.values[word.substr(0, equals)] = word.substr(equals + 1);
  }
  if (is_sealed(event.what) && line_of(event, seed) != line) {
    return Error{seal.empty() ? text("'", event.what, "' has no seal") : text("it was changed after it was sealed")};
  }
  return event;
}

int minutes_of(const std::string& time) {
  std::tm at{};
  if (std::sscanf(time.c_str(), "%d-%d-%d %d:%d", &at.tm_year, &at.tm_mon, &at.tm_mday, &at.tm_hour, &at.tm_min) != 5) return 0;
  at.tm_year -= 1900;
  at.tm_mon -= 1;
  return static_cast<int>(::timegm(&at) / 60);
}

std::string progress_file(const std::string& root) { return (fs::path(root) / "experiments" / "progress.txt").string(); }

// The open file, locked until it is closed.
class Locked {
 public:
  Locked(const std::string& path, double seconds) : file_(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644)) {
    const auto begin = std::chrono::steady_clock::now();
    while (file_ >= 0 && ::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      // A disk that knows no locks: one call appends a line whole there, too
      if (errno != EWOULDBLOCK && errno != EINTR) return;
      held_ = std::chrono::steady_clock::now() - begin >= std::chrono::duration<double>(seconds);
      if (held_) return;
      ::usleep(2000);
    }
  }
  ~Locked() {
    if (file_ >= 0) ::close(file_);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  int file() const { return file_; }
  bool held_by_another() const { return held_; }

 private:
  int file_;
  bool held_ = false;
};

constexpr const char* shown_name = "experiments/progress.txt";

// Why this is no progress file at all; "" where it is one. To it nothing is added: the next line would spoil what somebody
// can perhaps still repair.
std::string no_text(const std::string& content) {
  const std::string why = why_no_text(content, shown_name);
  return why.empty() ? why : why + ": save it as UTF-8, or move it away to begin anew; nothing was written to it";
}

}  // namespace

std::string why_no_text(const std::string& content, const std::string& name) {
  if (content.compare(0, 2, "\xFF\xFE") == 0 || content.compare(0, 2, "\xFE\xFF") == 0) return name + ":1 is UTF-16";
  const std::size_t zero = content.find('\0');
  if (zero == std::string::npos) return "";
  const auto line = 1 + std::count(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(zero), '\n');
  return text(name, ":", line, " holds a byte of zero, which no text does");
}

bool is_sealed(const std::string& what) { return what == "predicted" || what == "passed"; }

std::string line_of(const Event& event, int seed) {
  const auto plain = [](std::string word, char bad, char good) {
    word = base::printable(word);
    std::replace(word.begin(), word.end(), bad, good);
    return word;
  };
  std::string line = event.time + " " + event.part + " " + event.what;
  for (const auto& [key, value] : event.values) line += " " + key + "=" + plain(plain(value, ' ', '_'), '"', '\'');
  std::string said = event.said.empty() ? "" : " \"" + plain(event.said, '"', '\'') + "\"";
  if (is_sealed(event.what)) line += " seal=" + seal_of(line + said, seed);
  return line + said;
}

Progress progress_of(const std::string& content, const std::string& name) {
  Progress progress;
  // Some editors put a byte order mark before the first line.
  std::istringstream lines(content.compare(0, 3, "\xEF\xBB\xBF") == 0 ? content.substr(3) : content);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.find_first_not_of(" \t") == std::string::npos || line[0] == '#') continue;
    base::Result<Event> event = event_of(line, progress.seed);
    if (!event) {
      progress.problems.push_back(text(name, ":", number, " does not count: ", event.error()));
      continue;
    }
    event.value().line = number;
    if (event.value().what == "seed" && event.value().values.contains("number")) progress.seed = std::atoi(event.value().values.at("number").c_str());
    progress.events.push_back(std::move(event).value());
  }
  return progress;
}

base::Result<Progress> read_progress(const std::string& root) {
  std::error_code ignored;
  const std::string path = progress_file(root);
  if (!fs::exists(path, ignored)) return Progress{};
  base::Result<std::string> content = book::read_text(path);
  if (!content) return content.as_error();
  if (const std::string why = no_text(content.value()); !why.empty()) return Error{why};
  return progress_of(content.value(), shown_name);
}

base::Status append(const std::string& root, Event event, std::string (*unless)(const Progress&, const Event&), double seconds) {
  const std::string path = progress_file(root);
  std::error_code failed;
  fs::create_directories(fs::path(path).parent_path(), failed);
  const Locked locked(path, seconds);
  if (locked.file() < 0) return Error{text("cannot write ", path, ": ", std::strerror(errno), "; your progress is kept there")};
  if (locked.held_by_another()) return Error{text("another program holds ", shown_name, ", so nothing was noted: end it, or try again")};

  // What stands there by now decides: another terminal may have written since.
  base::Result<std::string> before = book::read_text(path);
  if (!before) return before.as_error();
  if (const std::string why = no_text(before.value()); !why.empty()) return Error{why};
  const Progress progress = progress_of(before.value(), shown_name);
  if (unless != nullptr) {
    if (const std::string why = unless(progress, event); !why.empty()) return Error{why};
  }
  event.time = now();
  // An editor may have left the last line without its end.
  const bool open_end = !before.value().empty() && before.value().back() != '\n';
  const std::string line = (open_end ? "\n" : "") + line_of(event, progress.seed) + "\n";
  if (::write(locked.file(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    return Error{text("cannot write ", path, ": ", std::strerror(errno))};
  }
  return base::Done{};
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  char out[20];
  std::strftime(out, sizeof out, "%Y-%m-%d %H:%M", &local);
  return out;
}

std::string file_hash(const std::string& content) {
  std::string plain;
  std::istringstream lines(content);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t end = line.find_last_not_of(" \t\r");
    plain += (end == std::string::npos ? "" : line.substr(0, end + 1)) + "\n";
  }
  return hex(mixed(timeline::fnv1a(plain)), 8);
}

PartState state_of(const Progress& progress, const std::string& part, const std::string& current_hash) {
  PartState state;
  bool current_passes = false;
  int last_minute = 0;
  for (const Event& event : progress.events) {
    if (event.part != part || event.what == "traced") continue;
    const int minute = minutes_of(event.time);
    if (state.begun && !current_passes) state.minutes += std::clamp(minute - last_minute, 0, longest_break_minutes);
    last_minute = minute;
    state.begun = true;
    const auto hash = event.values.find("file");
    const bool of_current = hash != event.values.end() && hash->second == current_hash;
    if (event.what == "predicted" && !state.predicted) state.predicted = event.values;
    if (event.what == "hint") ++state.hints;
    if (event.what == "solution" && state.passed_at.empty()) state.solution_seen = true;
    if (event.what == "failed") {
      // A question that is still open is no try.
      const auto rule = event.values.find("rule");
      const bool tried = rule == event.values.end() || rule->second != "unanswered";
      state.failures += tried;
      state.last_failure = event.said;
      if (of_current) current_passes = false;
    }
    if (event.what == "passed") {
      state.passed_at = event.time;
      state.passed_hash = hash == event.values.end() ? "" : hash->second;
      if (of_current) current_passes = true;
    }
  }
  state.passed = current_passes && !current_hash.empty();
  state.reopened = !state.passed && !state.passed_at.empty();
  return state;
}

}  // namespace shardbook::workbook
