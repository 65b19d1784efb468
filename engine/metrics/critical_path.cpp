// metrics/critical_path: the walk back from the end; see critical_path.hpp.
#include "engine/metrics/critical_path.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "engine/metrics/dependencies.hpp"

namespace shardbook::metrics {
namespace {

// Made once for a window; walks back through it, or through parts of it.
class Walk {
 public:
  Walk(const Timeline& timeline, const std::vector<MatchedCollective>& matched, Window window)
      : timeline_(timeline), dependencies_(timeline, window), collectives_(by_span(matched)) {}

  CriticalPath run(Window window) {
    path_ = {};
    path_.window = window_ = window;
    time_ = window.end;
    dependencies_.narrow(window);
    SpanRef span = dependencies_.last_ended(window_.end);
    if (span.valid()) piece(PathKind::wait, span, timeline_.end(span));
    // Each turn goes to an earlier span; the limit only guards against a trace whose edges run in a circle
    // at one instant.
    std::size_t turns = 4 * (dependencies_.device_spans() + timeline_.tracks.size()) + 16;
    while (span.valid() && time_ > window_.start && turns-- > 0) span = before(through(span));
    if (time_ > window_.start) piece(PathKind::wait, span, window_.start);
    std::reverse(path_.pieces.begin(), path_.pieces.end());
    return std::exchange(path_, {});
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
        return through_host(span);
      case Decision::Kind::none: break;
    }
    piece(PathKind::wait, span, window_.start);
    return {};
  }

  // Back along the host to the last time that it waited for a device.
  SpanRef through_host(SpanRef span) {
    Nanoseconds at = time_;
    while (at > window_.start) {
      const SpanRef wait = dependencies_.host_wait_before(timeline_.rank(span), at);
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
  Nanoseconds time_ = 0;        // the path from here to the window's end is known
  CriticalPath path_;
};

}  // namespace

namespace {

// The steps that lie in a window, none of them before the one before it has ended.
std::vector<Window> steps_in(const Timeline& timeline, Window window) {
  std::map<std::int32_t, Window> steps;
  for (const timeline::Step& step : timeline.steps) {
    const auto [found, is_new] = steps.try_emplace(step.number, Window{step.start, step.end});
    if (!is_new) found->second = {std::min(found->second.start, step.start), std::max(found->second.end, step.end)};
  }
  std::vector<Window> inside;
  Nanoseconds from = window.start;
  for (const auto& [number, step] : steps) {
    const Window part{std::max(step.start, from), std::min(step.end, window.end)};
    if (part.length() <= 0) continue;
    inside.push_back(part);
    from = part.end;
  }
  return inside;
}

}  // namespace

CriticalPath critical_path(const Timeline& timeline, const std::vector<MatchedCollective>& matched, Window window) {
  // Each step has a path of its own: that of several would follow the host through all but the last.
  const std::vector<Window> steps = steps_in(timeline, window);
  Walk walk(timeline, matched, window);
  if (steps.size() < 2) return walk.run(window);
  CriticalPath path;
  path.window = window;
  Nanoseconds until = window.start;
  const auto gap = [&](Nanoseconds to, SpanRef after) {
    if (to > until) path.pieces.push_back({PathKind::wait, after.valid() ? timeline.rank(after) : Rank{0}, after, {until, to}});
    until = std::max(until, to);
  };
  for (const Window step : steps) {
    CriticalPath of_step = walk.run(step);
    gap(step.start, of_step.pieces.empty() ? SpanRef{} : of_step.pieces.front().span);
    path.pieces.insert(path.pieces.end(), of_step.pieces.begin(), of_step.pieces.end());
    path.inferred = path.inferred || of_step.inferred;
    until = step.end;
  }
  gap(window.end, path.pieces.empty() ? SpanRef{} : path.pieces.back().span);
  return path;
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
