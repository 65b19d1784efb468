// cli/check_command: is it right, and what follows from that?
#pragma once

#include "engine/cli/command.hpp"
#include "engine/workbook/exercise.hpp"

namespace shardbook::cli {

std::vector<Switch> check_switches();
// Judges the learner's file of a part (with --solution, the solution), notes it in the progress file and says the first
// thing that is wrong; on a pass, predicted beside found, and why. Exit code 0: passed; 1: not; 2: cannot be judged.
int check_part(const Line& line, Console& console);

std::vector<Switch> solution_switches();
int solution_of_part(const Line& line, Console& console);
int reset_part(const Line& line, Console& console);

// How this program judges: with the rooms that judge notes.
workbook::TrialOptions trial_options(int seed, const std::vector<std::string>& clones = {});

}  // namespace shardbook::cli
