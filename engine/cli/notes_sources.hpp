// cli/notes_sources: how do the few files come here?
//
// From a clone that the user has (git show, nothing of it is changed), from a folder that holds the files as they are
// (an installed torch), or from GitHub by whatever of curl and wget is there. Each file is compared with the table's
// sha256 before it is kept; it is written beside and renamed.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/cli/console.hpp"
#include "engine/reading/sources.hpp"

namespace shardbook::cli {

struct Fetched {
  int here = 0, fetched = 0, missing = 0;   // files
  std::vector<std::string> failed;          // why some are missing, a sentence each
};

// The files of the table at the pinned commits into `folder`. `clones`: folders to look in before the network.
Fetched fetch_sources(const reading::Facts& facts, const std::string& folder, const std::vector<std::string>& clones, Console& console);

// The files that notes cite at another commit than the pinned one, out of the learner's clones. What is not there is
// marked in `sources`.
void take_cited(const std::string& notes_folder, const std::vector<std::string>& clones, reading::Sources& sources);

}  // namespace shardbook::cli
