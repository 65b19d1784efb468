// cause/lines: which collectives does a step have, by the line that issues them, and what lies beside them?
//
// Private to causes.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/cause/study.hpp"
#include "engine/cause/why.hpp"
#include "engine/simulate/replay.hpp"

namespace shardbook::cause {

// Collectives that one line issues to groups of one axis.
struct Line {
  program::OpKind kind{};
  program::SourceLine where;
  std::string axis;
  friend bool operator<(const Line& a, const Line& b) {
    return std::tuple(a.kind, std::string_view(a.where.file), a.where.line, a.axis) <
           std::tuple(b.kind, std::string_view(b.where.file), b.where.line, b.axis);
  }
};

// Those of a rank: ops with and without anything to hide behind, and the commands that issuing them takes.
struct Members {
  std::set<program::OpIndex> inside, edge;
  std::set<std::uint32_t> commands;
};

using Lines = std::map<std::string, std::int64_t>;   // and how often each leads

// The layer of each, by phase: where a cause is. -1: none
using Places = std::map<program::Phase, std::vector<int>>;
// Into a cause: "backward of layers 0 to 23", "forward and backward of 3 of layers 0 to 7 and outside of layers"; nothing of none. A phase
// that has less than a tenth of them goes without saying.
void name_places(const Places& places, Cause& cause);

struct Collectives {
  std::map<Rank, Members> of_rank;
  Lines lines_inside, lines_at_edge;     // of the first rank; whose time would be changed there
  Lines lines_open;                      // of those inside with compute beside less than half of it
  Places inside_at, open_at;             // where those inside are, and the open ones
  std::int64_t inside = 0, edge = 0;     // of the first rank
  std::int64_t open = 0;                 // of those inside: with compute beside less than half of it
  Nanoseconds open_ns = 0;               // of those inside: with no compute beside it (see measure_what_is_open)
  std::int64_t needed_at_once = 0;       // of it: issued with no kernel between it and what awaits it
  std::int64_t made_just_before = 0;     // of it: its data come from the kernel issued just before
};

using CollectivesByLine = std::map<Line, Collectives>;

// Those of the step as it is. Empty where it cannot be resolved.
CollectivesByLine collectives_of(const Study& study);
// Their `open_ns`, of the step under this change.
void measure_what_is_open(const Study& study, const simulate::Change& change, CollectivesByLine& lines);
// Into a cause: the line that leads most often, and the others by how often they do.
void name_lines(const Lines& lines, Cause& cause);

}  // namespace shardbook::cause
