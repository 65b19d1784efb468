#include "labs/harness/bench.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "engine/comm/loopback/loopback.hpp"
#include "engine/comm/meta/meta.hpp"
#include "engine/data/source.hpp"
#include "engine/device/host/host_device.hpp"
#include "engine/world/threads.hpp"
#include "labs/harness/verdict.hpp"

namespace shardbook::labs {

using program::Command;
using program::CommandKind;
using program::OpClass;

config::RunConfig config_of(const Options& options) {
  config::RunConfig config;
  // An option that takes many is asked for once, with all of its values
  std::map<std::string, std::vector<std::string>> all;
  for (const auto& [name, value] : options) all[name].push_back(value);
  for (const auto& [name, values] : all) {
    if (const base::Status asked = config::ask(config, name, values); !asked) throw base::Failure(asked.error());
  }
  base::Result<config::RunConfig> valid = config::validate(config, 0);
  if (!valid) throw base::Failure(valid.error());
  return std::move(valid).value();
}

namespace {

mesh::Mesh mesh_of(const config::RunConfig& config) {
  mesh::DenseSizes sizes;
  sizes.dp_replicate = config.dp;
  sizes.dp_shard = config.fsdp;
  sizes.tp = config.tp;
  return mesh::Mesh::dense(sizes);
}

}  // namespace

Numbers on_host(const config::RunConfig& config, const Written& written, std::uint64_t drain_seed, int steps) {
  base::Result<std::unique_ptr<data::TokenSource>> source = data::open(data::spec_of(config));
  if (!source) throw base::Failure(source.error());
  Numbers numbers;
  comm::LoopbackHub hub;
  // Devices outlive all ranks: where one fails, another may still carry out a collective that reads its memory
  std::vector<std::unique_ptr<device::HostDevice>> devices(static_cast<std::size_t>(config.ranks));
  const base::Status ran = world::run_threads(config.ranks, [&](world::World& world) {
    std::unique_ptr<device::HostDevice>& own = devices[static_cast<std::size_t>(world.rank())];
    own = std::make_unique<device::HostDevice>(device::Storage{}, world.rank(), drain_seed);
    const std::unique_ptr<comm::Backend> backend = comm::make_loopback_backend(hub, *own);
    own->set_watch([&world] { world.throw_if_failed(); });
    train::Trainer trainer(config, *own, *backend, mesh_of(config), world.rank(), source.value().get(), written.plan, written.instead);
    for (int step = 0; step < steps; ++step) {
      trainer.issue(step, false);
      const train::StepResult result = trainer.await(step);
      if (world.rank() != 0) continue;
      numbers.losses.push_back(result.loss);
      numbers.norms.push_back(result.gradient_norm);
    }
  });
  if (!ran) numbers.error = ran.error();
  return numbers;
}

Tried tried_on_host(const config::RunConfig& config, const Written& written) {
  Tried tried;
  tried.expected = on_host(config, {}, 0);
  for (std::uint64_t drain : {0, 3, 7}) {
    tried.found = on_host(config, written, drain);
    tried.seed = drain;
    tried.right = tried.found.error.empty() && agree(tried.found, tried.expected);
    if (!tried.right) return tried;
  }
  return tried;
}

bool agree(const Numbers& a, const Numbers& b, double relative) {
  const auto near = [relative](const std::vector<double>& left, const std::vector<double>& right) {
    return std::equal(left.begin(), left.end(), right.begin(), right.end(), [relative](double l, double r) { return std::abs(l - r) <= relative * std::abs(r); });
  };
  return near(a.losses, b.losses) && near(a.norms, b.norms);
}

Issued::Issued(const config::RunConfig& config, const Written& written) : config_(config) {
  for (int rank = 0; rank < config.ranks; ++rank) {
    Rank& one = ranks_.emplace_back();
    one.device = std::make_unique<device::MetaDevice>(rank);
    one.backend = comm::make_meta_backend();
    one.trainer = std::make_unique<train::Trainer>(config_, *one.device, *one.backend, mesh_of(config_), rank, nullptr, written.plan, written.instead);
    one.trainer->issue(0, false);
  }
}

std::vector<check::Race> Issued::races(int rank) const {
  const check::Steps steps{&program(rank), &program(rank)};
  std::vector<check::Race> found = check::races(catalogue(rank), steps);
  std::erase_if(found, [](const check::Race& race) { return race.follows; });
  return found;
}

std::vector<program::OpIndex> Issued::collectives(int rank) const {
  std::vector<program::OpIndex> found;
  const std::vector<program::Op>& ops = program(rank).ops;
  for (program::OpIndex op = 0; op < ops.size(); ++op) {
    if (program::class_of(ops[op].desc.kind) == OpClass::communication) found.push_back(op);
  }
  return found;
}

const Command& Issued::command_of(program::OpIndex op, int rank) const {
  const std::vector<Command>& commands = program(rank).commands;
  return *std::find_if(commands.begin(), commands.end(), [op](const Command& command) { return command.kind == CommandKind::op && command.op == op; });
}

std::vector<program::SourceLine> Issued::host_waits(int rank) const {
  std::vector<program::SourceLine> waits;
  for (const Command& command : program(rank).commands) {
    if (command.kind == CommandKind::host_wait || command.kind == CommandKind::read_back) waits.push_back(line_of(command));
  }
  return waits;
}

// Who planned a gather leads; who issued an op in a layer does.
program::SourceLine line_of(const Command& command) {
  const bool planned = command.planned.file[0] != 0 && (command.planned_leads || command.kind != CommandKind::op) && is_learners(command.planned);
  return planned ? command.planned : command.where;
}

Nanoseconds Timing::exposed(const std::vector<program::OpIndex>& ops) const {
  Nanoseconds sum = 0;
  for (program::OpIndex op : ops) sum += exposed_of[op];
  return sum;
}

Clock::Clock(const Issued& issued, const std::string& profile) : issued_(issued) {
  base::Result<simulate::Profile> found = simulate::find_profile(profile);
  if (!found) throw base::Failure(found.error());
  model_ = std::make_shared<simulate::CostModel>(std::move(found).value());
  std::vector<simulate::RankProgram> ranks;
  for (int rank = 0; rank < issued.size(); ++rank) ranks.push_back({rank, &issued.catalogue(rank), &issued.program(rank)});
  base::Result<simulate::Replay> replay = simulate::Replay::modelled(ranks, *model_);
  if (!replay) throw base::Failure(replay.error());
  replay_ = std::move(replay).value();
}

Timing Clock::timing(const simulate::Change& change) const {
  const base::Result<simulate::Replayed> resolved = replay_.resolve(change);
  if (!resolved) throw base::Failure(resolved.error());
  Timing timing;
  timing.step_ns = resolved.value().step_ns();
  const simulate::RankTimes& first = resolved.value().ranks.front();
  const base::Interval window{resolved.value().begin, resolved.value().end};

  // Compute of all steps: what runs beside the last step's collectives may be of the one before
  const std::vector<program::Op>& ops = issued_.program().ops;
  std::vector<base::Interval> busy, talking;
  for (const program::StepTimes& times : first.steps) {
    for (program::OpIndex op = 0; op < ops.size(); ++op) {
      const base::Interval span{times.ran[op].start, times.ran[op].end};
      const OpClass kind = program::class_of(ops[op].desc.kind);
      if (kind == OpClass::compute) busy.push_back(span);
      if (kind == OpClass::communication) talking.push_back(span);
    }
  }
  const base::Intervals compute = base::union_of(std::move(busy));
  timing.compute_ns = base::length_within(compute, window);
  timing.exposed_ns = base::length_within(base::subtract(base::union_of(std::move(talking)), compute), window);

  const program::StepTimes& last = first.steps.back();
  for (program::OpIndex op = 0; op < ops.size(); ++op) {
    const base::Interval span{last.ran[op].start, last.ran[op].end};
    timing.took.push_back(span.length());
    timing.exposed_of.push_back(program::class_of(ops[op].desc.kind) == OpClass::communication ? span.length() - base::length_within(compute, span) : 0);
  }
  return timing;
}

}  // namespace shardbook::labs
