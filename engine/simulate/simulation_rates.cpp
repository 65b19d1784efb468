// simulate/simulation_rates: how fast does each thing go that is under way?
//
// A device that something started or ended on is *touched*; at the end of the instant the rates of what runs on
// it are set anew, those of collectives from all their ranks.
#include <algorithm>
#include <cmath>

#include "engine/simulate/simulation.hpp"

namespace shardbook::simulate {

void Simulation::touch(std::uint32_t rank) {
  if (states_[rank].is_dirty) return;
  states_[rank].is_dirty = true;
  dirty_ranks_.push_back(rank);
}

void Simulation::set_rates() {
  for (std::uint32_t rank : dirty_ranks_) set_rates_of(states_[rank], rank);
  dirty_ranks_.clear();
  // A collective goes as fast as its slowest rank.
  for (std::uint32_t number : dirty_instances_) {
    Running& running = running_[number];
    running.is_dirty = false;
    float slowdown = 1;
    for (std::uint32_t member = 0; member < running.arrived; ++member) {
      slowdown = std::max(slowdown, arrivals_[running.first_arrival + member].slowdown);
    }
    set_rate(running.work, slowdown, What::end_of_collective, number);
  }
  dirty_instances_.clear();
}

void Simulation::set_rates_of(RankState& state, std::uint32_t rank) {
  state.is_dirty = false;
  // What runs on this device, and how much of it contends.
  int ops = 0, transfers = 0;
  float gemm_part = 0, memory_part = 0;
  for (const Stream& stream : state.streams) {
    if (!stream.running || stream.is_apart || plans_[rank][stream.op_step]->collective_of_op[stream.op] != none) continue;
    ++ops;
    float& part = stream.is_gemm ? gemm_part : memory_part;
    part = std::max(part, stream.work.shared_part);
  }
  double memory_factor = 1;
  for (const Resident& resident : state.residents) {
    const Instance& instance = matching_.instances[resident.instance];
    if (is_gone(instance.op_ns) || !running_[resident.instance].transfers) continue;
    ++transfers;
    memory_factor = std::max(memory_factor, 1 + instance.shared_part * (contention_of(instance.participants).memory_by_collective - 1));
  }
  // Ops take turns, and are slowed by collectives.
  for (std::uint32_t at = 0; at < state.streams.size(); ++at) {
    Stream& stream = state.streams[at];
    if (!stream.running || plans_[rank][stream.op_step]->collective_of_op[stream.op] != none) continue;
    if (stream.is_apart) {
      set_rate(stream.work, 1, What::end_of_op, rank * streams_a_rank_ + at);
      continue;
    }
    const Held held = held_from(state, stream);
    if (machine_.last_blocks && stream.fills && stream.work.beside > 1) set_last_blocks(stream, held.part);
    const double of_its_own = 1 + held.part * (stream.work.beside - 1);
    const double factor = !stream.is_gemm ? memory_factor : stream.work.beside > 0 ? of_its_own : held.gemm_factor;
    set_rate(stream.work, 1 + stream.work.shared_part * (ops * factor - 1), What::end_of_op, rank * streams_a_rank_ + at);
  }
  // Collectives take turns too, and are slowed by ops.
  for (const Resident& resident : state.residents) {
    Running& running = running_[resident.instance];
    if (!running.transfers) continue;
    const Instance& instance = matching_.instances[resident.instance];
    const Contention& factors = contention_of(instance.participants);
    const double by_gemm = instance.copied ? 1 : 1 + gemm_part * (factors.collective_by_gemm - 1);
    const double by_memory = 1 + memory_part * (factors.collective_by_memory - 1);
    const double slowdown = 1 + instance.shared_part * (transfers * std::max(by_gemm, by_memory) - 1);
    arrivals_[running.first_arrival + resident.arrival].slowdown = static_cast<float>(slowdown);
    if (running.is_dirty) continue;
    running.is_dirty = true;
    dirty_instances_.push_back(resident.instance);
  }
}

// What collectives hold of the multiprocessors that a stream's matmul could use. One that still waits for a rank holds them already, though
// it moves no bytes; a copy engine moves bytes, and holds none; nor does one whose blocks fit beside the matmul's.
Simulation::Held Simulation::held_from(const RankState& state, const Stream& stream) {
  Held held;
  for (const Resident& resident : state.residents) {
    const Instance& instance = matching_.instances[resident.instance];
    if (is_gone(instance.op_ns) || instance.copied || (stream.lets_in & bit_of(instance.desc->kind)) != 0) continue;
    held.gemm_factor = std::max(held.gemm_factor, 1 + instance.shared_part * (contention_of(instance.participants).gemm_by_collective - 1));
    held.part = std::max(held.part, instance.shared_part);
  }
  return held;
}

// A matmul that fills the device and began beside a collective. When that goes, blocks for which there was no room begin, and take as
// long as the others did, which is what the matmul takes alone; but together no longer than beside a collective that stays. Another one
// that follows it at once takes over its room: then none has begun.
void Simulation::set_last_blocks(Stream& stream, double held_part) {
  Work& work = stream.work;
  if (work.slowdown == 0) {
    if (held_part == 0) return;
    stream.beside_since = now_;
    stream.beside_ns = stream.alone_ns * (1 + work.shared_part * held_part * (work.beside - 1));
    return;
  }
  if (stream.beside_since < 0 || (held_part > 0) == (stream.alone_since < 0)) return;
  if (held_part > 0) {
    work.remaining_ns = std::max(0.0, stream.of_a_fluid_ns - static_cast<double>(now_ - stream.alone_since));
    stream.alone_since = -1;
  } else {
    stream.of_a_fluid_ns = std::max(0.0, work.remaining_ns - static_cast<double>(now_ - work.since) / work.slowdown);
    const double staying_ns = stream.beside_ns - static_cast<double>(now_ - stream.beside_since);
    work.remaining_ns = std::max(stream.of_a_fluid_ns, std::min(stream.alone_ns, staying_ns));
    stream.alone_since = now_;
  }
  work.since = now_;
  work.slowdown = 0;   // what is left has changed: its end is set anew, at whatever rate
}

void Simulation::set_rate(Work& work, double slowdown, What what, std::uint32_t id) {
  if (work.slowdown == slowdown) return;
  if (work.slowdown > 0) work.remaining_ns -= static_cast<double>(now_ - work.since) / work.slowdown;
  work.remaining_ns = std::max(work.remaining_ns, 0.0);
  work.slowdown = slowdown;
  work.since = now_;
  ++work.version;
  heap_.push({now_ + std::llround(work.remaining_ns * slowdown), what, id, work.version});
}

const Contention& Simulation::contention_of(std::uint32_t participants) {
  if (contention_.size() <= participants) contention_.resize(participants + 1, Contention{0});
  Contention& factors = contention_[participants];
  if (factors.ranks != 0) return factors;
  // That of the nearest measured number of ranks.
  factors.ranks = static_cast<int>(participants);
  double nearest = -1;
  for (const Contention& measured : machine_.contention) {
    const double apart = std::abs(std::log2(static_cast<double>(measured.ranks) / participants));
    if (nearest >= 0 && apart >= nearest) continue;
    nearest = apart;
    factors = measured;
  }
  return factors;
}

}  // namespace shardbook::simulate
