// metrics/terminal: rows of characters, and the keys that move the view; see terminal.hpp.
#include "engine/metrics/terminal.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "engine/base/check.hpp"
#include "engine/metrics/exposure.hpp"

namespace shardbook::metrics {

using timeline::Class;
using timeline::Track;
using timeline::TrackKind;

namespace {

constexpr int label_columns = 20;
constexpr int share_columns = 8;
constexpr int narrowest = 40;
constexpr Nanoseconds shortest_view_ns = 100;

// One look a class: characters from little to much, and a colour.
struct Look {
  std::vector<const char*> levels;
  const char* color;
};
const Look& look_of(Class cls, bool ascii) {
  static const Look compute{{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, "\x1b[34m"};
  static const Look communication{{"░", "▒", "▓"}, "\x1b[33m"};
  static const Look memory{{"-", "="}, "\x1b[35m"};
  static const Look plain_compute{{".", "o", "O", "#"}, "\x1b[34m"};
  static const Look plain_communication{{"'", "~", "%"}, "\x1b[33m"};
  static const Look host{{":", "+"}, "\x1b[36m"};
  if (cls == Class::memory) return memory;
  if (cls == Class::host) return host;
  if (cls == Class::communication) return ascii ? plain_communication : communication;
  return ascii ? plain_compute : compute;
}
// What a stream's row shows: the work of the device by class, the CPU's own, and collectives that queue before a full device.
constexpr std::size_t shown = 5, queued = 4;
constexpr std::size_t number_of(Class cls) { return cls <= Class::memory ? static_cast<std::size_t>(cls) : cls == Class::host ? 3 : shown; }
const Look& look_of_queued(bool ascii) {
  static const Look utf8{{"╌"}, "\x1b[33m"}, plain{{"_"}, "\x1b[33m"};
  return ascii ? plain : utf8;
}
constexpr const char* exposed_color = "\x1b[31m";
constexpr const char* idle_color = "\x1b[2m";
constexpr const char* no_color = "\x1b[0m";
const Look& look_of_idle(bool ascii) {
  static const Look utf8{{"·", "∙", "•"}, idle_color}, plain{{".", ":", "o"}, idle_color};
  return ascii ? plain : utf8;
}

// Text cut or filled to so many columns, a code point a column.
std::string fitted(const std::string& text, int columns) {
  std::string out;
  int used = 0;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t next = i + 1;
    while (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xc0) == 0x80) ++next;
    if (used == columns) break;
    out += text.substr(i, next - i);
    ++used;
    i = next;
  }
  return out + std::string(static_cast<std::size_t>(columns - used), ' ');
}

// The same without the filling.
std::string cut(const std::string& text, int columns) {
  std::string out = fitted(text, columns);
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

Window extent(const Timeline& timeline) {
  Window window = common_window(timeline);
  for (const timeline::Provenance& provenance : timeline.ranks) {
    const Window of_rank = device_window(timeline, provenance.rank);
    if (of_rank.length() <= 0) continue;
    if (window.length() <= 0) window = of_rank;
    window = {std::min(window.start, of_rank.start), std::max(window.end, of_rank.end)};
  }
  return window;
}

// Times count from the first work of any device, as those of --window and of the viewer do; a step may begin before it.
Nanoseconds origin_of(const Timeline& timeline) {
  std::optional<Nanoseconds> first;
  for (const timeline::Provenance& provenance : timeline.ranks) {
    const Window of_rank = device_window(timeline, provenance.rank);
    if (of_rank.length() > 0) first = std::min(first.value_or(of_rank.start), of_rank.start);
  }
  return first.value_or(extent(timeline).start);
}

class Drawing {
 public:
  Drawing(const Timeline& timeline, const ViewState& state, const DrawOptions& options)
      : timeline_(timeline), state_(state), options_(options), all_(extent(timeline)), origin_(origin_of(timeline)),
        window_(state.window.length() > 0 ? state.window : all_),
        width_(std::max(options.width, narrowest)), bars_(width_ - label_columns - share_columns) {
    if (options.queued == nullptr) queued_ = queued_spans(timeline);
  }

  std::vector<std::string> lines() {
    if (all_.length() <= 0) return {cut("nothing ran on a device in this timeline", width_)};
    head();
    for (const timeline::Provenance& provenance : timeline_.ranks) {
      const auto& wanted = options_.ranks;
      if (wanted.empty() || std::count(wanted.begin(), wanted.end(), provenance.rank) > 0) rank(provenance);
    }
    foot();
    return std::move(lines_);
  }

 private:
  // The slice of time of column i.
  Window slice(int i) const {
    const Nanoseconds length = window_.length();
    const auto at = [&](int column) {
      return window_.start + length / bars_ * column + length % bars_ * column / bars_;
    };
    return {at(i), at(i + 1)};
  }

  void head() {
    std::string steps;
    for (const timeline::Step& step : timeline_.steps) {
      if (step.rank != timeline_.ranks.front().rank || step.end <= window_.start || step.start >= window_.end) continue;
      steps += base::text(steps.empty() ? " · step " : ", ", step.number);
    }
    const timeline::Provenance& first = timeline_.ranks.front();
    const std::size_t ranks = options_.ranks.empty() ? timeline_.ranks.size() : options_.ranks.size();
    lines_.push_back(cut(base::text(clock_text(first), " · ", ranks, " of ", first.world_size, " ranks · ",
                                    duration_text(window_.length()), " shown from ",
                                    window_.start < origin_ ? "-" : "", tick_text(std::abs(window_.start - origin_), std::max<Nanoseconds>(1, window_.length() / 4)), steps), width_));
    ruler();
  }

  // With as many decimals as tell it from its neighbours.
  static std::string tick_text(Nanoseconds at, Nanoseconds tick) {
    const std::string usual = duration_text(at);
    if (at == 0 || (usual != duration_text(at - tick) && usual != duration_text(at + tick))) return usual;
    const std::pair<Nanoseconds, const char*> unit = std::abs(at) >= 1'000'000'000 ? std::pair<Nanoseconds, const char*>{1'000'000'000, "s"}
                                                     : std::abs(at) >= 1'000'000   ? std::pair<Nanoseconds, const char*>{1'000'000, "ms"}
                                                                         : std::pair<Nanoseconds, const char*>{1'000, "µs"};
    int decimals = 0;
    for (Nanoseconds step = unit.first; step > tick; step /= 10) ++decimals;
    char out[40];
    std::snprintf(out, sizeof out, "%.*f %s", decimals, static_cast<double>(at) / static_cast<double>(unit.first), unit.second);
    return out;
  }

  // Work may begin before the origin, so times may be negative, and / rounds to zero.
  static Nanoseconds round_up(Nanoseconds at, Nanoseconds tick) { return (at > 0 ? at + tick - 1 : at) / tick * tick; }

  // Ticks at round times: a mark, and the time where it fits.
  void ruler() {
    const Nanoseconds at_least = window_.length() / bars_ * 10;          // a label and a gap are ten columns
    Nanoseconds tick = 1;
    for (int turn = 0; tick < at_least; ++turn) tick = turn % 3 == 1 ? tick / 2 * 5 : tick * 2;   // 1, 2, 5, 10 ...
    std::string line;
    int used = 0;
    for (int i = 0; i < bars_; ++i) {
      const Window part = slice(i);
      const Nanoseconds first = round_up(part.start - origin_, tick) + origin_;
      if (first >= part.end || used > i) continue;
      const std::string text = "|" + tick_text(first - origin_, tick);
      line += std::string(static_cast<std::size_t>(i - used), ' ') + text;
      used = i;
      for (char c : text) used += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    }
    lines_.push_back(std::string(label_columns, ' ') + cut(line, bars_));
  }

  void rank(const timeline::Provenance& provenance) {
    const DeviceSets sets = clip(device_sets(timeline_, provenance.rank), window_);
    const std::string prefix = base::text("r", provenance.rank, " ");
    // A row a stream, its lanes joined.
    std::map<std::int64_t, std::array<std::vector<Interval>, shown>> streams;
    std::map<std::int64_t, std::string> names = names_of_streams(provenance.rank);
    const QueuedSpans& spans = options_.queued != nullptr ? *options_.queued : queued_;
    for (const Track& track : timeline_.tracks) {
      if (track.rank != provenance.rank || track.kind != TrackKind::stream) continue;
      auto& stream = streams[track.id];
      const auto track_number = static_cast<std::uint32_t>(&track - timeline_.tracks.data());
      for (std::uint32_t i = 0; i < track.size(); ++i) {
        const std::size_t number = number_of(track.cls[i]);
        if (number >= shown) continue;
        const auto waits = spans.find({track_number, i});
        if (waits != spans.end()) {
          stream[number].push_back({track.start[i], waits->second.start});
          stream[queued].push_back(waits->second);
        }
        stream[number].push_back({waits != spans.end() ? waits->second.end : track.start[i], track.end[i]});
      }
    }
    for (auto& [id, classes] : streams) {
      std::array<Intervals, shown> busy;
      for (std::size_t c = 0; c < shown; ++c) busy[c] = clip(union_of(std::move(classes[c])), window_);
      cpu_works_ = cpu_works_ || !busy[number_of(Class::host)].empty();
      queues_ = queues_ || !busy[queued].empty();
      row(prefix + names[id], busy, nullptr);
    }
    std::array<Intervals, shown> exposed;
    exposed[static_cast<std::size_t>(Class::communication)] = exposed_communication(sets);
    row(prefix + "exposed", exposed, exposed_color);
    std::array<Intervals, shown> nothing;
    nothing[0] = idle(sets, window_);
    idle_row(prefix + "idle", nothing[0]);
    if (state_.selected && timeline_.rank(*state_.selected) == provenance.rank) marker(*state_.selected);
  }

  // "compute" of "stream 7 compute"; where two have the same word, or it has none, its number stays.
  std::map<std::int64_t, std::string> names_of_streams(Rank rank) const {
    std::map<std::int64_t, std::string> names;
    std::map<std::string, std::set<std::int64_t>> words;
    const auto word_of = [](const std::string& name) { return name.substr(std::min(name.size(), name.find_first_not_of("0123456789 "))); };
    for (const Track& track : timeline_.tracks) {
      if (track.rank != rank || track.kind != TrackKind::stream) continue;
      names[track.id] = track.name.starts_with("stream ") ? track.name.substr(7) : track.name;
      words[word_of(names[track.id])].insert(track.id);
    }
    for (auto& [id, name] : names) {
      const std::string word = word_of(name);
      if (!word.empty() && words[word].size() == 1) name = word;
    }
    return names;
  }

  void row(const std::string& label, const std::array<Intervals, shown>& busy, const char* color) {
    std::string line = fitted(label, label_columns - 1) + " ";
    Nanoseconds sum = 0;
    for (const Intervals& intervals : busy) sum += length(intervals);
    for (int i = 0; i < bars_; ++i) {
      const Window part = slice(i);
      Nanoseconds most = length_within(busy[queued], part);
      const Look* look = &look_of_queued(options_.ascii);
      for (Class c : {Class::compute, Class::communication, Class::memory, Class::host}) {
        const Nanoseconds here = length_within(busy[number_of(c)], part);
        if (here <= most && most > 0) continue;
        most = here;
        look = &look_of(c, options_.ascii);
      }
      line += cell(*look, color, most, part.length());
    }
    lines_.push_back(line + share(sum));
  }

  void idle_row(const std::string& label, const Intervals& intervals) {
    std::string line = fitted(label, label_columns - 1) + " ";
    for (int i = 0; i < bars_; ++i) {
      const Window part = slice(i);
      line += cell(look_of_idle(options_.ascii), nullptr, length_within(intervals, part), part.length());
    }
    lines_.push_back(line + share(length(intervals)));
  }

  // Blank for nothing; else one of the levels, each an equal share of the fraction.
  std::string cell(const Look& look, const char* color, Nanoseconds busy, Nanoseconds whole) const {
    if (busy <= 0 || whole <= 0) return " ";
    const auto levels = static_cast<Nanoseconds>(look.levels.size());
    const auto level = static_cast<std::size_t>(std::min(levels - 1, busy * levels / whole));
    if (!options_.color) return look.levels[level];
    return base::text(color != nullptr ? color : look.color, look.levels[level], no_color);
  }

  std::string share(Nanoseconds busy) const {
    const auto tenths = std::llround(1000.0 * static_cast<double>(busy) / static_cast<double>(window_.length()));
    const std::string text = base::text(tenths / 10, ".", tenths % 10, " %");
    return std::string(static_cast<std::size_t>(share_columns) - std::min<std::size_t>(share_columns, text.size()), ' ') + text;
  }

  void marker(SpanRef span) {
    std::string line(label_columns, ' ');
    for (int i = 0; i < bars_; ++i) {
      const Window part = slice(i);
      const bool covers = timeline_.start(span) < part.end && timeline_.end(span) > part.start;
      line += covers ? "^" : " ";
    }
    lines_.push_back(cut(line, width_));
  }

  // The more of a character is filled, the larger its part of that slice.
  void foot() {
    const auto sample = [&](const Look& look) {
      const std::string text = look.levels.size() == 1 ? look.levels.front() : std::string(look.levels.front()) + look.levels.back();
      return options_.color ? look.color + text + no_color : text;
    };
    const auto of = [&](Class cls) { return sample(look_of(cls, options_.ascii)); };
    std::vector<std::string> parts{of(Class::compute) + " compute", of(Class::communication) + " comm", of(Class::memory) + " copy", sample(look_of_idle(options_.ascii)) + " idle"};
    if (queues_) parts.insert(parts.begin() + 2, sample(look_of_queued(options_.ascii)) + " queued");
    if (cpu_works_) parts.push_back(of(Class::host) + " CPU");
    std::string line;
    int used = 0;
    for (const std::string& part : parts) {
      const int wide = static_cast<int>(part.size() - part.rfind(' ')) + 2 + (used > 0 ? 2 : 0);   // two characters, and a word
      if (used + wide > width_) break;
      line += (used > 0 ? "  " : "") + part;
      used += wide;
    }
    lines_.push_back(line);
  }

  const Timeline& timeline_;
  const ViewState& state_;
  const DrawOptions& options_;
  QueuedSpans queued_;   // where they were not handed in
  bool cpu_works_ = false, queues_ = false;
  Window all_;
  Nanoseconds origin_;
  Window window_;
  int width_, bars_;
  std::vector<std::string> lines_;
};

Window clamped(Window window, Window all) {
  const Nanoseconds length = std::clamp(window.length(), std::min(shortest_view_ns, all.length()), all.length());
  const Nanoseconds start = std::clamp(window.start, all.start, all.end - length);
  return {start, start + length};
}

// The next or previous of the exposed spans, longest blocking first, with the view around it.
ViewState go_to_exposed(const Timeline& timeline, ViewState state, Window all, const std::vector<Rank>& ranks, int direction) {
  const std::vector<Exposure> list = exposures_of(timeline, common_window(timeline), ranks);
  if (list.empty()) return state;
  const auto count = static_cast<std::ptrdiff_t>(list.size());
  std::ptrdiff_t at = direction > 0 ? 0 : count - 1;
  if (state.selected) {
    const auto found = std::find_if(list.begin(), list.end(),
                                    [&](const Exposure& exposure) { return exposure.span == *state.selected; });
    if (found != list.end()) at = (found - list.begin() + direction + count) % count;
  }
  state.selected = list[static_cast<std::size_t>(at)].span;
  const Nanoseconds start = timeline.start(*state.selected), end = timeline.end(*state.selected);
  state.window = clamped({start - (end - start), end + (end - start)}, all);
  return state;
}

}  // namespace

QueuedSpans queued_spans(const Timeline& timeline) {
  QueuedSpans queued;
  for (const MatchedCollective& match : match_collectives(timeline)) {
    for (const SpanRef span : match.spans) {
      const WaitSplit parts = split(timeline, match, span);
      const Nanoseconds begin = timeline.start(span) + parts.wait_ns;
      if (parts.queued_ns > 0) queued[span] = {begin, begin + parts.queued_ns};
    }
  }
  return queued;
}

std::vector<std::string> draw(const Timeline& timeline, const ViewState& state, const DrawOptions& options) {
  return Drawing(timeline, state, options).lines();
}

ViewKey key_of(const std::string& bytes) {
  static const std::map<std::string, ViewKey> keys{
      {"a", ViewKey::pan_left},      {"\x1b[D", ViewKey::pan_left}, {"d", ViewKey::pan_right},
      {"\x1b[C", ViewKey::pan_right}, {"w", ViewKey::zoom_in},      {"\x1b[A", ViewKey::zoom_in},
      {"+", ViewKey::zoom_in},       {"s", ViewKey::zoom_out},      {"\x1b[B", ViewKey::zoom_out},
      {"-", ViewKey::zoom_out},      {"n", ViewKey::next_exposed},  {"N", ViewKey::previous_exposed},
      {"f", ViewKey::fit},           {"q", ViewKey::quit},          {"\x03", ViewKey::quit},
      {"\x04", ViewKey::quit},
  };
  const auto found = keys.find(bytes);
  return found == keys.end() ? ViewKey::none : found->second;
}

ViewState step(const Timeline& timeline, const ViewState& state, ViewKey key, const std::vector<Rank>& ranks) {
  const Window all = extent(timeline);
  ViewState next = state;
  if (key == ViewKey::quit) next.quit = true;
  if (all.length() <= 0 || key == ViewKey::quit || key == ViewKey::none) return next;
  const Window now = state.window.length() > 0 ? state.window : all;
  const Nanoseconds length = now.length();
  const Nanoseconds middle = now.start + length / 2;
  switch (key) {
    case ViewKey::pan_left: next.window = clamped({now.start - length / 4, now.end - length / 4}, all); break;
    case ViewKey::pan_right: next.window = clamped({now.start + length / 4, now.end + length / 4}, all); break;
    case ViewKey::zoom_in: {
      const Nanoseconds shorter = std::max(length / 2, shortest_view_ns);
      next.window = clamped({middle - shorter / 2, middle - shorter / 2 + shorter}, all);
      break;
    }
    case ViewKey::zoom_out:
      next.window = length >= all.length() / 2 ? all : clamped({middle - length, middle + length}, all);
      break;
    case ViewKey::next_exposed: return go_to_exposed(timeline, next, all, ranks, 1);
    case ViewKey::previous_exposed: return go_to_exposed(timeline, next, all, ranks, -1);
    case ViewKey::fit: next.window = all; break;
    default: break;
  }
  return next;
}

}  // namespace shardbook::metrics
