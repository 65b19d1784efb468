// reading/compare: what does the reference see that my notes do not, and the reverse?
//
// Choices are laid side by side by the places that they cite, for a place is what a program can compare. Two choices
// meet where citations of one file overlap or are near; where the notes were written at another commit than the
// reference, line numbers say nothing, and they meet by the names they cite. Whether a reason is the same, or better, the learner
// says with a mark: had, missed, differs, and why. Marks are kept in comparison.txt beside the notes, a line each.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/reading/note.hpp"

namespace shardbook::reading {

enum class Mark { none, had, missed, differs };
const char* name_of(Mark mark);
// Errors: no such mark (they are listed).
base::Result<Mark> mark_of(const std::string& word);

struct Side {
  std::string title, place;   // "layers.py:L694-L698": the citation that met, else the first
  int line = 0;               // of the note
};

// One choice of the reference.
struct Row {
  std::string note;           // "fsdp-prefetch.md"
  Side reference;
  std::vector<Side> mine;     // empty: cited there and not here
  Mark mark = Mark::none;
  std::string why;
};

struct Comparison {
  std::vector<Row> rows;                          // in the reference's order
  std::vector<std::pair<std::string, Side>> mine_alone;   // note, choice: cited here and not there
  std::vector<std::string> by_name;               // notes of another commit: compared by names
};

// Citations this many lines apart still name one place.
inline constexpr int near_lines = 5;

// What of a note is compared, and the commit it reads ("" where unknown: then lines are compared).
struct NoteAt {
  Note note;
  std::string commit;
};
// By name of the note; notes that only one side has are left out (a check says what is missing).
Comparison compare_notes(const std::vector<NoteAt>& mine, const std::vector<NoteAt>& reference);

// ---- Marks on disk: "fsdp-prefetch.md | One flat parameter a unit | missed | I took it for granted" ------------

inline constexpr const char* marks_file = "comparison.txt";
// Sets the marks of the rows that the text has. Errors: a line that is none, with its number. Lines whose choice the
// reference no longer has are kept in `kept`.
base::Status read_marks(const std::string& text, Comparison& comparison, std::vector<std::string>& kept);
std::string marks_text(const Comparison& comparison, const std::vector<std::string>& kept);

// What this comparison cannot tell, a sentence each.
std::vector<std::string> not_judged(const Comparison& comparison);

}  // namespace shardbook::reading
