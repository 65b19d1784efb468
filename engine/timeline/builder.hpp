// timeline/builder: spans in any order become a Timeline.
//
// Add tracks, spans and edges as they come; finish() deals spans that overlap without nesting to
// further lanes, sorts all, and maps the edges. A span is named by the number that add() returned
// until then. Details are interned: equal ones are stored once. Each call costs O(log n), and finish()
// O(n log n), whatever overlaps and however many names, threads and counters there are.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/timeline/timeline.hpp"

namespace shardbook::timeline {

// One span as it is handed in. Detail and collective are indices that the builder returned.
struct NewSpan {
  Nanoseconds start = 0, end = 0;  // end >= start
  std::uint32_t label = 0;         // builder.strings().intern(...)
  Class cls = Class::compute;
  std::uint32_t correlation = 0;
  std::uint32_t detail = 0;
  std::uint32_t collective = 0;
  std::int32_t step = -1;
  bool launch_bound = false;
};

// As a Timeline has them: by (to, from, kind), each once.
Edges in_order(std::vector<Edge> edges);

class TimelineBuilder {
 public:
  using SpanNumber = std::uint32_t;

  Strings& strings() { return timeline_.strings; }
  std::uint32_t intern(std::string_view text) { return timeline_.strings.intern(text); }

  void add_rank(Provenance provenance);
  // The track of this stream or thread; the same (rank, kind, id) gives the same track.
  std::uint32_t track(Rank rank, TrackKind kind, std::int64_t id, std::string_view name = {});
  std::uint32_t detail(const Detail& detail);
  std::uint32_t group(std::string_view name, std::vector<Rank> ranks);
  std::uint32_t collective(const Collective& collective);
  SpanNumber add(std::uint32_t track, const NewSpan& span);
  void add_edge(SpanNumber from, SpanNumber to, EdgeKind kind);
  void add_step(const Step& step);
  void add_counter(Rank rank, std::string_view name, Nanoseconds time, std::int64_t value);
  void set_base_ns(std::int64_t base_ns) { timeline_.base_ns = base_ns; }
  void add_banner(std::string banner) { timeline_.banners.push_back(std::move(banner)); }

  // Takes over everything of `other`, which holds exactly one rank: from now on rank `rank`, its times
  // `shift` later. Returns what is to be added to the numbers of its spans. The names and details get
  // the numbers that they would have, had they been added here one after the other.
  SpanNumber absorb(TimelineBuilder&& other, Rank rank, Nanoseconds shift);

  // The earliest start of a span; 0 without any. O(spans).
  Nanoseconds first_start() const;

  // The timeline, sorted. The builder is empty afterwards. If `where` is given, where[number] is
  // the place of the span that add() gave that number.
  Timeline finish(std::vector<SpanRef>* where = nullptr);

 private:
  struct Pending {
    std::uint32_t from, to;
    EdgeKind kind;
  };
  struct Place {
    std::uint32_t track, index;
  };
  struct TrackKey {
    Rank rank;
    TrackKind kind;
    std::int64_t id;
    friend auto operator<=>(const TrackKey&, const TrackKey&) = default;
  };

  // By (rank, name), whether the name is a string or a view.
  struct CounterOrder {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return a.first != b.first ? a.first < b.first : std::string_view(a.second) < std::string_view(b.second);
    }
  };

  Timeline timeline_;
  std::map<TrackKey, std::uint32_t> track_keys_;
  std::map<std::pair<Rank, std::string>, std::size_t, CounterOrder> counter_keys_;
  std::map<std::pair<std::uint32_t, std::vector<Rank>>, std::uint32_t> group_keys_;
  std::vector<Place> places_;                                       // of each span number
  std::vector<Pending> edges_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> details_;   // hash -> index
};

}  // namespace shardbook::timeline
