// check/accesses: who touched these bytes last?
//
// Of each buffer a map from ranges of bytes to the op that wrote them last and, by stream, the ops that have read
// them since. That is all a race can be with: whoever touched the bytes before is ordered with the last writer, or
// was found to race when that one was looked at. Ranges are cut where ops use parts of them, and become one again
// when they are written over, so that a step that uses its buffers alike in each layer keeps few.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "engine/program/program.hpp"

namespace shardbook::check {

// An op, counted over all steps.
using OpNumber = std::uint32_t;
inline constexpr OpNumber no_op_number = ~OpNumber{0};

struct Reader {
  program::StreamId stream = 0;
  OpNumber op = no_op_number;
};

class Accesses {
 public:
  // Calls met(writer, begin, end) for each range of [begin, end) with its last writer, then counts `op` among its readers.
  template <class Met>
  void read(base::Bytes begin, base::Bytes end, Reader op, Met met) {
    cut(begin);
    cut(end);
    fill(begin, end);
    for (auto at = ranges_.lower_bound(begin); at != ranges_.end() && at->first < end; ++at) {
      if (at->second.writer != no_op_number) met(at->second.writer, at->first, at->second.end);
      add_reader(at->second, op);
    }
  }

  // Calls met(op, writes, begin, end) for the last writer and every reader since, then `op` is the last writer.
  template <class Met>
  void write(base::Bytes begin, base::Bytes end, OpNumber op, Met met) {
    if (begin >= end) return;
    cut(begin);
    cut(end);
    const auto first = ranges_.lower_bound(begin);
    auto at = first;
    for (; at != ranges_.end() && at->first < end; ++at) {
      const Range& range = at->second;
      if (range.writer != no_op_number) met(range.writer, true, at->first, range.end);
      for (const Reader& reader : range.readers) met(reader.op, false, at->first, range.end);
    }
    ranges_.erase(first, at);
    ranges_.emplace(begin, Range{end, op, {}});
  }

  std::size_t size() const { return ranges_.size(); }

 private:
  struct Range {
    base::Bytes end = 0;
    OpNumber writer = no_op_number;
    std::vector<Reader> readers;  // since it was written: the last of each stream
  };

  void cut(base::Bytes at);                      // no range goes on across `at`
  void fill(base::Bytes begin, base::Bytes end); // every byte of [begin, end) is in a range
  static void add_reader(Range& range, Reader op);

  std::map<base::Bytes, Range> ranges_;  // by begin; they do not overlap
};

}  // namespace shardbook::check
