#include "engine/simulate/cost.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "engine/program/host_memory.hpp"
#include "engine/simulate/clock.hpp"

namespace shardbook::simulate {

using program::OpKind;

namespace {

// What a collective's busiest link carries, as a part of the whole buffer (ring algorithms).
double traffic(OpKind kind, int ranks) {
  const double part = static_cast<double>(ranks - 1) / ranks;
  if (kind == OpKind::all_reduce) return 2 * part;
  if (kind == OpKind::send || kind == OpKind::recv || kind == OpKind::shift) return 1;
  return part;
}

double steps_of(int ranks) { return 1 + std::log2(static_cast<double>(ranks)); }

// Fused attention without a measured curve: the part of the matmuls' peak that it reaches. Assumed.
constexpr double attention_part_of_peak = 0.4;
// The CPU's work without a curve: how fast a rank's processors go through host memory, and what beginning costs. Assumed:
// a socket of eight channels of DDR5-4800 has 307 GB/s, of which two thirds, say, are had, by four ranks that share it.
constexpr double host_bytes_per_ns = 50, host_fixed_ns = 20'000;

// What it takes beyond its bytes.
double pause_ns(const program::OpDesc& desc) {
  const bool pauses = desc.kind == OpKind::fill && std::string_view(desc.name) == program::pause_name;
  return pauses ? static_cast<double>(program::pause_ns) : 0;
}

// Of a number of ranks that was not measured: from the nearest one, its latency by the rounds of a tree, the rest by what its links carry.
double by_ranks_ns(const std::map<int, Curve>& curves, OpKind kind, base::Bytes bytes, int ranks) {
  if (auto curve = curves.find(ranks); curve != curves.end()) return at(curve->second, bytes);
  auto nearest = curves.begin();
  for (auto curve = curves.begin(); curve != curves.end(); ++curve) {
    const auto apart = [&](int other) { return std::abs(std::log2(static_cast<double>(other) / ranks)); };
    if (apart(curve->first) < apart(nearest->first)) nearest = curve;
  }
  const double latency_ns = nearest->second.front().ns;
  return latency_ns * steps_of(ranks) / steps_of(nearest->first) +
         (at(nearest->second, bytes) - latency_ns) * traffic(kind, ranks) / traffic(kind, nearest->first);
}

}  // namespace

bool crosses_to_host(const program::OpDesc& desc) {
  return desc.kind == OpKind::copy && desc.uses.size() == 2 && (desc.bytes_read == 0) != (desc.bytes_written == 0);
}

CostModel::CostModel(Profile profile, Conditions conditions) : profile_(std::move(profile)), conditions_(conditions) {
  // How far the small model is off at each measured matmul.
  for (const auto& [dtype, table] : profile_.gemm) {
    std::vector<Correction>& corrections = corrections_[dtype];
    for (const GemmPoint& point : table.points) {
      corrections.push_back({sides_of(point.size), std::log(point.ns / gemm_model_ns(point.size, dtype, table, profile_.device)),
                             point.beside_ns > 0 ? std::log(point.beside_ns / point.ns) : 0});
    }
  }
}

double CostModel::power(const program::OpDesc& desc, double ns) const {
  const PowerCosts& power = profile_.power;
  if (program::class_of(desc.kind) == program::OpClass::communication) return power.communication;
  if (desc.kind != OpKind::gemm && desc.kind != OpKind::attention) return power.memory;
  const double rate = static_cast<double>(desc.flop_count) / (ns * gemm_table(desc.dtype).second.peak_flops_per_ns);
  return drawn_by_matmul(power, rate, static_cast<double>(desc.bytes_read + desc.bytes_written) / (ns * profile_.device.memory_bytes_per_ns));
}

const Curve& CostModel::kernel_curve(const program::OpDesc& desc) const {
  // The curve "copy" was measured from the host to the device: what reads and writes on the device is a kernel's traffic.
  const bool stays_on_device = desc.kind == OpKind::copy && desc.bytes_read > 0 && desc.bytes_written > 0;
  auto curve = profile_.kernels.find(stays_on_device ? "pointwise" : desc.name);
  if (curve == profile_.kernels.end()) curve = profile_.kernels.find(program::name_of(desc.kind));
  SHARDBOOK_CHECK(curve != profile_.kernels.end(), "profile ", profile_.name, " has neither ", desc.name, " nor ",
                  program::name_of(desc.kind));
  return curve->second;
}

double CostModel::kernel_ns(const program::OpDesc& desc) const {
  return pause_ns(desc) + at(kernel_curve(desc), desc.bytes_read + desc.bytes_written);
}

// What a kernel reads and writes of host memory crosses the bus.
double CostModel::bus_ns(const program::OpDesc& desc, const program::Catalogue& catalogue) const {
  if (desc.kind == OpKind::copy) return 0;   // its curve is the bus's
  base::Bytes bytes = 0;
  for (int use = 0; use < desc.uses.size(); ++use) {
    const program::BufferUse& range = desc.uses[use];
    if (program::in_host_memory(catalogue.buffers.at(range.buffer))) bytes += range.end - range.begin;
  }
  auto curve = profile_.kernels.find("to_device");
  if (curve == profile_.kernels.end()) curve = profile_.kernels.find("copy");
  return bytes == 0 || curve == profile_.kernels.end() ? 0 : at(curve->second, bytes);
}

double CostModel::host_work_ns(const program::OpDesc& desc) const {
  auto curve = profile_.kernels.find(desc.name);
  if (curve == profile_.kernels.end()) curve = profile_.kernels.find(program::name_of(OpKind::host));
  const base::Bytes bytes = desc.bytes_read + desc.bytes_written;
  return curve == profile_.kernels.end() ? host_fixed_ns + static_cast<double>(bytes) / host_bytes_per_ns : at(curve->second, bytes);
}

// Of heads as wide, else of those that come nearest; an op that does not say how wide: of the widest. Null: of none.
const Curve* CostModel::attention_curve(const program::OpDesc& desc) const {
  const std::string by_width = std::string(desc.name) + "/";
  const Curve* nearest = nullptr;
  double least = 0;
  for (auto curve = profile_.kernels.lower_bound(by_width); curve != profile_.kernels.end() && curve->first.starts_with(by_width); ++curve) {
    const double width = std::atof(curve->first.c_str() + by_width.size());
    const double apart = desc.gemm.k == 0 ? -width : std::abs(std::log2(width / static_cast<double>(desc.gemm.k)));
    if (nearest != nullptr && apart >= least) continue;
    nearest = &curve->second;
    least = apart;
  }
  if (nearest != nullptr) return nearest;
  const auto of_any = profile_.kernels.find(desc.name);   // a profile from before 2026-11-25
  return of_any == profile_.kernels.end() ? nullptr : &of_any->second;
}

double CostModel::attention_ns(const program::OpDesc& desc) const {
  const Curve* curve = attention_curve(desc);
  if (curve != nullptr && desc.flop_count >= curve->front().bytes) return at(*curve, desc.flop_count);
  const GemmTable& table = gemm_table(desc.dtype).second;
  const double flops_ns = static_cast<double>(desc.flop_count) / (attention_part_of_peak * table.peak_flops_per_ns);
  const double memory_ns = static_cast<double>(desc.bytes_read + desc.bytes_written) / profile_.device.memory_bytes_per_ns;
  const double assumed_ns = table.fixed_ns + std::max(flops_ns, memory_ns);
  // Of less than what was measured: as assumed, but no longer than the least of that took
  return curve != nullptr ? std::min(assumed_ns, curve->front().ns) : assumed_ns;
}

double CostModel::within_node_ns(OpKind kind, base::Bytes bytes, int ranks, bool windows) const {
  const auto& of_windows = profile_.windows.collectives;
  if (const auto measured = of_windows.find(kind); windows && measured != of_windows.end()) return by_ranks_ns(measured->second, kind, bytes, ranks);
  if (const auto measured = profile_.collectives.find(kind); measured != profile_.collectives.end()) return by_ranks_ns(measured->second, kind, bytes, ranks);
  // A kind that was not measured: as the one that moves the same bytes.
  const auto gathers = profile_.collectives.find(OpKind::all_gather);
  SHARDBOOK_CHECK(gathers != profile_.collectives.end(), "profile ", profile_.name, " has no collectives");
  const bool of_two = kind == OpKind::send || kind == OpKind::recv || kind == OpKind::shift;
  return by_ranks_ns(gathers->second, OpKind::all_gather, of_two ? 2 * bytes : bytes, of_two ? 2 : ranks);
}

double CostModel::collective_ns(OpKind kind, base::Bytes bytes, const std::vector<base::Rank>& ranks) const {
  return collective_ns(kind, bytes, ranks, conditions_.windows);
}

double CostModel::collective_ns(OpKind kind, base::Bytes bytes, const std::vector<base::Rank>& ranks, bool windows) const {
  const int size = static_cast<int>(ranks.size());
  double ns = within_node_ns(kind, bytes, std::max(size, 2), windows);
  // How many nodes, and how many of the group's ranks share one: each brings its own adapter.
  std::map<int, int> ranks_of_node;
  for (base::Rank rank : ranks) ++ranks_of_node[rank / profile_.network.ranks_per_node];
  if (ranks_of_node.size() < 2) return ns;
  int adapters = size;
  for (const auto& [node, count] : ranks_of_node) adapters = std::min(adapters, count);
  if (kind == OpKind::shift) adapters = 1;   // its bytes are one rank's, by that rank's own adapter
  const double rounds = std::ceil(std::log2(static_cast<double>(ranks_of_node.size())));
  const double network_ns = static_cast<double>(bytes) * traffic(kind, size) / (adapters * profile_.network.bytes_per_ns);
  return std::max(ns, network_ns) + profile_.network.latency_ns * rounds * (kind == OpKind::all_reduce ? 2 : 1);
}

double CostModel::op_ns(const program::OpDesc& desc, const program::Catalogue& catalogue) const {
  if (desc.kind == OpKind::gemm) {
    // What it writes or adds to may be wider than its type: then memory is the bound.
    const double memory_ns = static_cast<double>(desc.bytes_read + desc.bytes_written) / profile_.device.memory_bytes_per_ns;
    // What an epilogue reads or writes beside comes when the sums are done, and is not hidden behind them: on an H200 between 1.1
    // and 3.4 TB/s (experiments/speed, "gelu"), so taken as half of memory's rate
    const double beside = !std::string_view(desc.name).ends_with("_gelu") ? 0 : static_cast<double>(desc.gemm.m * desc.gemm.n * base::size_of(desc.dtype)) / (0.5 * profile_.device.memory_bytes_per_ns);
    return std::max(gemm_ns(desc.gemm, desc.dtype) + beside, memory_ns);
  }
  if (desc.kind == OpKind::attention) return attention_ns(desc);
  if (desc.kind == OpKind::host) return host_work_ns(desc);
  if (program::class_of(desc.kind) != program::OpClass::communication) return std::max(kernel_ns(desc), bus_ns(desc, catalogue));
  return collective_ns(desc.kind, desc.collective.bytes, catalogue.groups.at(desc.collective.group).ranks);
}

double CostModel::fixed_ns(const program::OpDesc& desc, const program::Catalogue& catalogue) const {
  if (desc.kind == OpKind::gemm) {
    const auto table = profile_.gemm.find(desc.dtype);
    return table == profile_.gemm.end() ? 0 : table->second.fixed_ns;
  }
  // The first point of its curve is of real work: what does not change with size is what a matmul's launch takes
  if (desc.kind == OpKind::attention) return gemm_table(desc.dtype).second.fixed_ns;
  if (desc.kind == OpKind::host) return host_work_ns(desc);   // shares nothing with the device
  if (program::class_of(desc.kind) != program::OpClass::communication) return pause_ns(desc) + kernel_curve(desc).front().ns;
  return collective_ns(desc.kind, 0, catalogue.groups.at(desc.collective.group).ranks);
}

double CostModel::issue_ns(const program::Command& command, const program::Program& program) const {
  const HostCosts& host = profile_.host;
  switch (command.kind) {
    case program::CommandKind::record_event: return host.record_ns;
    case program::CommandKind::wait_event: return host.wait_ns;
    case program::CommandKind::host_wait:
    case program::CommandKind::read_back: return host.host_wait_ns;
    case program::CommandKind::op: break;
  }
  const OpKind kind = program.ops[command.op].desc.kind;
  if (kind == OpKind::gemm) return host.gemm_ns;
  if (kind == OpKind::copy || kind == OpKind::fill) return host.copy_ns;
  return program::class_of(kind) == program::OpClass::communication ? host.collective_ns : host.kernel_ns;
}

std::string problem_of(const Profile& profile, const Conditions& conditions) {
  if (!conditions.windows || !profile.windows.collectives.empty()) return "";
  return base::text("profile ", profile.name, " has no collectives of windows, which nccl.buffers=windows asks for: `shardbook calibrate` measures them, with NCCL 2.28 or newer");
}

void put_under(const Conditions& conditions, Costs& costs, const program::Program& program, base::Rank rank, const SmallCosts& small) {
  if (conditions == Conditions{}) return;
  const double behind = conditions.kernel_ns > 0 ? 1 : -1;   // one kernel more, or one less
  for (std::size_t at = 0; at < program.ops.size(); ++at) {
    const program::OpClass op_class = program::class_of(program.ops[at].desc.kind);
    if (op_class == program::OpClass::communication && conditions.ideal_network) {
      costs.op_ns[at] = 1;
      if (!costs.fixed_ns.empty()) costs.fixed_ns[at] = 0;
    }
    if (op_class != program::OpClass::compute || rank != conditions.slow_rank || conditions.kernel_ns == 0) continue;
    const double alone = static_cast<double>(costs.op_ns[at]), longer = std::max(1.0, alone + conditions.kernel_ns + behind * small.gap_ns);
    // What it waits longer, it shares with nobody
    costs.shared_part[at] = static_cast<float>(std::min(1.0, costs.shared_part[at] * alone / longer));
    costs.op_ns[at] = std::llround(longer);
  }
  for (std::size_t at = 0; at < program.commands.size(); ++at) {
    const program::Command& command = program.commands[at];
    if (command.kind != program::CommandKind::op) continue;
    const program::OpClass op_class = program::class_of(program.ops[command.op].desc.kind);
    if (op_class == program::OpClass::communication && conditions.ideal_network) {
      costs.issue_ns[at] = std::min<base::Nanoseconds>(costs.issue_ns[at], std::llround(small.record_ns));
    }
    const bool two = op_class == program::OpClass::compute && rank == conditions.slow_rank && conditions.kernel_ns != 0;
    costs.issue_ns[at] = std::max<base::Nanoseconds>(0, costs.issue_ns[at] + std::llround(conditions.call_ns + (two ? behind * small.launch_ns : 0)));
  }
}

void issue_as_graph(Costs& costs, const program::Program& program, const HostCosts& host, const DeviceCosts& device) {
  const double of_collectives = device.graph_collective_gap_ns >= 0 ? device.graph_collective_gap_ns : device.graph_gap_ns;
  for (std::size_t op = 0; op < costs.op_ns.size(); ++op) {
    const bool communicates = program::class_of(program.ops[op].desc.kind) == program::OpClass::communication;
    const base::Nanoseconds shorter = std::llround(communicates ? of_collectives : device.graph_gap_ns);
    costs.op_ns[op] = std::max<base::Nanoseconds>(1, costs.op_ns[op] - shorter);
    if (communicates && !costs.fixed_ns.empty()) costs.fixed_ns[op] = std::max<base::Nanoseconds>(0, costs.fixed_ns[op] - shorter);
  }
  std::fill(costs.issue_ns.begin(), costs.issue_ns.end(), 0);
  if (!costs.issue_ns.empty()) costs.issue_ns.front() = std::llround(host.graph_ns);
  if (device.graph_event_latency_ns >= 0) costs.event_latency_ns = std::llround(device.graph_event_latency_ns);
}

std::shared_ptr<const Costs> CostModel::costs(const program::Program& program, const program::Catalogue& catalogue,
                                              const Scale& scale, bool traced, base::Rank rank) const {
  return made(program, catalogue, scale, traced, rank, false);
}

std::shared_ptr<const Costs> CostModel::costs_at_speed_one(const program::Program& program, const program::Catalogue& catalogue,
                                                           const Scale& scale, bool traced, base::Rank rank) const {
  return made(program, catalogue, scale, traced, rank, has_clock());
}

std::shared_ptr<const Costs> CostModel::made(const program::Program& program, const program::Catalogue& catalogue, const Scale& scale, bool traced,
                                             base::Rank rank, bool at_speed_one) const {
  Costs costs;
  costs.op_ns.reserve(program.ops.size());
  costs.shared_part.reserve(program.ops.size());
  costs.issue_ns.reserve(program.commands.size());
  costs.gap_ns = std::llround(profile_.device.stream_gap_ns);
  for (const program::Op& op : program.ops) {
    costs.fills.push_back(fills(op.desc));
    costs.beside.push_back(op.desc.kind == OpKind::gemm ? static_cast<float>(gemm_beside(op.desc.gemm, op.desc.dtype)) : 0);
    const double period_ns = op_ns(op.desc, catalogue), fixed = fixed_ns(op.desc, catalogue);
    costs.op_ns.push_back(std::max<base::Nanoseconds>(1, std::llround(period_ns - profile_.device.stream_gap_ns)));
    costs.shared_part.push_back(static_cast<float>(std::clamp(1 - fixed / period_ns, 0.0, 1.0)));
    const bool communicates = program::class_of(op.desc.kind) == program::OpClass::communication;
    costs.fixed_ns.push_back(communicates ? std::llround(std::min(fixed, period_ns)) : 0);
  }
  for (const program::Command& command : program.commands) {
    const double trace_ns = traced && command.kind == program::CommandKind::op ? profile_.host.trace_ns : 0;
    costs.issue_ns.push_back(std::llround(issue_ns(command, program) + trace_ns));
  }
  if (conditions_.windows) {
    for (const program::Op& op : program.ops) {
      const bool gathers = op.desc.kind == OpKind::all_gather;
      costs.copied.push_back(gathers);
      costs.drawn_ns.push_back(gathers ? std::llround(collective_ns(op.desc.kind, op.desc.collective.bytes, catalogue.groups.at(op.desc.collective.group).ranks, false)) : 0);
      const auto fit = profile_.windows.fit.find(op.desc.name);
      costs.lets_in.push_back(0);
      for (OpKind kind : fit == profile_.windows.fit.end() ? std::set<OpKind>{} : fit->second) costs.lets_in.back() |= bit_of(kind);
    }
  }
  costs.step_ns = std::llround(profile_.host.step_ns);
  if (at_speed_one) put_at_speed_one(costs, program, catalogue);
  const std::vector<base::Nanoseconds> alone_ns = at_speed_one ? costs.op_ns : std::vector<base::Nanoseconds>{};
  put_under(conditions_, costs, program, rank, {profile_.host.record_ns, profile_.host.kernel_ns, profile_.device.stream_gap_ns});
  // A kernel behind it draws nothing to speak of
  for (std::size_t op = 0; op < costs.power.size(); ++op) costs.power[op] *= std::min(1.0F, static_cast<float>(alone_ns[op]) / static_cast<float>(costs.op_ns[op]));
  if (conditions_.as_graph && !traced) issue_as_graph(costs, program, profile_.host, profile_.device);
  return std::make_shared<const Costs>(scaled(costs, program, scale));
}

std::vector<float> CostModel::powers(const program::Program& program, const program::Catalogue& catalogue) const {
  std::vector<float> powers;
  for (const program::Op& op : program.ops) powers.push_back(static_cast<float>(power(op.desc, op_ns(op.desc, catalogue))));
  return powers;
}

// Alone in a train a kernel ran as fast as the limit let it: one that draws less than the largest matmuls ran faster than they did, and
// one that waits for memory at the speed where power is to spare.
void CostModel::put_at_speed_one(Costs& costs, const program::Program& program, const program::Catalogue& catalogue) const {
  const PowerCosts& power = profile_.power;
  costs.power = powers(program, catalogue);
  for (std::size_t op = 0; op < costs.op_ns.size(); ++op) {
    const program::OpDesc& desc = program.ops[op].desc;
    if (program::class_of(desc.kind) != program::OpClass::compute) continue;
    const double speed = is_matmul(desc) ? speed_in_train(power, costs.power[op]) : power.fastest;
    costs.op_ns[op] = std::max<base::Nanoseconds>(1, std::llround(static_cast<double>(costs.op_ns[op]) / slowed_by(speed, desc)));
  }
}

double slowed_by(double speed, const program::OpDesc& desc) { return std::pow(speed, is_matmul(desc) ? -1 : -others_feel); }

Costs scaled(const Costs& costs, const program::Program& program, const Scale& scale) {
  Costs out = costs;
  if (scale == Scale{}) return out;
  for (std::size_t op = 0; op < out.op_ns.size(); ++op) {
    const double period_ns = static_cast<double>(costs.op_ns[op] + costs.gap_ns);
    double ns = period_ns;
    switch (program::class_of(program.ops[op].desc.kind)) {
      case program::OpClass::compute: ns *= scale.compute; break;
      case program::OpClass::memory: ns *= scale.memory; break;
      case program::OpClass::host: ns *= scale.host; break;
      case program::OpClass::communication: {
        const double known = costs.fixed_ns.empty() ? 0 : static_cast<double>(costs.fixed_ns[op]);
        const double fixed = std::min(known, period_ns);
        ns = (fixed * scale.latency + (period_ns - fixed) * scale.bandwidth) * scale.communication;
        break;
      }
    }
    out.op_ns[op] = std::max<base::Nanoseconds>(1, std::llround(ns) - costs.gap_ns);
  }
  for (base::Nanoseconds& issue_ns : out.issue_ns) issue_ns = std::llround(static_cast<double>(issue_ns) * scale.host);
  out.step_ns = std::llround(static_cast<double>(out.step_ns) * scale.host);
  if (out.event_latency_ns >= 0) out.event_latency_ns = std::llround(static_cast<double>(out.event_latency_ns) * scale.launch);
  return out;
}

std::shared_ptr<const Costs> measured_costs(const program::Program& program, const program::StepTimes& times) {
  SHARDBOOK_CHECK_EQ(times.ran.size(), program.ops.size(), "times and ops of step ", times.step);
  SHARDBOOK_CHECK_EQ(times.issued.size(), program.commands.size(), "times and commands of step ", times.step);
  auto costs = std::make_shared<Costs>();
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const program::TimeSpan& ran = times.ran[op];
    SHARDBOOK_CHECK(ran.start <= ran.end, "the duration of op ", program.ops[op].desc.name, " of step ", times.step,
                    " is not known");
    costs->op_ns.push_back(ran.end - ran.start);
    costs->shared_part.push_back(0);
  }
  const std::size_t commands = program.commands.size();
  for (std::size_t at = 0; at < commands; ++at) {
    const program::CommandKind kind = program.commands[at].kind;
    const bool waits = kind == program::CommandKind::host_wait || kind == program::CommandKind::read_back;
    const base::Nanoseconds from = waits ? times.issued[at].end : times.issued[at].start;
    const base::Nanoseconds to = at + 1 < commands ? times.issued[at + 1].start : times.issued[at].end;
    costs->issue_ns.push_back(std::max<base::Nanoseconds>(0, to - from));
  }
  if (commands > 0) costs->step_ns = std::max<base::Nanoseconds>(0, times.issued.front().start - times.window.start);
  return costs;
}

}  // namespace shardbook::simulate
