// metrics/predicates: filters and sums; see predicates.hpp.
#include "engine/metrics/predicates.hpp"

#include <algorithm>
#include <map>

#include "engine/base/check.hpp"

namespace shardbook::metrics {

using timeline::Detail;

namespace {

bool matches(const Timeline& timeline, SpanRef span, const Filter& filter) {
  const Detail& detail = timeline.detail(span);
  const bool communicates = timeline.has_collective(span);
  if (filter.step && timeline.step(span) != *filter.step) return false;
  if (filter.cls && timeline.cls(span) != *filter.cls) return false;
  if (filter.layer && detail.layer != *filter.layer) return false;
  if (filter.micro_batch && detail.micro_batch != *filter.micro_batch) return false;
  if (filter.phase && timeline.strings[detail.phase] != *filter.phase) return false;
  if (filter.op && timeline.strings[detail.op] != *filter.op &&
      !(communicates && name_of(timeline.collective(span).op) == *filter.op)) {
    return false;
  }
  if (filter.group) {
    if (!communicates) return false;
    if (timeline.strings[timeline.groups[timeline.collective(span).group].name] != *filter.group) return false;
  }
  return true;
}

std::vector<Rank> ranks_of(const Timeline& timeline, const Filter& filter) {
  std::vector<Rank> ranks;
  for (const timeline::Provenance& provenance : timeline.ranks) {
    if (!filter.rank || *filter.rank == provenance.rank) ranks.push_back(provenance.rank);
  }
  return ranks;
}

// Compares each pair of spans of one rank through `key_of(first) <= start(then)`.
template <class Key>
bool precedes(const Timeline& timeline, const Filter& first, const Filter& then, Key key_of) {
  std::map<Rank, Nanoseconds> latest;
  for (SpanRef span : select(timeline, first)) {
    const auto [entry, is_new] = latest.try_emplace(timeline.rank(span), key_of(span));
    if (!is_new) entry->second = std::max(entry->second, key_of(span));
  }
  for (SpanRef span : select(timeline, then)) {
    const auto entry = latest.find(timeline.rank(span));
    if (entry != latest.end() && entry->second > timeline.start(span)) return false;
  }
  return true;
}

}  // namespace

std::vector<SpanRef> select(const Timeline& timeline, const Filter& filter) {
  std::vector<SpanRef> spans;
  for (Rank rank : ranks_of(timeline, filter)) {
    const std::size_t first = spans.size();
    timeline::for_each_device_span(timeline, rank, [&](SpanRef span) {
      if (matches(timeline, span, filter)) spans.push_back(span);
    });
    std::sort(spans.begin() + static_cast<std::ptrdiff_t>(first), spans.end(), [&](SpanRef a, SpanRef b) {
      return timeline.start(a) != timeline.start(b) ? timeline.start(a) < timeline.start(b) : a < b;
    });
  }
  return spans;
}

std::int64_t count(const Timeline& timeline, const Filter& filter) {
  return static_cast<std::int64_t>(select(timeline, filter).size());
}

base::Bytes bytes(const Timeline& timeline, const Filter& filter) {
  base::Bytes sum = 0;
  for (SpanRef span : select(timeline, filter)) {
    sum += timeline.has_collective(span) ? timeline.collective(span).bytes : timeline.detail(span).bytes;
  }
  return sum;
}

std::int64_t flops(const Timeline& timeline, const Filter& filter) {
  std::int64_t sum = 0;
  for (SpanRef span : select(timeline, filter)) sum += timeline.detail(span).flops;
  return sum;
}

Nanoseconds exposed(const Timeline& timeline, const Filter& filter) {
  Nanoseconds sum = 0;
  for (Rank rank : ranks_of(timeline, filter)) {
    const DeviceSets sets = device_sets(timeline, rank);
    Filter of_rank = filter;
    of_rank.rank = rank;
    for (SpanRef span : select(timeline, of_rank)) sum += exposed_ns(timeline, sets, span);
  }
  return sum;
}

std::optional<double> overlap(const Timeline& timeline, const Filter& filter) {
  Nanoseconds covered = 0, all = 0;
  for (Rank rank : ranks_of(timeline, filter)) {
    Filter of_rank = filter;
    of_rank.rank = rank;
    std::vector<Interval> spans;
    for (SpanRef span : select(timeline, of_rank)) spans.push_back({timeline.start(span), timeline.end(span)});
    const Intervals joined = union_of(std::move(spans));
    all += length(joined);
    covered += length(intersect(joined, device_sets(timeline, rank).compute));
  }
  if (all == 0) return std::nullopt;
  return static_cast<double>(covered) / static_cast<double>(all);
}

bool ends_before_start(const Timeline& timeline, const Filter& first, const Filter& then) {
  return precedes(timeline, first, then, [&](SpanRef span) { return timeline.end(span); });
}

bool starts_before_start(const Timeline& timeline, const Filter& first, const Filter& then) {
  return precedes(timeline, first, then, [&](SpanRef span) { return timeline.start(span); });
}

std::optional<std::string> order_disagreement(const Timeline& timeline) {
  // For each group, each rank's calls in order: what it calls and how many bytes.
  struct Call {
    std::int64_t seq;
    timeline::CollectiveOp op;
    base::Bytes bytes;
    bool operator==(const Call&) const = default;
  };
  struct Calls {
    Rank rank;
    std::vector<Call> list;
  };
  std::map<std::uint32_t, Calls> reference;      // group -> the first rank's calls
  for (const timeline::Provenance& provenance : timeline.ranks) {
    Filter filter;
    filter.rank = provenance.rank;
    filter.cls = timeline::Class::communication;
    std::map<std::uint32_t, std::vector<Call>> calls;
    for (SpanRef span : select(timeline, filter)) {
      if (!timeline.has_collective(span)) continue;
      const timeline::Collective& collective = timeline.collective(span);
      calls[collective.group].push_back({collective.seq, collective.op, collective.bytes});
    }
    for (auto& [group, list] : calls) {
      const auto [entry, is_first] = reference.try_emplace(group, Calls{provenance.rank, list});
      if (is_first || entry->second.list == list) continue;
      const std::vector<Call>& other = entry->second.list;
      std::size_t at = 0;
      while (at < list.size() && at < other.size() && list[at] == other[at]) ++at;
      const auto said = [&](const std::vector<Call>& from) {
        return at < from.size() ? base::text(name_of(from[at].op), " of ", from[at].bytes, " bytes (number ", from[at].seq, ")")
                                : std::string("nothing more");
      };
      return base::text("in group ", timeline.strings[timeline.groups[group].name], ", at place ", at, ", rank ",
                        entry->second.rank, " calls ", said(other), " and rank ", provenance.rank, " calls ", said(list));
    }
  }
  return std::nullopt;
}

}  // namespace shardbook::metrics
