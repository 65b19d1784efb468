#include "engine/simulate/simulation.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace shardbook::simulate {

using program::OpKind;

namespace {

bool fills(const Costs& costs, program::OpIndex op) { return !costs.fills.empty() && costs.fills[op]; }
std::uint32_t lets_in(const Costs& costs, program::OpIndex op) { return costs.lets_in.empty() ? 0 : costs.lets_in[op]; }

}  // namespace

Simulation::Simulation(const std::vector<RankSteps>& ranks, const Plans& plans, const Matching& matching,
                       const Machine& machine, const ResolveOptions& options)
    : ranks_(ranks), plans_(plans), matching_(matching), machine_(machine), options_(options) {
  steps_ = static_cast<std::uint32_t>(ranks.front().steps.size());
  for (program::EdgeKind kind : options.without) ordered_ = ordered_ && kind != program::EdgeKind::communicator;
  for (const RankSteps& rank : ranks) {
    streams_a_rank_ = std::max(streams_a_rank_, static_cast<std::uint32_t>(rank.catalogue->streams.size()));
  }
  SHARDBOOK_CHECK(streams_a_rank_ < 31, "more streams than bits: ", streams_a_rank_);

  // Room for all arrivals of a collective beside each other.
  running_.resize(matching.instances.size());
  std::uint32_t arrivals = 0;
  for (std::size_t at = 0; at < running_.size(); ++at) {
    running_[at].first_arrival = arrivals;
    arrivals += matching.instances[at].arrivals;
  }
  arrivals_.resize(arrivals);

  // Each rank at the start of its first step, each time unknown.
  states_.resize(ranks.size());
  resolved_.ranks.resize(ranks.size());
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    RankState& state = states_[at];
    RankTimes& times = resolved_.ranks[at];
    const std::size_t groups = ranks[at].catalogue->groups.size();
    times.rank = ranks[at].rank;
    state.time = ranks[at].start_ns;
    state.streams.resize(ranks[at].catalogue->streams.size());
    state.group_arrived.assign(groups, 0);
    state.group_busy.assign(groups, false);
    std::uint32_t collectives = 0;
    std::vector<std::uint32_t> of_group(groups, 0);
    for (std::uint32_t step = 0; step < steps_; ++step) {
      const Plan& plan = *plans[at][step];
      const program::Program& program = *ranks[at].steps[step].program;
      state.slot_time.emplace_back(plan.slots, -1);
      state.slot_waiters.emplace_back(plan.slots, 0);
      state.collective_base.push_back(collectives);
      state.group_base.push_back(of_group);
      collectives += static_cast<std::uint32_t>(plan.collectives.size());
      for (std::size_t group = 0; group < groups; ++group) of_group[group] += plan.group_collectives[group];
      program::StepTimes& step_times = times.steps.emplace_back();
      step_times.step = step;
      step_times.issued.resize(program.commands.size());
      step_times.ran.resize(program.ops.size());
      times.wait_ns.emplace_back(program.ops.size(), 0);
    }
  }
}

base::Result<Resolved> Simulation::run() {
  for (std::uint32_t rank = 0; rank < states_.size(); ++rank) awake_hosts_.push_back(rank);
  while (true) {
    // All that can go on at this instant.
    while (!awake_hosts_.empty() || !awake_.empty()) {
      for (std::size_t at = 0; at < awake_hosts_.size(); ++at) run_host(awake_hosts_[at]);
      awake_hosts_.clear();
      for (std::size_t at = 0; at < awake_.size(); ++at) advance(awake_[at] / streams_a_rank_, awake_[at] % streams_a_rank_);
      awake_.clear();
    }
    set_rates();
    if (heap_.empty()) break;
    // All that happens at the next instant.
    now_ = heap_.top().time;
    while (!heap_.empty() && heap_.top().time == now_) {
      const Happening happening = heap_.top();
      heap_.pop();
      if (happening.what == What::end_of_collective) {
        if (running_[happening.id].work.version == happening.version) end_collective(happening.id);
        continue;
      }
      const std::uint32_t rank = happening.id / streams_a_rank_, at = happening.id % streams_a_rank_;
      Stream& stream = states_[rank].streams[at];
      if (happening.what == What::start) {
        if (stream.wake == now_) wake(rank, at);
      } else if (stream.running && stream.work.version == happening.version) {
        end_op(rank, at, 0);
      }
    }
  }

  // Has everybody come to the end?
  for (const RankState& state : states_) {
    bool done = state.host == HostState::done;
    for (const Stream& stream : state.streams) done = done && stream.step == steps_;
    if (!done) return base::Error{who_waits()};
  }
  for (std::uint32_t step = 0; step < steps_; ++step) {
    Time end = 0;
    for (const RankTimes& times : resolved_.ranks) {
      for (const program::TimeSpan& ran : times.steps[step].ran) end = std::max(end, ran.end);
      if (times.steps[step].ran.empty()) end = std::max(end, times.steps[step].window.end);
    }
    resolved_.step_end.push_back(end);
  }
  resolved_.step_ns = resolved_.step_end.back() - (steps_ > 1 ? resolved_.step_end[steps_ - 2] : 0);
  return std::move(resolved_);
}

// --- Hosts and streams -------------------------------------------------------------------------------

void Simulation::run_host(std::uint32_t rank) {
  RankState& state = states_[rank];
  if (state.host == HostState::done) return;
  while (state.step < steps_) {
    program::StepTimes& times = resolved_.ranks[rank].steps[state.step];
    const Costs& costs = *ranks_[rank].steps[state.step].costs;
    const Plan& plan = *plans_[rank][state.step];
    if (!state.in_step) {
      state.in_step = true;
      times.window.start = state.time;
      state.time += costs.step_ns;
    }
    // Issue up to the next wait.
    const bool waits = state.next_wait < plan.host_waits.size();
    const std::uint32_t until = waits ? plan.host_waits[state.next_wait].command
                                      : static_cast<std::uint32_t>(times.issued.size());
    for (; state.command < until; ++state.command) {
      times.issued[state.command] = {state.time, state.time + costs.issue_ns[state.command]};
      state.time += costs.issue_ns[state.command];
    }
    if (waits) {
      // Enter the wait (once), and leave it when the event has a time.
      if (state.host == HostState::goes) {
        times.issued[state.command] = {state.time, state.time};
        ++state.command;
      }
      state.host = HostState::waits;
      if (!host_passes(rank, plan.host_waits[state.next_wait])) break;
      state.host = HostState::goes;
      state.time += costs.issue_ns[state.command - 1];
      times.issued[state.command - 1].end = state.time;
      ++state.next_wait;
      continue;
    }
    // The end of the step: the host goes on at once, or when its device has run all of it.
    if (options_.drain_each_step) {
      state.host = HostState::drains;
      bool drained = true;
      for (const Stream& stream : state.streams) {
        drained = drained && stream.step > state.step;
        state.time = std::max(state.time, stream.last_end);
      }
      if (!drained) break;
      state.host = HostState::goes;
    }
    times.window.end = state.time;
    ++state.step;
    state.command = state.next_wait = 0;
    state.in_step = false;
  }
  if (state.step == steps_) state.host = HostState::done;
  for (std::uint32_t stream = 0; stream < state.streams.size(); ++stream) wake(rank, stream);
}

bool Simulation::host_passes(std::uint32_t rank, const HostWait& wait) {
  RankState& state = states_[rank];
  std::uint32_t step = state.step, slot = wait.target;
  if (wait.earlier && !find_earlier(rank, state.step, wait.target, step, slot)) return true;
  if (state.slot_time[step][slot] < 0) {
    state.slot_waiters[step][slot] |= host_bit;
    return false;
  }
  state.time = std::max(state.time, state.slot_time[step][slot]);
  return true;
}

void Simulation::advance(std::uint32_t rank, std::uint32_t at) {
  RankState& state = states_[rank];
  Stream& stream = state.streams[at];
  while (!stream.running && stream.step < steps_) {
    const std::uint32_t step = stream.step;
    const Plan& plan = *plans_[rank][step];
    if (stream.at == plan.streams[at].size()) {
      ++stream.step;
      stream.at = 0;
      if (state.host == HostState::drains) awake_hosts_.push_back(rank);
      continue;
    }
    const Item& item = plan.streams[at][stream.at];
    const bool is_issued = step < state.step || (step == state.step && item.command < state.command);
    if (!is_issued) return;
    const Time issued = resolved_.ranks[rank].steps[step].issued[item.command].end;
    switch (item.kind) {
      case ItemKind::record:
        complete(rank, step, item.target, std::max({stream.last_end, stream.ready, issued}));
        break;
      case ItemKind::wait:
        if (!passes(rank, at, step, item.target)) return;
        break;
      case ItemKind::wait_earlier: {
        std::uint32_t earlier = 0, slot = 0;
        if (find_earlier(rank, step, item.target, earlier, slot) && !passes(rank, at, earlier, slot)) return;
        break;
      }
      case ItemKind::op: {
        const Time after_last = stream.has_run ? stream.last_end + machine_.stream_gap_ns : 0;
        const Time earliest = std::max({stream.ready, issued + machine_.launch_latency_ns, after_last});
        if (earliest > now_) {
          if (stream.wake != earliest) heap_.push({earliest, What::start, rank * streams_a_rank_ + at, 0});
          stream.wake = earliest;
          return;
        }
        const std::uint32_t collective = plan.collective_of_op[item.target];
        if (collective != none && !may_start(rank, step, collective)) {
          state.blocked_on_order |= 1u << at;
          return;
        }
        const bool in_line = stream.has_run && earliest == after_last;
        const Costs& costs = *ranks_[rank].steps[step].costs;
        const bool needs_room = collective != none && !in_line && !is_gone(costs.op_ns[item.target]) && !is_copied(costs, item.target);
        if (needs_room && !finds_room(rank, ranks_[rank].steps[step].program->ops[item.target].desc.kind, stream.held_since >= 0)) {
          if (stream.held_since < 0) stream.held_since = now_;
          state.blocked_on_room |= 1u << at;
          return;
        }
        start(rank, at, step, item.target);
        break;
      }
    }
    ++stream.at;
  }
}

bool Simulation::passes(std::uint32_t rank, std::uint32_t at, std::uint32_t step, std::uint32_t slot) {
  RankState& state = states_[rank];
  const Time time = state.slot_time[step][slot];
  if (time < 0) {
    state.slot_waiters[step][slot] |= 1u << at;
    return false;
  }
  const bool own = plans_[rank][step]->slot_stream[slot] == at;
  Stream& stream = state.streams[at];
  const Time of_step = ranks_[rank].steps[step].costs->event_latency_ns;
  stream.ready = std::max(stream.ready, time + (own ? 0 : of_step >= 0 ? of_step : machine_.event_latency_ns));
  return true;
}

void Simulation::complete(std::uint32_t rank, std::uint32_t step, std::uint32_t slot, Time time) {
  RankState& state = states_[rank];
  state.slot_time[step][slot] = time;
  const std::uint32_t waiters = state.slot_waiters[step][slot];
  if (waiters & host_bit) awake_hosts_.push_back(rank);
  for (std::uint32_t at = 0; at < state.streams.size(); ++at) {
    if (waiters >> at & 1) wake(rank, at);
  }
}

bool Simulation::find_earlier(std::uint32_t rank, std::uint32_t step, std::uint32_t event, std::uint32_t& found_step,
                              std::uint32_t& slot) const {
  while (step-- > 0) {
    slot = plans_[rank][step]->last_slot[event];
    found_step = step;
    if (slot != none) return true;
  }
  return false;
}

// --- Ops and collectives ------------------------------------------------------------------------------

bool Simulation::may_start(std::uint32_t rank, std::uint32_t step, std::uint32_t collective) const {
  if (!ordered_) return true;
  const RankState& state = states_[rank];
  const PlannedCollective& planned = plans_[rank][step]->collectives[collective];
  const program::GroupId group = ranks_[rank].steps[step].program->ops[planned.op].desc.collective.group;
  // The communicator's turn, and the device's.
  if (state.group_busy[group]) return false;
  if (state.group_arrived[group] != state.group_base[step][group] + planned.place_in_group) return false;
  if (machine_.order == Machine::CollectiveOrder::free) return true;
  if (state.arrived != state.collective_base[step] + collective) return false;
  return machine_.order == Machine::CollectiveOrder::launch || state.residents.empty();
}

// May a collective place its blocks now? Not beside a matmul that holds the multiprocessors. Nor where one is about to
// follow on its own stream: its launch is there already when the collective's stream hears of the event. What was
// held before is there too, and comes first.
bool Simulation::finds_room(std::uint32_t rank, program::OpKind kind, bool was_held) const {
  if (!machine_.shares) return true;
  const RankState& state = states_[rank];
  for (std::uint32_t at = 0; at < state.streams.size(); ++at) {
    const Stream& stream = state.streams[at];
    if (stream.running && stream.fills && (stream.lets_in & bit_of(kind)) == 0) return false;
    if (was_held || stream.running || !stream.has_run || stream.step == steps_) continue;
    const bool follows = stream.wake >= now_ && stream.wake == stream.last_end + machine_.stream_gap_ns;
    if (!follows || stream.wake > now_ + machine_.stream_gap_ns) continue;
    const Item& item = plans_[rank][stream.step]->streams[at][stream.at];
    const Costs& costs = *ranks_[rank].steps[stream.step].costs;
    if (item.kind == ItemKind::op && fills(costs, item.target) && (lets_in(costs, item.target) & bit_of(kind)) == 0) return false;
  }
  return true;
}

void Simulation::start(std::uint32_t rank, std::uint32_t at, std::uint32_t step, program::OpIndex op) {
  Stream& stream = states_[rank].streams[at];
  const Costs& costs = *ranks_[rank].steps[step].costs;
  stream.running = true;
  stream.started = stream.held_since < 0 ? now_ : stream.held_since;
  stream.held_since = -1;
  stream.op = op;
  stream.op_step = step;
  ++stream.work.version;
  const std::uint32_t collective = plans_[rank][step]->collective_of_op[op];
  if (collective != none) return arrive(rank, at, step, collective);
  const program::OpDesc& desc = ranks_[rank].steps[step].program->ops[op].desc;
  stream.is_gemm = desc.kind == OpKind::gemm;
  stream.is_apart = leaves_device_alone(desc);
  stream.work.remaining_ns = static_cast<double>(costs.op_ns[op]);
  stream.work.slowdown = 0;
  stream.work.since = now_;
  stream.work.shared_part = costs.shared_part[op];
  stream.work.beside = costs.beside.empty() || costs.beside[op] == 0 ? 0 : 1 + (costs.beside[op] - 1) * static_cast<float>(machine_.beside);
  stream.fills = fills(costs, op);
  stream.lets_in = lets_in(costs, op);
  stream.beside_since = stream.alone_since = -1;
  stream.alone_ns = stream.work.remaining_ns;
  if (machine_.shares) return touch(rank);
  set_rate(stream.work, 1, What::end_of_op, rank * streams_a_rank_ + at);
}

void Simulation::arrive(std::uint32_t rank, std::uint32_t at, std::uint32_t step, std::uint32_t collective) {
  RankState& state = states_[rank];
  const std::uint32_t number = matching_.instance_of[rank][step][collective];
  const Instance& instance = matching_.instances[number];
  Running& running = running_[number];
  const program::GroupId group = ranks_[rank].steps[step].program->ops[state.streams[at].op].desc.collective.group;
  // This rank is there: the next collective of its device may start.
  arrivals_[running.first_arrival + running.arrived] = {rank, at, 1};
  state.residents.push_back({number, running.arrived});
  ++running.arrived;
  ++state.arrived;
  ++state.group_arrived[group];
  state.group_busy[group] = true;
  wake_all(rank, state.blocked_on_order);
  if (machine_.shares) touch(rank);
  if (running.arrived < instance.arrivals) return;
  // All are there: the transfer begins.
  running.transfers = true;
  running.last_arrival = now_;
  running.work.remaining_ns = static_cast<double>(instance.op_ns);
  running.work.since = now_;
  running.work.shared_part = instance.shared_part;
  if (!machine_.shares) return set_rate(running.work, 1, What::end_of_collective, number);
  for (std::uint32_t member = 0; member < running.arrived; ++member) touch(arrivals_[running.first_arrival + member].rank);
}

void Simulation::end_op(std::uint32_t rank, std::uint32_t at, Time wait_ns) {
  Stream& stream = states_[rank].streams[at];
  resolved_.ranks[rank].steps[stream.op_step].ran[stream.op] = {stream.started, now_};
  resolved_.ranks[rank].wait_ns[stream.op_step][stream.op] = wait_ns;
  stream.running = false;
  stream.has_run = true;
  stream.last_end = now_;
  ++stream.work.version;
  // What was held comes before what follows on this stream, be there no gap between.
  if (std::exchange(stream.fills, false)) wake_all(rank, states_[rank].blocked_on_room);
  wake(rank, at);
  if (machine_.shares) touch(rank);
}

void Simulation::end_collective(std::uint32_t number) {
  Running& running = running_[number];
  ++running.work.version;
  running.transfers = false;
  Time last_start = 0;
  for (std::uint32_t member = 0; member < running.arrived; ++member) {
    const Arrival& arrival = arrivals_[running.first_arrival + member];
    last_start = std::max(last_start, states_[arrival.rank].streams[arrival.stream].started);
  }
  for (std::uint32_t member = 0; member < running.arrived; ++member) {
    const Arrival& arrival = arrivals_[running.first_arrival + member];
    RankState& state = states_[arrival.rank];
    const Stream& stream = state.streams[arrival.stream];
    const program::Program& program = *ranks_[arrival.rank].steps[stream.op_step].program;
    state.group_busy[program.ops[stream.op].desc.collective.group] = false;
    std::erase_if(state.residents, [&](const Resident& resident) { return resident.instance == number; });
    end_op(arrival.rank, arrival.stream, last_start - stream.started);
    wake_all(arrival.rank, state.blocked_on_order);
  }
}

void Simulation::wake_all(std::uint32_t rank, std::uint32_t& blocked) {
  for (std::uint32_t at = 0; at < states_[rank].streams.size(); ++at) {
    if (blocked >> at & 1) wake(rank, at);
  }
  blocked = 0;
}

}  // namespace shardbook::simulate
