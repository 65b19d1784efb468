// cli/diff_command: what is different, and from what?
#pragma once

#include "engine/cli/command.hpp"

namespace shardbook::cli {

// Two runs: why_command's diff. A part: the learner's file beside the solution, when that may be seen. Nothing: the last two
// runs that were made here.
int diff_any(const Line& line, Console& console);

// The runs below experiments/, the newest first: folders of runs/ that hold run.json.
std::vector<std::string> newest_runs(const std::string& root);

}  // namespace shardbook::cli
