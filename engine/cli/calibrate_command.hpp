// cli/calibrate_command: `calibrate`, a machine profile of the GPUs at hand.
#pragma once

#include <vector>

#include "engine/cli/command.hpp"

namespace shardbook::cli {

std::vector<Switch> calibrate_switches();
int calibrate(const Line& line, Console& console);

}  // namespace shardbook::cli
