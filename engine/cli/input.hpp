// cli/input: who answers what a command asks?
//
// The person at a terminal, or lines that were piped in. Nobody is waited for who may not be there.
#pragma once

#include <iosfwd>

namespace shardbook::cli {

// Where answers are read from, nullptr where nobody answers: standard input if it is a terminal or has something to read.
std::istream* answers();
// Whether a person types them.
bool answers_are_typed();

// While it lives, answers come from this stream (tests).
class AnswersFrom {
 public:
  explicit AnswersFrom(std::istream& stream);
  ~AnswersFrom();
  AnswersFrom(const AnswersFrom&) = delete;
  AnswersFrom& operator=(const AnswersFrom&) = delete;
};

}  // namespace shardbook::cli
