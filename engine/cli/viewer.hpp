// cli/viewer: the commands that open windows or draw pictures.
//
// Their true form belongs to the viewer's build; where that is not built, no_viewer.cpp says what to install.
#pragma once

#include <string>

#include "engine/cli/command.hpp"

namespace shardbook::cli {

// One of view, report, diagram.
int viewer_command(const std::string& name, const Line& line, Console& console);
// Why there is none, and the remedy; "" where there is one.
std::string viewer_problem();

}  // namespace shardbook::cli
