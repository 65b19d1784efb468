// cli/notes_command: `notes`: do my notes of lab 03 hold, what did the reference see that I did not, and where are the
// files that both cite?
//
// `notes check` and `notes compare` read; `notes sources` fetches. The workbook's `check 03` asks the same functions.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/cli/command.hpp"

namespace shardbook::cli {

std::vector<Switch> notes_switches();
int notes(const Line& line, Console& console);

// The step of the run that a note names, in ms: a folder of a run, or options of `train`, resolved on meta without
// writing anything. Errors: one sentence.
base::Result<double> step_ms_of(const std::string& run);

}  // namespace shardbook::cli
