// base/signals: the flag behind Ctrl-C, set in a handler that does nothing else.
#include "engine/base/signals.hpp"

#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>

namespace shardbook::base {

namespace {

constexpr std::array<int, 4> watched{SIGINT, SIGTERM, SIGHUP, SIGPIPE};

std::atomic<int> first_signal{0};
std::atomic<std::int64_t> first_signal_ns{0};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free,
              "a signal handler may not take a lock");

// How many guards live, and what they found; under the mutex.
std::mutex guarding;
int guards = 0;
std::array<struct sigaction, watched.size()> former{};

void note_signal(int signal) {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t time_ns = std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  int none = 0;
  if (first_signal.compare_exchange_strong(none, signal)) {
    first_signal_ns.store(time_ns);
  } else if (signal != SIGPIPE && time_ns - first_signal_ns.load() > 1'000'000'000) {
    _exit(128 + signal);
  }
}

}  // namespace

SignalGuard::SignalGuard() {
  const std::lock_guard lock(guarding);
  if (guards++ > 0) return;
  first_signal_ns.store(INT64_MAX);
  first_signal.store(0);
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t at = 0; at < watched.size(); ++at) sigaction(watched[at], &action, &former[at]);
}

SignalGuard::~SignalGuard() {
  const std::lock_guard lock(guarding);
  if (--guards > 0) return;
  for (std::size_t at = 0; at < watched.size(); ++at) sigaction(watched[at], &former[at], nullptr);
  first_signal.store(0);
}

int stop_signal() noexcept { return first_signal.load(std::memory_order_relaxed); }

}  // namespace shardbook::base
