// reading/rules_diagrams: do the two pictures of the synthesis say what they must?
//
// They are read by the parser that the viewer draws with, so what passes here is what mermaid.js shows. Asked for is
// what the words of a picture can show: that the path is column, activation, row with a sum, and query-key-value,
// attention, row with a sum; and that in the timeline some gather runs while a layer computes. Layout and taste are not.
#pragma once

#include <string>

#include "engine/diagram/diagram.hpp"
#include "engine/reading/check.hpp"

namespace shardbook::reading {

inline constexpr int asked_diagrams = 2;

void check_diagrams(const Note& note, Report& report);

// "" or what is missing, one sentence. Of a block under tensor parallelism:
std::string missing_in_block(const diagram::Diagram& shown);
// Of a timeline of FSDP's forward. `unjudged`: where the kind of diagram has no times, and overlap cannot be told.
std::string missing_in_timeline(const diagram::Diagram& shown, bool& unjudged);

}  // namespace shardbook::reading
