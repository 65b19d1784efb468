// metrics/critical_path: which spans did the step wait for, across ranks?
//
// Walk back from the span that ended last. A span could not start before what it depends on had
// ended: the span before it on its stream, what its edges name, the call that launched it. The
// predecessor that ended last is the one that decided. A collective's transfer could not start
// before its last rank had come: there the path goes over to that rank. What is found is a chain
// of pieces that covers the window without gap: each nanosecond of the step has one reason.
// (The same path as the longest path through HTA's event graph, critical_path_analysis.py at
// f4d0062, extended by every rank's start -> every rank's end of a collective.)
//
// A trace without event edges (PyTorch's without cuda_sync rows) doesn't say what a stream waited
// for; there the device span that ended last before a start is taken for it, and `inferred` says so.
#pragma once

#include <vector>

#include "engine/metrics/collectives.hpp"

namespace shardbook::metrics {

enum class PathKind : std::uint8_t { span, launch, host, wait };
//   span    the span itself ran (for a collective: its transfer)
//   launch  between the launching call and the start on the device
//   host    the host was busy and the device had nothing to do
//   wait    nothing recorded explains this gap

struct PathPiece {
  PathKind kind = PathKind::span;
  Rank rank = 0;
  SpanRef span;                 // for launch, host and wait: the span that came after
  Interval time;
};

struct CriticalPath {
  Window window;
  std::vector<PathPiece> pieces;     // ascending in time; lengths sum to the window
  bool inferred = false;
};

// Over all ranks of the timeline. The window is usually that of one step (union over ranks); of several, each step has its
// path, one after the other.
CriticalPath critical_path(const Timeline& timeline, Window window);
CriticalPath critical_path(const Timeline& timeline, const std::vector<MatchedCollective>& matched, Window window);

// The window of a step over all ranks: earliest start to latest end. Without steps: all device work.
Window common_window(const Timeline& timeline);
std::optional<Window> common_step_window(const Timeline& timeline, int step);

}  // namespace shardbook::metrics
