// cause/diff: what was changed between two runs, what did it cost or gain, and where?
//
// One step of each (the modelled one without tracing, of a measured run the one in the middle by length) over one
// window for all ranks, so that compute, exposed communication, exposed memory and idle sum to the step, and their
// differences to its difference: which is how +29 ms exposed can be +15 ms of step. Ops are aligned by their keys
// (micro-batch, chunk, phase, layer, part, op, how many of these before it), so that what was hidden and now waits can be counted.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/cause/why.hpp"
#include "engine/metrics/partition.hpp"

namespace shardbook::cause {

// An option that the two were run with differently; "" where one of them has none.
struct Changed {
  std::string option, before, after;
};

// The time of one kind on a rank, in the mean over ranks: of communication what was exposed of it.
struct DiffRow {
  timeline::Class cls{};
  std::string name, line;                     // "all-gather in forward", of the line that issued it in the later run
  std::string part;                           // of a layer: "attention"; of communication its kind: "all-gather"
  double before_ns = 0, after_ns = 0;
  double difference() const { return after_ns - before_ns; }
};

struct Diff {
  std::string clock;                          // of both
  std::vector<Changed> changed;
  Nanoseconds before_ns = 0, after_ns = 0;    // the steps
  // In the mean over ranks; the differences of the four sum to that of the steps.
  double compute_ns = 0, exposed_communication_ns = 0, exposed_memory_ns = 0, idle_ns = 0;
  double hidden_communication_ns = 0;         // beside kernels: no part of that sum
  std::vector<DiffRow> rows;                  // largest loss first, gains last
  std::int64_t only_before = 0, only_after = 0;   // ops of one rank that the other run lacks
  std::int64_t newly_exposed = 0, newly_hidden = 0;   // collectives of one rank, of those in both
  std::string newly;                          // what these are: "46 all-gathers and 25 reduce-scatters"
  std::int64_t calls_before = 0, calls_after = 0;     // of the host, a step, where these bind it and that can be resolved
  bool equal = false;
};

struct DiffSide {
  const Timeline& timeline;
  const Recorded& recorded;
  std::optional<int> step = {};               // none: `step` of diff_of
};

// Errors: two clocks, no such step.
base::Result<Diff> diff_of(const DiffSide& before, const DiffSide& after, std::optional<int> step = {});

// "prefetch was 1 and is 0: the step takes 11.7 ms more (+8.1 %), 47 all-gathers wait that were hidden; most of it is
// all-gather in forward, +7.06 ms exposed (engine/fsdp/schedule.cpp:64)"; no full stop. Collectives of a kind count as one; "most"
// is more than half of the step's difference, less is "the largest part". Where the host binds both steps: "...; both steps are
// bound by their host, which issues 284 calls for 179". Command line, JSON and viewer say it.
std::string headline(const Diff& diff);
// "+11.7 ms = compute -16 ms, exposed communication +27.4 ms, idle +292 µs: ...", and why the two need not be alike; no full
// stop. "" of equal runs, and where nothing moved.
std::string reconciliation(const Diff& diff);
std::string to_text(const Diff& diff, std::size_t top);
nlohmann::json to_json(const Diff& diff, std::size_t top);

}  // namespace shardbook::cause
