// scene/compare: what did the change do?
//
// Two runs, aligned at the start of a step each. Rows are paired by (rank, kind, stream); ops by their
// key (phase, op, part; of collectives the layer, too) and, for foreign traces, by label. What differs in config is stated first:
// a comparison of two models is no comparison of two schedules.
#pragma once

#include <optional>

#include "viewer/scene/scene.hpp"

namespace shardbook::scene {

struct Difference {
  std::string key, a, b;                      // "fsdp.prefetch", "1", "0"
};

struct OpDelta {
  std::string label;
  std::int64_t count_a = 0, count_b = 0;
  std::optional<Nanoseconds> median_a, median_b;   // none of a run that has none of these ops
  Nanoseconds sum_a = 0, sum_b = 0;
  Nanoseconds exposed_a = 0, exposed_b = 0;
  bool communicates = false;
  // What the step may have lost by it: of communication the exposed part.
  Nanoseconds lost() const { return communicates ? exposed_b - exposed_a : sum_b - sum_a; }
};

struct Comparison {
  int step_a = 0, step_b = 0;
  Window window_a, window_b;                  // of these steps over all ranks
  std::vector<Difference> config;             // what differs; empty = the same
  bool clocks_differ = false;                 // measured beside modelled: figures are shown, never subtracted
  std::vector<std::string> remarks;           // one sentence each: another world size, no steps, ...
  struct RankDelta {
    Rank rank = 0;
    metrics::Partition a, b;
  };
  std::vector<RankDelta> ranks;               // of ranks that both have
  std::vector<OpDelta> ops;                   // by lost(): the largest first, or where B's step is the shorter one, what gained most
};

// A run without the step named is compared whole, and a remark says so.
Comparison compare(const Scene& a, const Scene& b, int step_a, int step_b);
// b - a exposed ns per column of [0, longer step) from each step's start, over all common ranks.
std::vector<Nanoseconds> exposed_difference(const Scene& a, const Scene& b, const Comparison& comparison, int columns);

}  // namespace shardbook::scene
