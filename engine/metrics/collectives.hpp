// metrics/collectives: one collective, seen on all its ranks.
//
// Ranks' spans of the same (group, sequence number) are one collective; traces that number none
// are matched by their order in the group. It cannot transfer before its last rank came:
//   S = max over ranks of start;  wait_r = S - start_r;  transfer_r = end_r - S, less what it queued (queued.hpp)
// A wait below the clock error of the ranks is not claimed. The straggler is the rank that waited
// least in sum (TraceLens' rule, nccl_analyser.py of AMD-AGI/TraceLens at 171dd747). Bandwidths
// as nccl-tests defines them (doc/PERFORMANCE.md).
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/metrics/partition.hpp"

namespace shardbook::metrics {

struct MatchedCollective {
  std::uint32_t group = 0;                  // Timeline::groups
  std::int64_t seq = 0;
  timeline::CollectiveOp op{};
  base::Bytes bytes = 0;
  std::vector<SpanRef> spans;               // ascending by rank
  bool complete = false;                    // every rank of the group is in the timeline
  Nanoseconds last_start = 0;               // S
  Rank last_rank = 0;                       // who came last
  Nanoseconds clock_error_ns = 0;           // the largest of its ranks

  // S - first start; below clock_error_ns it says nothing.
  Nanoseconds skew_ns = 0;
  bool skew_is_significant() const { return skew_ns > clock_error_ns; }

  // All ranks had come, and one or several had no room for it yet: [S, queued_until), behind this matmul. 0 and not valid()
  // where nothing shows it (queued.hpp).
  Nanoseconds queued_until = 0;
  SpanRef queued_behind;
};

// All collectives, by (group, seq). Where ranks disagree on the op of a sequence number, the
// message of the first such is put into *disagreement (empty if they agree).
std::vector<MatchedCollective> match_collectives(const Timeline& timeline, std::string* disagreement = nullptr);

// The collective of each span that is in one. `matched` outlives it.
struct SpanHash {
  std::size_t operator()(SpanRef span) const { return std::size_t{span.track} << 32 | span.index; }
};
using CollectiveBySpan = std::unordered_map<SpanRef, const MatchedCollective*, SpanHash>;
CollectiveBySpan by_span(const std::vector<MatchedCollective>& matched);
// nullptr if the span is in none.
const MatchedCollective* find(const CollectiveBySpan& collectives, SpanRef span);

struct WaitSplit {
  Nanoseconds wait_ns = 0, transfer_ns = 0;   // with queued_ns they sum to the span
  Nanoseconds queued_ns = 0;                  // between them: before a full device
};
// Of one rank's span, by matching; the split the trace itself states if the match is incomplete.
WaitSplit split(const Timeline& timeline, const MatchedCollective& collective, SpanRef span);

struct RankWait {
  Rank rank = 0;
  Nanoseconds wait_ns = 0;
  std::int64_t collectives = 0;
};
// Sum of waits of each rank over complete collectives.
std::vector<RankWait> rank_waits(const Timeline& timeline, const std::vector<MatchedCollective>& matched);
// The rank that waited least, if the difference to the one that waited most is significant.
std::optional<Rank> straggler(const Timeline& timeline, const std::vector<MatchedCollective>& matched);

// bytes / time in GB/s (1e9 bytes a second); time is the shortest transfer over the ranks.
// busbw = algbw * 2(n-1)/n for all-reduce, (n-1)/n for all-gather, reduce-scatter and all-to-all,
// 1 otherwise. None if bytes or time are not known.
std::optional<double> algbw(const Timeline& timeline, const MatchedCollective& collective);
std::optional<double> busbw(const Timeline& timeline, const MatchedCollective& collective);

}  // namespace shardbook::metrics
