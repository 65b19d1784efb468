// cli/trace_check: what does a learner's own trace of PyTorch show?
#pragma once

#include "engine/cli/command.hpp"

namespace shardbook::cli {

// `check NN --trace TRACE...`: each thing that the lab asks, and what was found; of the first that fails also why, where
// and what helps. Where all hold, that is noted in the progress file as `traced`; no part is passed by it.
// Exit code 0: all hold; 1: not; 2: these are no traces that could show it.
int check_trace(const Line& line, Console& console);

}  // namespace shardbook::cli
