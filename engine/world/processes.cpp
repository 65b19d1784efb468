// world/processes: one rank's side of the control connection.
//
// Idea: a service thread reads the connection and turns frames into state under one mutex; the
// rank's own thread writes calls and sleeps on that state.
//
// Invariant of the stop: the service thread answers a proposal with the last ended step k and from
// then on step_ended(k + 1) does not return before the decision. All ranks being so held at most at
// k_r + 1, S = max k_r + 1 can be reached by all and has been passed by none.
#include "engine/world/processes.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include "engine/base/signals.hpp"
#include "engine/world/cause.hpp"
#include "engine/world/control_server.hpp"
#include "engine/world/process_state.hpp"
#include "engine/world/rendezvous.hpp"
#include "engine/world/secret.hpp"
#include "engine/world/threads.hpp"
#include "engine/world/wire.hpp"

namespace shardbook::world {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class ProcessWorld final : public World {
 public:
  ProcessWorld(Place place, Welcome welcome, const ProcessOptions& options)
      : World(place, std::make_shared<FailureNotice>()), options_(options),
        channel_(std::move(welcome.channel)), server_(std::move(welcome.server)), server_pid_(welcome.server_pid),
        same_clock_(welcome.same_clock && options.trust_shared_clock), wake_fd_(eventfd(0, EFD_CLOEXEC)) {
    for (const Frame& frame : welcome.early) handle(frame);
    service_ = std::thread([this] { serve(); });
  }
  ~ProcessWorld() override {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    wake_service();
    service_.join();
    close(wake_fd_);
  }

  bool shares_memory() const override { return false; }

  void await_all() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, 100ms, [this] { return failed() || all_here_; })) {
      if (base::stop_signal() != 0) throw base::Failure("was asked to stop while it waited for the other ranks");
    }
    throw_if_failed();
  }

  // Goodbye, and wait until all have said it.
  void leave() {
    std::unique_lock lock(mutex_);
    send(Kind::goodbye);
    await(lock, [this] { return all_left_; });
  }

  void fail(const std::string& cause) override {
    std::lock_guard lock(mutex_);
    send(Kind::failure, Writer().string(cause).bytes());
  }

  // Fails, and waits for the cause that the server settles on.
  void fail_and_wait(const std::string& cause) {
    fail(cause);
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 2s, [this] { return failed(); });
    lock.unlock();
    if (!failed()) publish(base::text(describe_rank(rank(), getpid(), host_name()), ": ", cause));
  }

  ClockOffset measure_clock(int rounds) override {
    SHARDBOOK_CHECK(rounds >= 1, "measure_clock needs at least one round");
    // Ranks that read the server's own clock are done; the others measure one after the other.
    const auto needs = all_gather(same_clock_ || rank() == 0 ? "" : "measure");
    ClockOffset best;
    for (int turn = 0; turn < size(); ++turn) {
      if (needs[turn].empty()) continue;
      if (turn == rank()) best = ping(rounds);
      barrier();
    }
    return best;
  }

  std::vector<Account> ask_all(std::chrono::milliseconds patience) override {
    std::unique_lock lock(mutex_);
    throw_if_failed();
    accounts_.reset();
    send(Kind::ask, Writer().integer(patience.count()).bytes());
    await(lock, [this] { return accounts_.has_value(); });
    return *accounts_;
  }

  void claim(std::int64_t step, const std::vector<Claim>& claims) override {
    if (claims.empty()) return;
    Writer writer;
    writer.integer(step).integer(static_cast<std::int64_t>(claims.size()));
    for (const Claim& one : claims) {
      writer.integer(static_cast<std::int64_t>(one.what)).integer(one.of).integer(static_cast<std::int64_t>(one.value));
    }
    std::lock_guard lock(mutex_);
    send(Kind::claim, writer.bytes());
  }

  void request_stop() override {
    std::lock_guard lock(mutex_);
    if (std::exchange(stop_requested_, true)) return;
    send(Kind::stop_request);
  }

  bool step_ended(std::int64_t step) override {
    if (base::stop_signal() != 0) request_stop();
    std::unique_lock lock(mutex_);
    last_step_ = step;
    if (held_at_ && step >= *held_at_) await(lock, [this] { return stop_after_.has_value(); });
    throw_if_failed();
    return stop_after_ && step >= *stop_after_;
  }

 protected:
  std::vector<std::string> exchange(Call call, base::Rank root, std::string_view mine) override {
    const bool is_sent = call == Call::all_gather || call == Call::gather || (call == Call::broadcast && rank() == root);
    Writer writer;
    writer.integer(static_cast<int>(call)).integer(root).string(is_sent ? mine : std::string_view{});
    std::unique_lock lock(mutex_);
    throw_if_failed();
    result_.reset();
    send(Kind::call, writer.bytes());
    await(lock, [this] { return result_.has_value(); });
    return std::move(*result_);
  }

 private:
  // REQUIRES (send, await, handle): the mutex is held. Throws the first cause once there is one.
  template <class Predicate>
  void await(std::unique_lock<std::mutex>& lock, Predicate is_there) {
    changed_.wait(lock, [&] { return failed() || is_there(); });
    throw_if_failed();
  }

  void send(Kind kind, std::string_view payload = {}) {
    channel_->send(kind, payload);
    if (channel_->wants_to_write()) wake_service();
  }

  void wake_service() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t count = write(wake_fd_, &one, sizeof one);
  }

  void publish(const std::string& cause) {
    notice_->publish(cause);
    { std::lock_guard lock(mutex_); }
    changed_.notify_all();
  }

  ClockOffset ping(int rounds) {
    ClockOffset best{0, INT64_MAX, 0};
    for (int round = 0; round < rounds; ++round) {
      std::unique_lock lock(mutex_);
      pong_.reset();
      const base::Nanoseconds sent = now();
      send(Kind::ping);
      await(lock, [this] { return pong_.has_value(); });
      // The server read its clock at some time between the two readings here.
      const base::Nanoseconds half_trip = (pong_->received - sent + 1) / 2;
      if (half_trip < best.error) best = {pong_->server_time - (sent + half_trip), half_trip, sent + half_trip};
    }
    return best;
  }

  void serve();
  void handle(const Frame& frame);

  struct Pong {
    base::Nanoseconds server_time;
    base::Nanoseconds received;
  };

  const ProcessOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // All below under the mutex.
  std::unique_ptr<Channel> channel_;
  const std::string server_;
  const pid_t server_pid_;   // 0 where it is not ours to end
  const bool same_clock_;
  const int wake_fd_;
  bool closing_ = false;
  bool all_here_ = false;
  bool all_left_ = false;
  std::optional<std::vector<std::string>> result_;
  std::optional<Pong> pong_;
  std::optional<std::vector<Account>> accounts_;
  bool stop_requested_ = false;
  std::int64_t last_step_ = -1;
  std::optional<std::int64_t> held_at_;
  std::optional<std::int64_t> stop_after_;
  std::string failed_cause_;
  std::thread service_;
};

void ProcessWorld::serve() {
  const auto interval = std::max(options_.heartbeat_timeout / 4, 10ms);
  auto last_heard = Clock::now();
  auto last_beat = last_heard;
  auto last_round = last_heard;
  std::optional<Clock::time_point> failed_since;
  while (true) {
    // Wait for the server, for our own thread, or for the next beat.
    pollfd waits[2] = {{channel_->fd(), POLLIN, 0}, {wake_fd_, POLLIN, 0}};
    bool connected = true;
    {
      std::lock_guard lock(mutex_);
      if (closing_) return;
      connected = !channel_->closed();
      if (channel_->wants_to_write()) waits[0].events |= POLLOUT;
      if (!connected) waits[0].fd = -1;
    }
    poll(waits, 2, static_cast<int>(std::min<std::int64_t>(interval.count(), 100)));
    std::uint64_t count = 0;
    if (waits[1].revents != 0) [[maybe_unused]] const ssize_t read_bytes = read(wake_fd_, &count, sizeof count);

    // What came, and our own sign of life.
    const auto time = Clock::now();
    if (time - last_round > 1s) last_heard += time - last_round;
    last_round = time;
    bool lost = false;
    std::string cause;
    {
      std::lock_guard lock(mutex_);
      channel_->flush();
      const std::uint64_t heard_before = channel_->bytes_received();
      for (const Frame& frame : channel_->receive()) handle(frame);
      if (channel_->bytes_received() > heard_before) last_heard = time;
      if (time - last_beat > interval) {
        last_beat = time;
        channel_->send(Kind::beat);
      }
      lost = channel_->closed() && !all_left_;
      cause = failed_cause_;
    }
    changed_.notify_all();

    // The end of the server is a failure too.
    if (!cause.empty()) {
      publish(cause);
    } else if (lost) {
      publish(base::text(server_, ", which serves the control connections, ", silent_end, " (killed?)"));
    } else if (time - last_heard > options_.heartbeat_timeout) {
      publish(server_ + ", which serves the control connections, has been silent (stopped, or its host is down?)");
      // As the server does with the others: see control_server.hpp
      if (server_pid_ != 0 && state_of_process(server_pid_) == ProcessState::stopped) ::kill(server_pid_, SIGKILL);
    }
    if (failed() && !failed_since) failed_since = time;
    if (failed_since && options_.patience_after_failure.count() > 0 &&
        time - *failed_since > options_.patience_after_failure) {
      tell_parent(notice_->cause());
      std::fprintf(stderr, "%s. Rank %d did not end within %lld ms after it; ending the process.\n",
                   notice_->cause().c_str(), rank(), static_cast<long long>(options_.patience_after_failure.count()));
      std::_Exit(1);
    }
  }
}

void ProcessWorld::handle(const Frame& frame) {
  Reader reader(frame.payload);
  switch (frame.kind) {
    case Kind::all_here:
      place_.node = static_cast<int>(reader.integer());
      all_here_ = true;
      return;
    case Kind::result: {
      std::vector<std::string> strings(reader.count());
      for (std::string& one : strings) one = reader.string();
      if (reader.ended()) result_ = std::move(strings);
      else failed_cause_ = server_ + " sent what no control server sends; do all ranks run the same build?";
      return;
    }
    case Kind::failed: failed_cause_ = reader.string(); return;
    case Kind::pong: pong_ = Pong{reader.integer(), now()}; return;
    case Kind::stop_proposal:
      held_at_ = last_step_ + 1;
      channel_->send(Kind::stop_promise, Writer().integer(last_step_).bytes());
      return;
    case Kind::stop_decision: stop_after_ = reader.integer() + 1; return;
    case Kind::all_left: all_left_ = true; return;
    case Kind::asked: channel_->send(Kind::account, Writer().string(account()).bytes()); return;
    case Kind::accounts: {
      std::vector<Account> all(reader.count(3 * 8));
      for (Account& one : all) {
        one.name = reader.string();
        one.absent = reader.string();
        one.said = reader.string();
      }
      if (reader.ended()) accounts_ = std::move(all);
      return;
    }
    case Kind::dispute: {
      Dispute dispute;
      dispute.step = reader.integer();
      dispute.what = static_cast<std::uint64_t>(reader.integer());
      dispute.one = static_cast<base::Rank>(reader.integer());
      dispute.other = static_cast<base::Rank>(reader.integer());
      if (reader.ended()) set_dispute(dispute);
      return;
    }
    default: return;
  }
}

base::Status run_connected(const Launch& launch, const RankMain& main, const ProcessOptions& options) {
  const char* home = std::getenv("HOME");
  const base::Result<std::string> secret = shared_secret(launch, home != nullptr ? home : "");
  if (!secret) return secret.as_error();
  std::unique_ptr<ControlServer> server;
  Launch found = launch;
  found.secret = secret.value();
  if (launch.place.rank == 0) {
    auto listener = open_server(launch);
    if (!listener.ok()) return listener.as_error();
    server = std::make_unique<ControlServer>(listener.value(), found, options);
    found.port = listener.value().port;
    found.port_candidates = 1;
    found.address = listener.value().address;
  }
  auto welcome = find_server(found, options);
  if (!welcome.ok()) return welcome.as_error();
  // Who started the ranks ends what is stopped, where it is ourselves
  if (launch.launcher == Launcher::shardbook) welcome.value().server_pid = 0;

  ProcessWorld world(launch.place, std::move(welcome).value(), options);
  std::string thrown;
  try {
    world.await_all();
    main(world);
    world.leave();
  } catch (const std::exception& failure) {
    thrown = cause_of(failure);
  } catch (...) {
    thrown = "threw something that is no std::exception";
  }
  if (!thrown.empty() && !world.failed()) world.fail_and_wait(thrown);
  if (world.failed()) return base::Error{world.cause()};
  return base::Done{};
}

}  // namespace

void tell_parent(const std::string& cause) {
  const char* fd = std::getenv("SHARDBOOK_REPORT_FD");
  if (fd == nullptr) return;
  const std::string line = cause + "\n";
  [[maybe_unused]] const ssize_t count = write(std::atoi(fd), line.data(), line.size());
}

void hold_parent() {
  const char* fd = std::getenv("SHARDBOOK_REPORT_FD");
  if (fd != nullptr) [[maybe_unused]] const ssize_t count = write(std::atoi(fd), hold_line.data(), hold_line.size());
}

base::Result<ProcessOptions> process_options(const Environment& environment) {
  ProcessOptions options;
  const auto read = [&](const char* name, std::chrono::milliseconds& into) -> base::Status {
    const auto value = environment(name);
    if (!value) return base::Done{};
    char* end = nullptr;
    const double seconds = std::strtod(value->c_str(), &end);
    if (value->empty() || *end != '\0' || !(seconds > 0) || seconds > 1e6) {
      return base::Error{base::text(name, " is '", *value, "'; it must be a number of seconds above 0")};
    }
    into = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
    return base::Done{};
  };
  if (auto status = read("SHARDBOOK_CONNECT_TIMEOUT_S", options.connect_timeout); !status.ok()) return status.as_error();
  if (auto status = read("SHARDBOOK_HEARTBEAT_TIMEOUT_S", options.heartbeat_timeout); !status.ok()) return status.as_error();
  return options;
}

base::Status run_process(const Launch& launch, const RankMain& main, const ProcessOptions& options) {
  if (launch.place.size == 1) return run_threads(1, main, {options.patience_after_failure});
  base::Status status = run_connected(launch, main, options);
  if (!status.ok()) tell_parent(status.error());
  return status;
}

}  // namespace shardbook::world
