#include "engine/device/crew.hpp"

#include <sched.h>

#include <algorithm>

namespace shardbook::device {

Crew::Crew(int threads) {
  for (int other = 1; other < threads; ++other) others_.emplace_back([this] { serve(); });
}

Crew::~Crew() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  begun_.notify_all();
  for (std::thread& other : others_) other.join();
}

void Crew::run(std::int64_t parts, const std::function<void(std::int64_t)>& part) {
  {
    const std::lock_guard lock(mutex_);
    part_ = &part;
    parts_ = parts;
    next_ = 0;
    busy_ = static_cast<int>(others_.size());
    ++op_;
  }
  begun_.notify_all();
  take_parts(part, parts);
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return busy_ == 0; });
}

void Crew::serve() {
  std::uint64_t done = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    begun_.wait(lock, [&] { return over_ || op_ != done; });
    if (over_) return;
    done = op_;
    const std::function<void(std::int64_t)>& part = *part_;
    const std::int64_t parts = parts_;
    lock.unlock();
    take_parts(part, parts);
    lock.lock();
    if (--busy_ == 0) ended_.notify_one();
  }
}

void Crew::take_parts(const std::function<void(std::int64_t)>& part, std::int64_t parts) {
  for (std::int64_t at = next_++; at < parts; at = next_++) part(at);
}

int processors_here() {
  cpu_set_t mine;
  return sched_getaffinity(0, sizeof mine, &mine) == 0 ? std::max(1, CPU_COUNT(&mine)) : 1;
}

}  // namespace shardbook::device
