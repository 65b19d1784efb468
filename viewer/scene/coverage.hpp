// scene/coverage: how busy was this row in this slice of time?
//
// A slice of the picture may hold one span or a million. Drawn as one block, a row looks busy where it
// stood still half of the time; so the scene keeps how many nanoseconds of each slice were busy: the
// disjoint intervals in which something is busy, a prefix sum over them, and a pyramid of busy time. A
// query of any length is exact to the nanosecond.
//
// The intervals stand in blocks of at most 64, each with its time and the busy time before it, so that
// an interval is two 32-bit offsets: 8.4 bytes instead of 24. One of more than 4 s has a block of its own. Level k of the pyramid has slices of
// 2^(base + k) ns that begin at multiples of their length, and holds the busy time before each begin;
// base is the least (at least 10) at which there are no more slices than one for 16 intervals, so the
// pyramid costs at most a byte an interval. Columns whose edges are multiples of a slice are read from
// one level, in order of memory: O(columns). Others walk the blocks: O(columns + log intervals), and
// O(intervals in view) if a column holds a few, which is where base makes them begin.
// (Why coverage and not one solid block: measured against Tracy's folding on 16 M spans.)
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/intervals.hpp"

namespace shardbook::scene {

using base::Nanoseconds;
using base::Interval;
using base::Intervals;

// A set of times that never changes. Copies share their storage.
class Coverage {
 public:
  Coverage() = default;
  // REQUIRES: ascending, none empty, none overlapping (they may touch): base/intervals' form is that.
  explicit Coverage(const Intervals& busy);

  bool empty() const { return data_ == nullptr; }
  // Busy time in all.
  Nanoseconds total() const;
  // From the first busy nanosecond to the last; [0, 0) if empty.
  Interval extent() const;
  // Busy time within [start, end), exact, O(log n).
  Nanoseconds busy(Interval window) const;
  // out[i] = busy time within [edges[i], edges[i + 1]); edges ascend. Sums to busy(front, back) exactly.
  // REQUIRES: out.size() + 1 == edges.size().
  void columns(std::span<const Nanoseconds> edges, std::span<Nanoseconds> out) const;
  // The intervals that touch the window, unclipped, in the form of base/intervals; at most `most` of them.
  Intervals within(Interval window, std::size_t most = static_cast<std::size_t>(-1)) const;
  // How many intervals are kept.
  std::size_t intervals() const;
  bool shares_storage_with(const Coverage& other) const { return data_ == other.data_; }
  // Heap bytes; copies that share their storage say the same ones.
  std::size_t memory() const;

 private:
  struct Data;
  std::shared_ptr<const Data> data_;
};

}  // namespace shardbook::scene
