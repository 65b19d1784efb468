// timeline/cores: threads that take the next index; see cores.hpp.
#include "engine/timeline/cores.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace shardbook::timeline {

void on_all_cores(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::mutex guard;
  std::size_t failed_at = count;
  std::exception_ptr failure;
  const auto take_turns = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard hold(guard);
        if (i < failed_at) {
          failed_at = i;
          failure = std::current_exception();
        }
      }
    }
  };
  // This thread works too. Where the system gives no further thread, those that there are do the rest.
  std::vector<std::thread> others;
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  try {
    while (others.size() + 1 < std::min(cores, count)) others.emplace_back(take_turns);
  } catch (const std::system_error&) {
  }
  take_turns();
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace shardbook::timeline
