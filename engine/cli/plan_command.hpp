// cli/plan_command: `plan`: what is a step, as a list, before anything runs?
#pragma once

#include "engine/cli/command.hpp"

namespace shardbook::cli {

std::vector<Switch> plan_switches();
int plan_of(const Line& line, Console& console);

}  // namespace shardbook::cli
