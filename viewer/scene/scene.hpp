// scene/scene: a run, ready to be drawn.
//
// Everything that a picture needs and that does not change with what is looked at: the timeline, what is
// derived of it (unions, exposed, idle, matched collectives, critical path, exposures), and the index of
// each row. Made once on the loader's thread; const afterwards, so any thread may read it. What a frame
// asks costs what is on the screen: O(log spans + columns) a row.
//
// The derived rows come from the same functions as `shardbook metrics` (engine/metrics), so the picture
// and the command line cannot disagree.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/metrics/collectives.hpp"
#include "engine/metrics/critical_path.hpp"
#include "engine/metrics/exposure.hpp"
#include "engine/metrics/idle.hpp"
#include "engine/metrics/partition.hpp"
#include "engine/timeline/links.hpp"
#include "engine/timeline/run_info.hpp"
#include "engine/timeline/timeline.hpp"
#include "viewer/scene/coverage.hpp"
#include "viewer/scene/items.hpp"
#include "viewer/scene/rows.hpp"

namespace shardbook::scene {

using base::Nanoseconds;
using base::Rank;
using metrics::Window;
using timeline::SpanRef;
using timeline::Timeline;

// What a loader tells while it works; fraction of the whole in [0, 1].
struct Progress {
  std::atomic<float> fraction{0};
  std::atomic<const char*> stage{"reading"};
  std::atomic<bool> stop{false};            // set by who waits; the loader ends soon after
};

// The rank's own derived sets, as rows of the picture.
struct RankScene {
  Rank rank = 0;
  metrics::DeviceSets sets;
  Coverage compute, communication, memory, exposed, busy;      // busy: the union of the three
  std::unique_ptr<timeline::Links> links;
};

class Scene {
 public:
  // REQUIRES: a timeline with at least one rank. `name` is the folder or file, for titles.
  // Stops early (and is then useless) when progress->stop is set.
  static std::shared_ptr<const Scene> make(Timeline timeline, std::optional<timeline::RunInfo> info, std::string name,
                                           Progress* progress = nullptr);

  const std::string& name() const { return name_; }
  const Timeline& timeline() const { return timeline_; }
  const timeline::RunInfo* info() const { return info_ ? &*info_ : nullptr; }
  const std::vector<RankScene>& ranks() const { return ranks_; }
  const RankScene* rank(Rank rank) const;

  // All device work; and the window of each step over all ranks, by number.
  Window whole() const { return whole_; }
  struct StepWindow {
    int number = 0;
    Window window;
  };
  const std::vector<StepWindow>& steps() const { return steps_; }

  const std::vector<metrics::MatchedCollective>& collectives() const { return collectives_; }
  // The match that a span belongs to, or null.
  const metrics::MatchedCollective* collective_of(SpanRef span) const;
  const std::string& disagreement() const { return disagreement_; }

  // The cross-rank critical path over whole(); exposures in the order of the "next exposed" key.
  const metrics::CriticalPath& path() const { return path_; }
  const std::vector<metrics::Exposure>& exposures() const { return exposures_; }
  // The exposure of a span, or null.
  const metrics::Exposure* exposure_of(SpanRef span) const;
  std::optional<Rank> straggler() const { return straggler_; }

  // Rows from top to bottom: pinned ones first.
  std::vector<Row> rows(const RowChoices& choices) const;
  // A sensible first choice: rank 0 open, hosts and marks hidden, alike ranks folded if more than eight.
  RowChoices first_choices() const;

  // What to draw of a row; at most about width / 3 items. Appends nothing outside the view.
  void items(const Row& row, const TimeView& view, std::vector<Item>& out) const;
  // Busy ns of each column of a row (compute, communication, memory, other); exact sums.
  std::array<Nanoseconds, 4> busy(const Row& row, Window window) const;

  // Exposed communication of all ranks in n equal columns of whole(): the minimap; each in [0, 1].
  std::vector<float> minimap(int columns) const;

  // Stacked bytes of a memory row at a time, by counter in the order of counters_of(rank).
  std::vector<const timeline::Counter*> counters_of(Rank rank) const;

  std::size_t memory() const;               // heap bytes, timeline included

 private:
  Scene() = default;
  struct TrackIndex;                        // per track: coverage a class, and by-start search
  // (members are the implementer's)
  std::string name_;
  Timeline timeline_;
  std::optional<timeline::RunInfo> info_;
  std::vector<RankScene> ranks_;
  Window whole_;
  std::vector<StepWindow> steps_;
  std::vector<metrics::MatchedCollective> collectives_;
  std::string disagreement_;
  metrics::CriticalPath path_;
  std::vector<metrics::Exposure> exposures_;
  std::optional<Rank> straggler_;
};

}  // namespace shardbook::scene
