// cause/why: what bounds this step, what of it could be won, and by what?
//
// The regime is what a step is bound by: the host, the latency or the bandwidth of communication, a rank that is late,
// copies, or compute, which is where one wants to be. Two answers stand side by side:
//   where the step's time goes  the path across ranks that the step waited for, dealt out to regimes; the parts sum to
//                               the step, to the nanosecond (metrics/critical_path)
//   what it would gain          the recorded step resolved again with that one cost at nothing (simulate/replay)
// They differ, and the second decides: a cost may fill the whole path and yet give nothing when it goes, because
// another one stands right behind it. A trace without a record has the first alone, and gains are bounds.
//
// Causes are what could be otherwise, by what the step gains without them: the collectives of a line, the host, a wait
// of the host, a rank. What nothing can hide (the gather before the first kernel, the reduction after the last) is
// named so and never leads. Command line, JSON, report and viewer say headline().
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/cause/study.hpp"

namespace shardbook::cause {

struct Recorded;

enum class Regime : std::uint8_t { host, latency, bandwidth, rank, memory, compute, unexplained };
// "host-bound", "latency-bound", "bandwidth-bound", "waiting for a rank", "memory-bound", "compute-bound".
const char* adjective_of(Regime regime);
// "host", "latency", "bandwidth", "rank", "memory", "compute", "unexplained": as JSON has it.
const char* name_of(Regime regime);

// A regime's part of the step.
struct Share {
  Regime regime = Regime::compute;
  Nanoseconds path_ns = 0;                    // on the path that the step waited for; these sum to the step
  std::optional<Nanoseconds> gain_ns;         // what the step would gain without this cost; none: nothing to resolve
};

// One thing that could be otherwise.
struct Cause {
  Regime regime = Regime::compute;
  std::string what;                           // "47 all-gathers wait that nothing hides"
  std::string because;                        // "none is issued before its unit is needed"; may be empty
  std::string line;                           // "engine/fsdp/schedule.cpp:64"; may be empty
  std::vector<std::string> also;              // other lines that ask for the same, the most frequent first
  std::string where;                          // "backward of layers 0 to 23"; may be empty
  std::vector<program::Phase> phases;         // those that `where` names
  std::string remedy;                         // "--prefetch 1"; what a user can type or change; may be empty
  std::string note;                           // "04": the note that explains it; may be empty
  std::int64_t count = 0;                     // of collectives or calls, a rank
  Nanoseconds gain_ns = 0;                    // of the step, without it
  bool is_bound = false;                      // gain_ns is at most that: read off a timeline, not resolved
  bool is_resolved = false;                   // the remedy itself was resolved: it gives gain_ns
  bool avoidable = true;                      // false: some of it stays whatever is changed; all of it where there is no remedy
  bool is_host_wait = false;                  // the host waits for the device at `line`
};

// Time in which a rank's device ran nothing, by what it waited for.
struct Idle {
  std::string cause;                          // "the host was late", "launch", "waited for an event", "rank 2"
  std::string line;                           // of the call or event that stands for most of it; may be empty
  Nanoseconds ns = 0;
  std::int64_t gaps = 0;
};

struct Why {
  timeline::Clock clock = timeline::Clock::unknown;
  std::string profile;
  std::string basis;                          // what gains rest on, one sentence; of a trace: why there are none
  std::optional<int> step;                    // which; none: the step that every one is (modelled), or the whole window
  Rank rank = 0;                              // whose idle time is told
  Nanoseconds step_ns = 0;
  Nanoseconds traced_step_ns = 0;             // of a modelled run: what the timeline shows; 0: not known, or the same
  Regime regime = Regime::compute;
  bool has_problem = false;                   // something avoidable costs enough to be worth a change
  std::vector<Share> shares;                  // largest path first
  std::vector<Cause> causes;                  // avoidable first, by gain; then what nothing can change
  std::vector<Idle> idle;                     // of `rank`, longest first
  Nanoseconds idle_ns = 0;
};

struct WhyOptions {
  std::optional<int> step;
  std::optional<Rank> rank;
};

// Errors: no such step or rank; nothing ran.
base::Result<Why> why_of(const Timeline& timeline, const Recorded& recorded, const WhyOptions& options = {});

// The cause that headline() names, if there is a problem: the first that can be avoided, but where one of the regime gains half of that.
// Null: none can be avoided.
const Cause* leading(const Why& why);
// One sentence, without a full stop: "this step is bandwidth-bound: 47 all-gathers wait that nothing hides, 18.5 of
// 66.9 ms, because none is issued before its unit is needed (engine/fsdp/schedule.cpp:64); --prefetch 1 would give
// 48.4 ms". Where the change itself was not resolved: "...; with that gone altogether the step would take 48.4 ms; what
// acts on it, and need not give that: --sequences 64".
std::string headline(const Why& why);
// The same for who does not care why there is none: of a timeline that cannot be explained, what the reason is.
std::string headline_of(const Timeline& timeline, const Recorded& recorded, const WhyOptions& options = {});

// "The timeline shows traced steps of 1.55 ms; meant here is the step without tracing, 1.32 ms."; "" where they are the same.
std::string what_is_shown(const Why& why);

// Plain English in at most 80 columns, with the first `top` causes.
std::string to_text(const Why& why, std::size_t top);
nlohmann::json to_json(const Why& why, std::size_t top);

}  // namespace shardbook::cause
