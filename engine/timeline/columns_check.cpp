// timeline/columns_check: every index of every column; see columns_check.hpp.
#include "engine/timeline/columns_check.hpp"

#include <algorithm>
#include <tuple>
#include <vector>

#include "engine/timeline/cores.hpp"

namespace shardbook::timeline {
namespace {

// Times beyond these are damage; the reader leaves none (rank_events.cpp, and what reader.cpp adds). Between them
// lie 85 years, of which three times as much still fits: a view shows a span and as much before and after it.
constexpr Nanoseconds earliest_kept = -400'000'000'000'000'000, farthest_kept = 2'300'000'000'000'000'000;
bool may_be_kept(Nanoseconds time) { return time >= earliest_kept && time <= farthest_kept; }

// All values below `count`. Without a way out of the loop, so that the compiler takes many at once.
bool all_below(const std::vector<std::uint32_t>& column, std::size_t count) {
  std::uint32_t largest = 0;
  for (std::uint32_t value : column) largest = std::max(largest, value);
  return column.empty() || largest < count;
}

bool sound_times(const Track& track) {
  bool sound = true;
  for (std::size_t i = 0; i < track.size(); ++i) {
    sound &= (track.start[i] >= earliest_kept) & (track.end[i] <= farthest_kept) & (track.start[i] <= track.end[i]);
  }
  for (std::size_t i = 1; i < track.size(); ++i) sound &= track.start[i - 1] <= track.start[i];
  return sound;
}

bool sound_kinds(const Track& track) {
  std::uint8_t largest = 0;
  for (Class cls : track.cls) largest = std::max(largest, static_cast<std::uint8_t>(cls));
  return largest <= static_cast<std::uint8_t>(Class::annotation) && track.kind <= TrackKind::marks;
}

bool sound_tables(const Timeline& t) {
  const std::size_t names = t.strings.size();
  bool sound = !t.details.empty() && !t.collectives.empty() && !t.groups.empty();
  for (const Detail& d : t.details) {
    sound &= std::max({d.op, d.part, d.phase, d.source.file, d.awaits.file}) < names;
  }
  for (const Collective& c : t.collectives) {
    sound &= c.group < t.groups.size() && c.dtype < names && c.op <= CollectiveOp::shift;
  }
  for (const Group& group : t.groups) sound &= group.name < names;
  for (const Edge& edge : t.edges) {
    for (SpanRef span : {edge.from, edge.to}) sound &= span.track < t.tracks.size() && span.index < t.tracks[span.track].size();
    sound &= edge.kind <= EdgeKind::buffer;
  }
  for (const Step& s : t.steps) {
    sound &= may_be_kept(s.start) && may_be_kept(s.end) && may_be_kept(s.host_start) && may_be_kept(s.host_end);
  }
  for (const Counter& counter : t.counters) {
    sound &= counter.time.size() == counter.value.size() && std::all_of(counter.time.begin(), counter.time.end(), may_be_kept);
  }
  for (const Provenance& p : t.ranks) sound &= p.clock <= Clock::unknown;
  return sound;
}

// Who looks something up bisects, so what is out of order or there twice would not be found.
bool in_order(const Timeline& t) {
  bool sound = true;
  for (std::size_t i = 1; i < t.ranks.size(); ++i) sound &= t.ranks[i - 1].rank < t.ranks[i].rank;
  for (std::size_t i = 1; i < t.tracks.size(); ++i) {
    const Track &a = t.tracks[i - 1], &b = t.tracks[i];
    sound &= std::tie(a.rank, a.kind, a.id, a.lane) < std::tie(b.rank, b.kind, b.id, b.lane);
  }
  for (std::size_t i = 1; i < t.edges.size(); ++i) {
    const Edge a = t.edges[i - 1], b = t.edges[i];
    sound &= std::tie(a.to, a.from, a.kind) < std::tie(b.to, b.from, b.kind);
  }
  for (const Track& track : t.tracks) {
    sound &= std::binary_search(t.ranks.begin(), t.ranks.end(), Provenance{.rank = track.rank},
                                [](const Provenance& a, const Provenance& b) { return a.rank < b.rank; });
  }
  return sound;
}

}  // namespace

base::Status check_indices(const Timeline& timeline, const std::string& name) {
  if (!sound_tables(timeline)) return base::Error{base::text(name, " is damaged: an entry of its tables points to nothing")};
  if (!in_order(timeline)) return base::Error{base::text(name, " is damaged: its ranks, tracks or edges are out of order, or there twice")};
  std::vector<char> sound(timeline.tracks.size());
  on_all_cores(sound.size(), [&](std::size_t t) {
    const Track& track = timeline.tracks[t];
    sound[t] = all_below(track.label, timeline.strings.size()) && all_below(track.detail, timeline.details.size()) &&
               all_below(track.collective, timeline.collectives.size()) && sound_kinds(track) && sound_times(track);
  });
  const auto damaged = std::find(sound.begin(), sound.end(), 0);
  if (damaged == sound.end()) return base::Done{};
  return base::Error{base::text(name, " is damaged: a span of its track ", damaged - sound.begin(),
                                " points to nothing or has an impossible time")};
}

}  // namespace shardbook::timeline
