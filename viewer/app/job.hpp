// app/job: one of the workbook's own commands at a time, as a child, without a frame waiting for it.
//
// The program is `./shardbook` of the project, and nothing else is ever started; what it is told was shown before. It runs
// in a process group of its own with no input, so that ending it ends all that it has started.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "engine/base/result.hpp"

namespace shardbook::app {

class Job {
 public:
  Job() = default;
  ~Job();                                    // ends what still runs
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Starts `root`/shardbook with these words, which writes lines of `columns` letters; 0: as it likes. Errors: one is
  // running; it cannot be started.
  base::Status start(const std::string& root, const std::vector<std::string>& words, int columns = 0);
  // Takes what it has said since. True: it has ended now. Never waits.
  bool poll();
  // Asks it to stop, as Ctrl-C does; two seconds later poll() ends it.
  void cancel();

  bool running() const { return child_ > 0; }
  bool cancelled() const { return cancelled_; }
  int code() const { return code_; }         // of the last that ended; 128 + signal where one ended it
  const std::string& command() const { return command_; }   // "./shardbook check 04a"
  const std::string& said() const { return said_; }         // output and errors together; its end, where it is over 256 KiB
  double seconds() const;                    // since its start, or how long it took

 private:
  using Clock = std::chrono::steady_clock;
  void take_output();

  pid_t child_ = -1;
  int output_ = -1;
  int code_ = 0;
  bool cancelled_ = false;
  std::string command_, said_;
  Clock::time_point began_, ended_, cancelled_at_;
};

// A line without the signs that colour it or write it over: what "\r" overwrites is gone.
std::string plain_output(const std::string& said);
// The last run folder that an output names, "" if none: "experiments/02_tensor_parallel/runs/20261122-1031".
std::string run_named_in(const std::string& said);
// The words of a command of the workbook's texts, "./shardbook run 02 --tp 2"; empty where it is none of ours, or holds what a
// shell would read as more than words.
std::vector<std::string> own_words(const std::string& command);

}  // namespace shardbook::app
