// cli/tune_command: `tune`: which of cuBLASLt's algorithms is fastest for each matmul of a run?
#pragma once

#include "engine/cli/command.hpp"

namespace shardbook::cli {

std::vector<Switch> tune_switches();
int tune(const Line& line, Console& console);

}  // namespace shardbook::cli
