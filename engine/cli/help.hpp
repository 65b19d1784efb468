// cli/help: what a newcomer reads first.
#pragma once

#include <string>
#include <vector>

#include "engine/cli/command.hpp"

namespace shardbook::cli {

// `shardbook` alone: what it is, and the first three things to do.
std::string first_steps();
// `shardbook --help`: all commands in groups, with three examples.
std::string overview(const std::vector<Command>& commands);
// `shardbook COMMAND --help`.
std::string help_of(const Command& command);

}  // namespace shardbook::cli
