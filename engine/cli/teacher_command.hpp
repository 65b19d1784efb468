// cli/teacher_command: handing in, grading, and making labs.
#pragma once

#include "engine/cli/command.hpp"

namespace shardbook::cli {

std::vector<Switch> submit_switches();
// One file with what a teacher needs to check this learner's work anew.
int submit(const Line& line, Console& console);

std::vector<Switch> grade_switches();
// Submissions, judged here: a table as CSV on standard output.
int grade(const Line& line, Console& console);

std::vector<Switch> lab_switches();
// new NN NAME, lint [NN], figures NN [--write].
int lab(const Line& line, Console& console);

}  // namespace shardbook::cli
