#include "engine/comm/watch.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "engine/base/result.hpp"
#include "engine/program/recorder.hpp"

namespace shardbook::comm {

using namespace std::chrono_literals;

Poll::Poll(std::chrono::milliseconds interval, std::function<void()> act)
    : thread_([this, interval, act = std::move(act)] {
        std::unique_lock lock(mutex_);
        while (!changed_.wait_for(lock, interval, [this] { return ends_; })) {
          lock.unlock();
          act();
          lock.lock();
        }
      }) {}

Poll::~Poll() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

namespace {

// Often enough that a short time limit is kept within a twentieth.
std::chrono::milliseconds interval_of(std::chrono::milliseconds timeout) {
  return timeout.count() == 0 ? 200ms : std::clamp<std::chrono::milliseconds>(timeout / 20, 10ms, 200ms);
}

// Who does not answer within that is not there.
constexpr auto patience_with_answers = 1500ms;

}  // namespace

Watch::Watch(world::World& world, Flight& flight, std::chrono::milliseconds timeout)
    : world_(world), flight_(flight), timeout_(timeout), poll_(interval_of(timeout), [this] { look(); }) {
  world_.set_account([this] { return flight_.account(world_.size()); });
}

Watch::~Watch() { world_.set_account({}); }

// By the clock of this thread's looks: after a gap the calls' ends have not been looked at either.
base::Nanoseconds Watch::waited() const {
  const base::Nanoseconds now = program::host_now();
  return std::min(flight_.longest_wait(now), now - looks_since_);
}

void Watch::look() {
  const base::Nanoseconds now = program::host_now();
  constexpr base::Nanoseconds gap = 2'000'000'000;
  if (looked_ == 0 || now - looked_ > gap) looks_since_ = now;
  looked_ = now;
  if (told_ || world_.failed()) return;
  try {
    for (const Flight::Claims& claims : flight_.claims_after(claimed_)) {
      world_.claim(claims.step, claims.claims);
      claimed_ = claims.step;
    }
    const std::optional<world::Dispute> dispute = world_.dispute();
    if (dispute && dispute->one == world_.rank()) return settle(*dispute);

    const base::Nanoseconds limit = std::chrono::nanoseconds(timeout_).count();
    if (limit == 0 || waited() < limit) return;
    const check::Verdict verdict = ask_and_judge(world_, patience_with_answers);
    looked_ = program::host_now();
    // It may have ended while the ranks were asked.
    if (verdict.blame == check::Blame::nobody || waited() < limit) return;
    // All that wait come to the same verdict at about this time, and one says it. Should it not, another does.
    const base::Nanoseconds others_turn = limit + std::chrono::nanoseconds(patience_with_answers).count();
    if (verdict.speaker == world_.rank() || waited() >= others_turn) fail(verdict);
  } catch (const std::exception&) {
    // The run has failed meanwhile, and its cause is known.
  }
}

// Ranks differ, and maybe nothing hangs.
void Watch::settle(const world::Dispute& dispute) {
  const check::Verdict verdict = ask_and_judge(world_, patience_with_answers);
  if (verdict.blame == check::Blame::differs) return fail(verdict);
  told_ = true;
  world_.fail(base::text("by the end of step ", dispute.step, " ranks ", dispute.one, " and ", dispute.other,
                         " of a group had called different collectives, of which they no longer know; ./shardbook verify compares what the run recorded"));
}

void Watch::fail(const check::Verdict& verdict) {
  told_ = true;
  std::fprintf(stderr, "Where each rank is:\n%s", verdict.side_by_side.c_str());
  world_.fail(verdict.sentence);
}

}  // namespace shardbook::comm
