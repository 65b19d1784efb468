// scene/path_window: over which time is the critical path of a large run worth its cost?
//
// The path and the reasons of all exposures cost 0.6 µs a device span at 250 000 spans, 1 µs at a million
// (experiments/viewer_scale/frames.md). A run of some steps fits; of millions of spans a part is taken, and
// said so.
// cut() is that part as a timeline of its own, so that what engine/metrics computes on it costs what is
// in it: the device spans of the window, all members of their collectives, the calls that launched
// them, the waits of the host, and the edges between these.
#pragma once

#include <vector>

#include "viewer/scene/scene.hpp"

namespace shardbook::scene {

struct PathWindow {
  Window window;
  bool partial = false;
};
// As Scene::path_window() says. `steps` by number.
PathWindow choose_path_window(const Timeline& timeline, Window whole, const std::vector<Scene::StepWindow>& steps, std::size_t most);

struct Part {
  Timeline timeline;                                  // same tracks, fewer spans
  std::vector<std::vector<std::uint32_t>> kept;       // per track: index in the part -> index in the whole
  SpanRef whole(SpanRef span) const { return span.valid() ? SpanRef{span.track, kept[span.track][span.index]} : span; }
};
Part cut(const Timeline& timeline, const std::vector<metrics::MatchedCollective>& matched, Window window);

}  // namespace shardbook::scene
