// timeline/builder: sorting, lanes, and mapping of edges; see builder.hpp.
#include "engine/timeline/builder.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>

#include "engine/base/check.hpp"

namespace shardbook::timeline {
namespace {

// The lanes of a track while its spans are dealt, which come in the order of their starts. Spans of a lane nest: it
// is kept as the ends of those that are open in it, outermost first.
//
// Over the innermost ends stands a tree of the latest and the earliest, so that the first lane with room is found
// in O(log lanes). Ends that have passed are taken out only where they are met: each once.
class Lanes {
 public:
  // The first lane in which this span nests; it is open there from now on.
  std::size_t deal(Nanoseconds start, Nanoseconds end) {
    while (true) {
      const std::size_t lane = first_with_room(start, end);
      if (lane == open_.size()) grow();
      std::vector<Nanoseconds>& ends = open_[lane];
      while (!ends.empty() && ends.back() <= start) ends.pop_back();
      const bool nests = ends.empty() || end <= ends.back();
      if (nests) ends.push_back(end);
      update(lane);
      if (nests) return lane;
    }
  }

 private:
  static constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();
  struct Ends {
    Nanoseconds latest = std::numeric_limits<Nanoseconds>::min(), earliest = never;
  };
  // Has room, or may have it: something in it has ended.
  static bool may_have_room(const Ends& ends, Nanoseconds start, Nanoseconds end) { return ends.latest >= end || ends.earliest <= start; }

  std::size_t first_with_room(Nanoseconds start, Nanoseconds end) const {
    if (!may_have_room(tree_[1], start, end)) return open_.size();
    std::size_t node = 1;
    while (node < leaves()) node = may_have_room(tree_[2 * node], start, end) ? 2 * node : 2 * node + 1;
    return node - leaves();
  }
  std::size_t leaves() const { return tree_.size() / 2; }
  void update(std::size_t lane) {
    std::size_t node = leaves() + lane;
    const Nanoseconds innermost = open_[lane].empty() ? never : open_[lane].back();
    tree_[node] = {innermost, innermost};
    for (node /= 2; node > 0; node /= 2) {
      const Ends &a = tree_[2 * node], &b = tree_[2 * node + 1];
      tree_[node] = {std::max(a.latest, b.latest), std::min(a.earliest, b.earliest)};
    }
  }
  void grow() {
    open_.emplace_back();
    if (open_.size() <= leaves()) return;
    tree_.assign(4 * leaves(), Ends{});
    for (std::size_t lane = 0; lane < open_.size(); ++lane) update(lane);
  }

  std::vector<std::vector<Nanoseconds>> open_;
  std::vector<Ends> tree_ = std::vector<Ends>(2);        // the root is 1, the children of n are 2 n and 2 n + 1
};

// The lane of each span, in the order given.
std::vector<std::int32_t> deal_lanes(const Track& track, const std::vector<std::uint32_t>& order) {
  std::vector<std::int32_t> lane_of(track.size(), 0);
  Lanes lanes;
  for (std::uint32_t i : order) lane_of[i] = static_cast<std::int32_t>(lanes.deal(track.start[i], track.end[i]));
  return lane_of;
}

template <class T>
void take(std::vector<T>& column, const std::vector<T>& from, const std::vector<std::uint32_t>& order) {
  column.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) column[i] = from[order[i]];
}

// Columns that grew entry by entry have room for up to as many again.
void without_slack(Track& track) {
  track.start.shrink_to_fit(), track.end.shrink_to_fit(), track.label.shrink_to_fit(), track.correlation.shrink_to_fit();
  track.detail.shrink_to_fit(), track.collective.shrink_to_fit(), track.step.shrink_to_fit();
  track.cls.shrink_to_fit(), track.flags.shrink_to_fit();
}

Track taken(const Track& from, const std::vector<std::uint32_t>& order, std::int32_t lane) {
  Track track;
  track.rank = from.rank;
  track.kind = from.kind;
  track.id = from.id;
  track.lane = lane;
  track.name = from.name;
  take(track.start, from.start, order);
  take(track.end, from.end, order);
  take(track.label, from.label, order);
  take(track.correlation, from.correlation, order);
  take(track.detail, from.detail, order);
  take(track.collective, from.collective, order);
  take(track.step, from.step, order);
  take(track.cls, from.cls, order);
  take(track.flags, from.flags, order);
  return track;
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return hash ^ (hash >> 32);
}

std::uint64_t hash_of(const Detail& d) {
  std::uint64_t hash = 1;
  for (std::int64_t value : {std::int64_t{d.op}, std::int64_t{d.part}, std::int64_t{d.phase}, std::int64_t{d.micro_batch},
                             std::int64_t{d.chunk}, std::int64_t{d.layer}, std::int64_t{d.n},
                             std::int64_t{d.source.file}, std::int64_t{d.source.line},
                             std::int64_t{d.awaits.file}, std::int64_t{d.awaits.line},
                             std::int64_t{d.planned.file}, std::int64_t{d.planned.line}, std::int64_t{d.planned_leads}, d.flops, d.bytes}) {
    hash = mix(hash, static_cast<std::uint64_t>(value));
  }
  return hash;
}

}  // namespace

void TimelineBuilder::add_rank(Provenance provenance) {
  SHARDBOOK_CHECK(timeline_.provenance(provenance.rank) == nullptr, "rank ", provenance.rank, " is added twice");
  timeline_.ranks.push_back(std::move(provenance));
}

std::uint32_t TimelineBuilder::track(Rank rank, TrackKind kind, std::int64_t id, std::string_view name) {
  const auto [found, is_new] =
      track_keys_.try_emplace(TrackKey{rank, kind, id}, static_cast<std::uint32_t>(timeline_.tracks.size()));
  if (is_new) {
    Track& track = timeline_.tracks.emplace_back();
    track.rank = rank;
    track.kind = kind;
    track.id = id;
  }
  if (!name.empty()) timeline_.tracks[found->second].name = name;
  return found->second;
}

std::uint32_t TimelineBuilder::detail(const Detail& detail) {
  if (detail == Detail{}) return 0;
  const std::uint64_t hash = hash_of(detail);
  const auto [first, last] = details_.equal_range(hash);
  for (auto entry = first; entry != last; ++entry) {
    if (timeline_.details[entry->second] == detail) return entry->second;
  }
  const auto index = static_cast<std::uint32_t>(timeline_.details.size());
  timeline_.details.push_back(detail);
  details_.emplace(hash, index);
  return index;
}

std::uint32_t TimelineBuilder::group(std::string_view name, std::vector<Rank> ranks) {
  const std::uint32_t id = intern(name);
  const auto [found, is_new] = group_keys_.try_emplace({id, ranks}, static_cast<std::uint32_t>(timeline_.groups.size()));
  if (is_new) timeline_.groups.push_back({id, std::move(ranks)});
  return found->second;
}

std::uint32_t TimelineBuilder::collective(const Collective& collective) {
  timeline_.collectives.push_back(collective);
  return static_cast<std::uint32_t>(timeline_.collectives.size() - 1);
}

TimelineBuilder::SpanNumber TimelineBuilder::add(std::uint32_t track_index, const NewSpan& span) {
  SHARDBOOK_CHECK(span.end >= span.start, "a span ends at ", span.end, " before its start ", span.start);
  Track& track = timeline_.tracks[track_index];
  places_.push_back({track_index, static_cast<std::uint32_t>(track.size())});
  track.start.push_back(span.start);
  track.end.push_back(span.end);
  track.label.push_back(span.label);
  track.correlation.push_back(span.correlation);
  track.detail.push_back(span.detail);
  track.collective.push_back(span.collective);
  track.step.push_back(span.step);
  track.cls.push_back(span.cls);
  track.flags.push_back(span.launch_bound ? flag_launch_bound : 0);
  return static_cast<SpanNumber>(places_.size() - 1);
}

void TimelineBuilder::add_edge(SpanNumber from, SpanNumber to, EdgeKind kind) { edges_.push_back({from, to, kind}); }

void TimelineBuilder::add_step(const Step& step) { timeline_.steps.push_back(step); }

void TimelineBuilder::add_counter(Rank rank, std::string_view name, Nanoseconds time, std::int64_t value) {
  auto found = counter_keys_.find(std::pair(rank, name));
  if (found == counter_keys_.end()) {
    found = counter_keys_.emplace(std::pair(rank, std::string(name)), timeline_.counters.size()).first;
    timeline_.counters.push_back({rank, std::string(name), {}, {}});
  }
  timeline_.counters[found->second].time.push_back(time);
  timeline_.counters[found->second].value.push_back(value);
}

Nanoseconds TimelineBuilder::first_start() const {
  std::optional<Nanoseconds> first;
  for (const Track& track : timeline_.tracks) {
    for (const Nanoseconds start : track.start) first = std::min(first.value_or(start), start);
  }
  return first.value_or(0);
}

TimelineBuilder::SpanNumber TimelineBuilder::absorb(TimelineBuilder&& other, Rank rank, Nanoseconds shift) {
  Timeline& from = other.timeline_;
  SHARDBOOK_CHECK(from.ranks.size() == 1, "absorb() takes one rank, not ", from.ranks.size());
  if (places_.empty() && timeline_.ranks.empty() && from.ranks[0].rank == rank && shift == 0) {
    *this = std::move(other);
    return 0;
  }
  // What is shared by spans, and its numbers here.
  std::vector<std::uint32_t> string_of(from.strings.size()), group_of(from.groups.size()), detail_of(from.details.size());
  for (std::uint32_t id = 0; id < string_of.size(); ++id) string_of[id] = intern(from.strings[id]);
  for (std::size_t i = 1; i < from.groups.size(); ++i) {
    group_of[i] = group(from.strings[from.groups[i].name], std::move(from.groups[i].ranks));
  }
  for (std::size_t i = 1; i < from.details.size(); ++i) {
    Detail detail = from.details[i];
    for (std::uint32_t* id : {&detail.op, &detail.part, &detail.phase, &detail.source.file, &detail.awaits.file, &detail.planned.file}) *id = string_of[*id];
    detail_of[i] = this->detail(detail);
  }
  const auto collectives_before = static_cast<std::uint32_t>(timeline_.collectives.size() - 1);
  for (std::size_t i = 1; i < from.collectives.size(); ++i) {
    Collective collective = from.collectives[i];
    collective.group = group_of[collective.group];
    collective.dtype = string_of[collective.dtype];
    timeline_.collectives.push_back(collective);
  }

  // The tracks, whose columns move whole.
  std::vector<std::uint32_t> track_of;
  for (Track& old : from.tracks) {
    const std::size_t before = timeline_.tracks.size();
    track_of.push_back(track(rank, old.kind, old.id, old.name));
    SHARDBOOK_CHECK(track_of.back() == before, "rank ", rank, " has been added already");
    old.rank = rank;
    for (Nanoseconds& time : old.start) time += shift;
    for (Nanoseconds& time : old.end) time += shift;
    for (std::uint32_t& label : old.label) label = string_of[label];
    for (std::uint32_t& detail : old.detail) detail = detail_of[detail];
    for (std::uint32_t& collective : old.collective) collective += collective == 0 ? 0 : collectives_before;
    timeline_.tracks.back() = std::move(old);
  }
  const auto numbers_before = static_cast<SpanNumber>(places_.size());
  places_.reserve(places_.size() + other.places_.size());
  for (const Place& place : other.places_) places_.push_back({track_of[place.track], place.index});
  for (const Pending& edge : other.edges_) add_edge(edge.from + numbers_before, edge.to + numbers_before, edge.kind);

  // What is the rank's own.
  for (Step step : from.steps) {
    step.rank = rank;
    for (Nanoseconds* time : {&step.start, &step.end, &step.host_start, &step.host_end}) *time += shift;
    add_step(step);
  }
  for (Counter& counter : from.counters) {
    counter.rank = rank;
    for (Nanoseconds& time : counter.time) time += shift;
    counter_keys_.emplace(std::pair(rank, counter.name), timeline_.counters.size());
    timeline_.counters.push_back(std::move(counter));
  }
  from.ranks[0].rank = rank;
  add_rank(std::move(from.ranks[0]));
  for (std::string& banner : from.banners) add_banner(std::move(banner));
  other = TimelineBuilder();
  return numbers_before;
}

Edges in_order(std::vector<Edge> edges) {
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    return std::tie(a.to, a.from, a.kind) < std::tie(b.to, b.from, b.kind);
  });
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return Edges(edges);
}

Timeline TimelineBuilder::finish(std::vector<SpanRef>* where) {
  // Each track: sort by time, longest first, and deal what does not nest to further lanes.
  std::vector<Track> tracks;
  std::vector<std::vector<SpanRef>> moved(timeline_.tracks.size());   // old (track, index) -> place in `tracks`
  for (std::size_t t = 0; t < timeline_.tracks.size(); ++t) {
    Track& old = timeline_.tracks[t];
    if (old.size() == 0) continue;
    std::vector<std::uint32_t> order(old.size());
    std::iota(order.begin(), order.end(), 0u);
    const auto earlier = [&old](std::uint32_t a, std::uint32_t b) {
      return std::tie(old.start[a], old.end[b]) < std::tie(old.start[b], old.end[a]);
    };
    const bool sorted = std::is_sorted(order.begin(), order.end(), earlier);
    if (!sorted) std::stable_sort(order.begin(), order.end(), earlier);

    const std::vector<std::int32_t> lane_of = deal_lanes(old, order);
    const std::int32_t lanes = 1 + *std::max_element(lane_of.begin(), lane_of.end());
    moved[t].resize(old.size());
    std::vector<std::vector<std::uint32_t>> of_lane(static_cast<std::size_t>(lanes));
    for (std::uint32_t i : order) {
      auto& lane = of_lane[static_cast<std::size_t>(lane_of[i])];
      moved[t][i] = {static_cast<std::uint32_t>(tracks.size() + lane_of[i]), static_cast<std::uint32_t>(lane.size())};
      lane.push_back(i);
    }
    if (sorted && lanes == 1) {
      tracks.push_back(std::move(old));
      without_slack(tracks.back());
    } else {
      for (std::int32_t lane = 0; lane < lanes; ++lane) tracks.push_back(taken(old, of_lane[static_cast<std::size_t>(lane)], lane));
    }
    old = Track{};
  }

  // Tracks by (rank, kind, id, lane).
  std::vector<std::uint32_t> order(tracks.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Track &x = tracks[a], &y = tracks[b];
    return std::tie(x.rank, x.kind, x.id, x.lane) < std::tie(y.rank, y.kind, y.id, y.lane);
  });
  std::vector<std::uint32_t> place_of(tracks.size());
  timeline_.tracks.clear();
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    place_of[order[i]] = i;
    timeline_.tracks.push_back(std::move(tracks[order[i]]));
  }

  // Edges, steps, counters and ranks in their order.
  const auto now_at = [&](SpanNumber number) {
    SpanRef ref = moved[places_[number].track][places_[number].index];
    ref.track = place_of[ref.track];
    return ref;
  };
  std::vector<Edge> edges;
  edges.reserve(edges_.size());
  for (const Pending& edge : edges_) edges.push_back({now_at(edge.from), now_at(edge.to), edge.kind});
  timeline_.edges = in_order(std::move(edges));
  for (Counter& counter : timeline_.counters) counter.time.shrink_to_fit(), counter.value.shrink_to_fit();
  timeline_.details.shrink_to_fit(), timeline_.collectives.shrink_to_fit();
  std::sort(timeline_.steps.begin(), timeline_.steps.end(), [](const Step& a, const Step& b) {
    return std::tie(a.rank, a.number) < std::tie(b.rank, b.number);
  });
  std::stable_sort(timeline_.counters.begin(), timeline_.counters.end(), [](const Counter& a, const Counter& b) {
    return std::tie(a.rank, a.name) < std::tie(b.rank, b.name);
  });
  std::sort(timeline_.ranks.begin(), timeline_.ranks.end(),
            [](const Provenance& a, const Provenance& b) { return a.rank < b.rank; });
  if (where != nullptr) {
    where->clear();
    for (SpanNumber number = 0; number < places_.size(); ++number) where->push_back(now_at(number));
  }

  Timeline done = std::move(timeline_);
  *this = TimelineBuilder();
  return done;
}

}  // namespace shardbook::timeline
