// book/excerpts: which lines of the engine does this name stand for?
//
// The engine marks its own text: `//@ fsdp.prefetch: Gather the next unit.` begins a span and `//@end` ends the
// innermost one that is open. Spans nest; the markers of inner ones are not part of the outer one's text.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"

namespace shardbook::book {

struct Excerpt {
  std::string name;                  // "fsdp.prefetch"
  std::string title;                 // "Gather the next unit."
  std::string path;                  // from the root: "engine/fsdp/schedule.cpp"
  int line = 0;                      // of the first line of text, counted from 1
  std::vector<std::string> text;     // as far to the left as it goes
};

// The spans of one file. Errors: a span that does not end, an end without a begin, a marker that cannot be read.
base::Result<std::vector<Excerpt>> excerpts_of(const std::string& content, const std::string& path);

// The spans of all sources under root/engine, by path and line. Errors: as above; two spans of one name.
base::Result<std::vector<Excerpt>> all_excerpts(const std::string& root);

}  // namespace shardbook::book
