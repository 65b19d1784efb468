// cli/figures: do the texts still say what is so?
//
// A text that states a number names where it comes from, in a comment that no reader sees, below the paragraph or table
// that holds it:
//
//   <!-- says
//   step --tp 2 --fsdp 1 -> 1.319 ms
//   step --tp 2 --fsdp 1 with comm=0 / step --tp 2 --fsdp 1 -> 1.00
//   alpha all_reduce 2 -> 6.8 µs
//   -->
//
// On the left stands a term, or two with / or - or * between, or with `below`: `A below B` is the share of B that A saves
// (1 - A / B), so `step --prefetch 1 below step --prefetch 0 -> 28 %`. On the right what the paragraph says, word for word. The term is
// made anew: a run on meta (modelled, deterministic), the profile, or a formula of the notes with the profile's figures. A
// number is right when the term rounds to it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/cli/command.hpp"

namespace shardbook::cli {

// One line of such a comment, looked after.
struct Said {
  std::string file;
  int line = 0;
  std::string term, words;   // what stands left and right of the arrow
  double value = 0;          // of the term, in its base unit: ns, bytes, flops a ns, or a plain number
  std::string anew;          // the words as they would be now, where they are of another number: its unit, decimals and blanks; else ""
  bool holds = false;
  std::string problem;       // why it does not hold: one sentence, else ""
};

// The value of a term. Errors: a term that there is not (the known ones are listed), options that cannot be run.
base::Result<double> value_of_term(std::string_view term);
// Whether `words` ("1.319 ms", "511", "22 %") is `value` rounded as the words are. Errors: words without a number or with
// a unit that the term has not.
base::Result<bool> rounds_to(double value, std::string_view words);
// All that a text says. Errors of one line are its problem, not the text's.
std::vector<Said> said_in(std::string_view text, const std::string& file);

// The text with the words of `all` (what it says) made anew where they are of another number, in the comment and in the paragraph
// above it. Where numbers repeat there, those of the comment are taken for the paragraph's in its order. What a paragraph does not
// say stays as it is, in the comment as well.
std::string with_figures_anew(std::string_view text, const std::vector<Said>& all);

// `figures [FILE...]`: without files, all texts of notes/, labs/ and solutions/, and README.md. With --write the texts are written.
std::vector<Switch> figures_switches();
int figures_of(const Line& line, Console& console);

}  // namespace shardbook::cli
