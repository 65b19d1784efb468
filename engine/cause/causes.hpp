// cause/causes: what could be otherwise in this step, and what would that gain?
//
// Each candidate is taken out of the recorded step and the step resolved again. A collective that is over before the
// first kernel of forward starts, or starts after the last one of backward has ended, has nothing to hide behind: those
// are taken together, apart from the others of their line.
#pragma once

#include <vector>

#include "engine/cause/trace_places.hpp"
#include "engine/cause/why.hpp"
#include "engine/metrics/critical_path.hpp"

namespace shardbook::cause {

struct Findings {
  std::vector<Cause> causes;            // those worth naming: avoidable first, by gain; then the others
  // What the step would gain without each cost.
  Nanoseconds host_ns = 0, latency_ns = 0, bandwidth_ns = 0, rank_ns = 0, memory_ns = 0, compute_ns = 0;
  Nanoseconds all_but_compute_ns = 0;   // without all of them but compute, contention and launches included
  Nanoseconds of(Regime regime) const;
};

// `recorded` says what was asked for, so that a remedy can be typed.
Findings find_causes(const Study& study, const Recorded& recorded);

// Of a trace without a record: what the path says, read off the timeline; gains are at most so much.
// `step`: which one the path is of, where it is of one. Causes come by gain, none of which is more than the window less what the busiest rank computes in it.
std::vector<Cause> causes_on_path(const Timeline& timeline, const metrics::CriticalPath& path, std::optional<int> step);

// Of the same: a rank that has more to compute in its step (in the window, where that is none), and kernels that move memory
// and compute little, by place.
std::vector<Cause> causes_of_traces(const Timeline& timeline, Window window, std::optional<int> step, const TracePlaces& places);

}  // namespace shardbook::cause
