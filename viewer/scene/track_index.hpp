// scene/track_index: which spans of this row are in view, and how busy is it?
//
// Made once for each track. Spans of a lane nest or follow each other (timeline.hpp), so those of depth 0
// are disjoint and ascending in start and end; a flat track has no others. For nested tracks it holds the
// depth of each span, and a tree of the latest end of 64, 64^2, ... spans, so that the callers of a span
// are found without walking over their other callees.
//
// For hover and click at every zoom: for each slice of time, the longest span of depth 0 that touches it.
// (Perfetto's idea: slices too small to be drawn are represented by the longest of them.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/timeline/timeline.hpp"
#include "viewer/scene/coverage.hpp"

namespace shardbook::scene {

// Bytes that a column has on the heap.
template <class T>
std::size_t heap(const std::vector<T>& column) {
  return column.capacity() * sizeof(T);
}

// Deeper spans are not drawn: what calls them covers them.
constexpr int deepest_drawn = 15;

// Where the time of a row is counted: compute, communication, memory, other (sync, host, annotation).
constexpr int lane_classes = 4;
constexpr int lane_class(timeline::Class cls) {
  return cls <= timeline::Class::memory ? static_cast<int>(cls) : lane_classes - 1;
}

class TrackIndex {
 public:
  TrackIndex() = default;
  explicit TrackIndex(const timeline::Track& track);

  // Busy time by class. Time of two classes counts for the first of them, so the four never sum to more
  // than the time there is. Of a host track all is `other`.
  std::array<Coverage, lane_classes> classes;
  // Some time was of two classes: then these are not each class' own union.
  bool classes_overlap = false;
  // Of a host track: what is busy at each depth up to deepest_drawn; the first is the union of all.
  std::vector<Coverage> depths;

  bool flat() const { return depth_.empty(); }
  int depth(std::uint32_t span) const { return flat() ? 0 : depth_[span]; }
  // The number of nested levels, at least 1 and at most deepest_drawn + 1.
  int levels() const { return levels_; }

  // The spans that touch the window are some of [first, last) and those of `outer`, which began before
  // `first` (ascending; deepest last), and are all of them but those of no length. O(log n), and
  // 64 log n for each of `outer`.
  struct Found {
    std::uint32_t first = 0, last = 0;
    std::vector<std::uint32_t> outer;
    std::size_t count() const { return last - first + outer.size(); }
  };
  Found find(const timeline::Track& track, Interval window) const;

  // The longest span that touches the window, SpanRef::none if none does: exact if few start in it, else the
  // longest of the slices that it lies in, of those that touch it. And [first, last), which start within it.
  // `hint`: all spans before it start before the window, if one such is known.
  struct Longest {
    std::uint32_t span = timeline::SpanRef::none, first = 0, last = 0;
  };
  Longest longest(const timeline::Track& track, Interval window, std::uint32_t hint = 0) const;

  std::size_t memory() const;

 private:
  void make_depths(const timeline::Track& track);
  void make_coverage(const timeline::Track& track);
  void make_longest(const timeline::Track& track);
  std::uint32_t first_at(const timeline::Track& track, Nanoseconds time, std::uint32_t hint) const;
  std::uint32_t longer(const timeline::Track& track, std::uint32_t a, std::uint32_t b) const;

  std::vector<std::uint8_t> depth_;                       // empty: flat
  int levels_ = 1;
  std::vector<std::vector<Nanoseconds>> reach_;           // latest end of each 64 of the level below; nested tracks only
  int bits_ = 10;                                         // slices of level 0 of longest_
  Nanoseconds lowest_ = 0;
  std::vector<std::vector<std::uint32_t>> longest_;
};

}  // namespace shardbook::scene
