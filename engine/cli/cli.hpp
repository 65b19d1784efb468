// cli: what can I ask it?
//
// One program, a table of commands. Each command reads its line, acts, and returns 0 (done), 1 (a run failed) or 2
// (what was asked for cannot be); what is wrong is one sentence on the error stream, said before anything is written.
// Figures carry their clock; with --json they are JSON on standard output and everything else is on the error stream.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "engine/cli/console.hpp"

namespace shardbook::cli {

// Runs `shardbook <arguments>`; returns the exit code.
int main_with(const std::vector<std::string>& arguments, Console& console);
// The same without terminals, for tests.
int main_with(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace shardbook::cli
