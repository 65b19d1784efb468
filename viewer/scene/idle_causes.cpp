// scene/idle_causes: the pieces of a rank's idle time and what held each; see idle_causes.hpp.
#include "viewer/scene/idle_causes.hpp"

#include <algorithm>
#include <numeric>

#include "engine/base/check.hpp"
#include "engine/metrics/exposure.hpp"
#include "viewer/scene/roles.hpp"
#include "viewer/scene/scene.hpp"

namespace shardbook::scene {

using metrics::IdleCause;

IdleCauses::IdleCauses(const Timeline& timeline, const timeline::Links& links, Rank rank) {
  std::vector<SpanRef> spans;
  timeline::for_each_device_span(timeline, rank, [&](SpanRef span) {
    if (timeline.end(span) > timeline.start(span)) spans.push_back(span);
  });
  std::sort(spans.begin(), spans.end(), [&](SpanRef a, SpanRef b) {
    return timeline.start(a) != timeline.start(b) ? timeline.start(a) < timeline.start(b) : a < b;
  });
  if (spans.empty()) return;
  Nanoseconds busy_until = timeline.start(spans.front());
  Sums sum{};
  for (const SpanRef span : spans) {
    const Nanoseconds start = timeline.start(span);
    if (start > busy_until) {
      IdlePiece piece{{busy_until, start}, metrics::reason_of_gap(timeline, links, span, busy_until), span};
      sums_.push_back(sum);
      sum[static_cast<std::size_t>(piece.reason.cause)] += piece.time.length();
      pieces_.push_back(piece);
    }
    busy_until = std::max(busy_until, timeline.end(span));
  }
  sums_.push_back(sum);
  add_cpu_behind(timeline, rank, busy_until);
}

void IdleCauses::add_cpu_behind(const Timeline& timeline, Rank rank, Nanoseconds busy_until) {
  SpanRef last;
  for (std::uint32_t t = 0; t < timeline.tracks.size(); ++t) {
    const timeline::Track& track = timeline.tracks[t];
    if (track.rank != rank || track.kind != timeline::TrackKind::stream) continue;
    for (std::uint32_t i = 0; i < track.size(); ++i) {
      if (track.cls[i] == timeline::Class::host && track.end[i] > busy_until && (!last.valid() || track.end[i] > timeline.end(last))) last = {t, i};
    }
  }
  if (!last.valid()) return;
  Sums sum = sums_.back();
  pieces_.push_back({{busy_until, timeline.end(last)}, {metrics::IdleCause::cpu, last, {}}, {}});
  sum[static_cast<std::size_t>(metrics::IdleCause::cpu)] += pieces_.back().time.length();
  sums_.push_back(sum);
}

const IdlePiece* IdleCauses::at(Nanoseconds time) const {
  const auto after = std::partition_point(pieces_.begin(), pieces_.end(), [&](const IdlePiece& piece) { return piece.time.end <= time; });
  return after != pieces_.end() && after->time.start <= time ? &*after : nullptr;
}

IdleCauses::Sums IdleCauses::before(Nanoseconds time) const {
  if (pieces_.empty()) return {};
  const auto after = std::partition_point(pieces_.begin(), pieces_.end(), [&](const IdlePiece& piece) { return piece.time.end <= time; });
  Sums sums = sums_[static_cast<std::size_t>(after - pieces_.begin())];
  if (after != pieces_.end() && after->time.start < time) sums[static_cast<std::size_t>(after->reason.cause)] += time - after->time.start;
  return sums;
}

IdleCauses::Sums IdleCauses::within(Window window) const {
  Sums sums = before(window.end);
  const Sums earlier = before(window.start);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] -= earlier[i];
  return sums;
}

std::string words_of(const Scene& scene, const IdlePiece& piece) {
  const Timeline& timeline = scene.timeline();
  if (piece.reason.cause == IdleCause::cpu) {
    const std::string line = line_text(timeline, timeline.detail(piece.reason.awaited).source);
    return base::text(piece.next.valid() ? role_label(timeline, piece.next) + " waited for" : "the device has nothing to do beside", " the CPU's own work: ",
                      role_label(timeline, piece.reason.awaited), line.empty() ? "" : ", issued at " + line);
  }
  const std::string next = role_label(timeline, piece.next), line = line_text(timeline, timeline.detail(piece.next).source);
  const std::string issued = line.empty() ? "" : ", issued at " + line;
  switch (piece.reason.cause) {
    case IdleCause::host: {
      const Nanoseconds late = timeline.start(piece.reason.call) - piece.time.start;
      return base::text("the host was late: ", timeline.label(piece.reason.call), " of ", next, issued, " began ", metrics::duration_text(late),
                        " after the device had run dry");
    }
    case IdleCause::wait: {
      const std::string event = line_text(timeline, timeline.detail(piece.next).awaits);
      return base::text(next, " waited for ", role_label(timeline, piece.reason.awaited), event.empty() ? "" : ", whose event is recorded at " + event);
    }
    case IdleCause::cpu: break;   // told above
    case IdleCause::launch: return base::text("between two launches: ", next, " was issued, and nothing held it", issued);
    case IdleCause::other: return base::text("nothing that is recorded says why ", next, " did not start sooner");
  }
  return "";
}

std::string words_of(const IdleCauses::Sums& sums) {
  std::array<std::size_t, IdleCauses::causes> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return sums[a] > sums[b]; });
  const Nanoseconds all = std::accumulate(sums.begin(), sums.end(), Nanoseconds{0});
  std::string words;
  for (const std::size_t cause : order) {
    if (sums[cause] <= 0 || sums[cause] * 100 < all) continue;
    words += base::text(words.empty() ? "" : ", ", metrics::name_of(static_cast<IdleCause>(cause)), " ", metrics::duration_text(sums[cause]));
  }
  return words;
}

}  // namespace shardbook::scene
