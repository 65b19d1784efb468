#include "engine/simulate/matching.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

namespace shardbook::simulate {

using program::is_pair;
using program::OpKind;

namespace {

// What makes two calls one: packed so that it hashes fast.
struct Key {
  std::uint64_t group_and_step = 0;
  std::uint64_t number = 0;  // sequence; of a pair: direction and count
  bool operator==(const Key&) const = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::uint64_t sum = (key.group_and_step ^ key.number * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
    return static_cast<std::size_t>(sum ^ sum >> 32);
  }
};

std::string list_of(const std::vector<base::Rank>& ranks) {
  std::string list = "[";
  for (std::size_t at = 0; at < ranks.size() && at < 8; ++at) list += (at ? ", " : "") + std::to_string(ranks[at]);
  if (ranks.size() > 8) list += base::text(", ... ", ranks.back());
  return list + "]";
}

}  // namespace

std::string name_of(const Instance& instance) {
  return base::text(program::name_of(instance.desc->kind), " ", instance.desc->collective.sequence, " of ",
                    instance.group->axis, " ", list_of(instance.group->ranks));
}

base::Result<Matching> match(const std::vector<RankSteps>& ranks, const std::vector<std::vector<const Plan*>>& plans) {
  Matching matching;
  matching.instance_of.resize(ranks.size());
  std::set<base::Rank> given;
  for (const RankSteps& rank : ranks) given.insert(rank.rank);
  std::map<std::pair<std::string, std::vector<base::Rank>>, std::uint64_t> group_numbers;
  std::unordered_map<Key, std::uint32_t, KeyHash> known;

  for (std::uint32_t at = 0; at < ranks.size(); ++at) {
    const RankSteps& rank = ranks[at];
    // Number this rank's groups the same way for all ranks.
    std::vector<std::uint64_t> numbers;
    for (const program::GroupInfo& group : rank.catalogue->groups) {
      numbers.push_back(group_numbers.try_emplace({group.axis, group.ranks}, group_numbers.size()).first->second);
    }
    matching.instance_of[at].resize(rank.steps.size());
    for (std::size_t step = 0; step < rank.steps.size(); ++step) {
      const program::Program& program = *rank.steps[step].program;
      std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> pair_counts;  // (group, direction)
      for (const PlannedCollective& planned : plans[at][step]->collectives) {
        const program::OpDesc& desc = program.ops[planned.op].desc;
        const program::GroupInfo& group = rank.catalogue->groups[desc.collective.group];
        const std::uint64_t number = numbers[desc.collective.group];
        // Its key, and the instance that has it.
        Key key{number << 32 | step, desc.collective.sequence};
        if (is_pair(desc.kind)) {
          const auto place = std::find(group.ranks.begin(), group.ranks.end(), rank.rank) - group.ranks.begin();
          const std::uint64_t me = static_cast<std::uint64_t>(place);
          const std::uint64_t peer = static_cast<std::uint64_t>(desc.collective.peer);
          const std::uint64_t direction = desc.kind == OpKind::send ? me << 16 | peer : peer << 16 | me;
          key.number = 1ull << 63 | direction << 24 | pair_counts[{number, direction}]++;
        }
        const auto [found, is_new] = known.try_emplace(key, static_cast<std::uint32_t>(matching.instances.size()));
        if (is_new) {
          for (base::Rank member : group.ranks) {
            if (given.count(member) != 0 || rank.for_all) continue;
            return base::Error{base::text("rank ", rank.rank, " calls ", program::name_of(desc.kind), " in group ", group.axis,
                                          " ", list_of(group.ranks), ", but rank ", member,
                                          " was not given: all ranks must be resolved together")};
          }
          const std::uint32_t participants = is_pair(desc.kind) ? 2 : static_cast<std::uint32_t>(group.ranks.size());
          matching.instances.push_back({&desc, &group, at, participants, rank.for_all ? 1 : participants, 0, 0});
        }
        // Does this rank call the same as the first one did?
        Instance& instance = matching.instances[found->second];
        const bool same = (instance.desc->collective.bytes == desc.collective.bytes || desc.kind == OpKind::all_to_all) &&
                          (instance.desc->kind == desc.kind || (is_pair(desc.kind) && is_pair(instance.desc->kind)));
        if (!same) {
          return base::Error{base::text("step ", step, ": rank ", ranks[instance.first_rank].rank, " calls ", name_of(instance),
                                        " with ", instance.desc->collective.bytes, " bytes where rank ", rank.rank,
                                        " calls ", program::name_of(desc.kind), " with ", desc.collective.bytes,
                                        " bytes: all ranks of a group must issue the same collectives in the same order")};
        }
        const Costs& costs = *rank.steps[step].costs;
        instance.op_ns = std::max(instance.op_ns, costs.op_ns[planned.op]);
        instance.shared_part = std::max(instance.shared_part, costs.shared_part[planned.op]);
        instance.copied = is_copied(costs, planned.op);
        matching.instance_of[at][step].push_back(found->second);
      }
    }
  }
  return matching;
}

}  // namespace shardbook::simulate
