// scene/roles: what is this span for?
//
// In words that begin with the role, so that a narrow span still says it: "qkv · L7", "attention sum · L7",
// "down weight gradient · L3", "all_gather · L12". What was summed is the role of the span that the sum awaited, where
// the record does not name it. Of a trace without ops, the span's own label.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "engine/timeline/timeline.hpp"

namespace shardbook::scene {

// What an all-reduce sums: the span that it awaited, on another stream; invalid if the timeline does not say.
timeline::SpanRef summed_span(const timeline::Timeline& timeline, timeline::SpanRef span);
std::string role_label(const timeline::Timeline& timeline, timeline::SpanRef span);
// The same in fewer letters until it fits: without the layer, which the band above says, too; then "gather" of an
// all_gather and "scatter" of a reduce_scatter. The shortest where none fits.
std::string fitted_label(std::string label, const std::function<bool(std::string_view)>& fits);

}  // namespace shardbook::scene
