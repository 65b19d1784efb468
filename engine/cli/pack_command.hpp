// cli/pack_command: `pack RUN`, a run as one small file to carry to another machine.
#pragma once

#include <vector>

#include "engine/cli/command.hpp"

namespace shardbook::cli {

std::vector<Switch> pack_switches();

int pack_run(const Line& line, Console& console);

}  // namespace shardbook::cli
