#include "engine/program/beside.hpp"

#include <algorithm>

namespace shardbook::program {
namespace {

constexpr double least_part = 0.5;   // of a matmul, that a collective must run beside it

void grow(std::vector<double>& all, std::size_t size) {
  if (all.size() < size) all.resize(size);
}

}  // namespace

Beside::Beside() = default;
Beside::Beside(Rule rule) : rule_(std::move(rule)) {}

void Beside::begin_step() {
  const auto forget = [](ByStream& times) { std::fill(times.begin(), times.end(), 0.0); };
  forget(issued_);
  forget(over_);
  forget(begun_);
  for (ByStream& known : known_) forget(known);
  for (ByStream& at_event : at_event_) at_event.clear();   // keeps its memory: a step like the one before takes none
  does_.assign(does_.size(), Does::nothing);
}

Beside::ByStream& Beside::known_to(StreamId stream) {
  if (known_.size() <= stream) known_.resize(stream + std::size_t{1});
  grow(issued_, known_.size());
  grow(over_, known_.size());
  grow(begun_, known_.size());
  does_.resize(known_.size());
  for (ByStream& known : known_) grow(known, known_.size());
  return known_[stream];
}

double Beside::ns_of(const OpDesc& desc) {
  const std::array<std::int64_t, 9> key{reinterpret_cast<std::intptr_t>(desc.name), static_cast<std::int64_t>(desc.kind) * 16 + static_cast<std::int64_t>(desc.dtype),
                                        desc.gemm.m, desc.gemm.n, desc.gemm.k, desc.gemm.batch, desc.bytes_read + desc.bytes_written, desc.collective.bytes, desc.collective.group};
  const auto known = times_.find(key);
  return known != times_.end() ? known->second : times_.emplace(key, rule_.ns(desc)).first->second;
}

// How long collectives of one stream still run, as far as the other knows.
double Beside::left_of(StreamId collectives, StreamId seen_from) const {
  return issued_[collectives] - std::max(over_[collectives], known_[seen_from][collectives]);
}

// So much time goes by for all streams' collectives but one's.
void Beside::pass(double ns, StreamId but) {
  for (std::size_t stream = 0; stream < over_.size(); ++stream) {
    if (stream != but) over_[stream] = std::min(issued_[stream], over_[stream] + ns);
  }
}

//@ program.beside: A matmul leaves room to a collective that starts beside it and will not be over when half of it is done.
int Beside::op(StreamId stream, const OpDesc& desc) {
  known_to(stream);
  const OpClass op_class = class_of(desc.kind);
  if (op_class == OpClass::communication) {
    if (over_[stream] >= issued_[stream]) begun_[stream] = over_[stream];
    issued_[stream] += ns_of(desc);
    does_[stream] = Does::communicates;
    return 0;
  }
  if (op_class != OpClass::compute || does_[stream] == Does::communicates) return 0;
  does_[stream] = Does::computes;
  const double ns = ns_of(desc);
  int collectives = 0;
  for (std::size_t other = 0; desc.kind == OpKind::gemm && other < known_.size(); ++other) {
    const bool starts = over_[other] == begun_[other];
    if (other != stream && starts && left_of(static_cast<StreamId>(other), stream) >= std::max(1.0, least_part * ns)) ++collectives;
  }
  pass(ns, stream);
  return collectives * rule_.multiprocessors;
}
//@end

void Beside::record(StreamId stream, EventId event) {
  if (at_event_.size() <= event) at_event_.resize(event + std::size_t{1});
  at_event_[event] = known_to(stream);
  at_event_[event][stream] = issued_[stream];
}

void Beside::wait(StreamId stream, EventId event) {
  known_to(stream);
  if (event >= at_event_.size()) return;   // of an earlier step
  for (std::size_t other = 0; other < at_event_[event].size(); ++other) {
    const double until = at_event_[event][other];
    // Compute stands still until it has ended, and the clock of all streams goes on meanwhile
    const double still = until - over_[other];
    if (other != stream && still > 0 && does_[stream] == Does::computes) pass(still, stream);
    known_[stream][other] = std::max(known_[stream][other], until);
  }
}

std::vector<int> left_beside(const Program& program, Beside::Rule rule) {
  Beside beside(std::move(rule));
  std::vector<int> left(program.ops.size());
  if (!beside.on()) return left;
  beside.begin_step();
  for (const Command& command : program.commands) {
    switch (command.kind) {
      case CommandKind::op: left[command.op] = beside.op(command.stream, program.ops[command.op].desc); break;
      case CommandKind::record_event: beside.record(command.stream, command.event); break;
      case CommandKind::wait_event: beside.wait(command.stream, command.event); break;
      default: break;
    }
  }
  return left;
}

}  // namespace shardbook::program
