// reading/pasted: is this the learner's summary, or the source itself?
//
// Two ways of seeing it. A fence that is no diagram and is longer than five lines is code, whosever. And six lines in a
// row that stand in a row in a source file are pasted, fenced or not: compared without blanks at either end, marks of a
// quotation or list, and empty lines, so that indenting or quoting does not hide it.
#pragma once

#include <string>
#include <vector>

#include "engine/reading/note.hpp"
#include "engine/reading/sources.hpp"

namespace shardbook::reading {

inline constexpr int most_pasted_lines = 5;

struct Pasted {
  int line = 0, lines = 0;   // of the note
  std::string from;          // "path:L690-L699"; "" where only the fence tells
};

// By `paths` of this commit that are here.
std::vector<Pasted> pasted_in(const Note& note, const Sources& sources, const std::string& repository, const std::string& commit);

}  // namespace shardbook::reading
