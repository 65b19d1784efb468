// cli/checkpoint_command: `checkpoint DIR`, what a checkpoint holds, whether it is whole, and as a file of other programs.
#pragma once

#include <vector>

#include "engine/cli/command.hpp"

namespace shardbook::cli {

std::vector<Switch> checkpoint_switches();

int checkpoint_of(const Line& line, Console& console);

}  // namespace shardbook::cli
