#include "engine/cli/window.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace shardbook::cli {

using base::Error;
using base::Nanoseconds;
using base::text;
using metrics::Window;

namespace {

// From the first device span of any rank to the last one's end.
Window everything(const timeline::Timeline& timeline) {
  Window all{std::numeric_limits<Nanoseconds>::max(), std::numeric_limits<Nanoseconds>::min()};
  for (const timeline::Provenance& provenance : timeline.ranks) {
    const Window window = metrics::device_window(timeline, provenance.rank);
    if (window.length() <= 0) continue;
    all = {std::min(all.start, window.start), std::max(all.end, window.end)};
  }
  return all.start > all.end ? Window{} : all;
}

Error no_step(const timeline::Timeline& timeline, int asked) {
  std::set<int> numbers;
  for (const timeline::Step& step : timeline.steps) numbers.insert(step.number);
  if (numbers.empty()) return {text("there is no step ", asked, ": this timeline has no steps; --window A:B takes times")};
  return {text("there is no step ", asked, " in this timeline; it has ", *numbers.begin(), " to ", *numbers.rbegin())};
}

}  // namespace

std::vector<Switch> window_switches() {
  return {{"step", "N", "This step only, by its number in the timeline.", "all steps"},
          {"window", "A:B", "From time A to time B after the first device work: 1.5ms:2ms, 300us:, 0:4ms.", "everything"}};
}

base::Result<Nanoseconds> duration_of(const std::string& word) {
  std::size_t end = 0;
  double number = -1;
  try {
    number = std::stod(word, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  const std::string unit = word.substr(end);
  double scale = 0;
  if (unit == "ns") scale = 1;
  if (unit == "us" || unit == "µs") scale = 1e3;
  if (unit == "ms" || unit.empty()) scale = 1e6;
  if (unit == "s") scale = 1e9;
  const double ns = number * scale;
  if (end == 0 || scale == 0 || !(ns >= 0) || ns > 9e18) {
    return Error{text("'", word, "' is no time: write a number and ns, us, ms or s, such as 1.5ms")};
  }
  return static_cast<Nanoseconds>(std::llround(ns));
}

base::Result<std::optional<Window>> window_of(const Line& line, const timeline::Timeline& timeline) {
  if (line.has("step") && line.has("window")) return Error{"--step and --window are two ways to say one thing: give one of them"};
  if (line.has("step")) {
    base::Result<int> number = whole_number("step", line.value("step"));
    if (!number) return number.as_error();
    const std::optional<Window> window = metrics::common_step_window(timeline, number.value());
    if (!window) return no_step(timeline, number.value());
    return window;
  }
  if (!line.has("window")) return std::optional<Window>{};

  const std::string given = line.value("window");
  const std::size_t colon = given.find(':');
  if (colon == std::string::npos) return Error{text("--window must be A:B, as in 1.5ms:2ms, not '", given, "'")};
  const Window all = everything(timeline);
  Window window = all;
  if (colon > 0) {
    base::Result<Nanoseconds> from = duration_of(given.substr(0, colon));
    if (!from) return Error{text("--window: ", from.error())};
    window.start = all.start + from.value();
  }
  if (colon + 1 < given.size()) {
    base::Result<Nanoseconds> to = duration_of(given.substr(colon + 1));
    if (!to) return Error{text("--window: ", to.error())};
    window.end = all.start + to.value();
  }
  if (window.end <= window.start) return Error{text("--window ", given, " is empty: A must be before B")};
  if (window.start >= all.end) return Error{text("--window ", given, " begins after the timeline's end")};
  return std::optional<Window>{window};
}

}  // namespace shardbook::cli
