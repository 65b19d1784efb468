#include "engine/check/hang.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "engine/check/words.hpp"

namespace shardbook::check {

using base::Rank;
using base::text;
using program::Command;
using program::CommandKind;
using program::Op;
using program::OpKind;

namespace {

// Something that a host gave to a stream.
struct Item {
  const Command* command;
  std::uint32_t step;
  // Counted over all steps. Of a wait or a record: which record of the event. Of a collective: which of its group's;
  // of a send or receive: which between these two. A communicator matches calls in the order of their issue.
  std::uint64_t number = 0;
};

// Who stands at a call: a rank's place, and its stream.
using Meeting = std::vector<std::pair<std::size_t, program::StreamId>>;

struct RankState {
  const RankSteps* rank = nullptr;
  std::size_t step = 0, at = 0;                     // what the host issues next
  std::vector<std::deque<Item>> streams;            // issued and not yet run
  std::vector<std::uint64_t> recorded, passed;      // by event: records issued, and run
  std::vector<bool> arrived;                        // by stream: its head has been counted in its meeting
  std::vector<std::uint64_t> collectives;           // by group: calls issued
  std::map<std::tuple<program::GroupId, Rank, Rank>, std::uint64_t> pairs;  // by group, sender, receiver: calls issued
};

class Queues {
 public:
  explicit Queues(const std::vector<RankSteps>& ranks) {
    for (const RankSteps& rank : ranks) given_.insert(rank.rank);
    for (const RankSteps& rank : ranks) {
      RankState& state = states_.emplace_back();
      state.rank = &rank;
      state.streams.resize(rank.catalogue->streams.size());
      state.arrived.resize(state.streams.size(), false);
      state.recorded.resize(rank.catalogue->events.size(), 0);
      state.passed.resize(rank.catalogue->events.size(), 0);
      state.collectives.resize(rank.catalogue->groups.size(), 0);
      std::vector<std::uint64_t>& numbers = group_numbers_.emplace_back();
      std::vector<std::size_t>& sizes = group_sizes_.emplace_back();
      for (const program::GroupInfo& group : rank.catalogue->groups) {
        numbers.push_back(groups_.try_emplace({group.axis, group.ranks}, groups_.size()).first->second);
        sizes.push_back(static_cast<std::size_t>(std::count_if(group.ranks.begin(), group.ranks.end(), [&](Rank one) { return given_.contains(one); })));
      }
    }
    for (std::size_t at = 0; at < states_.size(); ++at) wake(at);
  }

  // Runs until nothing moves.
  void run() {
    while (!awake_.empty()) {
      const std::size_t at = awake_.front();
      awake_.pop_front();
      is_awake_[at] = false;
      while (issue(at) | drain(at)) {}
    }
  }

  std::vector<Stuck> stuck() const {
    std::vector<Stuck> found;
    for (const RankState& state : states_) {
      for (program::StreamId stream = 0; stream < state.streams.size(); ++stream) {
        if (state.streams[stream].empty()) continue;
        const Item& head = state.streams[stream].front();
        if (head.command->kind == CommandKind::op) found.push_back({state.rank->rank, {head.step, head.command->op}, stream});
      }
    }
    return found;
  }

 private:
  void wake(std::size_t at) {
    is_awake_.resize(states_.size(), false);
    if (is_awake_[at]) return;
    is_awake_[at] = true;
    awake_.push_back(at);
  }

  // The host issues until it waits. Returns whether it did anything.
  bool issue(std::size_t place) {
    RankState& state = states_[place];
    bool moved = false;
    while (state.step < state.rank->steps.size()) {
      const std::vector<Command>& commands = state.rank->steps[state.step]->commands;
      if (state.at == commands.size()) {
        ++state.step;
        state.at = 0;
        continue;
      }
      const Command& command = commands[state.at];
      Item item{&command, static_cast<std::uint32_t>(state.step), 0};
      if (command.kind == CommandKind::host_wait && state.passed[command.event] < state.recorded[command.event]) return moved;
      if (command.kind == CommandKind::read_back && !state.streams[command.stream].empty()) return moved;
      if (command.kind == CommandKind::record_event) item.number = ++state.recorded[command.event];
      if (command.kind == CommandKind::wait_event) item.number = state.recorded[command.event];
      if (command.kind == CommandKind::op) item.number = number_of(state, state.rank->steps[state.step]->ops[command.op]);
      const bool on_stream = command.kind != CommandKind::host_wait && command.kind != CommandKind::read_back;
      if (on_stream) state.streams[command.stream].push_back(item);
      ++state.at;
      moved = true;
    }
    return moved;
  }

  // Each stream runs what it can.
  bool drain(std::size_t place) {
    RankState& state = states_[place];
    bool moved = false, again = true;
    while (again) {
      again = false;
      for (program::StreamId stream = 0; stream < state.streams.size(); ++stream) {
        while (!state.streams[stream].empty() && can_run(place, stream)) {
          const Item item = state.streams[stream].front();
          if (item.command->kind == CommandKind::record_event) state.passed[item.command->event] = std::max(state.passed[item.command->event], item.number);
          state.streams[stream].pop_front();
          state.arrived[stream] = false;
          moved = again = true;
        }
      }
    }
    return moved;
  }

  bool can_run(std::size_t place, program::StreamId stream) {
    RankState& state = states_[place];
    const Item& head = state.streams[stream].front();
    if (head.command->kind == CommandKind::record_event) return true;
    if (head.command->kind == CommandKind::wait_event) return state.passed[head.command->event] >= head.number;
    const Op& op = state.rank->steps[head.step]->ops[head.command->op];
    if (op.desc.collective.group == program::no_group) return true;
    if (!state.arrived[stream]) {
      state.arrived[stream] = true;
      arrive(place, stream, op, head.number);
    }
    return met_.erase({place, stream}) > 0;
  }

  // Sender and receiver of a send or a receive; -1 for a peer that the group has not.
  static std::pair<Rank, Rank> ends_of(const RankState& state, const Op& op) {
    const program::GroupInfo& group = state.rank->catalogue->groups[op.desc.collective.group];
    const Rank peer = op.desc.collective.peer;
    const Rank other = peer >= 0 && static_cast<std::size_t>(peer) < group.ranks.size() ? group.ranks[static_cast<std::size_t>(peer)] : -1;
    return op.desc.kind == OpKind::send ? std::pair(state.rank->rank, other) : std::pair(other, state.rank->rank);
  }
  static std::uint64_t number_of(RankState& state, const Op& op) {
    const program::GroupId group = op.desc.collective.group;
    if (group == program::no_group) return 0;
    if (!program::is_pair(op.desc.kind)) return state.collectives[group]++;
    const auto [from, to] = ends_of(state, op);
    return state.pairs[{group, from, to}]++;
  }

  // One more has come to a call; the last one lets all of them run.
  void arrive(std::size_t place, program::StreamId stream, const Op& op, std::uint64_t number) {
    const program::GroupId group = op.desc.collective.group;
    std::size_t members = group_sizes_[place][group];
    Key key{group_numbers_[place][group], -1, -1, number};
    if (program::is_pair(op.desc.kind)) {
      std::tie(key.from, key.to) = ends_of(states_[place], op);
      // A peer whose record is not there is taken to come.
      members = (key.from >= 0 && !given_.contains(key.from)) || (key.to >= 0 && !given_.contains(key.to)) ? 1 : 2;
    }
    Meeting& meeting = meetings_[key];
    meeting.push_back({place, stream});
    if (meeting.size() < members) return;
    for (const auto& [other, its_stream] : meeting) {
      met_.insert({other, its_stream});
      if (other != place) wake(other);
    }
    meetings_.erase(key);
  }

  struct Key {
    std::uint64_t group;
    Rank from, to;          // of a send; -1: a collective
    std::uint64_t number;
    auto operator<=>(const Key&) const = default;
  };
  std::set<Rank> given_;
  std::vector<RankState> states_;
  std::vector<bool> is_awake_;
  std::deque<std::size_t> awake_;
  std::map<std::pair<std::string, std::vector<Rank>>, std::uint64_t> groups_;
  std::vector<std::vector<std::uint64_t>> group_numbers_;  // by rank's place and group id
  std::vector<std::vector<std::size_t>> group_sizes_;      // how many of its ranks are given
  std::map<Key, Meeting> meetings_;
  std::set<std::pair<std::size_t, program::StreamId>> met_;  // heads that may run
};

}  // namespace

Hang hang(const std::vector<RankSteps>& ranks) {
  Queues queues(ranks);
  queues.run();
  Hang found{queues.stuck(), ""};
  if (found.stuck.empty()) return found;
  // Who stands where; a few tell enough
  constexpr std::size_t most = 4;
  found.sentence = "ranks wait for each other for ever: ";
  for (std::size_t at = 0; at < found.stuck.size() && at < most; ++at) {
    const Stuck& one = found.stuck[at];
    const RankSteps& rank = *std::find_if(ranks.begin(), ranks.end(), [&](const RankSteps& other) { return other.rank == one.rank; });
    const Op& op = rank.steps[one.call.step]->ops[one.call.op];
    found.sentence += text(at == 0 ? "" : "; ", "rank ", one.rank, " stands on ", stream_name(*rank.catalogue, one.stream), " at ", op_text(op), " over ",
                           rank.catalogue->groups[op.desc.collective.group].axis, ", step ", one.call.step);
  }
  if (found.stuck.size() > most) found.sentence += text("; and ", found.stuck.size() - most, " more");
  return found;
}

}  // namespace shardbook::check
