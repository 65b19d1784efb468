// workbook/lint: is this lab whole, and does it say what is so?
//
// What a lab must have, and that the figures its text states are those that its facts give today. Each finding is one
// sentence with its file; a lab with none can be handed to a learner.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/workbook/lab.hpp"

namespace shardbook::workbook {

// Findings of one lab, by part. Errors: it cannot be read.
base::Result<std::vector<std::string>> lint(const std::string& root, const std::string& lab);

// The lab's figures as a Markdown table: each fact, its value now, and what it is of. It stands in labs/NN_name/figures.md,
// and lint compares. Errors: a fact that cannot be computed.
base::Result<std::string> figures_table(const std::string& root, const Lab& lab);

// Makes labs/NN_name with everything that lint asks for, ready to be filled in: lab.json, text, interface, starter,
// harness, solution, a wrong answer. Returns the paths from the root. Errors: a number or name that is none or taken; a
// folder that cannot be written.
base::Result<std::vector<std::string>> make_lab(const std::string& root, const std::string& number, const std::string& name);

}  // namespace shardbook::workbook
