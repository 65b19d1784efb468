// simulate/reorder: the same step, with some collectives issued one place earlier.
//
// A collective is issued together with the waits before it and the records behind it. Of those of one line, each is
// moved to just behind the one before it: a gather that was issued when its unit was needed is then issued when the
// unit before it was, which is what prefetching one unit more does. It never passes what it depends on: the record of
// an event whose data it awaits, and whatever writes what it reads. Its waits for a buffer's reuse, and a limiter's, are
// for what was recorded by then: as if there were one buffer more.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/program/program.hpp"

namespace shardbook::simulate {

struct Reordered {
  program::Program program;               // ops as they were, commands in their new order
  std::vector<std::uint32_t> was_at;      // by place in the new order: the place in the old one
  std::size_t moved = 0;                  // how many collectives
};

// REQUIRES: a valid program. The order of a rank depends on its program alone, so ranks of equal programs stay equal.
Reordered issued_earlier(const program::Program& program, const std::vector<program::SourceLine>& lines);

}  // namespace shardbook::simulate
