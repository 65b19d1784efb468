// cli/bench_command: `bench`, how fast is the engine on these GPUs, and beside PyTorch?
//
// Each shape of the suite is trained by a process of its own, as a user would, and by PyTorch in turn where it is asked
// for; beside it stand the floor of the step and what the model foretells. A shape that fails is named and ends no other.
#pragma once

#include <vector>

#include "engine/cli/command.hpp"

namespace shardbook::cli {

std::vector<Switch> bench_switches();
int bench(const Line& line, Console& console);

}  // namespace shardbook::cli
