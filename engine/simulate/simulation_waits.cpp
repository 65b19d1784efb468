// simulate/simulation_waits: what is to be said when nothing goes on?
//
// The ranks wait for each other; the sentence names where and for whom, a rank at a time.
#include "engine/simulate/simulation.hpp"

namespace shardbook::simulate {

std::string Simulation::who_waits(std::uint32_t rank) const {
  const RankState& state = states_[rank];
  // In a collective, for whom?
  for (const Resident& resident : state.residents) {
    const Instance& instance = matching_.instances[resident.instance];
    const Running& running = running_[resident.instance];
    std::string missing;
    for (base::Rank member : instance.group->ranks) {
      bool is_there = false;
      for (std::uint32_t at = 0; at < running.arrived; ++at) {
        is_there = is_there || ranks_[arrivals_[running.first_arrival + at].rank].rank == member;
      }
      if (!is_there) missing += (missing.empty() ? "" : ", ") + std::to_string(member);
    }
    const Stream& stream = state.streams[arrivals_[running.first_arrival + resident.arrival].stream];
    const program::SourceLine& where = ranks_[rank].steps[stream.op_step].program->ops[stream.op].where;
    return base::text("rank ", ranks_[rank].rank, " waits in ", name_of(instance), " (", where.file, ":", where.line,
                      ") for rank ", missing);
  }
  // Before an item of a stream, or on the host?
  for (std::size_t at = 0; at < state.streams.size(); ++at) {
    const Stream& stream = state.streams[at];
    if (stream.step >= steps_) continue;
    const program::Program& program = *ranks_[rank].steps[stream.step].program;
    const Plan& plan = *plans_[rank][stream.step];
    if (stream.at >= plan.streams[at].size()) continue;
    const Item& item = plan.streams[at][stream.at];
    if (stream.step > state.step || (stream.step == state.step && item.command >= state.command)) continue;
    const program::Command& command = program.commands[item.command];
    const char* what = item.kind == ItemKind::op ? "for its turn to start " : "for event ";
    const std::string name = item.kind == ItemKind::op ? program.ops[item.target].desc.name
                                                       : ranks_[rank].catalogue->events[command.event];
    return base::text("rank ", ranks_[rank].rank, " waits on stream ", ranks_[rank].catalogue->streams[at].name, " ", what,
                      name, " (", command.where.file, ":", command.where.line, ")");
  }
  if (state.host == HostState::waits) {
    const program::SourceLine& where = ranks_[rank].steps[state.step].program->commands[state.command - 1].where;
    return base::text("rank ", ranks_[rank].rank, " waits on its host (", where.file, ":", where.line, ")");
  }
  return base::text("rank ", ranks_[rank].rank, " has issued all it has");
}

std::string Simulation::who_waits() const {
  constexpr std::size_t named = 4;
  std::string all = "the ranks wait for each other for ever: ";
  for (std::uint32_t rank = 0; rank < states_.size() && rank < named; ++rank) all += (rank ? "; " : "") + who_waits(rank);
  if (states_.size() > named) all += base::text("; and so on for ", states_.size() - named, " more");
  return all;
}

}  // namespace shardbook::simulate
