// cause/study: one step of a run, ready to be resolved again with something changed.
//
// Modelled runs: the program that every step issues, untraced, by the run's own profile; the reported time is what
// the run itself reported. Measured runs and the wall clock: one traced step with its own durations. Beside it stands
// a timeline of exactly that step, which says where its time went.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/base/result.hpp"
#include "engine/metrics/partition.hpp"
#include "engine/simulate/replay.hpp"
#include "engine/timeline/timeline.hpp"

namespace shardbook::cause {

struct Recorded;

using base::Nanoseconds;
using base::Rank;
using metrics::Window;
using timeline::SpanRef;
using timeline::Timeline;

struct Study {
  timeline::Clock clock = timeline::Clock::unknown;
  std::string profile;                     // by which it is resolved; "" where a measured run's machine has none
  std::optional<int> step;                 // of a measured run: which
  simulate::Replay replay;
  std::optional<simulate::CostModel> model;
  simulate::Conditions conditions;         // what the run's machine had otherwise than its profile's
  bool others_as_graph = false;            // steps of the run that were not traced were launched by one call
  // Of the step with nothing changed: modelled runs', resolved; the replay of a measured one.
  Timeline timeline;
  Window window;                           // of the step, in `timeline`

  Nanoseconds step_ns() const { return replay.step_ns(); }
  // By how much of the step the replay with nothing changed is off, as a part; 0 of what is modelled.
  double error = 0;
  // What the replay itself says, from which gains are counted.
  Nanoseconds replayed_ns = 0;
};

// Of `step`, or where that is not given of the step in the middle by length. The recorded programs must outlive it.
// Errors: no record, no such step, a profile that is not there, a record that cannot be resolved.
base::Result<Study> study_of(const Recorded& recorded, std::optional<int> step);

// A step that was resolved, as a timeline. `ranks` are those of the replay.
Timeline timeline_of(const simulate::Replay& replay, const simulate::Replayed& replayed, timeline::Clock clock,
                     const std::string& profile);

}  // namespace shardbook::cause
