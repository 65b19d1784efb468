// timeline/whole: is this all of a run?
//
// A run that was killed, lost a file, or shares its folder with another's files still opens; what is missing is said
// in a banner, since sums over some of the ranks are not those of the run.
#pragma once

#include <string>
#include <vector>

#include "engine/timeline/timeline.hpp"

namespace shardbook::timeline {

// Stands in a run's folder from its beginning until all is written.
inline constexpr const char* unfinished_name = "run.partial";

// Adds a banner where ranks that the world had are not among the timeline's, and where `run_ids` (of each file, ""
// where it states none) are not all one. `name` stands for folder or pack.
void note_missing_ranks(Timeline& timeline, const std::string& name);
void note_mixed_runs(Timeline& timeline, const std::vector<std::string>& run_ids, const std::vector<std::string>& names);
// Adds a banner where the folder's run was interrupted, or has not ended.
void note_interrupted(Timeline& timeline, const std::string& folder);

}  // namespace shardbook::timeline
