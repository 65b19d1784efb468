#include "engine/cli/input.hpp"

#include <poll.h>
#include <unistd.h>

#include <iostream>

namespace shardbook::cli {

namespace {

std::istream* given = nullptr;

// A pipe that nobody writes to is not waited for.
constexpr int patience_ms = 100;

}  // namespace

std::istream* answers() {
  if (given != nullptr) return given;
  if (answers_are_typed()) return &std::cin;
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return ::poll(&input, 1, patience_ms) > 0 && (input.revents & POLLIN) != 0 ? &std::cin : nullptr;
}

bool answers_are_typed() { return given == nullptr && ::isatty(STDIN_FILENO) == 1; }

AnswersFrom::AnswersFrom(std::istream& stream) { given = &stream; }
AnswersFrom::~AnswersFrom() { given = nullptr; }

}  // namespace shardbook::cli
