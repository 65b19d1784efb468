// scene/navigate: from one span to the next.
//
// What the keys of the timeline mean, without a screen: neighbours on a row, edges to follow, the next
// exposed span, the span under a point. All return an invalid SpanRef where there is none.
#pragma once

#include "viewer/scene/scene.hpp"

namespace shardbook::scene {

// The span of this row that covers `time`, deepest first; else the nearest one within `tolerance` ns.
// Only spans of this depth; -1 for any. On derived rows the span that the time is owed to.
SpanRef span_at(const Scene& scene, const Row& row, Nanoseconds time, int depth, Nanoseconds tolerance);
SpanRef next_on_track(const Scene& scene, SpanRef span);
SpanRef previous_on_track(const Scene& scene, SpanRef span);
// The row's span that is nearest in time to another row's span: for up and down.
SpanRef nearest_on(const Scene& scene, const Row& row, Nanoseconds time);

// The first step whose window holds this time; -1 and the whole run if none does.
Scene::StepWindow step_at(const Scene& scene, double time);
// The exposed spans whose middle lies in this step, in the order of exposures(); of step -1 all.
std::vector<SpanRef> exposed_in(const Scene& scene, const Scene::StepWindow& step);
// The place of a span in such a list, -1 if it is none of them.
int place_in(const std::vector<SpanRef>& exposed, SpanRef span);
// The place `by` places after `from`, wrapping around; from -1 by 1 is the first, by -1 the last. -1 of an empty list.
int exposed_after(const std::vector<SpanRef>& exposed, int from, int by);

// Arrows of a span: launch, event waits, limiter, buffer, and the other ranks of its collective.
struct Arrow {
  SpanRef from, to;
  timeline::EdgeKind kind{};
  std::string words;                // "awaits the event recorded at engine/fsdp/schedule.cpp:118"
};
struct Arrows {
  std::vector<Arrow> in, out;
};
Arrows arrows_of(const Scene& scene, SpanRef span);

// Everything the details panel says of a span, as (name, value) in a fixed order, what one asks first before the rest:
// label, duration, step, phase, layer, part; exposed, blocking, why, on the critical path; launched by, source, sums,
// awaits; collective, group, sequence, busbw, wait, queued and transfer; flops and bytes; class, row, start; clock.
struct Fact {
  std::string name, value;
};
std::vector<Fact> facts_of(const Scene& scene, SpanRef span);
// Of a collective that queued: "85.8 µs: all its ranks had come, and up weight gradient · L23 of rank 0 held the
// multiprocessors; the 172 µs that are left are a whole transfer". "" of all others.
std::string queued_words(const Scene& scene, SpanRef span);

}  // namespace shardbook::scene
