// workbook/answers: are these figures read off right?
//
// Answers are a text file, a line `key = value` each, below the question as a comment; so they can be written in any
// editor, kept, and judged again. What is right is a fact, computed at that moment.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "engine/workbook/facts.hpp"
#include "engine/workbook/verdict.hpp"

namespace shardbook::workbook {

using Answers = std::map<std::string, std::string>;

// The file to start from: each question, and a line to fill in.
std::string blank_answers(const Part& part);
// The answers of a file; empty ones are left out. Errors: a line that is none, a key that the part does not ask for (the
// nearest is named), a key given twice; `name` stands for the file.
base::Result<Answers> answers_from(const std::string& content, const Part& part, const std::string& name);
// The file with these answers in their places; comments and other answers stay.
std::string with_answers(const std::string& content, const Answers& answers);

// A number as people write it: "25.7", "25,7 ms", "~26ms", "1.2 s" of unit ms; none if it is no number or of a unit that is
// not a multiple of `unit` (ns, us or µs, ms, s; %; rank).
std::optional<double> number_in(const std::string& text, const std::string& unit);
// "host" of "Host-bound "; as names of regimes, ranks and kinds are compared.
std::string plain_word(const std::string& text);

// The first question that has no answer or a wrong one is the finding; none: passed.
// Errors: a fact that cannot be computed.
base::Result<Verdict> judge_answers(Facts& facts, const Part& part, const Answers& answers, const std::string& file);

}  // namespace shardbook::workbook
