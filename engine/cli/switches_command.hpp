// cli/switches_command: `switches`, the table of design choices, and all that a row of it knows.
#pragma once

#include "engine/cli/command.hpp"

namespace shardbook::cli {

// Without a name: a line each, and its sentence; 80 columns suffice. With a key: where the choice stands in the
// originals, what it needs, what it promises, and the two runs to try it on. Errors: no such switch (the nearest is
// named).
int switches_of(const Line& line, Console& console);

}  // namespace shardbook::cli
