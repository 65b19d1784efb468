#include "engine/simulate/sources.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

namespace shardbook::simulate {

using base::Nanoseconds;

namespace {

// Of ranks with equal programs, the one whose sum is in the middle.
template <typename SumOf>
std::size_t middle_rank(const std::vector<std::size_t>& members, const SumOf& sum_of) {
  std::vector<std::pair<Nanoseconds, std::size_t>> sums;
  for (std::size_t member : members) sums.emplace_back(sum_of(member), member);
  std::sort(sums.begin(), sums.end());
  return sums[(sums.size() - 1) / 2].second;
}

}  // namespace

Nanoseconds device_ns(const RankSteps& rank) {
  const Step& step = rank.steps.back();
  Nanoseconds sum = 0;
  for (std::size_t op = 0; op < step.program->ops.size(); ++op) sum += program::class_of(step.program->ops[op].desc.kind) == program::OpClass::communication ? 0 : step.costs->op_ns[op];
  return sum;
}

Nanoseconds host_ns(const RankSteps& rank) {
  const Costs& costs = *rank.steps.back().costs;
  return std::accumulate(costs.issue_ns.begin(), costs.issue_ns.end(), costs.step_ns + rank.start_ns);
}

std::vector<Source> sources_of(const std::vector<RankSteps>& ranks, const Change& change) {
  std::vector<Source> sources(ranks.size());
  std::map<std::uint64_t, std::vector<std::size_t>> equal;
  const bool own = !change.alike && !change.usual_device && !change.usual_host;
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    sources[at] = {at, at};
    if (!own) equal[program::hash(*ranks[at].steps.back().program, *ranks[at].catalogue)].push_back(at);
  }
  for (const auto& [hash, members] : equal) {
    const Source middle = {middle_rank(members, [&](std::size_t rank) { return device_ns(ranks[rank]); }), middle_rank(members, [&](std::size_t rank) { return host_ns(ranks[rank]); })};
    for (std::size_t member : members) {
      if (change.alike || change.usual_device == ranks[member].rank) sources[member].device = middle.device;
      if (change.alike || change.usual_host == ranks[member].rank) sources[member].host = middle.host;
    }
  }
  return sources;
}

std::vector<RankSteps> taken_from(const std::vector<RankSteps>& ranks, const std::vector<Source>& sources) {
  std::vector<RankSteps> out = ranks;
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    const auto& [device, host] = sources[at];
    if (device == at && host == at) continue;
    auto costs = std::make_shared<Costs>(*ranks[device].steps.back().costs);
    costs->issue_ns = ranks[host].steps.back().costs->issue_ns;
    costs->step_ns = ranks[host].steps.back().costs->step_ns;
    out[at].start_ns = ranks[host].start_ns;
    for (Step& step : out[at].steps) step.costs = costs;
  }
  return out;
}

}  // namespace shardbook::simulate
