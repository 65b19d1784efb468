// scene/items: a row in view becomes few rectangles; see items.hpp.
//
// Two kinds of pieces. Solids have their own place: spans (of derived rows intervals) of at least `least`
// pixels, and narrower ones that stand alone. What is between them is cut into columns of a pixel, whose
// edges are multiples of the largest power of two below a pixel, so that the pyramid answers; columns whose
// shares differ by little join. If that makes more pieces than the row may have, the next round asks for
// wider solids, joins what differs by more, and takes wider columns.
#include "viewer/scene/items.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "viewer/scene/row_busy.hpp"

namespace shardbook::scene {

using timeline::Class;
using timeline::Track;

namespace {

constexpr float least_solid_px = 3;
constexpr double first_tolerance = 1.0 / 32, last_tolerance = 1.0 / 4;
constexpr int fewest_items = 8;

struct Solid {
  Nanoseconds start = 0, end = 0;
  SpanRef span;                        // not valid(): an interval of a derived row
  Paint paint = Paint::compute;
};

Paint paint_of(Class cls) { return static_cast<Paint>(cls); }

class RowDrawing {
 public:
  RowDrawing(const Scene& scene, const Row& row, const TimeView& view, std::vector<Item>& out)
      : scene_(scene), row_(row), view_(view), out_(out), first_(out.size()) {
    window_ = {static_cast<Nanoseconds>(std::floor(view.start)), static_cast<Nanoseconds>(std::ceil(view.end))};
    most_ = static_cast<std::size_t>(std::max(view.most > 0 ? view.most : static_cast<int>(view.width / 3), fewest_items));
    most_visits_ = static_cast<std::size_t>(2 * view.width) + 16;
  }

  void draw() {
    if (row_.kind == RowKind::memory || window_.end <= window_.start || !(view_.width >= 1)) return;
    for (int round = 0;; ++round) {
      least_px_ = least_solid_px * static_cast<float>(1 << std::min(round, 20));
      tolerance_ = std::min(first_tolerance * static_cast<double>(1 << std::min(round, 20)), last_tolerance);
      column_px_ = static_cast<double>(1 << std::clamp(round - 2, 0, 20));
      out_.resize(first_);
      times_.clear();
      collect();
      for (std::size_t depth = 0; depth < solids_.size(); ++depth) draw_depth(static_cast<int>(depth));
      if (out_.size() - first_ <= most_ || column_px_ * 2 > static_cast<double>(view_.width)) break;
    }
    for (std::size_t i = 0; i < times_.size(); ++i) {
      Item& item = out_[first_ + i];
      if (item.kind == Item::Kind::coverage) stand_for(times_[i], item);
    }
  }

 private:
  double pixels(Nanoseconds length) const { return static_cast<double>(length) / view_.per_pixel(); }
  float x_of(Nanoseconds time) const { return std::clamp(view_.x_of(time), 0.0f, view_.width); }

  // --- What has its own place ---------------------------------------------------------------------

  void collect() {
    const int levels = row_.track >= 0 ? scene_.index(static_cast<std::size_t>(row_.track)).levels() : 1;
    solids_.assign(static_cast<std::size_t>(levels), {});
    switch (row_.kind) {
      case RowKind::stream:
      case RowKind::marks:
      case RowKind::host: collect_spans(); break;
      case RowKind::exposed: collect_intervals(scene_.rank(row_.rank)->exposed, Paint::exposed); break;
      case RowKind::idle: collect_idle(); break;
      case RowKind::critical: collect_pieces(); break;
      default: break;
    }
    for (std::vector<Solid>& depth : solids_) keep_wide_or_alone(depth);
  }

  void collect_spans() {
    const auto t = static_cast<std::uint32_t>(row_.track);
    const Track& track = scene_.timeline().tracks[t];
    const TrackIndex& index = scene_.index(t);
    const TrackIndex::Found found = index.find(track, window_);
    if (index.flat() && found.count() > most_visits_) return;
    const auto add = [&](std::uint32_t i) {
      const int depth = index.depth(i);
      if (depth < static_cast<int>(solids_.size())) {
        solids_[static_cast<std::size_t>(depth)].push_back({track.start[i], track.end[i], {t, i}, paint_of(track.cls[i])});
      }
    };
    for (std::uint32_t i : found.outer) add(i);
    // Below a narrow span nothing is looked at: its callees are narrower still.
    std::size_t visits = 0;
    for (std::uint32_t i = found.first; i < found.last;) {
      if (++visits > most_visits_) {
        for (std::vector<Solid>& depth : solids_) depth.clear();
        return;
      }
      add(i);
      const bool descend = index.flat() || pixels(track.end[i] - track.start[i]) >= least_px_;
      if (descend || track.end[i] <= track.start[i]) {
        ++i;
      } else {
        const auto from = track.start.begin() + i + 1;
        i = static_cast<std::uint32_t>(std::lower_bound(from, track.start.begin() + found.last, track.end[i]) - track.start.begin());
      }
    }
  }

  void collect_intervals(const Coverage& coverage, Paint paint) {
    const Intervals found = coverage.within(window_, most_visits_ + 1);
    if (found.size() > most_visits_) return;
    for (const Interval& interval : found) solids_[0].push_back({interval.start, interval.end, {}, paint});
  }

  void collect_idle() {
    const Intervals busy = scene_.rank(row_.rank)->busy.within(window_, most_visits_ + 1);
    if (busy.size() > most_visits_) return;
    const Window whole = scene_.whole();
    const Interval inside{std::max(window_.start, whole.start), std::min(window_.end, whole.end)};
    if (inside.end <= inside.start) return;
    for (const Interval& interval : metrics::subtract({inside}, busy)) solids_[0].push_back({interval.start, interval.end, {}, Paint::idle});
  }

  void collect_pieces() {
    const auto& places = scene_.rank(row_.rank)->pieces;
    const auto& pieces = scene_.path().pieces;
    auto at = std::upper_bound(places.begin(), places.end(), window_.start,
                               [&](Nanoseconds time, std::uint32_t place) { return time < pieces[place].time.end; });
    for (; at != places.end() && pieces[*at].time.start < window_.end; ++at) {
      if (solids_[0].size() >= most_visits_) {
        solids_[0].clear();
        return;
      }
      solids_[0].push_back({pieces[*at].time.start, pieces[*at].time.end, pieces[*at].span, Paint::critical});
    }
  }

  // Narrow solids with near neighbours become coverage.
  void keep_wide_or_alone(std::vector<Solid>& solids) const {
    const auto near = [&](const Solid& a, const Solid& b) { return pixels(b.start - a.end) < least_px_; };
    std::vector<Solid> kept;
    for (std::size_t i = 0; i < solids.size(); ++i) {
      const bool wide = pixels(solids[i].end - solids[i].start) >= least_px_;
      const bool crowded = (i > 0 && near(solids[i - 1], solids[i])) || (i + 1 < solids.size() && near(solids[i], solids[i + 1]));
      // A damaged lane may hold spans that overlap: the first is drawn.
      const bool free = kept.empty() || solids[i].start >= kept.back().end;
      if ((wide || !crowded) && free) kept.push_back(solids[i]);
    }
    solids = std::move(kept);
  }

  // --- Columns between them -----------------------------------------------------------------------

  void draw_depth(int depth) {
    const std::vector<Solid>& solids = solids_[static_cast<std::size_t>(depth)];
    make_edges(solids);
    if (edges_.size() < 2) return;
    busy_columns(scene_, row_, depth, edges_, busy_);
    run_ = {};
    for (std::size_t i = 0; i + 1 < edges_.size(); ++i) {
      if (owner_[i] < 0) {
        join(i, depth);
        continue;
      }
      flush(depth);
      if (i == 0 || owner_[i - 1] != owner_[i]) emit(solids[static_cast<std::size_t>(owner_[i])], depth);
    }
    flush(depth);
  }

  // Edges of all columns, ascending; owner_[i] is the solid that has [edges_[i], edges_[i + 1]), or -1.
  void make_edges(const std::vector<Solid>& solids) {
    edges_.assign(1, window_.start);
    owner_.clear();
    const double per_column = view_.per_pixel() * column_px_;
    const int shift = per_column >= 1 ? std::min(static_cast<int>(std::log2(per_column)), 61) : 0;
    const Nanoseconds slice = Nanoseconds{1} << shift;
    const auto push = [&](Nanoseconds edge, int owner) {
      if (edge <= edges_.back()) return;
      edges_.push_back(edge);
      owner_.push_back(owner);
    };
    double column = 1;
    const auto free_until = [&](Nanoseconds end) {
      // The first column whose edge is past what there is.
      column = std::max(column, std::floor((static_cast<double>(edges_.back()) - view_.start) / per_column));
      for (; edges_.back() < end; column += 1) {
        const double time = view_.start + column * per_column;
        if (time >= static_cast<double>(end)) break;
        push(std::min(static_cast<Nanoseconds>(std::floor(time)) & ~(slice - 1), end), -1);
      }
      push(end, -1);
    };
    for (std::size_t i = 0; i < solids.size(); ++i) {
      const Nanoseconds start = std::max(solids[i].start, window_.start), end = std::min(solids[i].end, window_.end);
      if (start > window_.end) break;
      free_until(std::min(start, window_.end));
      push(end, static_cast<int>(i));
    }
    free_until(window_.end);
  }

  struct Run {
    Nanoseconds start = 0, end = 0;
    Busy busy{};
    std::array<double, 4> least{}, most{};
    bool any() const { return end > start; }
  };

  void join(std::size_t i, int depth) {
    const Nanoseconds start = edges_[i], end = edges_[i + 1];
    std::array<double, 4> share;
    bool like = run_.any();
    for (std::size_t c = 0; c < 4; ++c) {
      share[c] = static_cast<double>(busy_[i][c]) / static_cast<double>(end - start);
      // What stood still is never joined with what did not, nor what ran throughout.
      like = like && (busy_[i][c] == 0) == (run_.busy[c] == 0);
      like = like && std::max(run_.most[c], share[c]) - std::min(run_.least[c], share[c]) <= tolerance_;
    }
    if (!like) {
      flush(depth);
      run_ = {start, end, busy_[i], share, share};
      return;
    }
    run_.end = end;
    for (std::size_t c = 0; c < 4; ++c) {
      run_.busy[c] += busy_[i][c];
      run_.least[c] = std::min(run_.least[c], share[c]);
      run_.most[c] = std::max(run_.most[c], share[c]);
    }
  }

  void flush(int depth) {
    const Run run = run_;
    run_ = {};
    if (!run.any() || run.busy == Busy{}) return;
    Item item;
    item.kind = Item::Kind::coverage;
    item.paint = row_paint();
    item.depth = depth;
    item.x0 = x_of(run.start);
    item.x1 = x_of(run.end);
    for (std::size_t c = 0; c < 4; ++c) {
      item.busy[c] = static_cast<float>(static_cast<double>(run.busy[c]) / static_cast<double>(run.end - run.start));
    }
    out_.push_back(item);
    times_.push_back({run.start, run.end});
  }

  void emit(const Solid& solid, int depth) {
    Item item;
    item.kind = solid.span.valid() ? Item::Kind::span : Item::Kind::coverage;
    item.paint = solid.paint;
    item.depth = depth;
    item.x0 = x_of(solid.start);
    item.x1 = x_of(solid.end);
    item.span = solid.span;
    if (!solid.span.valid()) {
      item.busy[solid.paint == Paint::exposed ? 1 : 3] = 1;
    } else if (const metrics::MatchedCollective* collective = scene_.collective_of(solid.span)) {
      item.wait_ns = metrics::split(scene_.timeline(), *collective, solid.span).wait_ns;
    }
    out_.push_back(item);
    times_.push_back({std::max(solid.start, window_.start), std::min(solid.end, window_.end)});
  }

  Paint row_paint() const {
    switch (row_.kind) {
      case RowKind::exposed: return Paint::exposed;
      case RowKind::idle: return Paint::idle;
      case RowKind::critical: return Paint::critical;
      case RowKind::host: return Paint::host;
      case RowKind::marks: return Paint::annotation;
      default: return Paint::compute;
    }
  }

  // The longest span of a coverage item, and how many it stands for.
  void stand_for(Interval time, Item& item) const {
    const Timeline& timeline = scene_.timeline();
    const auto consider = [&](std::uint32_t t, bool only_communication) {
      const std::uint32_t i = scene_.index(t).longest(timeline.tracks[t], time);
      if (i == SpanRef::none || (only_communication && timeline.tracks[t].cls[i] != Class::communication)) return;
      const SpanRef span{t, i};
      if (!item.span.valid() || timeline.end(span) - timeline.start(span) > timeline.end(item.span) - timeline.start(item.span)) item.span = span;
    };
    if (row_.track >= 0) {
      const auto t = static_cast<std::uint32_t>(row_.track);
      const Track& track = timeline.tracks[t];
      consider(t, false);
      const auto first = std::lower_bound(track.start.begin(), track.start.end(), time.start);
      const auto last = std::lower_bound(first, track.start.end(), time.end);
      item.count = static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(last - first, 1));
      return;
    }
    if (row_.kind == RowKind::rank || row_.kind == RowKind::exposed) {
      for (std::uint32_t t = 0; t < timeline.tracks.size(); ++t) {
        const Track& track = timeline.tracks[t];
        if (track.rank != row_.rank || track.kind != timeline::TrackKind::stream) continue;
        const bool exposed = row_.kind == RowKind::exposed;
        if (exposed && scene_.index(t).classes[1].empty()) continue;
        consider(t, exposed);
      }
    } else if (row_.kind == RowKind::critical) {
      const auto& places = scene_.rank(row_.rank)->pieces;
      const auto& pieces = scene_.path().pieces;
      auto at = std::upper_bound(places.begin(), places.end(), time.start,
                                 [&](Nanoseconds wanted, std::uint32_t place) { return wanted < pieces[place].time.end; });
      Nanoseconds longest = 0;
      for (int looked = 0; looked < 64 && at != places.end() && pieces[*at].time.start < time.end; ++looked, ++at) {
        if (pieces[*at].time.length() <= longest) continue;
        longest = pieces[*at].time.length();
        item.span = pieces[*at].span;
      }
    }
  }

  const Scene& scene_;
  const Row& row_;
  const TimeView& view_;
  std::vector<Item>& out_;
  std::size_t first_;
  Window window_;
  std::size_t most_ = 0, most_visits_ = 0;
  float least_px_ = 0;
  double tolerance_ = 0, column_px_ = 1;
  std::vector<std::vector<Solid>> solids_;         // by depth
  std::vector<Nanoseconds> edges_;
  std::vector<int> owner_;
  std::vector<Busy> busy_;
  std::vector<Interval> times_;                    // of each item
  Run run_;
};

}  // namespace

void Scene::items(const Row& row, const TimeView& view, std::vector<Item>& out) const {
  const bool known = row.track >= 0 ? static_cast<std::size_t>(row.track) < indices_.size() : rank(row.rank) != nullptr;
  if (known) RowDrawing(*this, row, view, out).draw();
}

}  // namespace shardbook::scene
