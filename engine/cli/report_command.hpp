// cli/report_command: `report RUN|TRACE...`, a run as one page to share.
#pragma once

#include <vector>

#include "engine/cli/command.hpp"

namespace shardbook::cli {

std::vector<Switch> report_switches();

int report_run(const Line& line, Console& console);

}  // namespace shardbook::cli
