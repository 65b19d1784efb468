// world/output: a file descriptor to write to without ever waiting for who reads it.
//
// Idea: who waited in write() for a pager whose page is full, or a terminal that was stopped, would meanwhile see neither signals
// nor children that end. What is not taken yet is kept, in order.
#pragma once

#include <string>

namespace shardbook::world {

class Output {
 public:
  // `fd` stays its owner's.
  explicit Output(int fd) : fd_(fd) {}
  // Writes it behind what waits, as far as that is taken now.
  void add(const std::string& text);
  // What waits, as far as it is taken now; gone where nobody reads any more (the process then has its SIGPIPE).
  void write_what_fits();
  bool waits() const { return !waiting_.empty(); }
  // So much waits that who has more to say should wait, too.
  bool is_full() const { return waiting_.size() >= most_waiting; }
  int fd() const { return fd_; }

 private:
  static constexpr std::size_t most_waiting = 256 << 10;
  int fd_;
  std::string waiting_;
};

}  // namespace shardbook::world
