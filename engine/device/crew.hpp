// device/crew: how do several processors work on one op of the host?
//
// An op is cut into parts, and threads that wait for nothing else take part after part. Which thread takes which follows
// from chance, so parts must not depend on each other; what an op computes does not depend on how many threads there are.
//
// Invariant: run() has ended for all threads when it returns, so what a part refers to may go then.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace shardbook::device {

class Crew {
 public:
  // `threads` in all, the one that calls run() included.
  explicit Crew(int threads);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int threads() const { return static_cast<int>(others_.size()) + 1; }
  // Calls `part` once for each of 0 … parts − 1, which must not throw. One caller at a time.
  void run(std::int64_t parts, const std::function<void(std::int64_t)>& part);

 private:
  void serve();
  void take_parts(const std::function<void(std::int64_t)>& part, std::int64_t parts);

  std::mutex mutex_;
  std::condition_variable begun_, ended_;
  std::uint64_t op_ = 0;          // counts calls of run()
  bool over_ = false;
  int busy_ = 0;                  // others that have not ended with this op
  std::int64_t parts_ = 0;
  const std::function<void(std::int64_t)>* part_ = nullptr;
  std::atomic<std::int64_t> next_ = 0;
  std::vector<std::thread> others_;
};

// Processors that this thread may use (its affinity), at least 1: a rank that we start keeps to its share of the node's.
int processors_here();

}  // namespace shardbook::device
