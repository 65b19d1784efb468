// workbook/exercise: does this one file do what its exercise asks?
//
// The file is compiled alone and linked with what judges it (a static library that the project's build has made; its
// recipe is labs/NNa.json of the build folder), in a scratch folder. The program runs as a child with limits, and writes
// its findings into a file. Whatever the learner's code does instead of returning (it never ends, waits for ever, eats the
// memory, crashes, ends the program, writes outside its folder) becomes one finding like any other.
#pragma once

#include <functional>
#include <string>

#include "engine/base/result.hpp"
#include "engine/workbook/lab.hpp"
#include "engine/workbook/verdict.hpp"

namespace shardbook::workbook {

// Who judges notes: a room above this one, of the folder that holds them.
using JudgeNotes = std::function<base::Result<Verdict>(const std::string& root, const Place& place, const std::string& folder)>;

// The rule of a finding that is the machine's fault, and not the learner's: nothing follows from it.
inline constexpr const char* starved_rule = "starved";

struct TrialOptions {
  std::string build_folder;                       // "": that of this program
  double seconds = 20;                            // then it "never ends"
  double patience = 6;                            // ... and of a program that is not let run, so many times that
  double idle_seconds = 5;                        // without any CPU: a deadlock
  long long memory = 2LL << 30;                   // bytes of data; two ranks of the tutor and a BLAS take two thirds of a gibibyte
  int seed = 0;                                   // passed on where it is not 0
  bool strict = false;                            // a warning of the compiler is an error
  JudgeNotes notes;                               // for parts of kind notes
};

// What is said of this file, whatever the kind of its part. Of answers, the file is judged against the lab's facts.
// Errors: those below, and what keeps answers from being judged; notes that nobody judges.
base::Result<Verdict> judge(const std::string& root, const Place& place, const std::string& file, const TrialOptions& options = {});

// `file` is an absolute path; `root` is the project's. A file that cannot be compiled, or misbehaves, is a verdict.
// Errors: what is nothing of the learner's: no recipe (says what to build), no compiler, no scratch folder, a program that
// ends well and leaves no findings that can be read.
base::Result<Verdict> try_exercise(const std::string& root, const Place& place, const std::string& file, const TrialOptions& options = {});

// Makes the library of the part's exercise where it is not there or older than its sources.
// Errors: the first line of what the build said.
base::Status provide_exercise(const std::string& root, const Place& place, const std::string& build_folder);

// The folder in which this program was built.
std::string own_build_folder();

// The first error that a compiler or linker printed, as a finding of `file`; what to do where the message is a known one.
// `said` is all that it printed; `root` is taken off paths.
Finding first_error(const std::string& said, const std::string& root, const std::string& file, const std::string& header);

// The findings that an exercise's program has written. Errors: not JSON, or not of this form; `path` names it.
base::Result<Verdict> verdict_from_json(const std::string& content, const std::string& path);

}  // namespace shardbook::workbook
