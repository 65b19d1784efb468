// cli/loop_command: what is next, and how does one get there?
//
// The verbs that carry a learner through the labs: what is said comes from the room workbook, and is put into words here.
// `next` asks for predictions, seals them and names one command; `check` (check_command.hpp) judges.
#pragma once

#include <string>

#include "engine/cli/command.hpp"
#include "engine/workbook/course.hpp"

namespace shardbook::cli {

// `shardbook` alone: where you are, what is next, how long it takes. Outside of the project, the first steps.
int first_page(Console& console);

int next_part(const Line& line, Console& console);
int list_parts(const Line& line, Console& console);
int hint_of(const Line& line, Console& console);
int card_of(const Line& line, Console& console);

// The course of this project, with its progress file's problems said on the error stream.
base::Result<workbook::Course> course_here(Console& console);
// The part that is named, or where nothing is, the current one; of a lab, its first open part. Errors: none such; all parts passed.
base::Result<workbook::Place> part_meant(const workbook::Course& course, const std::vector<std::string>& places);

// "00a · Read: who made this step slow? · 12 of 35 min"
std::string heading_of(const workbook::Place& place, const workbook::PartState& state);
// The content in lines of the console's width, each with `lead` before it; `first` before the first.
void say(Console& console, const std::string& content, const std::string& first = "", const std::string& lead = "");
// "Next  ./shardbook check 00a": a command with a word before it.
void point_to(Console& console, const std::string& word, const std::string& command, const std::string& reason = "");

}  // namespace shardbook::cli
