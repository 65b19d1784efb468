// workbook/own_trace: what did each rank do in each step of a trace of PyTorch?
//
// A trace has rows and no meaning: this finds, step by step and rank by rank, the collectives in order, which of them
// backward issued, how long each moved data, how much of that no compute stood beside, and where the host waited.
// Backward is what was issued inside a row of autograd's engine. The k-th call of a group in a step is one collective on
// all ranks; until its last rank has come it only waits, and that time is nobody's fault here.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/metrics/partition.hpp"

namespace shardbook::workbook {

using base::Bytes;
using base::Nanoseconds;
using base::Rank;
using base::Interval;

struct Call {
  timeline::SpanRef span;
  timeline::CollectiveOp op{};
  Bytes bytes = 0;
  Nanoseconds issued = 0;                  // by the host
  bool backward = false;
  std::string unit;                        // "blocks.3" where FSDP names it; else empty
  Interval moved;                          // from its last rank's start to its end
  Nanoseconds exposed = 0;                 // of `moved`, with no compute of its rank beside it
  Nanoseconds began = 0;                   // on this rank's device
  bool host_late = false;                  // its last rank's device did it as soon as that host had issued it
};

struct Kernel {
  Interval time;
  Nanoseconds issued = 0;
  bool backward = false;
};

// The host stood still until its device was done, with collectives of the step issued before and after.
struct HostWait {
  timeline::SpanRef span;
  Interval time;
  std::string inside;                      // the outermost operator around it: "aten::item"; may be empty
};

struct RankStep {
  Rank rank = 0;
  Interval window;                         // on the device
  std::vector<Call> calls;                 // by their start on the device
  std::vector<Kernel> kernels;             // compute, likewise
  std::vector<HostWait> waits;
};

struct TracedStep {
  int number = 0;
  std::vector<RankStep> ranks;             // ascending
  std::string disagreement;                // how two ranks' calls differ; empty: they do not
};

struct OwnTrace {
  timeline::Timeline timeline;
  std::vector<TracedStep> steps;           // those that all ranks have, ascending; never empty
  std::string about;                       // "2 ranks on NVIDIA H200, 2 steps"
};

// Errors: a run of this project; one rank of several; no steps; no rows of the CPU; no collective in any step.
base::Result<OwnTrace> own_trace(timeline::Timeline timeline);

// Where the devices' time went, over all ranks and steps: "compute 88 %, open communication 9 %, nothing 3 %".
std::string shares_text(const OwnTrace& trace);

}  // namespace shardbook::workbook
