// workbook/lint: is this lab whole, and does it say what is so?
//
// What a lab must have, and that the figures its text states are those that its facts give today. Each finding is one
// sentence with its file; a lab with none can be handed to a learner.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/workbook/exercise.hpp"
#include "engine/workbook/lab.hpp"

namespace shardbook::workbook {

// Findings of one lab, by part. Errors: it cannot be read.
base::Result<std::vector<std::string>> lint(const std::string& root, const std::string& lab);

// Called before each trial: the file, its number, and how many there are.
using Begins = std::function<void(const std::string& file, int number, int of)>;

// Findings of what only a trial shows, in seconds: each solution passes and gives every figure that a prediction or `show`
// names, its figures.json is what is found today, and each starter fails with the first line of its starter.txt, those of
// by_seed, too; the first solution passes with one seed more; and each wrong answer, with no seed, fails with the message of
// its first line. Of notes, the solution passes.
// Errors: there is no such lab; stopped by a signal.
base::Result<std::vector<std::string>> try_lab(const std::string& root, const std::string& lab, const TrialOptions& options, const Begins& begins);

// What a solution's check finds, in the file that texts may quote and cmake/CheckExercise.cmake compares:
// solutions/NN_name/NNa.figures.json, of another seed NNa_1.figures.json. Returns the paths from the root.
// Errors: a solution that cannot be tried or does not pass, a folder that cannot be written.
base::Result<std::vector<std::string>> write_figures(const std::string& root, const std::string& lab, const TrialOptions& options, const Begins& begins);

// The lab's figures as a Markdown table: each fact, its value now, and what it is of. It stands in labs/NN_name/figures.md,
// and lint compares. Errors: a fact that cannot be computed.
base::Result<std::string> figures_table(const std::string& root, const Lab& lab);

// Makes labs/NN_name with everything that lint asks for, ready to be filled in: lab.json, text, interface, starter,
// harness, solution, a wrong answer. Returns the paths from the root. Errors: a number or name that is none or taken; a
// folder that cannot be written.
base::Result<std::vector<std::string>> make_lab(const std::string& root, const std::string& number, const std::string& name);

}  // namespace shardbook::workbook
