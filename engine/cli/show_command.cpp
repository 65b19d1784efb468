#include "engine/cli/show_command.hpp"

#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <ostream>

#include "engine/base/json.hpp"
#include "engine/cli/open_trace.hpp"
#include "engine/cli/window.hpp"
#include "engine/metrics/exposure.hpp"
#include "engine/metrics/terminal.hpp"

namespace shardbook::cli {

using base::text;
using metrics::ViewKey;
using metrics::ViewState;
using metrics::Window;
using timeline::Timeline;

namespace {

// While it lives, keys come one by one, unechoed, and the former screen waits behind this one.
class RawTerminal {
 public:
  explicit RawTerminal(std::ostream& out) : out_(out) {
    ::tcgetattr(STDIN_FILENO, &former_);
    termios raw = former_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
    struct sigaction on_resize {};
    on_resize.sa_handler = [](int) {};   // a read that it interrupts is enough
    ::sigaction(SIGWINCH, &on_resize, &former_resize_);
    out_ << "\x1b[?1049h\x1b[?25l";
  }
  ~RawTerminal() {
    out_ << "\x1b[?25h\x1b[?1049l" << std::flush;
    ::sigaction(SIGWINCH, &former_resize_, nullptr);
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &former_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  std::ostream& out_;
  termios former_{};
  struct sigaction former_resize_ {};
};

// The bytes of one key; "" when the terminal changed its size or has gone.
std::string read_key(bool* gone) {
  char bytes[8];
  const ssize_t count = ::read(STDIN_FILENO, bytes, 1);
  if (count <= 0) {
    *gone = count == 0;
    return "";
  }
  std::string key(bytes, 1);
  // The rest of an arrow or page key comes at once behind its escape: ESC [ and digits up to a letter or ~.
  pollfd more{STDIN_FILENO, POLLIN, 0};
  while (key[0] == '\x1b' && (key.size() < 3 || std::isdigit(static_cast<unsigned char>(key.back()))) && ::poll(&more, 1, 20) == 1) {
    if (::read(STDIN_FILENO, bytes, 1) != 1) break;
    key += bytes[0];
  }
  return key;
}

// Whether the terminal's characters are UTF-8, by the locale's variables.
bool speaks_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string locale = value;
    return locale.find("UTF-8") != std::string::npos || locale.find("utf8") != std::string::npos || locale.find("utf-8") != std::string::npos;
  }
  return true;
}

// The sentence on the longest exposure of these ranks; of all, where none are named.
std::string longest_of(const Timeline& timeline, Window window, const std::vector<base::Rank>& ranks) {
  if (ranks.empty()) return metrics::exposure_sentence(timeline, window);
  const std::vector<metrics::Exposure> exposures = metrics::exposures_of(timeline, window, ranks);
  return exposures.empty() ? "of these ranks no communication was exposed" : metrics::sentence(timeline, exposures.front());
}

// The selected span's sentence, else `otherwise`.
std::string sentence_of(const Timeline& timeline, const ViewState& state, const std::vector<metrics::Exposure>& exposures, const std::string& otherwise) {
  for (std::size_t i = 0; state.selected && i < exposures.size(); ++i) {
    if (exposures[i].span != *state.selected) continue;
    return text(i + 1, " of ", exposures.size(), " exposed: ", metrics::sentence(timeline, exposures[i]));
  }
  return otherwise;
}

// The rows of ranks that fit on the screen, from `first` on, between the two lines of the head and the legend; `first`
// is moved so that there is no empty space, and so that the row that begins with `wanted` is on the screen.
std::vector<std::string> fitted(const std::vector<std::string>& drawn, std::size_t room, const std::string& wanted, std::size_t& first) {
  if (drawn.size() <= room || room < 4) return drawn;
  const std::size_t rows = drawn.size() - 3, shown = room - 3;
  for (std::size_t row = 0; row < rows && !wanted.empty(); ++row) {
    if (drawn[2 + row].compare(0, wanted.size(), wanted) != 0) continue;
    if (row < first) first = row;
    if (row + 1 > first + shown) first = row + 1 - shown;
  }
  first = std::min(first, rows - shown);
  std::vector<std::string> lines{drawn[0], drawn[1]};
  for (std::size_t row = first; row < first + shown; ++row) lines.push_back(drawn[2 + row]);
  lines.push_back(drawn.back());
  return lines;
}

void interact(const Timeline& timeline, ViewState state, metrics::DrawOptions options, const std::string& sentence, Console& console) {
  const std::vector<metrics::Exposure> exposures = metrics::exposures_of(timeline, metrics::common_window(timeline), options.ranks);
  const metrics::QueuedSpans queued = metrics::queued_spans(timeline);
  options.queued = &queued;
  RawTerminal terminal(console.out);
  bool gone = false;
  std::size_t first_row = 0;
  std::string wanted;
  while (!state.quit && !gone) {
    const Console now = own_console();
    options.width = now.columns;
    std::vector<std::string> below = wrap(sentence_of(timeline, state, exposures, sentence), now.columns);
    below.push_back(dim("←→ a d pan · ↑↓ w s zoom · n N next, previous exposed span · j k or page keys: more ranks · f all · q quit", true));
    const std::size_t room = now.rows > static_cast<int>(below.size()) ? static_cast<std::size_t>(now.rows) - below.size() : 0;
    console.out << "\x1b[H";
    for (const std::string& line : fitted(metrics::draw(timeline, state, options), room, wanted, first_row)) console.out << line << "\x1b[K\r\n";
    for (std::size_t i = 0; i < below.size(); ++i) console.out << below[i] << "\x1b[K" << (i + 1 < below.size() ? "\r\n" : "\x1b[J");
    console.out << std::flush;

    const std::string key = read_key(&gone);
    wanted.clear();
    if (key == "j" || key == "\x1b[6~") first_row += 5;
    if (key == "k" || key == "\x1b[5~") first_row -= std::min<std::size_t>(first_row, 5);
    const metrics::ViewKey meant = metrics::key_of(key);
    state = metrics::step(timeline, state, meant, options.ranks);
    const bool goes = meant == ViewKey::next_exposed || meant == ViewKey::previous_exposed;
    if (goes && state.selected) wanted = text("r", timeline.rank(*state.selected), " exposed");
  }
}

base::Result<std::vector<base::Rank>> ranks_of(const std::string& list, const Timeline& timeline) {
  std::vector<base::Rank> ranks;
  std::size_t at = 0;
  while (at <= list.size()) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    base::Result<int> rank = whole_number("ranks", list.substr(at, comma - at));
    if (!rank) return rank.as_error();
    if (timeline.provenance(rank.value()) == nullptr) return base::Error{text("there is no rank ", rank.value(), " in this timeline")};
    ranks.push_back(rank.value());
    at = comma + 1;
  }
  return ranks;
}

nlohmann::json exposures_json(const Timeline& timeline, Window window) {
  nlohmann::json list = nlohmann::json::array();
  for (const metrics::Exposure& exposure : metrics::exposures(timeline, metrics::critical_path(timeline, window))) {
    const timeline::Provenance* provenance = timeline.provenance(timeline.rank(exposure.span));
    list.push_back({{"rank", timeline.rank(exposure.span)},
                    {"step", timeline.step(exposure.span)},
                    {"span", std::string(timeline.label(exposure.span))},
                    {"layer", timeline.detail(exposure.span).layer},
                    {"clock", provenance ? name_of(provenance->clock) : "unknown"},
                    {"span_ns", exposure.span_ns},
                    {"exposed_ns", exposure.exposed_ns},
                    {"blocking_ns", exposure.blocking_ns},
                    {"source", timeline::line_text(timeline, exposure.line)},
                    {"sentence", metrics::sentence(timeline, exposure)}});
  }
  return list;
}

}  // namespace

int show(const Line& line, Console& console) {
  base::Result<Timeline> read = open_trace(line.places, console);
  if (!read) return refuse(console, read.error());
  const Timeline& timeline = read.value();
  base::Result<std::optional<Window>> window = window_of(line, timeline);
  if (!window) return refuse(console, window.error());

  metrics::DrawOptions options;
  options.width = console.out_is_terminal ? console.columns : 100;
  options.color = console.out_is_terminal && std::getenv("NO_COLOR") == nullptr;
  options.ascii = line.has("ascii") || (console.out_is_terminal && !speaks_utf8());
  if (line.has("ranks")) {
    base::Result<std::vector<base::Rank>> ranks = ranks_of(line.value("ranks"), timeline);
    if (!ranks) return refuse(console, ranks.error());
    options.ranks = ranks.value();
  }
  if (line.has("width")) {
    base::Result<int> width = whole_number("width", line.value("width"), 40);
    if (!width) return refuse(console, width.error());
    constexpr int widest = 4096;
    if (width.value() > widest) return refuse(console, text("--width must be at most ", widest));
    options.width = width.value();
  }
  print_banners(timeline, console);

  const Window shown = window.value().value_or(metrics::common_window(timeline));
  if (line.has("json")) {
    console.out << base::json_text(exposures_json(timeline, shown), 2) << "\n";
    return exit_ok;
  }
  ViewState state;
  if (window.value()) state.window = *window.value();
  if (console.in_is_terminal && console.out_is_terminal && !line.has("plain")) {
    interact(timeline, state, options, longest_of(timeline, shown, options.ranks), console);
    return exit_ok;
  }
  for (const std::string& drawn : metrics::draw(timeline, state, options)) console.out << drawn << "\n";
  for (const std::string& part : wrap(longest_of(timeline, shown, options.ranks) + ".", console.text_columns())) console.out << part << "\n";
  return exit_ok;
}

}  // namespace shardbook::cli
