// Ranks that are processes, a GPU each: started by us, or by torchrun, mpirun or srun.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/comm/nccl/nccl.hpp"
#include "engine/device/cuda/cuda_device.hpp"
#include "engine/launch/start.hpp"
#include "engine/launch/wire.hpp"
#include "engine/shard/interval.hpp"
#include "engine/world/launchers.hpp"
#include "engine/world/processes.hpp"
#include "engine/world/signals.hpp"
#include "engine/world/spawn.hpp"

namespace shardbook::launch {

namespace {

// "0,1;2,3" of SHARDBOOK_NODES: GPUs of each pretended node, for trying several nodes on one host.
void pretend_nodes(const char* text, world::SpawnOptions& spawn) {
  std::string rest = text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    const std::string devices = rest.substr(0, end);
    spawn.visible_devices.push_back(devices);
    spawn.node_sizes.push_back(1 + static_cast<int>(std::count(devices.begin(), devices.end(), ',')));
    rest.erase(0, std::min(end + 1, rest.size()));
  }
}

// A rank that we started keeps to its share of the node's processors, as mpirun and srun arrange it: a host thread
// that wanders between them costs a launch-bound step a good part of its time.
void keep_to_own_processors(const world::Place& place) {
  cpu_set_t all;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  std::vector<int> processors;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &all)) processors.push_back(processor);
  }
  const shard::Interval mine = shard::part_of(static_cast<std::int64_t>(processors.size()), place.local_size, place.local_rank);
  if (mine.empty()) return;
  cpu_set_t own;
  CPU_ZERO(&own);
  for (std::int64_t at = mine.begin; at < mine.end; ++at) CPU_SET(processors[static_cast<std::size_t>(at)], &own);
  sched_setaffinity(0, sizeof own, &own);
}

// Starts this program once a rank, with the config in a file.
base::Result<Outcome> spawn(const config::RunConfig& config) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() / base::text("shardbook-", ::getpid(), ".json");
  if (!(std::ofstream(file) << config::to_json(config)).flush().good()) {
    return base::Error{base::text("the config for the ranks cannot be written to ", file.string(), ": free some space there, or set TMPDIR")};
  }
  world::SpawnOptions options;
  if (const char* nodes = std::getenv("SHARDBOOK_NODES")) pretend_nodes(nodes, options);
  std::vector<std::string> arguments{"train", "--config", file.string()};
  // What a stored config leaves out
  if (config.json) arguments.push_back("--json");
  if (!config.out.empty()) arguments.insert(arguments.end(), {"--out", config.out});
  const base::Result<world::SpawnOutcome> ended = world::spawn_processes(world::own_program(), arguments, config.ranks, options);
  std::filesystem::remove(file);
  if (!ended) return ended.as_error();
  if (ended.value().exit_code != 0) return base::Error{ended.value().first_cause};
  Outcome outcome;
  outcome.role = Role::parent;
  return outcome;
}

}  // namespace

int gpus_available() {
  // Started by a launcher, every node has as many as this one.
  const int here = device::cuda_device_count();
  const base::Result<world::Launch> launch = world::from_environment(world::process_environment());
  if (!launch || launch.value().launcher == world::Launcher::none) return here;
  const world::Place& place = launch.value().place;
  return here * std::max(1, place.size / std::max(1, place.local_size));
}

std::vector<std::pair<std::string, std::string>> versions() {
  std::vector<std::pair<std::string, std::string>> all{{"shardbook", "0.1.0"}};
  if (device::cuda_device_count() > 0) {
    auto dotted = [](int version) { return base::text(version / 1000, ".", version % 1000 / 10); };
    all.emplace_back("CUDA driver", dotted(device::cuda_driver_version()));
    all.emplace_back("CUDA runtime", dotted(device::cuda_runtime_version()));
  }
  return all;
}

base::Result<Outcome> run_processes(const config::RunConfig& config, const LaunchOptions& options) {
  const base::Result<world::Launch> launch = world::from_environment(world::process_environment());
  if (!launch) return launch.as_error();
  if (launch.value().launcher == world::Launcher::none && config.ranks > 1) return spawn(config);
  if (launch.value().place.size != config.ranks) {
    return base::Error{base::text(world::name_of(launch.value().launcher), " started ", launch.value().place.size,
                                  " ranks, and --tp ", config.tp, " --fsdp ", config.fsdp, config.dp > 1 ? base::text(" --dp ", config.dp) : "", " needs ", config.ranks,
                                  ": start as many, or change the layout")};
  }
  base::Result<world::ProcessOptions> process = world::process_options(world::process_environment());
  if (!process) return process.as_error();
  base::Result<std::unique_ptr<data::TokenSource>> source = open_source(config);
  if (!source) return source.as_error();

  if (launch.value().launcher == world::Launcher::shardbook) keep_to_own_processors(launch.value().place);
  Outcome outcome;
  outcome.role = Role::member;
  base::Status concluded = base::Done{};
  world::SignalGuard signals;
  const base::Status ran = world::run_process(launch.value(), [&](world::World& world) {
    // Rank 0 makes the folder; where it cannot, no rank starts.
    RunFolder folder;
    if (world.rank() == 0 && options.write_run) {
      base::Result<RunFolder> made = make_run_folder(config);
      if (!made) throw base::Failure(made.error());
      folder = std::move(made).value();
    }
    const base::DType activation = config.precision == config::Precision::bf16 ? base::DType::bf16 : base::DType::f32;
    const int gpu = world.local_rank() % std::max(1, device::cuda_device_count());
    base::Result<std::unique_ptr<device::Device>> device = device::make_cuda_device(gpu, {activation, base::DType::f32}, world.rank());
    if (!device) throw base::Failure(device.error());
    const std::unique_ptr<comm::Backend> backend = comm::make_nccl_backend(world, *device.value());
    const world::FailureHook stop = world.on_failure([&backend] { backend->abort(); });

    RankOutcome mine = train_rank(world, config, *device.value(), *backend, source.value().get(), options);
    mine.device = device::cuda_device_name(gpu);
    const device::CudaTiming timing = device::cuda_timing(*device.value());
    mine.device_clock_error = timing.clock_error;
    mine.tracing_pair_ns = static_cast<double>(timing.device_cost_of_op);

    // Everyone's record goes to rank 0, which writes the run.
    std::vector<RankOutcome> ranks;
    for (const std::string& bytes : world.all_gather(to_bytes(mine))) {
      if (world.rank() == 0) ranks.push_back(from_bytes(bytes));
    }
    if (world.rank() == 0) {
      base::Result<Outcome> all = conclude(config, options, folder.path(), ranks, backend->version());
      if (all) outcome = std::move(all).value();
      else concluded = all.as_error();
    }
    world.barrier();
  }, process.value());
  if (!ran) return ran.as_error();
  if (!concluded) return concluded.as_error();
  return outcome;
}

}  // namespace shardbook::launch
