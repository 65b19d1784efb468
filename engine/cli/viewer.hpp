// cli/viewer: the commands that open windows or draw pictures.
//
// They belong to another program, shardbook-viewer, so that this one never needs a window's libraries. It is looked
// for beside this program and in the launcher's folder for it; where there is none, a sentence says how to get it.
#pragma once

#include <string>

#include "engine/cli/command.hpp"

namespace shardbook::cli {

// One of view, diagram. Becomes the viewer's program and returns only if that cannot be.
int viewer_command(const std::string& name, const Line& line, Console& console);
// Why there is none, and the remedy; "" where there is one.
std::string viewer_problem();

}  // namespace shardbook::cli
