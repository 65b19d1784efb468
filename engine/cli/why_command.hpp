// cli/why_command: `why`, `whatif` and `diff`: what bounds a step, what would be if, and what differs between two.
#pragma once

#include <vector>

#include "engine/cli/command.hpp"

namespace shardbook::cli {

std::vector<Switch> why_switches();
std::vector<Switch> whatif_switches();
// What is said of an option of `train` that no recorded step can be issued with; "" of what is none.
std::string not_for_whatif(const std::string& name);
std::vector<Switch> diff_switches();

int why(const Line& line, Console& console);
int whatif(const Line& line, Console& console);
int diff(const Line& line, Console& console);

}  // namespace shardbook::cli
