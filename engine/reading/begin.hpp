// reading/begin: how do lines that were selected become the beginning of a choice in the learner's note?
//
// A heading that says what is still to be written, and the citation below it, behind the last choice: the closing stays the
// end. The note is the learner's, perhaps open in an editor: what stood there is kept, byte for byte, in kept/ beside it; the
// new text is written beside and renamed, and not at all where the note has changed meanwhile. Its ends of line stay.
#pragma once

#include <string>

#include "engine/base/result.hpp"

namespace shardbook::reading {

struct Begun {
  int line = 0;            // of the citation, in the note as it is now
  std::string kept;        // the copy's path; "" where there was no note before
};

// Begins a choice on `place` ("megatron/core/x.py:L1-L9") in folder/file; either is made where it is not there.
// Errors: another encoding, a fence that is open, no copy can be kept, the file cannot be written; nothing has changed then.
base::Result<Begun> begin_choice(const std::string& folder, const std::string& file, const std::string& place);

}  // namespace shardbook::reading
