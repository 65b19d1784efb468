// scene/scene: a run, ready to be drawn.
//
// Everything that a picture needs and that does not change with what is looked at: the timeline, what is
// derived of it (unions, exposed, idle, matched collectives, critical path, exposures), and the index of
// each row. Made once on the loader's thread; const afterwards, so any thread may read it. What a frame
// asks costs what is on the screen: O(log spans + columns) a row.
//
// The derived rows are the sets of engine/metrics, so the picture and `shardbook metrics` cannot
// disagree; they are kept as Coverage (8 bytes an interval), shared between a track and its rank where
// they are the same, so that timeline and index stay below 64 bytes a span.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/metrics/collectives.hpp"
#include "engine/metrics/critical_path.hpp"
#include "engine/metrics/exposure.hpp"
#include "engine/metrics/idle.hpp"
#include "engine/metrics/partition.hpp"
#include "engine/timeline/links.hpp"
#include "engine/timeline/timeline.hpp"
#include "viewer/scene/bands.hpp"
#include "viewer/scene/coverage.hpp"
#include "viewer/scene/idle_causes.hpp"
#include "viewer/scene/items.hpp"
#include "viewer/scene/rows.hpp"
#include "viewer/scene/track_index.hpp"

namespace shardbook::timeline {
struct RunInfo;
}

namespace shardbook::scene {

using base::Nanoseconds;
using base::Rank;
using metrics::Window;
using timeline::SpanRef;
using timeline::Timeline;

// What a loader tells while it works; fraction of the whole in [0, 1], which only grows. Reading follows the bytes.
constexpr float unpacked_share = 0.2f, read_share = 0.6f;      // of a pack; then of its files, or of any
struct Progress {
  std::atomic<float> fraction{0};
  std::atomic<const char*> stage{"reading"};
  std::atomic<bool> stop{false};            // set by who waits; the loader ends soon after
};

// Where a pack was unpacked; removed with the last scene that was made of it.
struct Unpacked {
  std::string root, run;                    // what stands for the project (notes/, labs/), and the run's folder
  std::string folder;                       // what is removed
  Unpacked() = default;
  Unpacked(const Unpacked&) = delete;
  Unpacked& operator=(const Unpacked&) = delete;
  ~Unpacked();
};

// The rank's own derived sets, as rows of the picture.
struct RankScene {
  Rank rank = 0;
  Coverage compute, communication, memory;  // metrics::device_sets
  Coverage exposed, exposed_memory;         // communication that no compute covers; copies that neither does
  Coverage cpu;                             // the CPU's own work among its streams' ops
  Coverage critical;                        // of the critical path's pieces on this rank
  std::vector<std::uint32_t> pieces;        // these, as places in path().pieces, ascending

  // metrics::partition of the window, to the nanosecond, in O(log n).
  metrics::Partition partition(Window window) const;
  // The union of the three sets: compute, exposed and exposed_memory, which are disjoint.
  bool ever_busy() const { return !compute.empty() || !exposed.empty() || !exposed_memory.empty(); }
  // From the first op of its streams to the end of the last, the CPU's own work included.
  Interval extent() const;
  Nanoseconds busy(Window window) const { return compute.busy(window) + exposed.busy(window) + exposed_memory.busy(window); }
  // Its intervals that touch the window; none if one of the three has more than `most`.
  std::optional<Intervals> busy_within(Window window, std::size_t most) const;
};

class Scene {
 public:
  // REQUIRES: a timeline with at least one rank. `info` may be null; `name` is the folder or file, for titles.
  // Stops early (and is then useless) when progress->stop is set.
  static std::shared_ptr<const Scene> make(Timeline timeline, std::shared_ptr<const timeline::RunInfo> info, std::string name,
                                           Progress* progress = nullptr, std::shared_ptr<const Unpacked> unpacked = nullptr);

  // Of a run that came from a pack: its notes and labs, and its files; else null.
  const Unpacked* unpacked() const { return unpacked_.get(); }
  const std::string& name() const { return name_; }
  const Timeline& timeline() const { return timeline_; }
  const timeline::RunInfo* info() const { return info_.get(); }   // run.json, if there is one
  const std::vector<RankScene>& ranks() const { return ranks_; }      // ascending by rank
  const RankScene* rank(Rank rank) const;
  const TrackIndex& index(std::size_t track) const { return indices_[track]; }
  // Launches of a rank; made when it is first asked for.
  const timeline::Links& links(Rank rank) const;
  // Phases and layers of a rank; empty of a rank that is not there.
  const Bands& bands(Rank rank) const;
  // Why the rank's device stood still; made when it is first asked for. Null of a rank with more than most_path_spans spans.
  const IdleCauses* idle_causes(Rank rank) const;
  static constexpr std::size_t idle_causes_at_once = 200'000;
  // Edges that leave a span, as places in timeline().edges.
  std::vector<std::uint32_t> edges_from(SpanRef span) const;

  // All device work (all rows, if there is none); and the window of each step over all ranks, by number.
  Window whole() const { return whole_; }
  struct StepWindow {
    int number = 0;
    Window window;
  };
  const std::vector<StepWindow>& steps() const { return steps_; }

  // By (group, seq), as metrics::match_collectives.
  const std::vector<metrics::MatchedCollective>& collectives() const { return collectives_; }
  // The match that a span belongs to, or null.
  const metrics::MatchedCollective* collective_of(SpanRef span) const;
  const std::string& disagreement() const { return disagreement_; }

  // The cross-rank critical path over path_window(); exposures in the order of the "next exposed" key.
  const metrics::CriticalPath& path() const { return path_; }
  // metrics::common_window, what `shardbook metrics` speaks of; of a timeline of more than
  // most_path_spans spans, the longest run of whole steps from the first that has no more than that (without
  // steps: the longest such beginning). Then path_is_partial().
  Window path_window() const { return path_.window; }
  bool path_is_partial() const { return path_is_partial_; }
  static constexpr std::size_t most_path_spans = 500'000;
  const std::vector<metrics::Exposure>& exposures() const { return exposures_; }
  // The exposure of a span, or null; and its place in exposures(), or -1.
  const metrics::Exposure* exposure_of(SpanRef span) const;
  int exposure_place(SpanRef span) const;
  std::optional<Rank> straggler() const { return straggler_; }

  // Rows from top to bottom: pinned ones first.
  std::vector<Row> rows(const RowChoices& choices) const;
  // A sensible first choice: rank 0 open, hosts and marks hidden, alike ranks folded if more than eight.
  RowChoices first_choices() const;
  // The row of this name, whether or not any choice shows it; none if there is no such row.
  std::optional<Row> row_of(const std::string& name) const;

  // What to draw of a row; at most as many items as the view says. Appends nothing outside the view. Which span is the longest
  // of a coverage item, and how many it stands for, costs a third of a frame of a large run: a picture asks for neither, since
  // what a hand points at is found by span_at (navigate.hpp).
  void items(const Row& row, const TimeView& view, std::vector<Item>& out, bool with_longest = true) const;
  // Busy ns of a row in the window, as Item::busy names the four; exact.
  std::array<Nanoseconds, 4> busy(const Row& row, Window window) const;

  // Exposed communication of all ranks in n equal columns of whole(): the minimap; each in [0, 1].
  std::vector<float> minimap(int columns) const;

  // The counters of a memory row, by name.
  std::vector<const timeline::Counter*> counters_of(Rank rank) const;

  std::size_t memory() const;               // heap bytes, timeline included

 private:
  Scene() = default;
  using Lookup = std::vector<std::pair<SpanRef, std::uint32_t>>;      // ascending by span
  static std::uint32_t look_up(const Lookup& lookup, SpanRef span);   // SpanRef::none if it is not there
  void make_indices(Progress* progress);
  void make_rank(RankScene& rank);
  std::string title_of(const timeline::Track& track) const;
  void make_windows();
  void make_collectives();
  void make_path();
  void make_lookups();
  void add_rank_rows(const RankScene& rank, const RowChoices& choices, std::vector<Row>& rows) const;
  Row rank_row(const RankScene& rank) const;

  std::string name_;
  std::shared_ptr<const Unpacked> unpacked_;
  Timeline timeline_;
  std::shared_ptr<const timeline::RunInfo> info_;
  std::vector<RankScene> ranks_;
  std::vector<TrackIndex> indices_;
  std::vector<std::string> titles_;         // of each track's row
  std::vector<Bands> bands_;                // of each entry of ranks_
  Window whole_;
  std::vector<StepWindow> steps_;
  std::vector<metrics::MatchedCollective> collectives_;
  std::vector<std::uint32_t> match_of_;     // of each entry of Timeline::collectives, its place in collectives_
  Lookup exposure_lookup_;
  std::vector<std::uint32_t> edges_by_from_;
  std::string disagreement_;
  metrics::CriticalPath path_;
  bool path_is_partial_ = false;
  std::vector<metrics::Exposure> exposures_;
  std::optional<Rank> straggler_;
  std::vector<std::vector<Rank>> alike_;    // of each entry of ranks_: those that fold into it
  std::vector<bool> folded_;                // of each entry of ranks_: it folds into another

  struct LazyLinks {
    std::once_flag once, idle_once;
    std::unique_ptr<timeline::Links> links;
    std::unique_ptr<IdleCauses> idle;
  };
  mutable std::vector<std::unique_ptr<LazyLinks>> links_;             // of each entry of ranks_
};

}  // namespace shardbook::scene
