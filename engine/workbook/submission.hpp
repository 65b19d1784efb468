// workbook/submission: what does a teacher get, and what is it worth?
//
// A submission is one JSON file: name, seed, the progress file, the learner's own files of every part, and a seal over all
// of it. Grading believes none of that: each file is judged anew with the learner's seed, here. What the progress file says
// (tries, hints, minutes, predictions) is reported beside it, with what speaks against it: a broken seal, a progress line
// that does not count, a file that equals another's or the solution but for comments, blanks and names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/workbook/course.hpp"
#include "engine/workbook/exercise.hpp"

namespace shardbook::workbook {

struct Submission {
  std::string name;
  std::string made_at;
  std::string progress;                          // the file as it was
  std::map<std::string, std::string> files;      // by path from the root
  bool seal_holds = true;
};

// Of the learner here. Errors: a name that is empty; nothing to submit yet.
base::Result<Submission> submission_of(const Course& course, const std::string& name);
std::string to_json(const Submission& submission);
// Errors: no JSON, or not of this form; `path` names it.
base::Result<Submission> submission_from_json(const std::string& content, const std::string& path);

// A row of the table: one learner's one part.
struct Grade {
  std::string name, part;
  int seed = 0;
  bool handed_in = false, passed = false;
  std::string finding;                           // the first thing that is wrong, as judged here; "": passed, or nothing handed in
  int tries = 0, hints = 0, minutes = 0;
  bool solution_seen = false;                    // before the pass
  std::string predictions;                       // "shorter 1.95x, fault no"
  std::vector<std::string> equal_to;             // names of others, "the solution"
  std::vector<std::string> remarks;              // one sentence each
};

// All parts of all submissions. Errors: what keeps a file from being judged at all.
base::Result<std::vector<Grade>> grade(const Course& course, const std::vector<Submission>& submissions, const TrialOptions& options = {});
// With a heading; cells with commas or quotes are quoted, and none begins a formula.
std::string to_csv(const std::vector<Grade>& grades);

// The code without comments and blanks, and its own names numbered in order: equal for two that differ in nothing else.
std::string shape_of_code(const std::string& code);

}  // namespace shardbook::workbook
