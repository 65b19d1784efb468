// workbook/child: how is a program run that nobody has read?
//
// As a child in a process group of its own, in a folder of its own, with limits on time and memory. When it ends, or
// is ended, its whole group is, so nothing of it stays. What it says is kept up to a bound; a child that floods its
// output goes on without being heard.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/base/result.hpp"

namespace shardbook::workbook {

struct ChildOptions {
  std::string folder;                                        // where it runs; "": here
  double seconds = 20;                                       // then it is ended; later on a machine that is too busy to run it:
  double patience = 6;                                       // when it has taken so many times that, at the latest
  double idle_seconds = 0;                                   // ended when it has used no CPU for so long; 0: never
  long long memory = 0;                                      // bytes of data that it may ask for, stacks included; 0: no limit
  std::vector<std::pair<std::string, std::string>> variables;   // beside those of this process
};

struct ChildEnd {
  enum class Why { exited, signalled, out_of_time, idle };
  Why why = Why::exited;
  int code = 0;                                              // exited: the exit code; signalled: the signal
  std::string said;                                          // standard output and error, together; at most 64 KiB
  double seconds = 0;
  double cpu_seconds = 0;                                    // of all its threads, as far as known
};

// `words` are the program (looked up in PATH) and its arguments; its standard input is empty.
// Errors: it cannot be started; it was ended because this process is asked to stop (base/signals.hpp).
base::Result<ChildEnd> run_child(const std::vector<std::string>& words, const ChildOptions& options);

}  // namespace shardbook::workbook
