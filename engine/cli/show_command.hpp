// cli/show_command: `show`, a timeline in the terminal, and `metrics`, its figures.
//
// Both take folders of runs or rank files, ours or PyTorch's.
#pragma once

#include "engine/cli/command.hpp"

namespace shardbook::cli {

int show(const Line& line, Console& console);
int metrics_of(const Line& line, Console& console);

}  // namespace shardbook::cli
