// cli/open_trace: what a command reads, made fit to be shown on a terminal.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/cli/console.hpp"
#include "engine/timeline/timeline.hpp"

namespace shardbook::cli {

// Reads runs and traces (timeline::read). A run that was killed is finished first (launch/recover.hpp), and that is
// said. Names come out printable, whoever wrote them. Errors: timeline::read's, and a run that has not ended.
base::Result<timeline::Timeline> open_trace(const std::vector<std::string>& places, Console& console);
// Errors: a file of it ends early, so it lacks spans, and figures that are made of it would be wrong.
base::Status is_whole(const timeline::Timeline& timeline);

// Finishes the runs among these places that were killed.
base::Status finish_killed_runs(const std::vector<std::string>& places, Console& console);

// Prints the banners of a timeline as notes.
void print_banners(const timeline::Timeline& timeline, Console& console);

}  // namespace shardbook::cli
