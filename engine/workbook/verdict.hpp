// workbook/verdict: what is said of a learner's work?
//
// Whatever judged it (an exercise's program, answers against facts, a reader of notes), a verdict has this form. The first
// finding is what the learner sees: one sentence of what was expected and what was found, and where.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace shardbook::workbook {

struct Finding {
  std::string rule;                        // "compile", "worst_error": one word, for the progress file and tests
  std::string message;                     // one sentence
  std::string file;                        // from the root; may be empty
  int line = 0;                            // 0: none
  std::string page;                        // what helps; may be empty
  std::string place;                       // "rank 2 · layer 3 · backward · all_gather"; may be empty
};

struct Verdict {
  bool passed = false;
  std::vector<Finding> findings;           // first things first; never empty where it did not pass
  std::map<std::string, double> figures;   // by name: "step_ms"
  double seconds = 0;                      // that the judging took
  std::vector<std::string> remarks;        // of a pass: what was not judged, and what is still to be done
};

}  // namespace shardbook::workbook
