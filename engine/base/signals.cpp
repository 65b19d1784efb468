// base/signals: the flag behind Ctrl-C, set in a handler that does nothing else.
#include "engine/base/signals.hpp"

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace shardbook::base {

namespace {

constexpr std::array<int, 4> watched{SIGINT, SIGTERM, SIGHUP, SIGPIPE};

std::atomic<int> first_signal{0};
std::atomic<std::int64_t> first_signal_ns{0};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free,
              "a signal handler may not take a lock");

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
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t at = 0; at < watched.size(); ++at) sigaction(watched[at], nullptr, &former_[at]);
  if (!is_inner()) {
    first_signal_ns.store(INT64_MAX);
    first_signal.store(0);
  }
  for (const int signal : watched) sigaction(signal, &action, nullptr);
}

SignalGuard::~SignalGuard() {
  for (std::size_t at = 0; at < watched.size(); ++at) sigaction(watched[at], &former_[at], nullptr);
  if (!is_inner()) first_signal.store(0);
}

bool SignalGuard::is_inner() const { return former_.front().sa_handler == note_signal; }

int stop_signal() noexcept { return first_signal.load(std::memory_order_relaxed); }

}  // namespace shardbook::base
