// cli/switches_command: `switches`, the table of design choices, and all that a row of it knows.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/cli/command.hpp"

namespace shardbook::cli {

// Without a name: a line each, and its sentence; 80 columns suffice. With a key: where the choice stands in the
// originals, what it needs, what it promises, and the two runs to try it on. Errors: no such switch (the nearest is
// named).
int switches_of(const Line& line, Console& console);

// Options of `train` that are another name of a switch, each with its key: --prefetch of fsdp.prefetch.
std::vector<std::pair<Switch, std::string>> options_of_switches();

// What asks for one value, as it was typed, and what it asks for as KEY=VALUE.
using Asking = std::pair<std::string, std::string>;
// What a line asks of switches, by --set, --wrong and options that are another name of one.
std::vector<Asking> asked_of_switches(const Line& line);
// Errors: two of these ask for two values of one key.
base::Status one_value_each(const std::vector<Asking>& asking);

// Whether no model knows what this switch does; false where there is no such switch.
bool is_only_measured(const std::string& key);

}  // namespace shardbook::cli
