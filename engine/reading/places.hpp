// reading/places: is what a citation says so?
//
// Judged against the file where it is here, else against the table of facts, else not at all; the verdict says which.
#pragma once

#include <string>
#include <vector>

#include "engine/reading/note.hpp"
#include "engine/reading/sources.hpp"

namespace shardbook::reading {

// A citation of this many lines names a file, not a place.
inline constexpr int most_cited_lines = 100;

struct Verdict {
  enum class By { file, facts, nothing };
  By by = By::nothing;
  std::string rule;        // "" where nothing is wrong: "path", "range", "symbol"
  std::string sentence;    // what is wrong, and what to do
  std::string unjudged;    // what could not be judged, where something could not
};

// The path as its repository has it: a leading "megatron-lm/" or "pytorch/" goes, and what is only the end of one
// known path ("layers.py", "tensor_parallel/layers.py") becomes that path.
std::string whole_path(const Sources& sources, const std::string& repository, const std::string& commit, const std::string& path);

// The choice's code words count where the citation names no symbol in its own line: then one of them must be there.
Verdict judge(const Sources& sources, const std::string& repository, const std::string& commit, const Citation& citation, const Choice& choice);

}  // namespace shardbook::reading
