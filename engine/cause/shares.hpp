// cause/shares: to which regime does each piece of the path belong?
//
// host takes what the host was busy with and what a launch took; a collective's transfer is latency up to what the
// smallest of its kind takes, and bandwidth beyond; a span of compute or memory is that. What nothing recorded
// explains stays unexplained.
#pragma once

#include <functional>
#include <vector>

#include "engine/cause/why.hpp"
#include "engine/metrics/critical_path.hpp"

namespace shardbook::cause {

// What of a collective's span does not depend on its size.
using LatencyOf = std::function<Nanoseconds(SpanRef)>;

// From the record's costs; by the op that a span is of.
LatencyOf latency_by(const Study& study, const Timeline& timeline);
// From the trace alone: what the shortest of its kind took, if that moved no more than an eighth of the bytes; else 0.
LatencyOf latency_seen(const Timeline& timeline);

// In the order of Regime, all seven; their path_ns sum to the path's window.
std::vector<Share> shares_of(const Timeline& timeline, const metrics::CriticalPath& path, const LatencyOf& latency_of);

}  // namespace shardbook::cause
