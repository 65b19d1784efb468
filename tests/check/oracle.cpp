#include "tests/check/oracle.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

namespace shardbook::tests {

using base::Bytes;
using check::Place;
using check::Race;
using program::Command;
using program::CommandKind;

namespace {

// Which commands come surely before which: a row of bits a command.
class Closure {
 public:
  explicit Closure(const check::Steps& steps) {
    std::vector<std::pair<std::uint32_t, const Command*>> all;
    for (std::uint32_t step = 0; step < steps.size(); ++step) {
      for (const Command& command : steps[step]->commands) all.push_back({step, &command});
    }
    words_ = (all.size() + 63) / 64;
    before_.assign(all.size() * words_, 0);
    for (std::size_t at = 0; at < all.size(); ++at) {
      const auto& [step, command] = all[at];
      const bool by_host = command->kind == CommandKind::host_wait || command->kind == CommandKind::read_back;
      // Looking back: the last command of its stream, the last thing the host waited for, the last record of its event.
      std::optional<std::size_t> last_of_stream, host, record;
      for (std::size_t back = at; back-- > 0;) {
        const Command& other = *all[back].second;
        const bool other_by_host = other.kind == CommandKind::host_wait || other.kind == CommandKind::read_back;
        if (!host && other_by_host) host = back;
        const bool own_stream = !by_host || command->kind == CommandKind::read_back;
        if (!last_of_stream && own_stream && !other_by_host && other.stream == command->stream) last_of_stream = back;
        const bool waits = command->kind == CommandKind::wait_event || command->kind == CommandKind::host_wait;
        if (!record && waits && other.kind == CommandKind::record_event && other.event == command->event) record = back;
      }
      for (const auto& from : {last_of_stream, host, record}) {
        if (from) follow(at, *from);
      }
      if (command->kind == CommandKind::op) ops.push_back({{step, command->op}, at});
    }
  }

  // Of places in `ops`.
  bool ordered(std::size_t first, std::size_t second) const { return bit(ops[second].command, ops[first].command); }

  struct OpAt {
    Place place;
    std::size_t command;
  };
  std::vector<OpAt> ops;

 private:
  void follow(std::size_t at, std::size_t from) {
    for (std::size_t word = 0; word < words_; ++word) before_[at * words_ + word] |= before_[from * words_ + word];
    before_[at * words_ + from / 64] |= std::uint64_t{1} << from % 64;
  }
  bool bit(std::size_t at, std::size_t from) const { return before_[at * words_ + from / 64] >> from % 64 & 1; }

  std::size_t words_ = 0;
  std::vector<std::uint64_t> before_;
};

// An op's use of one part of a buffer that no op uses only half of.
struct PartUse {
  std::size_t op;
  program::StreamId stream;
  bool reads = false, writes = false;
};

}  // namespace

OracleRaces oracle(const program::Catalogue& catalogue, const check::Steps& steps) {
  const Closure order(steps);
  OracleRaces result;
  std::map<std::tuple<std::size_t, std::size_t, program::BufferId>, Race> found;  // second, first, buffer
  for (program::BufferId buffer = 0; buffer < catalogue.buffers.size(); ++buffer) {
    // Cut the buffer wherever a use begins or ends
    std::set<Bytes> cuts;
    std::vector<std::pair<std::size_t, int>> uses;
    for (std::size_t at = 0; at < order.ops.size(); ++at) {
      const program::OpDesc& desc = steps[order.ops[at].place.step]->ops[order.ops[at].place.op].desc;
      for (int use = 0; use < desc.uses.size(); ++use) {
        if (desc.uses[use].buffer != buffer) continue;
        uses.push_back({at, use});
        cuts.insert({desc.uses[use].begin, desc.uses[use].end});
      }
    }
    for (auto cut = cuts.begin(); cut != cuts.end() && std::next(cut) != cuts.end(); ++cut) {
      const Bytes begin = *cut, end = *std::next(cut);
      std::vector<PartUse> users;
      for (const auto& [at, use] : uses) {
        const program::Op& op = steps[order.ops[at].place.step]->ops[order.ops[at].place.op];
        const program::BufferUse& range = op.desc.uses[use];
        if (range.begin > begin || range.end < end) continue;
        if (users.empty() || users.back().op != at) users.push_back({at, op.stream});
        ((op.desc.written_mask >> use & 1) != 0 ? users.back().writes : users.back().reads) = true;
      }
      // Look at every pair
      bool any = false, any_closest = false;
      for (std::size_t j = 0; j < users.size(); ++j) {
        for (std::size_t i = 0; i < j; ++i) {
          const PartUse &first = users[i], &second = users[j];
          if ((!first.writes && !second.writes) || order.ordered(first.op, second.op)) continue;
          any = true;
          const bool hidden = std::any_of(users.begin() + static_cast<std::ptrdiff_t>(i) + 1, users.begin() + static_cast<std::ptrdiff_t>(j),
                                          [&](const PartUse& between) { return between.writes || (!first.writes && between.stream == first.stream); });
          if (hidden) continue;
          any_closest = true;
          Race& race = found.try_emplace({second.op, first.op, buffer}, Race{buffer, begin, end, order.ops[first.op].place, order.ops[second.op].place}).first->second;
          race.begin = std::min(race.begin, begin);
          race.end = std::max(race.end, end);
          race.first_writes |= first.writes;
          race.second_writes |= second.writes;
        }
      }
      if (any && !any_closest) result.closest_tell_every_byte = false;
    }
  }
  for (const auto& [key, race] : found) result.closest.push_back(race);
  return result;
}

bool same_races(std::vector<Race> left, std::vector<Race> right) {
  auto key = [](const Race& race) {
    return std::tuple(race.second.step, race.second.op, race.first.step, race.first.op, race.buffer, race.begin, race.end, race.first_writes, race.second_writes);
  };
  auto less = [&](const Race& a, const Race& b) { return key(a) < key(b); };
  std::sort(left.begin(), left.end(), less);
  std::sort(right.begin(), right.end(), less);
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), [&](const Race& a, const Race& b) { return key(a) == key(b); });
}

}  // namespace shardbook::tests
