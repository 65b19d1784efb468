// cli/train_command: `train` and `run LAB`.
#pragma once

#include "engine/cli/command.hpp"

namespace shardbook::cli {

int train(const Line& line, Console& console);
int run_lab(const Line& line, Console& console);

}  // namespace shardbook::cli
