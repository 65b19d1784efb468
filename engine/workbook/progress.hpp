// workbook/progress: what has this learner done so far?
//
// One text file, experiments/progress.txt, an event a line, only appended to; the state follows from it and from the files
// as they are now:
//
//   2026-11-22 10:14 02b predicted step_tp2=1.5ms seal=5f3a
//   2026-11-22 10:31 02b failed rule=cause file=77ab01c2 "With collectives of 1 ns your step still grows"
//   2026-11-22 10:40 02b passed file=77ab01c2 seal=90c1
//
// Invariants: a line is written by one call under a lock, so two terminals never mix; a line that is no event is passed
// over and named; `predicted` and `passed` carry a seal over the rest of the line and the seed that stands above it, so a line that
// was changed later, or taken from another learner, does not count and is named. A seal keeps honest people honest: what
// counts in a course is checked anew by `grade`.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"

namespace shardbook::workbook {

struct Event {
  std::string time;                              // "2026-11-22 10:14"
  std::string part;                              // "02b"; "--": of no part
  std::string what;                              // "predicted"
  std::map<std::string, std::string> values;     // key=value; without the seal
  std::string said;                              // what stands in quotes
  int line = 0;
};

struct Progress {
  std::vector<Event> events;                     // as they stand in the file
  std::vector<std::string> problems;             // one sentence each: lines that do not count
  int seed = 0;                                  // of the last `seed` event
};

// The words of an event are `opened`, `predicted`, `failed`, `passed`, `hint`, `card`, `solution`, `reset`, `seed`,
// `traced` (a trace of one's own showed what its lab asks; nothing follows from it).
bool is_sealed(const std::string& what);

// `name` stands for the file in sentences.
Progress progress_of(const std::string& content, const std::string& name);
// Of root/experiments/progress.txt; nothing yet where there is none. Errors: it cannot be read, it is no text, or UTF-16 (with
// the line).
base::Result<Progress> read_progress(const std::string& root);

// The line of an event, without its line feed; sealed where that event is. Blanks in a value become '_', quotes in
// `said` become single ones.
std::string line_of(const Event& event, int seed);

// Appends, with today's date. `unless`, where given, is asked under the lock with what stands in the file by then: its
// sentence, if not empty, is the error, and nothing is written. Waits for another terminal that is writing, at most `seconds`.
// Errors: the folder or file cannot be written; another program holds it; read_progress's.
base::Status append(const std::string& root, Event event, std::string (*unless)(const Progress&, const Event&) = nullptr, double seconds = 10);

// "NAME:1 is UTF-16", "NAME:7 holds a byte of zero, which no text does"; "" where the content may be text.
std::string why_no_text(const std::string& content, const std::string& name);
// "2026-11-22 10:14", local time.
std::string now();
// Eight hex digits of a file's content: how a pass knows its file. Line ends and blanks at ends of lines do not count.
std::string file_hash(const std::string& content);

// What became of a part. `current_hash` is that of the learner's file as it is now, "" where there is none.
struct PartState {
  bool begun = false;
  bool passed = false;                                   // by a `passed` of the current file that no `failed` of it follows
  bool reopened = false;                                 // it was passed once, and is not now
  std::string passed_hash, passed_at;                    // of the last pass
  std::optional<std::map<std::string, std::string>> predicted;   // the first that was sealed
  int failures = 0, hints = 0;                           // failures: tries that did not pass; an open question is none
  bool solution_seen = false;                            // before the pass
  int minutes = 0;                                       // between its events, breaks over half an hour left out
  std::string last_failure;
};
PartState state_of(const Progress& progress, const std::string& part, const std::string& current_hash);

}  // namespace shardbook::workbook
