// scene/items: a row in view becomes few rectangles; see items.hpp.
//
// Two kinds of pieces. Solids have their own place: spans (of derived rows intervals) that are wide, and
// narrow ones that stand alone. Where narrow ones stand close together, time is cut into columns of a pixel
// (of more where the row may have few items), whose edges are multiples of the largest power of two below
// that, so that the pyramid answers; columns that differ by little join (runs.hpp). Where a row holds more
// spans than twice its pixels, all of it is columns. Solids take at most half of what the row may have:
// those that are widest or most alone.
#include "viewer/scene/items.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "viewer/scene/row_busy.hpp"
#include "viewer/scene/runs.hpp"

namespace shardbook::scene {

using timeline::Class;
using timeline::Track;

namespace {

constexpr float least_solid_px = 3;
constexpr int fewest_items = 8;
constexpr Nanoseconds far = Nanoseconds{1} << 61;

struct Solid {
  Nanoseconds start = 0, end = 0;
  SpanRef span;                        // not valid(): an interval of a derived row
  Paint paint = Paint::compute;
};

Paint paint_of(Class cls) { return static_cast<Paint>(cls); }

// What a row needs while it is drawn; kept between rows, so that a frame allocates nothing.
struct Scratch {
  std::vector<std::vector<Solid>> solids;          // by depth
  std::vector<float> scores;                       // of the solids of one depth
  std::vector<float> order;
  std::vector<Nanoseconds> edges;
  std::vector<int> owner;
  BusyColumns busy;
  Runs runs;
  std::vector<Interval> times;                     // of each item drawn
};

// A damaged trace may last for decades, and then a pixel stands for years: within what can be subtracted.
Nanoseconds in_ns(double time) { return static_cast<Nanoseconds>(std::clamp(time, -4e18, 4e18)); }

class RowDrawing {
 public:
  RowDrawing(const Scene& scene, const Row& row, const TimeView& view, std::vector<Item>& out)
      : scene_(scene), row_(row), view_(view), out_(out), s_(scratch()) {
    window_ = {in_ns(std::floor(view.start)), in_ns(std::ceil(view.end))};
    most_ = static_cast<std::size_t>(std::max(view.most > 0 ? view.most : static_cast<int>(view.width / 3), fewest_items));
    // Four columns for each item that may be: more would only be joined again.
    column_px_ = std::max(std::floor(static_cast<double>(view.width) / static_cast<double>(4 * most_)), 1.0);
    most_visits_ = static_cast<std::size_t>(1.5 * view.width) + 16;
    s_.times.clear();
  }

  void draw(bool with_longest) {
    if (row_.kind == RowKind::memory || window_.end <= window_.start || !(view_.width >= 1)) return;
    const std::size_t first = out_.size();
    collect();
    // Each depth may take half of what is left, the last all of it.
    std::size_t left = most_;
    for (std::size_t depth = 0; depth < levels_; ++depth) {
      const std::size_t before = out_.size();
      draw_depth(depth, std::max<std::size_t>(depth + 1 == levels_ ? left : left / 2, fewest_items / 2));
      left -= std::min(left, out_.size() - before);
    }
    hint_ = 0;
    for (std::size_t i = 0; with_longest && i < s_.times.size(); ++i) {
      Item& item = out_[first + i];
      if (item.kind == Item::Kind::coverage) stand_for(s_.times[i], item);
    }
  }

 private:
  static Scratch& scratch() {
    thread_local Scratch kept;
    return kept;
  }
  double pixels(Nanoseconds length) const { return static_cast<double>(length) / view_.per_pixel(); }
  float x_of(Nanoseconds time) const { return std::clamp(view_.x_of(time), 0.0f, view_.width); }

  // --- What has its own place ---------------------------------------------------------------------

  // Everything in view, unless it is too much: then complete_ is false, and all is columns.
  void collect() {
    levels_ = row_.track >= 0 ? static_cast<std::size_t>(scene_.index(static_cast<std::size_t>(row_.track)).levels()) : 1;
    if (s_.solids.size() < levels_) s_.solids.resize(levels_);
    for (std::vector<Solid>& depth : s_.solids) depth.clear();
    switch (row_.kind) {
      case RowKind::stream:
      case RowKind::marks:
      case RowKind::host: complete_ = collect_spans(); break;
      case RowKind::exposed: complete_ = collect_intervals(scene_.rank(row_.rank)->exposed, Paint::exposed); break;
      case RowKind::idle: complete_ = collect_idle(); break;
      case RowKind::critical: complete_ = collect_pieces(); break;
      default: complete_ = false;
    }
    if (complete_) return;
    for (std::vector<Solid>& depth : s_.solids) depth.clear();
  }

  bool collect_spans() {
    const auto t = static_cast<std::uint32_t>(row_.track);
    const Track& track = scene_.timeline().tracks[t];
    const TrackIndex& index = scene_.index(t);
    const TrackIndex::Found found = index.find(track, window_);
    if (index.flat() && found.count() > most_visits_) return false;
    const auto add = [&](std::uint32_t i) {
      const auto depth = static_cast<std::size_t>(index.depth(i));
      if (depth < levels_) s_.solids[depth].push_back({track.start[i], track.end[i], {t, i}, paint_of(track.cls[i])});
    };
    for (std::uint32_t i : found.outer) add(i);
    const Nanoseconds narrow = in_ns(least_solid_px * view_.per_pixel());
    std::size_t visits = 0;
    for (std::uint32_t i = found.first; i < found.last;) {
      if (++visits > most_visits_) return false;
      add(i);
      // Below a narrow span nothing is looked at: its callees are narrower still.
      if (index.flat() || track.end[i] - track.start[i] >= narrow || track.end[i] <= track.start[i]) {
        ++i;
      } else {
        const auto from = track.start.begin() + i + 1;
        i = static_cast<std::uint32_t>(std::lower_bound(from, track.start.begin() + found.last, track.end[i]) - track.start.begin());
      }
    }
    return true;
  }

  bool collect_intervals(const Coverage& coverage, Paint paint) {
    const Intervals found = coverage.within(window_, most_visits_ + 1);
    for (const Interval& interval : found) s_.solids[0].push_back({interval.start, interval.end, {}, paint});
    return found.size() <= most_visits_;
  }

  bool collect_idle() {
    const Window whole = scene_.whole();
    const Interval inside{std::max(window_.start, whole.start), std::min(window_.end, whole.end)};
    if (inside.end <= inside.start) return true;
    const std::optional<Intervals> busy = scene_.rank(row_.rank)->busy_within(inside, most_visits_);
    if (!busy) return false;
    for (const Interval& interval : base::subtract({inside}, *busy)) s_.solids[0].push_back({interval.start, interval.end, {}, Paint::idle});
    return true;
  }

  bool collect_pieces() {
    const auto& places = scene_.rank(row_.rank)->pieces;
    const auto& pieces = scene_.path().pieces;
    auto at = std::upper_bound(places.begin(), places.end(), window_.start,
                               [&](Nanoseconds time, std::uint32_t place) { return time < pieces[place].time.end; });
    for (; at != places.end() && pieces[*at].time.start < window_.end; ++at) {
      if (s_.solids[0].size() >= most_visits_) return false;
      s_.solids[0].push_back({pieces[*at].time.start, pieces[*at].time.end, pieces[*at].span, Paint::critical});
    }
    return true;
  }

  // How many pixels a solid is wide, or has free on both sides, whichever is more; and the score from which
  // on at most `most` of them are drawn as they are.
  float score(const std::vector<Solid>& solids, std::size_t most) {
    const double a_pixel = 1 / view_.per_pixel();
    s_.scores.resize(solids.size());
    for (std::size_t i = 0; i < solids.size(); ++i) {
      const Nanoseconds before = i > 0 ? solids[i].start - solids[i - 1].end : far;
      const Nanoseconds after = i + 1 < solids.size() ? solids[i + 1].start - solids[i].end : far;
      s_.scores[i] = static_cast<float>(static_cast<double>(std::max(solids[i].end - solids[i].start, std::min(before, after))) * a_pixel);
    }
    if (solids.size() <= most) return least_solid_px;
    s_.order = s_.scores;
    const auto place = s_.order.begin() + static_cast<std::ptrdiff_t>(most);
    std::nth_element(s_.order.begin(), place, s_.order.end(), std::greater<>());
    return std::max(least_solid_px, std::nextafter(*place, 1e30f));
  }

  // --- Columns between them -----------------------------------------------------------------------

  void draw_depth(std::size_t depth, std::size_t most) {
    const std::vector<Solid>& solids = s_.solids[depth];
    if (complete_ && solids.empty()) return;
    const float least = score(solids, (most - 1) / 2);
    const std::size_t drawn = make_edges(solids, least);
    if (s_.edges.size() < 2) return;
    s_.busy.fill(scene_, row_, static_cast<int>(depth), s_.edges);
    s_.runs.clear();
    for (std::size_t i = 0; i < s_.owner.size(); ++i) {
      if (s_.owner[i] >= 0) continue;
      const Nanoseconds start = s_.edges[i], end = s_.edges[i + 1];
      s_.runs.add(start, end, static_cast<std::uint32_t>(i), shares_of(s_.busy.at(i), end - start));
    }
    s_.runs.reduce(most - std::min(most, drawn), view_.per_pixel() * column_px_, view_.end - view_.start);

    // Both by time.
    auto run = s_.runs.all().begin();
    const auto runs_before = [&](Nanoseconds time) {
      for (; run != s_.runs.all().end() && run->start < time; ++run) {
        if (run->any()) emit(*run, depth);
      }
    };
    for (std::size_t i = 0; drawn > 0 && i < s_.owner.size(); ++i) {
      if (s_.owner[i] < 0 || (i > 0 && s_.owner[i - 1] == s_.owner[i])) continue;
      runs_before(s_.edges[i]);
      emit(solids[static_cast<std::size_t>(s_.owner[i])], depth);
    }
    runs_before(window_.end);
  }

  // Edges of all columns, ascending; owner[i] is the solid that has [edges[i], edges[i + 1]), or -1. Only where
  // solids are not drawn themselves are columns narrow. Returns how many are drawn.
  std::size_t make_edges(const std::vector<Solid>& solids, float least) {
    s_.edges.assign(1, window_.start);
    s_.owner.clear();
    const double per_column = view_.per_pixel() * column_px_;
    const Nanoseconds slice = per_column >= 1 ? Nanoseconds{1} << std::min(std::ilogb(per_column), 61) : 1;
    const auto push = [&](Nanoseconds edge, int owner) {
      edge = std::min(edge, window_.end);
      if (edge <= s_.edges.back()) return false;
      s_.edges.push_back(edge);
      s_.owner.push_back(owner);
      return true;
    };
    const auto columns_until = [&](Nanoseconds end) {
      end = std::min(end, window_.end);
      double column = std::floor((static_cast<double>(s_.edges.back()) - view_.start) / per_column);
      for (double time = 0; s_.edges.back() < end; column += 1) {
        time = view_.start + column * per_column;
        if (time >= static_cast<double>(end)) break;
        push(std::min(static_cast<Nanoseconds>(time) & ~(slice - 1), end), -1);
      }
      push(end, -1);
    };
    if (!complete_) {
      columns_until(window_.end);
      return 0;
    }
    std::size_t drawn = 0;
    const Nanoseconds gap = in_ns(2 * per_column);
    for (std::size_t i = 0; i < solids.size();) {
      push(solids[i].start, -1);
      if (s_.scores[i] >= least) {
        // One of no length still is an item: it is given the next nanosecond.
        drawn += push(std::max(solids[i].end, solids[i].start + 1), static_cast<int>(i));
        ++i;
        continue;
      }
      // A cluster of narrow ones.
      Nanoseconds end = solids[i].end;
      for (++i; i < solids.size() && s_.scores[i] < least && solids[i].start - end < gap; ++i) end = std::max(end, solids[i].end);
      columns_until(end);
    }
    push(window_.end, -1);
    return drawn;
  }

  void emit(const Run& run, std::size_t depth) {
    Item item;
    item.kind = Item::Kind::coverage;
    item.paint = row_paint();
    item.of_rank = row_.kind == RowKind::rank;
    item.depth = static_cast<std::int32_t>(depth);
    item.x0 = x_of(run.start);
    item.x1 = x_of(run.end);
    Busy sum{};
    for (std::uint32_t column = run.first; column < run.last; ++column) {
      const Busy busy = s_.busy.at(column);
      for (std::size_t c = 0; c < 4; ++c) sum[c] += busy[c];
    }
    for (std::size_t c = 0; c < 4; ++c) item.busy[c] = static_cast<float>(static_cast<double>(sum[c]) / static_cast<double>(run.end - run.start));
    out_.push_back(item);
    s_.times.push_back({run.start, run.end});
  }

  void emit(const Solid& solid, std::size_t depth) {
    Item item;
    item.kind = solid.span.valid() ? Item::Kind::span : Item::Kind::coverage;
    item.paint = solid.paint;
    item.depth = static_cast<std::int32_t>(depth);
    item.x0 = x_of(solid.start);
    item.x1 = x_of(solid.end);
    item.span = solid.span;
    if (!solid.span.valid()) {
      item.busy[solid.paint == Paint::exposed ? 1 : 3] = 1;
    } else if (const metrics::MatchedCollective* collective = scene_.collective_of(solid.span)) {
      const metrics::WaitSplit parts = metrics::split(scene_.timeline(), *collective, solid.span);
      item.wait_ns = parts.wait_ns;
      item.queued_ns = parts.queued_ns;
    }
    out_.push_back(item);
    s_.times.push_back({std::max(solid.start, window_.start), std::min(solid.end, window_.end)});
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
  void stand_for(Interval time, Item& item) {
    const Timeline& timeline = scene_.timeline();
    const auto consider = [&](std::uint32_t t, std::uint32_t hint, bool only_communication) {
      const TrackIndex::Longest found = scene_.index(t).longest(timeline.tracks[t], time, hint);
      if (found.span == SpanRef::none || (only_communication && timeline.tracks[t].cls[found.span] != Class::communication)) return found;
      const SpanRef span{t, found.span};
      if (!item.span.valid() || timeline.end(span) - timeline.start(span) > timeline.end(item.span) - timeline.start(item.span)) item.span = span;
      return found;
    };
    if (row_.track >= 0) {
      const TrackIndex::Longest found = consider(static_cast<std::uint32_t>(row_.track), item.depth == 0 ? hint_ : 0, false);
      item.count = std::max(found.last - found.first, 1u);
      if (item.depth == 0) hint_ = found.last;
      return;
    }
    if (row_.kind == RowKind::rank || row_.kind == RowKind::exposed) {
      for (std::uint32_t t = 0; t < timeline.tracks.size(); ++t) {
        const Track& track = timeline.tracks[t];
        if (track.rank != row_.rank || track.kind != timeline::TrackKind::stream) continue;
        const bool exposed = row_.kind == RowKind::exposed;
        if (exposed && scene_.index(t).classes[1].empty()) continue;
        consider(t, 0, exposed);
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
  Scratch& s_;
  Window window_;
  std::size_t most_ = 0, most_visits_ = 0, levels_ = 1;
  double column_px_ = 1;
  bool complete_ = false;
  std::uint32_t hint_ = 0;                         // all spans before it start before what is still asked for
};

}  // namespace

void Scene::items(const Row& row, const TimeView& view, std::vector<Item>& out, bool with_longest) const {
  const bool known = row.track >= 0 ? static_cast<std::size_t>(row.track) < indices_.size() : rank(row.rank) != nullptr;
  if (known) RowDrawing(*this, row, view, out).draw(with_longest);
}

}  // namespace shardbook::scene
