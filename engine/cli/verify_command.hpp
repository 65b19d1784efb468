// cli/verify_command: `verify RUN`, whether what a run issued could race or hang.
#pragma once

#include <vector>

#include "engine/cli/command.hpp"

namespace shardbook::cli {

std::vector<Switch> verify_switches();

// Exit code 0: nothing found; 1: something was; 2: there is nothing to look at.
int verify(const Line& line, Console& console);

}  // namespace shardbook::cli
