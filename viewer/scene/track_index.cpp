// scene/track_index: depths, coverage and longest spans of a track; see track_index.hpp.
#include "viewer/scene/track_index.hpp"

#include <algorithm>

namespace shardbook::scene {

using timeline::Class;
using timeline::SpanRef;
using timeline::Track;
using timeline::TrackKind;

namespace {

constexpr std::size_t fan = 64;
constexpr std::size_t spans_a_slice = 8;
constexpr int most_slice_bits = 61;
// Above this many spans in a window the longest is asked of the slices.
constexpr std::uint32_t few = 16;

// The first span that starts at or after `time`. All before `hint` start earlier: doubling steps from there.
std::uint32_t first_from(const std::vector<Nanoseconds>& starts, Nanoseconds time, std::uint32_t hint) {
  std::size_t low = hint, step = 16;
  while (low + step < starts.size() && starts[low + step] < time) {
    low += step;
    step *= 2;
  }
  const auto from = starts.begin() + static_cast<std::ptrdiff_t>(low);
  const auto to = starts.begin() + static_cast<std::ptrdiff_t>(std::min(low + step, starts.size()));
  return static_cast<std::uint32_t>(std::lower_bound(from, to, time) - starts.begin());
}

}  // namespace

TrackIndex::TrackIndex(const Track& track) {
  make_depths(track);
  make_coverage(track);
  make_longest(track);
}

void TrackIndex::make_depths(const Track& track) {
  // Which spans are still open when one starts: the stack of its callers.
  const auto nests = [&] {
    for (std::size_t i = 1; i < track.size(); ++i) {
      if (track.start[i] < track.end[i - 1]) return true;
    }
    return false;
  }();
  if (!nests) return;
  depth_.resize(track.size());
  std::vector<Nanoseconds> open;
  std::size_t deepest = 0;
  for (std::size_t i = 0; i < track.size(); ++i) {
    while (!open.empty() && open.back() <= track.start[i]) open.pop_back();
    deepest = std::max(deepest, open.size());
    depth_[i] = static_cast<std::uint8_t>(std::min<std::size_t>(open.size(), 255));
    // A damaged lane may hold a span that outlives its caller: then it is one with it until both have ended.
    open.push_back(open.empty() ? track.end[i] : std::min(track.end[i], open.back()));
    if (open.size() == 1) continue;
    if (track.end[i] > open.front()) open.front() = track.end[i];
  }
  levels_ = static_cast<int>(std::min<std::size_t>(deepest, deepest_drawn)) + 1;

  // The tree of latest ends.
  for (const std::vector<Nanoseconds>* below = &track.end; below->size() > 1; below = &reach_.back()) {
    std::vector<Nanoseconds> here((below->size() + fan - 1) / fan);
    for (std::size_t i = 0; i < here.size(); ++i) {
      const auto begin = below->begin() + static_cast<std::ptrdiff_t>(i * fan);
      const auto end = below->begin() + static_cast<std::ptrdiff_t>(std::min((i + 1) * fan, below->size()));
      here[i] = *std::max_element(begin, end);
    }
    reach_.push_back(std::move(here));
  }
}

void TrackIndex::make_coverage(const Track& track) {
  if (track.kind == TrackKind::host) {
    std::vector<Intervals> spans(static_cast<std::size_t>(levels_));
    for (std::uint32_t i = 0; i < track.size(); ++i) {
      const int at = depth(i);
      spans.front().push_back({track.start[i], track.end[i]});
      if (at > 0 && at <= deepest_drawn) spans[static_cast<std::size_t>(at)].push_back({track.start[i], track.end[i]});
    }
    for (Intervals& level : spans) {
      depths.emplace_back(base::union_of(std::move(level)));
      level = {};
    }
    classes[lane_classes - 1] = depths.front();
    return;
  }
  std::array<Intervals, lane_classes> spans;
  for (std::uint32_t i = 0; i < track.size(); ++i) {
    spans[static_cast<std::size_t>(lane_class(track.cls[i]))].push_back({track.start[i], track.end[i]});
  }
  Intervals before;
  for (std::size_t c = 0; c < lane_classes; ++c) {
    Intervals all = base::union_of(std::move(spans[c]));
    spans[c] = {};
    if (all.empty()) continue;
    if (flat()) {
      classes[c] = Coverage(all);
      continue;
    }
    Intervals own = base::subtract(all, before);
    if (own != all) classes_overlap = true;
    classes[c] = Coverage(own);
    before = base::unite(before, all);
  }
}

std::uint32_t TrackIndex::longer(const Track& track, std::uint32_t a, std::uint32_t b) const {
  if (a == SpanRef::none) return b;
  if (b == SpanRef::none) return a;
  const Nanoseconds of_a = track.end[a] - track.start[a], of_b = track.end[b] - track.start[b];
  return of_b > of_a ? b : a;
}

void TrackIndex::make_longest(const Track& track) {
  if (track.size() < few) return;
  const Nanoseconds first = track.start.front();
  const Nanoseconds end = flat() ? track.end.back() : *std::max_element(track.end.begin(), track.end.end());
  const auto slices_at = [&](int shift) { return static_cast<std::uint64_t>(end >> shift) - static_cast<std::uint64_t>(first >> shift) + 1; };
  while (bits_ < most_slice_bits && slices_at(bits_) > track.size() / spans_a_slice + 1) ++bits_;
  lowest_ = first >> bits_;

  // Spans of depth 0 are disjoint: all their slices together are no more than slices and spans.
  std::vector<std::uint32_t> level(slices_at(bits_), SpanRef::none);
  for (std::uint32_t i = 0; i < track.size(); ++i) {
    if (depth(i) != 0 || track.end[i] <= track.start[i]) continue;
    const auto from = static_cast<std::size_t>((track.start[i] >> bits_) - lowest_);
    const auto to = static_cast<std::size_t>(((track.end[i] - 1) >> bits_) - lowest_);
    for (std::size_t slice = from; slice <= to; ++slice) level[slice] = longer(track, level[slice], i);
  }
  longest_.push_back(std::move(level));
  for (int k = 1; bits_ + k <= most_slice_bits && longest_.back().size() > 1; ++k) {
    const std::vector<std::uint32_t>& below = longest_.back();
    const Nanoseconds lowest_below = lowest_ >> (k - 1), lowest_here = lowest_ >> k;
    std::vector<std::uint32_t> here(slices_at(bits_ + k), SpanRef::none);
    for (std::size_t i = 0; i < below.size(); ++i) {
      auto& place = here[static_cast<std::size_t>(((lowest_below + static_cast<Nanoseconds>(i)) >> 1) - lowest_here)];
      place = longer(track, place, below[i]);
    }
    longest_.push_back(std::move(here));
  }
}

TrackIndex::Found TrackIndex::find(const Track& track, Interval window) const {
  Found out;
  const auto begin = track.start.begin(), end = track.start.end();
  out.first = static_cast<std::uint32_t>(std::lower_bound(begin, end, window.start) - begin);
  out.last = static_cast<std::uint32_t>(std::lower_bound(begin + out.first, end, window.end) - begin);
  if (out.first == 0) return out;
  if (flat()) {
    // Only spans of no length may stand between the one that is still running and `first`.
    for (std::uint32_t i = out.first; i-- > 0;) {
      if (track.end[i] > window.start) out.outer.push_back(i);
      if (track.end[i] > track.start[i]) break;
    }
    return out;
  }
  // Every span before `first` that ends after the window's start, from the top of the tree down.
  struct Node {
    std::size_t level, at;
  };
  std::vector<Node> open;
  const auto visit = [&](std::size_t level, std::size_t begin_at, std::size_t end_at) {
    std::size_t spans_a_node = fan;
    for (std::size_t k = 0; k < level; ++k) spans_a_node *= fan;
    for (std::size_t i = std::min(end_at, (out.first + spans_a_node - 1) / spans_a_node); i-- > begin_at;) {
      if (reach_[level][i] > window.start) open.push_back({level, i});
    }
  };
  visit(reach_.size() - 1, 0, reach_.back().size());
  while (!open.empty()) {
    const Node node = open.back();
    open.pop_back();
    const std::size_t from = node.at * fan;
    if (node.level > 0) {
      visit(node.level - 1, from, std::min(from + fan, reach_[node.level - 1].size()));
      continue;
    }
    for (std::size_t i = from; i < std::min<std::size_t>(from + fan, out.first); ++i) {
      if (track.end[i] > window.start) out.outer.push_back(static_cast<std::uint32_t>(i));
    }
  }
  return out;
}

std::uint32_t TrackIndex::first_at(const Track& track, Nanoseconds time, std::uint32_t hint) const {
  // The longest span of the slice is near; from there it is a few steps, where bisection would be many misses
  // of the cache.
  if (!longest_.empty()) {
    const Nanoseconds slice = (time >> bits_) - lowest_;
    if (slice >= 0 && slice < static_cast<Nanoseconds>(longest_[0].size()) && longest_[0][static_cast<std::size_t>(slice)] != SpanRef::none) {
      std::uint32_t near = longest_[0][static_cast<std::size_t>(slice)];
      for (std::uint32_t step = 16; near > hint && track.start[near] >= time; step *= 2) near -= std::min(near - hint, step);
      hint = std::max(hint, near);
    }
  }
  return first_from(track.start, time, hint);
}

TrackIndex::Longest TrackIndex::longest(const Track& track, Interval window, std::uint32_t hint) const {
  Longest out;
  out.first = first_at(track, window.start, hint);
  out.last = first_at(track, window.end, out.first);
  // What began before the window, and if few began within it, each of them.
  std::uint32_t& best = out.span;
  if (flat()) {
    if (out.first > 0 && track.end[out.first - 1] > window.start) best = out.first - 1;
  } else {
    for (std::uint32_t i : find(track, {window.start, window.start + 1}).outer) best = longer(track, best, i);
  }
  const std::uint32_t last = std::min(out.last, out.first + few);
  for (std::uint32_t i = out.first; i < last; ++i) best = longer(track, best, i);
  if (last == out.last || longest_.empty()) return out;

  // Else the level at which the window touches at most three slices.
  std::size_t level = 0;
  while (level + 1 < longest_.size() && (window.length() >> (bits_ + static_cast<int>(level))) > 1) ++level;
  const int shift = bits_ + static_cast<int>(level);
  const Nanoseconds lowest = lowest_ >> level, highest = static_cast<Nanoseconds>(longest_[level].size()) - 1;
  const Nanoseconds from = std::max<Nanoseconds>((window.start >> shift) - lowest, 0);
  const Nanoseconds to = std::min(((window.end - 1) >> shift) - lowest, highest);
  for (Nanoseconds slice = from; slice <= to; ++slice) {
    const std::uint32_t span = longest_[level][static_cast<std::size_t>(slice)];
    const bool touches = span != SpanRef::none && track.start[span] < window.end && track.end[span] > window.start;
    if (touches) best = longer(track, best, span);
  }
  return out;
}

std::size_t TrackIndex::memory() const {
  std::size_t sum = heap(depth_) + heap(reach_) + heap(longest_) + heap(depths);
  for (const auto& level : reach_) sum += heap(level);
  for (const auto& level : longest_) sum += heap(level);
  for (std::size_t c = 0; c < lane_classes; ++c) {
    if (depths.empty() || !classes[c].shares_storage_with(depths.front())) sum += classes[c].memory();
  }
  for (const Coverage& depth : depths) sum += depth.memory();
  return sum;
}

}  // namespace shardbook::scene
