// cli/notes_command: `notes`: do my notes of lab 03 hold, what did the reference see that I did not, and where are the
// files that both cite?
//
// `notes check` and `notes compare` read; `notes sources` fetches. The workbook's `check 03` asks the same functions.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/cli/command.hpp"
#include "engine/reading/check.hpp"
#include "engine/workbook/lab.hpp"
#include "engine/workbook/verdict.hpp"

namespace shardbook::cli {

std::vector<Switch> notes_switches();
int notes(const Line& line, Console& console);

// The report of a folder for a part of lab 03 ("03c"; "" for all), with all that this program can hand in: the lab's
// table, sources/ under `root`, runs on meta, switches and spans. What the workbook's `check 03` asks.
// Errors: no table, a part that there is not.
base::Result<reading::Report> notes_report(const std::string& root, const std::string& folder, const std::string& part, const std::vector<std::string>& clones = {},
                                           const std::string& sources = "");

// The same as a verdict: what the workbook's `check` asks of a part of kind notes. `folder` is that of the notes, or a file
// in it. The first finding leads; warnings are kept behind it.
base::Result<workbook::Verdict> judge_notes(const std::string& root, const workbook::Place& place, const std::string& folder, const std::vector<std::string>& clones = {});

// The step of the run that a note names, in ms: a folder of a run, or options of `train`, resolved on meta without
// writing anything. Errors: one sentence.
base::Result<double> step_ms_of(const std::string& run);

}  // namespace shardbook::cli
