// reading/check: do these notes hold?
//
// What a program can know of notes about other people's code: that the files are there, that each choice cites lines
// which exist at the commit that the notes name and hold what they are said to hold, that nothing is copied, that the
// diagrams parse and show what was asked for, that figures are those of their runs. It never judges a reason.
// What could not be judged is said, not passed over.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/reading/note.hpp"
#include "engine/reading/sources.hpp"

namespace shardbook::reading {

struct Finding {
  std::string file;          // in the folder
  int line = 0;              // 0: the file as a whole
  std::string rule;          // "symbol"
  std::string sentence;      // what is wrong, and what to do
  bool is_warning = false;   // does not fail the check
};

// A note that the lab asks for, and whose code it reads.
struct Asked {
  std::string file, repository, commit_file;
};
// megatron-tp-layers.md and fsdp-prefetch.md.
const std::vector<Asked>& asked_notes();
inline constexpr const char* synthesis_file = "synthesis.md";
// Where a learner's notes are, from the root.
inline constexpr const char* notes_folder = "experiments/35-reading-notes";

inline constexpr int least_choices = 5;

struct Report {
  std::vector<Finding> findings;       // by file in the order that the lab asks for them, then by line
  std::vector<std::string> unjudged;   // one sentence each
  std::vector<Note> notes;             // those that could be read
  int choices = 0, citations = 0, judged_by_file = 0, judged_by_table = 0, figures = 0;

  bool passed() const;
};

struct CheckOptions {
  // The step of the run that a figure names, in ms: a folder of a run, or options of `train --device meta`. Where it is
  // empty, figures are not judged.
  std::function<base::Result<double>(const std::string& run)> step_ms;
  // The names of this project's switches and spans; empty: ties to them are not judged.
  std::vector<std::string> switches, spans;
  // Only these files are looked at ("fsdp-prefetch.md"), with the commit that each reads: a part of the lab asks for
  // one. Empty: all.
  std::vector<std::string> only;
  // How many choices a note needs; and whether it is finished, so that a closing and two figures are asked for.
  int choices = least_choices;
  bool finished = true;
};

// What one part of lab 03 asks for: "03a" two choices on Megatron, "03b" that note whole, "03c" the note on FSDP, "03d"
// and "" everything. Sets only, choices and finished. Errors: another part (those that there are, are named).
base::Status ask_for_part(const std::string& part, CheckOptions& options);

Report check_notes(const std::string& folder, const Sources& sources, const CheckOptions& options = {});

// The commit that the notes of `folder` name in `asked.commit_file`, or, where that file is missing, in the note itself;
// "" where none can be read.
std::string commit_of(const std::string& folder, const Asked& asked);

}  // namespace shardbook::reading
