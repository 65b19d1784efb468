// timeline/rules: does a rank file keep what Perfetto and Holistic Trace Analysis require?
//
// Read apart from the reader, with a document tree, so that a fault of the reader hides no fault
// of the writer. The rules and why they exist: notes/rooms/timeline.md.
#pragma once

#include <string>
#include <vector>

namespace shardbook::timeline {

// One sentence for each broken rule (with the event's index), at most 20; empty = all rules kept.
std::vector<std::string> violations(const std::string& path);

}  // namespace shardbook::timeline
