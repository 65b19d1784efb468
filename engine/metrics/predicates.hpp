// metrics/predicates: what a lab's check may ask of a timeline.
//
// A Filter names spans by op, layer, phase, step, rank ...; an unset field matches all. All
// answers are exact integers of the timeline; checks compare them, nothing here judges.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/metrics/partition.hpp"

namespace shardbook::metrics {

struct Filter {
  std::optional<Rank> rank;
  std::optional<int> step;
  std::optional<std::string> op;          // Detail::op; for a collective also name_of(CollectiveOp)
  std::optional<int> layer;
  std::optional<std::string> phase;
  std::optional<int> micro_batch;
  std::optional<std::string> group;       // name of the collective's group
  std::optional<timeline::Class> cls;
};

// The device spans that match, by (rank, start, track).
std::vector<SpanRef> select(const Timeline& timeline, const Filter& filter);

std::int64_t count(const Timeline& timeline, const Filter& filter);
// Sum of bytes: a collective's buffer, else what the op reads and writes or moves.
base::Bytes bytes(const Timeline& timeline, const Filter& filter);
std::int64_t flops(const Timeline& timeline, const Filter& filter);
// Sum over spans of their time that no compute of their rank covers.
Nanoseconds exposed(const Timeline& timeline, const Filter& filter);
// |spans of the filter n compute of the rank| / |spans|; none if nothing matches.
std::optional<double> overlap(const Timeline& timeline, const Filter& filter);

// Does each matching span of `first` end (or start) before each of `then` starts, rank by rank?
bool ends_before_start(const Timeline& timeline, const Filter& first, const Filter& then);
bool starts_before_start(const Timeline& timeline, const Filter& first, const Filter& then);

// Do all ranks run the same collectives in the same order in every group they share? If not, the
// one sentence that names the group, the place and what two ranks do there.
std::optional<std::string> order_disagreement(const Timeline& timeline);
inline bool same_order(const Timeline& timeline) { return !order_disagreement(timeline); }

}  // namespace shardbook::metrics
