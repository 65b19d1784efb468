// simulate/simulation: the event loop behind resolve().
//
// State is one host and its streams a rank, and one work item for what each stream runs and for each collective
// under way. The heap holds ends of work and starts of streams that wait for a known time. All that happens at
// one instant is taken together; then the rates of the devices it touched are set anew, which moves the ends of
// their work (an end in the heap whose version is old is passed over).
//
// Cost: O((ops + commands) · log(work under way)), times the ranks of a group where its rates change.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "engine/simulate/matching.hpp"
#include "engine/simulate/plan.hpp"
#include "engine/simulate/resolver.hpp"

namespace shardbook::simulate {

class Simulation {
 public:
  using Plans = std::vector<std::vector<const Plan*>>;
  Simulation(const std::vector<RankSteps>& ranks, const Plans& plans, const Matching& matching, const Machine& machine,
             const ResolveOptions& options);
  base::Result<Resolved> run();

 private:
  using Time = base::Nanoseconds;

  // What shrinks as time goes by: `remaining` ns of being alone, at 1/slowdown a nanosecond.
  struct Work {
    double remaining_ns = 0;
    double slowdown = 0;  // 0: not started, so that the first rate is a change
    Time since = 0;
    std::uint32_t version = 0;
    float shared_part = 0;
    float beside = 0;  // how many times as long its shared part takes beside a collective; 0: the machine's factor
  };
  struct Stream {
    std::uint32_t step = 0, at = 0;  // the item that comes next
    Time ready = 0;                  // after the events awaited so far
    Time last_end = 0;
    Time wake = -1;                  // in the heap for this time
    Time started = 0;
    Time held_since = -1;            // a collective that finds no room: since when
    program::OpIndex op = 0;         // of `running`
    std::uint32_t op_step = 0;
    bool has_run = false, running = false, is_gemm = false;
    bool fills = false;              // what runs leaves no room for a collective
    std::uint32_t lets_in = 0;       // ... but for those (Costs::lets_in)
    Time beside_since = -1;          // such a matmul that began beside a collective: when it began,
    double alone_ns = 0;             // ... what it takes without any, and beside one that stays,
    double beside_ns = 0;
    Time alone_since = -1;           // ... since when the collective has gone, if it has,
    double of_a_fluid_ns = 0;        // ... and what was left of it then, had its blocks gone on as they were
    bool is_apart = false;           // what runs is a copy engine's or the CPU's, and shares nothing
    Work work;
  };
  struct Resident {
    std::uint32_t instance = 0, arrival = 0;
  };
  enum class HostState : std::uint8_t { goes, waits, drains, done };
  struct RankState {
    std::uint32_t step = 0, command = 0, next_wait = 0;  // the host's: commands before `command` are issued
    HostState host = HostState::goes;
    bool in_step = false;
    Time time = 0;
    std::vector<Stream> streams;
    std::vector<std::vector<Time>> slot_time;             // [step][slot], -1 = not yet
    std::vector<std::vector<std::uint32_t>> slot_waiters; // [step][slot], a bit a stream, host_bit
    std::vector<std::uint32_t> collective_base;           // [step]: collectives of the steps before
    std::vector<std::vector<std::uint32_t>> group_base;   // [step][group]
    std::vector<std::uint32_t> group_arrived;             // [group]
    std::vector<bool> group_busy;                         // [group]
    std::uint32_t arrived = 0;                            // collectives that have started here
    std::uint32_t blocked_on_order = 0;                   // streams, a bit each
    std::uint32_t blocked_on_room = 0;
    std::vector<Resident> residents;
    bool is_dirty = false;
  };
  struct Arrival {
    std::uint32_t rank = 0;
    std::uint32_t stream = 0;
    float slowdown = 1;
  };
  struct Running {
    std::uint32_t first_arrival = 0, arrived = 0;
    Time last_arrival = 0;
    bool is_dirty = false, transfers = false;
    Work work;
  };
  enum class What : std::uint8_t { end_of_collective, end_of_op, start };
  struct Happening {
    Time time = 0;
    What what = What::start;
    std::uint32_t id = 0;  // instance, or rank * streams_a_rank_ + stream
    std::uint32_t version = 0;
    bool operator>(const Happening& other) const {
      if (time != other.time) return time > other.time;
      if (what != other.what) return what > other.what;
      if (id != other.id) return id > other.id;
      return version > other.version;
    }
  };

  // Hosts and streams.
  void run_host(std::uint32_t rank);
  bool host_passes(std::uint32_t rank, const HostWait& wait);
  void advance(std::uint32_t rank, std::uint32_t stream);
  bool passes(std::uint32_t rank, std::uint32_t stream, std::uint32_t step, std::uint32_t slot);
  void complete(std::uint32_t rank, std::uint32_t step, std::uint32_t slot, Time time);
  bool find_earlier(std::uint32_t rank, std::uint32_t step, std::uint32_t event, std::uint32_t& found_step,
                    std::uint32_t& slot) const;
  // Ops and collectives.
  bool may_start(std::uint32_t rank, std::uint32_t step, std::uint32_t collective) const;
  bool finds_room(std::uint32_t rank, program::OpKind kind, bool was_held) const;
  void start(std::uint32_t rank, std::uint32_t stream, std::uint32_t step, program::OpIndex op);
  void arrive(std::uint32_t rank, std::uint32_t stream, std::uint32_t step, std::uint32_t collective);
  void end_op(std::uint32_t rank, std::uint32_t stream, Time wait_ns);
  void end_collective(std::uint32_t instance);
  // Rates.
  void touch(std::uint32_t rank);
  void set_rates();
  void set_rates_of(RankState& state, std::uint32_t rank);
  struct Held {
    double gemm_factor = 1;   // of a matmul without a factor of its own
    float part = 0;           // of the collectives, the part that is not latency
  };
  Held held_from(const RankState& state, const Stream& stream);
  void set_last_blocks(Stream& stream, double held_part);
  void set_rate(Work& work, double slowdown, What what, std::uint32_t id);
  const Contention& contention_of(std::uint32_t participants);

  void wake(std::uint32_t rank, std::uint32_t stream) { awake_.push_back(rank * streams_a_rank_ + stream); }
  void wake_all(std::uint32_t rank, std::uint32_t& blocked);
  std::string who_waits() const;
  std::string who_waits(std::uint32_t rank) const;

  static constexpr std::uint32_t host_bit = 1u << 31;

  const std::vector<RankSteps>& ranks_;
  const Plans& plans_;
  const Matching& matching_;
  const Machine& machine_;
  const ResolveOptions& options_;
  bool ordered_ = true;  // collectives of a communicator and a device keep their order

  std::uint32_t steps_ = 0;
  std::uint32_t streams_a_rank_ = 1;
  Time now_ = 0;
  std::vector<RankState> states_;
  std::vector<Running> running_;
  std::vector<Arrival> arrivals_;
  std::priority_queue<Happening, std::vector<Happening>, std::greater<>> heap_;
  std::vector<std::uint32_t> awake_, awake_hosts_;
  std::vector<std::uint32_t> dirty_ranks_, dirty_instances_;
  std::vector<Contention> contention_;  // by participants; ranks == 0: not looked up yet
  Resolved resolved_;
};

}  // namespace shardbook::simulate
