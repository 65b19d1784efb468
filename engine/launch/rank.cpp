#include "engine/launch/rank.hpp"

#include <algorithm>
#include <optional>

#include "engine/comm/meta/meta.hpp"
#include "engine/comm/watch.hpp"
#include "engine/config/in_force.hpp"
#include "engine/device/cuda/cuda_device.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "engine/launch/checkpoints.hpp"
#include "engine/launch/journal.hpp"
#include "engine/launch/not_finite.hpp"
#include "engine/launch/resolve.hpp"
#include "engine/launch/speed.hpp"

namespace shardbook::launch {

mesh::Mesh mesh_of(const config::RunConfig& config) {
  mesh::DenseSizes sizes;
  sizes.dp_replicate = config.dp;
  sizes.dp_shard = config.fsdp;
  sizes.tp = config.tp;
  return mesh::Mesh::dense(sizes);
}

base::Result<std::unique_ptr<data::TokenSource>> open_source(const config::RunConfig& config) {
  data::SourceSpec spec;
  spec.names = config.data;
  spec.vocab = config.model.vocab;
  spec.sequence = config.model.sequence;
  spec.seed = config.seed;
  return data::open(spec);
}

namespace {

// The collectives of all ranks must come in one order, or the run hangs: compared when the first step is issued and has
// not been waited for, and later by what ranks claim of each step.
void compare_orders(world::World& world, program::Recorder& recorder, comm::Flight& flight) {
  const std::uint64_t mine = program::collective_order_hash(*recorder.programs().back(), recorder.catalogue());
  const std::vector<std::string> all = world.all_gather(std::to_string(mine));
  const auto other = std::find_if(all.begin(), all.end(), [&](const std::string& one) { return one != all[0]; });
  if (other == all.end()) return;
  // All come here, for all have compared the same. Where the flights are alike it is the order of several groups.
  comm::compare_flights(world, flight);
  throw base::Failure(base::text("rank ", other - all.begin(), " issues other collectives, or in another order, than rank 0"));
}

// How long a collective may take. Ranks of the host keep the time limit themselves, and know a deadlock without one.
std::chrono::milliseconds watched_for(const config::RunConfig& config) {
  if (config.device != config::DeviceKind::cuda) return std::chrono::milliseconds(0);
  return std::chrono::milliseconds(static_cast<std::int64_t>(config.comm_timeout * 1000));
}

std::string encode(program::Recorder& recorder, int world_size, const std::vector<program::StepTimes>& steps) {
  return program::encode(recorder.rank(), world_size, recorder.catalogue(), recorder.programs(), steps);
}

// What marks of a GPU cost is known once its device is sealed, and how exact they are once a step was traced.
void note_timing(const device::Device& device, RankOutcome& outcome) {
  if (device.kind() != device::Kind::cuda) return;
  const device::CudaTiming timing = device::cuda_timing(device);
  outcome.device_clock_error = timing.clock_error;
  outcome.tracing_pair_ns = static_cast<double>(timing.device_cost_of_op);
}

// Says how a step went, every so many steps and at the end.
class Reporter {
 public:
  Reporter(const config::RunConfig& config, const LaunchOptions& options, base::Rank rank)
      : config_(config), options_(options), silent_(rank != 0 || !options.progress) {}

  void begin() { begun_ = last_ = program::host_now(); }
  void set_modelled_step(double step_ns) { modelled_step_ns_ = step_ns; }
  void report(const train::StepResult& result) {
    ++since_last_;
    const bool last_step = result.step + 1 == config_.steps;
    if (silent_ || config_.progress == 0 || (result.step % config_.progress != 0 && !last_step)) return;
    const base::Nanoseconds now = program::host_now();
    Progress progress;
    progress.result = result;
    progress.has_numbers = !config::only_times_count(config_);
    progress.steps = config_.steps;
    progress.clock = config_.clock;
    progress.profile = config_.profile;
    const double step_ns = config_.clock == config::Clock::modelled ? modelled_step_ns_
                                                                    : static_cast<double>(now - last_) / since_last_;
    progress.tokens_per_second = step_ns > 0 ? static_cast<double>(config_.global_tokens()) / step_ns * 1e9 : 0;
    progress.wall_seconds = static_cast<double>(now - begun_) / 1e9;
    options_.progress(progress);
    last_ = now;
    since_last_ = 0;
  }

 private:
  const config::RunConfig& config_;
  const LaunchOptions& options_;
  bool silent_;
  double modelled_step_ns_ = 0;
  base::Nanoseconds begun_ = 0, last_ = 0;
  int since_last_ = 0;
};

}  // namespace

void train_rank(world::World& world, const config::RunConfig& config, device::Device& device, comm::Backend& backend,
                const data::TokenSource* source, const LaunchOptions& options, RankOutcome& outcome, Journal& journal) {
  const mesh::Mesh mesh = mesh_of(config);
  device.set_watch([&world] { world.throw_if_failed(); });
  device.keep_timed_programs_alone();
  std::optional<comm::Watch> watch;   // who is alone waits for nobody
  if (world.size() > 1) watch.emplace(world, backend.flight(), watched_for(config));
  train::Trainer trainer(config, device, backend, mesh, world.rank(), source);
  Checkpoints checkpoints(world, config, trainer);
  outcome.allocated_bytes = static_cast<double>(device.allocated_bytes());
  outcome.clock = world.measure_clock();
  note_timing(device, outcome);
  journal.head(outcome, backend.version());
  world.barrier();

  std::vector<program::StepTimes> traced;
  Reporter reporter(config, options, world.rank());
  NotFinite watched(device);
  const std::int64_t begin = checkpoints.begin();
  std::int64_t issued = begin, settled = begin;
  // Awaits every step before `end`. After one that is not finite all ranks stop at the same step, soon: its update
  // has spoiled the weights, for clipping has no power over a norm that is no number.
  auto settle_until = [&](std::int64_t end) {
    for (; settled < end; ++settled) {
      outcome.results.push_back(trainer.await(settled));
      outcome.step_done.push_back(program::host_now());
      journal.result(outcome.results.back(), outcome.step_done.back());
      reporter.report(outcome.results.back());
      backend.check();
      if (!outcome.not_finite.empty() || config::only_times_count(config)) continue;
      outcome.not_finite = watched.look_at(outcome.results.back());
      if (!outcome.not_finite.empty()) world.request_stop();
    }
  };

  // Issue a step, then await the one before, so that the device always has work. A traced step stands alone: the
  // one before it has ended, and it ends before the next is issued.
  reporter.begin();
  while (issued < config.steps) {
    const bool timed = config.trace_steps.contains(static_cast<int>(issued));
    if (timed) settle_until(issued);
    program::StepTimes& times = trainer.issue(issued, timed);
    watched.issued(times);
    outcome.step_timed.push_back(timed);
    outcome.step_how.push_back(trainer.how());
    if (timed) {
      traced.push_back(times);
      outcome.traced_took.push_back(took_alone(times));
    }
    if (timed || issued == begin) journal.programs(device.recorder(), world.size());
    if (timed) journal.traced(times);
    if (issued == begin) {
      compare_orders(world, device.recorder(), backend.flight());
      // The modelled pace of the progress lines comes from the program of all ranks.
      if (config.clock == config::Clock::modelled) {
        const std::vector<std::string> records = world.gather(encode(device.recorder(), world.size(), {}));
        if (world.rank() == 0) reporter.set_modelled_step(modelled_step_ns(config, records));
      }
    }
    backend.flight().step_issued(issued);
    ++issued;
    settle_until(timed ? issued : issued - 1);
    checkpoints.after_step(issued, settled, outcome.not_finite.empty());
    if (world.step_ended(issued - 1) && issued < config.steps) {
      outcome.stopped_early = true;
      break;
    }
  }
  settle_until(issued);
  device.synchronize();
  comm::compare_flights(world, backend.flight());
  checkpoints.end(issued, outcome.not_finite.empty());
  if (config.check_finite && !watched.is_first_of_all(world)) outcome.not_finite.clear();
  outcome.clock_at_end = world.measure_clock();
  outcome.saves = checkpoints.saves();
  outcome.graph = trainer.graph();
  note_timing(device, outcome);
  outcome.record = encode(device.recorder(), world.size(), traced);
}

RankOutcome issue_on_meta(const config::RunConfig& config, base::Rank rank) {
  device::MetaDevice device(rank);
  const std::unique_ptr<comm::Backend> backend = comm::make_meta_backend();
  train::Trainer trainer(config, device, *backend, mesh_of(config), rank, nullptr);
  const program::StepTimes times = trainer.issue(0, true);
  RankOutcome outcome;
  outcome.device = "meta";
  outcome.allocated_bytes = static_cast<double>(device.allocated_bytes());
  outcome.record = encode(device.recorder(), config.ranks, {times});
  return outcome;
}

}  // namespace shardbook::launch
