// metrics/collectives: matching by (group, sequence number); see collectives.hpp.
#include "engine/metrics/collectives.hpp"

#include <algorithm>
#include <map>

#include "engine/base/check.hpp"
#include "engine/metrics/queued.hpp"

namespace shardbook::metrics {

using timeline::Class;
using timeline::Collective;
using timeline::CollectiveOp;

namespace {

struct Call {
  SpanRef span;
  Nanoseconds start;
};

// A rank's collectives of each group in the order of their start, which for one communicator is the
// order of their issue.
using CallsOfGroup = std::map<std::uint32_t, std::vector<Call>>;

CallsOfGroup calls_of(const Timeline& timeline, Rank rank) {
  CallsOfGroup calls;
  timeline::for_each_device_span(timeline, rank, [&](SpanRef span) {
    if (!timeline.has_collective(span)) return;
    calls[timeline.collective(span).group].push_back({span, timeline.start(span)});
  });
  for (auto& [group, list] : calls) {
    std::sort(list.begin(), list.end(), [](const Call& a, const Call& b) {
      return a.start != b.start ? a.start < b.start : a.span < b.span;
    });
  }
  return calls;
}

Nanoseconds clock_error(const Timeline& timeline, Rank rank) {
  const timeline::Provenance* provenance = timeline.provenance(rank);
  return provenance != nullptr ? provenance->clock_error_ns : 0;
}

}  // namespace

std::vector<MatchedCollective> match_collectives(const Timeline& timeline, std::string* disagreement) {
  if (disagreement != nullptr) disagreement->clear();
  std::map<std::pair<std::uint32_t, std::int64_t>, MatchedCollective> matched;
  // PyTorch says of which group a collective is, but not of those that were launched before its profiler began: where others
  // say it, these could be any.
  const auto says_its_ranks = [&](const timeline::Group& group) { return !group.ranks.empty() || !timeline.strings[group.name].empty(); };
  const bool others_say = std::any_of(timeline.groups.begin(), timeline.groups.end(), says_its_ranks);
  for (const timeline::Provenance& provenance : timeline.ranks) {
    for (const auto& [group, calls] : calls_of(timeline, provenance.rank)) {
      if (others_say && !says_its_ranks(timeline.groups[group])) continue;
      std::int64_t order = 0;
      for (const Call& call : calls) {
        const Collective& collective = timeline.collective(call.span);
        const std::int64_t seq = collective.seq >= 0 ? collective.seq : order;
        ++order;
        MatchedCollective& entry = matched[{group, seq}];
        if (entry.spans.empty()) {
          entry.group = group;
          entry.seq = seq;
          entry.op = collective.op;
          entry.bytes = collective.bytes;
        } else if (timeline.rank(entry.spans.back()) == provenance.rank) {
          continue;                     // a number twice on one rank matches nothing
        } else if (entry.op != collective.op && disagreement != nullptr && disagreement->empty()) {
          *disagreement = base::text("group ", timeline.strings[timeline.groups[group].name], ", collective ", seq, ": rank ",
                                     timeline.rank(entry.spans.front()), " calls ", name_of(entry.op), ", rank ",
                                     provenance.rank, " calls ", name_of(collective.op));
        }
        entry.spans.push_back(call.span);
      }
    }
  }

  std::vector<MatchedCollective> out;
  out.reserve(matched.size());
  for (auto& [key, entry] : matched) {
    Nanoseconds first = timeline.start(entry.spans.front());
    entry.last_start = first;
    entry.last_rank = timeline.rank(entry.spans.front());
    for (SpanRef span : entry.spans) {
      const Nanoseconds start = timeline.start(span);
      first = std::min(first, start);
      if (start > entry.last_start) {
        entry.last_start = start;
        entry.last_rank = timeline.rank(span);
      }
      entry.clock_error_ns = std::max(entry.clock_error_ns, clock_error(timeline, timeline.rank(span)));
    }
    entry.skew_ns = entry.last_start - first;
    const std::size_t members = timeline.groups[entry.group].ranks.size();
    entry.complete = members > 0 ? entry.spans.size() == members : entry.spans.size() == timeline.ranks.size();
    out.push_back(std::move(entry));
  }
  find_queued(timeline, out);
  return out;
}

CollectiveBySpan by_span(const std::vector<MatchedCollective>& matched) {
  CollectiveBySpan collectives;
  for (const MatchedCollective& collective : matched) {
    for (SpanRef span : collective.spans) collectives[span] = &collective;
  }
  return collectives;
}

const MatchedCollective* find(const CollectiveBySpan& collectives, SpanRef span) {
  const auto found = collectives.find(span);
  return found == collectives.end() ? nullptr : found->second;
}

WaitSplit split(const Timeline& timeline, const MatchedCollective& collective, SpanRef span) {
  const Nanoseconds start = timeline.start(span), end = timeline.end(span);
  Nanoseconds wait = 0;
  if (collective.complete) {
    if (collective.skew_is_significant()) wait = collective.last_start - start;
  } else {
    wait = std::max<Nanoseconds>(timeline.collective(span).wait_ns, 0);
  }
  wait = std::clamp<Nanoseconds>(wait, 0, end - start);
  // Where a skew is not claimed, what it would be is no wait either: the queue begins with the span.
  const Nanoseconds queued = std::clamp<Nanoseconds>(collective.queued_until - (start + wait), 0, end - start - wait);
  return {wait, end - start - wait - queued, queued};
}

std::vector<RankWait> rank_waits(const Timeline& timeline, const std::vector<MatchedCollective>& matched) {
  std::vector<RankWait> waits;
  for (const timeline::Provenance& provenance : timeline.ranks) waits.push_back({provenance.rank});
  for (const MatchedCollective& collective : matched) {
    if (!collective.complete || collective.spans.size() < 2) continue;
    for (SpanRef span : collective.spans) {
      const auto entry = std::find_if(waits.begin(), waits.end(),
                                      [&](const RankWait& wait) { return wait.rank == timeline.rank(span); });
      if (entry == waits.end()) continue;
      entry->wait_ns += split(timeline, collective, span).wait_ns;
      ++entry->collectives;
    }
  }
  return waits;
}

std::optional<Rank> straggler(const Timeline& timeline, const std::vector<MatchedCollective>& matched) {
  std::optional<RankWait> least, most;
  Nanoseconds error = 0;
  for (const RankWait& wait : rank_waits(timeline, matched)) {
    if (wait.collectives == 0) continue;
    if (!least || wait.wait_ns < least->wait_ns) least = wait;
    if (!most || wait.wait_ns > most->wait_ns) most = wait;
    error = std::max(error, clock_error(timeline, wait.rank));
  }
  if (!least || most->wait_ns - least->wait_ns <= error) return std::nullopt;
  return least->rank;
}

std::optional<double> algbw(const Timeline& timeline, const MatchedCollective& collective) {
  Nanoseconds shortest = 0;
  for (SpanRef span : collective.spans) {
    const Nanoseconds transfer = split(timeline, collective, span).transfer_ns;
    shortest = shortest == 0 ? transfer : std::min(shortest, transfer);
  }
  if (collective.bytes <= 0 || shortest <= 0) return std::nullopt;
  return static_cast<double>(collective.bytes) / static_cast<double>(shortest);
}

std::optional<double> busbw(const Timeline& timeline, const MatchedCollective& collective) {
  const std::optional<double> bandwidth = algbw(timeline, collective);
  const std::size_t members = timeline.groups[collective.group].ranks.size();
  const auto n = static_cast<double>(members > 0 ? members : collective.spans.size());
  if (!bandwidth || n < 1) return std::nullopt;
  switch (collective.op) {
    case CollectiveOp::all_reduce: return *bandwidth * 2 * (n - 1) / n;
    case CollectiveOp::all_gather:
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_to_all: return *bandwidth * (n - 1) / n;
    default: return bandwidth;
  }
}

}  // namespace shardbook::metrics
