// labs/harness/verdict: what came of an exercise, and how is it handed on?
//
// A harness looks at what the learner's code issued and computed, and stops at the first thing that is wrong: one
// sentence that teaches, with the rank, layer, phase and line that it is about. What it found goes to a JSON file, which
// the command line reads; the exit code only says whether it was judged at all.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/program/program.hpp"

namespace shardbook::labs {

struct Finding {
  std::string rule;      // "race", "count", "exposed": which check it is of
  std::string message;   // the sentence
  int rank = -1, layer = -1;
  std::string phase;     // "forward", "backward", ...
  std::string span;      // the op: "all_reduce"
  program::SourceLine where = {};
  std::string page;      // what to read: "01_data_parallel#see"
};

class Verdict {
 public:
  // The first that fails is what the learner sees.
  void fail(Finding finding) { findings_.push_back(std::move(finding)); }
  bool failed() const { return !findings_.empty(); }
  const std::vector<Finding>& findings() const { return findings_; }
  // Five significant digits are kept, so that files of figures can be compared.
  void figure(const std::string& name, double value);
  std::string to_json() const;

 private:
  std::vector<Finding> findings_;
  std::vector<std::pair<std::string, double>> figures_;
};

// What the command line asks of a harness.
struct Request {
  std::string result;        // where the verdict goes
  std::uint64_t seed = 1234; // draws weights and data
};

using Judge = void (*)(const Request&, Verdict&);

// The main() of a harness: PROGRAM --result FILE.json [--seed N]. Returns 0 where it was judged, 2 for arguments that it
// does not know, 1 where nothing could be judged.
int run(int argc, char** argv, Judge judge);

// "5.63 ms" of nanoseconds; three significant digits.
std::string ms(double ns);
// "line 5": of the learner's file.
std::string line(const program::SourceLine& where);
// Whether this is a line of an exercise, and none of the engine or of a harness.
bool is_learners(const program::SourceLine& where);

}  // namespace shardbook::labs
