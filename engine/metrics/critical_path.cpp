// metrics/critical_path: the walk back from the end; see critical_path.hpp.
#include "engine/metrics/critical_path.hpp"

#include <algorithm>
#include <unordered_map>

#include "engine/metrics/dependencies.hpp"

namespace shardbook::metrics {
namespace {

class Walk {
 public:
  Walk(const Timeline& timeline, const std::vector<MatchedCollective>& matched, Window window)
      : timeline_(timeline), window_(window), dependencies_(timeline, window), collectives_(by_span(matched)), time_(window.end) {
    path_.window = window;
  }

  CriticalPath run() {
    SpanRef span = dependencies_.last_ended(window_.end);
    if (span.valid()) piece(PathKind::wait, span, timeline_.end(span));
    // Each turn goes to an earlier span; the limit only guards against a trace whose edges run in a circle
    // at one instant.
    std::size_t turns = 4 * dependencies_.device_spans() + 16;
    while (span.valid() && time_ > window_.start && turns-- > 0) span = before(through(span));
    if (time_ > window_.start) piece(PathKind::wait, span, window_.start);
    std::reverse(path_.pieces.begin(), path_.pieces.end());
    return std::move(path_);
  }

 private:
  // Takes the path back to `from`.
  void piece(PathKind kind, SpanRef span, Nanoseconds from) {
    from = std::max(from, window_.start);
    if (from >= time_) return;
    path_.pieces.push_back({kind, span.valid() ? timeline_.rank(span) : Rank{0}, span, {from, time_}});
    time_ = from;
  }

  // The span itself. Returns the span whose start is to be explained: of a collective, that of the rank
  // that came last.
  SpanRef through(SpanRef span) {
    const MatchedCollective* found = find(collectives_, span);
    if (found == nullptr || !found->complete || found->spans.size() < 2) {
      piece(PathKind::span, span, timeline_.start(span));
      return span;
    }
    const MatchedCollective& collective = *found;
    if (!collective.skew_is_significant() || timeline_.start(span) == collective.last_start) {
      piece(PathKind::span, span, timeline_.start(span));
      return span;
    }
    piece(PathKind::span, span, std::min(collective.last_start, timeline_.end(span)));
    for (SpanRef other : collective.spans) {
      if (timeline_.rank(other) == collective.last_rank) return other;
    }
    return span;
  }

  // What decided the start of `span`; the gap to it goes to the path. Not valid() at the beginning.
  SpanRef before(SpanRef span) {
    const Decision decision = dependencies_.decide(span);
    path_.inferred = path_.inferred || decision.inferred;
    switch (decision.kind) {
      case Decision::Kind::device:
        piece(PathKind::launch, span, timeline_.end(decision.from));
        return decision.from;
      case Decision::Kind::host:
        piece(PathKind::launch, span, timeline_.start(decision.from));
        return through_host(span, decision.from.track);
      case Decision::Kind::none: break;
    }
    piece(PathKind::wait, span, window_.start);
    return {};
  }

  // Back along the host thread to the last time that it waited for a device.
  SpanRef through_host(SpanRef span, std::uint32_t host_track) {
    Nanoseconds at = time_;
    while (at > window_.start) {
      const SpanRef wait = dependencies_.host_wait_before(host_track, at);
      if (!wait.valid()) break;
      const SpanRef device = dependencies_.released_by(wait);
      if (device.valid()) {
        piece(PathKind::host, span, timeline_.end(device));
        return device;
      }
      at = std::min(timeline_.start(wait), at - 1);
    }
    piece(PathKind::host, span, window_.start);
    return {};
  }

  const Timeline& timeline_;
  Window window_;
  Dependencies dependencies_;
  CollectiveBySpan collectives_;
  Nanoseconds time_;            // the path from here to the window's end is known
  CriticalPath path_;
};

}  // namespace

CriticalPath critical_path(const Timeline& timeline, const std::vector<MatchedCollective>& matched, Window window) {
  return Walk(timeline, matched, window).run();
}

CriticalPath critical_path(const Timeline& timeline, Window window) {
  return critical_path(timeline, match_collectives(timeline), window);
}

Window common_window(const Timeline& timeline) {
  Window window;
  bool any = false;
  for (const timeline::Provenance& provenance : timeline.ranks) {
    const Window of_rank = steps_window(timeline, provenance.rank);
    if (of_rank.length() <= 0) continue;
    window = any ? Window{std::min(window.start, of_rank.start), std::max(window.end, of_rank.end)} : of_rank;
    any = true;
  }
  return window;
}

std::optional<Window> common_step_window(const Timeline& timeline, int number) {
  std::optional<Window> window;
  for (const timeline::Step& step : timeline.steps) {
    if (step.number != number) continue;
    window = window ? Window{std::min(window->start, step.start), std::max(window->end, step.end)}
                    : Window{step.start, step.end};
  }
  return window;
}

}  // namespace shardbook::metrics
