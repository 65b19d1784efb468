#include "engine/comm/loopback/roll.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <ctime>
#include <thread>

#include "engine/base/check.hpp"

namespace shardbook::comm {

namespace {

using Number32 = std::atomic_ref<std::uint32_t>;

constexpr int turns_before_sleep = 4;

// Sleeps while the number is `seen`, at most 20 ms; across processes, which std::atomic's own wait is not.
void sleep_while(std::uint32_t& number, std::uint32_t seen) {
  const timespec longest{0, 20'000'000};
  ::syscall(SYS_futex, &number, FUTEX_WAIT, seen, &longest, nullptr, 0);
}
void wake_all(std::uint32_t& number) { ::syscall(SYS_futex, &number, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0); }

Presence presence_of(RollSheet::Row& row) { return static_cast<Presence>(Number32(row.presence).load()); }

}  // namespace

RollSheet::Row& Roll::row_of(base::Rank rank) const {
  SHARDBOOK_CHECK(rank >= 0 && rank < most_ranks, "rank ", rank, " of at most ", most_ranks);
  const std::uint32_t count = static_cast<std::uint32_t>(rank) + 1;
  std::uint32_t before = Number32(sheet_->ranks).load();
  while (before < count && !Number32(sheet_->ranks).compare_exchange_weak(before, count)) {}
  return sheet_->rows[static_cast<std::size_t>(rank)];
}

int Roll::ranks() const { return static_cast<int>(Number32(sheet_->ranks).load()); }

void Roll::expect(base::Rank rank) {
  std::uint32_t unknown = static_cast<std::uint32_t>(Presence::unknown);
  Number32(row_of(rank).presence).compare_exchange_strong(unknown, static_cast<std::uint32_t>(Presence::expected));
}

void Roll::enter(base::Rank rank) {
  RollSheet::Row& row = row_of(rank);
  Number32(row.waits).store(0);
  Number32(row.presence).store(static_cast<std::uint32_t>(Presence::here));
  changed();
}

void Roll::leave(base::Rank rank, bool by_failure) {
  RollSheet::Row& row = row_of(rank);
  Number32(row.presence).store(static_cast<std::uint32_t>(by_failure ? Presence::failed : Presence::returned));
  Number32(row.waits).store(0);
  changed();
}

void Roll::changed() {
  Number32(sheet_->events).fetch_add(1);
  if (Number32(sheet_->sleepers).load() > 0) wake_all(sheet_->events);
}

bool Roll::await_change(base::Rank rank, std::uint32_t& seen) {
  RollSheet::Row& row = row_of(rank);
  if (Number32(sheet_->events).load() == seen) {
    Number32(row.looked).store(seen);
    Number32(row.waits).store(1);
    if (all_wait(seen)) return true;
    // Whom it waits for may be what runs here next: that is had for less than a sleep and being woken
    for (int turn = 0; turn < turns_before_sleep && Number32(sheet_->events).load() == seen; ++turn) std::this_thread::yield();
    Number32(sheet_->sleepers).fetch_add(1);
    sleep_while(sheet_->events, seen);
    Number32(sheet_->sleepers).fetch_sub(1);
  }
  const std::uint32_t now = Number32(sheet_->events).load();
  if (now != seen) Number32(row.waits).store(0);
  seen = now;
  return false;
}

bool Roll::all_wait(std::uint32_t seen) const {
  const std::uint32_t ranks = Number32(sheet_->ranks).load();
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    RollSheet::Row& row = sheet_->rows[rank];
    switch (presence_of(row)) {
      // Others wait for a rank that failed: its cause is the first, and no deadlock.
      case Presence::expected: case Presence::failed: return false;
      case Presence::here:
        if (Number32(row.waits).load() == 0 || Number32(row.looked).load() != seen) return false;
        break;
      case Presence::unknown: case Presence::returned: break;
    }
  }
  return Number32(sheet_->events).load() == seen;
}

Presence Roll::presence(base::Rank rank) const { return presence_of(row_of(rank)); }
bool Roll::waits(base::Rank rank) const { return Number32(row_of(rank).waits).load() != 0; }

}  // namespace shardbook::comm
