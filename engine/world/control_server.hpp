// world/control_server: the one place that all ranks of a run talk to.
//
// Idea: a thread in rank 0's process that gathers the ranks, completes their collective calls,
// watches their beats, settles the first cause of a failure and the last step of a stop, and sees
// them all out.
//
// Invariants:
//   - the first cause is settled once. A rank's report is held back for 200 ms: should a connection
//     close without a word in that time, that death is the cause and the report was its echo;
//   - a stop at step S is decided only when every rank has promised not to pass S unasked, and a
//     rank's service thread promises without its training thread, so the decision never waits for a
//     step (see step_ended in processes.cpp);
//   - the thread never blocks but in poll;
//   - a rank that is stopped when the run has failed is killed, if it is of this host: it would hear of nothing;
//   - a stranger (secret.hpp) can say one hello and one proof, of bounded length, in a bounded time; strangers are
//     bounded in number, and the one who waits longest goes first. None changes the state of the run.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/world/inquiry.hpp"
#include "engine/world/processes.hpp"
#include "engine/world/wire.hpp"

namespace shardbook::world {

class ControlServer {
 public:
  // Serves `launch.place.size` ranks on `listener`, which it owns from now on.
  ControlServer(Listener listener, const Launch& launch, const ProcessOptions& options);
  // Returns when all ranks have left, or `patience_after_failure` after a failure.
  ~ControlServer();

 private:
  using Clock = std::chrono::steady_clock;

  // A connection; a stranger's until its proof was accepted, of a known rank (`hello`) from then on.
  struct Peer {
    explicit Peer(int fd) : channel(fd) {}
    Channel channel;
    std::optional<Hello> said;
    std::string expected_proof;
    std::optional<Hello> hello;
    Clock::time_point came = Clock::now();
    Clock::time_point last_heard;
    bool reported = false;
    bool left = false;
    bool in_call = false;
    std::string contribution;
    std::optional<std::int64_t> promised_step;
  };

  void serve();
  void serve_round();
  void wait_for_events();
  void accept_peers();
  void handle(Peer& peer, const Frame& frame);
  void challenge(Peer& peer, const std::string& payload);
  void admit(Peer& peer, const std::string& proof);
  void forget_stranger();
  void all_here();
  void join_call(Peer& peer, const std::string& payload);
  void check_departures();
  void take_claims(const Peer& peer, const std::string& payload);
  void check_inquiry();
  void propose_stop();
  void decide_stop();
  void handle_closed(Peer& peer);
  void check_times();
  void fail(const std::string& cause);
  void send_all(Kind kind, std::string_view payload = {});
  bool finished() const;
  bool is_stopped(const Peer& peer) const;
  void end_stopped() const;
  std::string missing_ranks() const;
  static std::string describe(const Peer& peer);

  const Listener listener_;
  const Launch launch_;
  const ProcessOptions options_;
  const std::string host_ = host_name();
  const std::string clock_id_ = clock_id();
  const std::string pid_space_ = pid_space();
  const Clock::time_point start_ = Clock::now();

  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<Peer*> by_rank_;
  int arrived_ = 0;
  int left_ = 0;
  Clock::time_point last_left_time_;
  // The collective call under way.
  int in_call_ = 0;
  std::string call_name_;
  base::Rank first_caller_ = 0;
  // The failure.
  std::optional<std::string> report_;
  Clock::time_point report_time_;
  std::optional<std::string> cause_;
  Clock::time_point cause_time_;
  // What ranks say of themselves.
  Claims claims_;
  Inquiry inquiry_;
  // The stop.
  bool stop_proposed_ = false;
  bool stop_decided_ = false;
  // The watch.
  Clock::time_point last_round_ = Clock::now();
  Clock::time_point last_beat_ = Clock::now();
  Clock::time_point no_accept_until_;
  std::thread thread_;
};

}  // namespace shardbook::world
