// Ranks that are processes, a GPU each or all of one host: started by us, or by torchrun, mpirun or srun.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/base/signals.hpp"
#include "engine/comm/loopback/processes.hpp"
#include "engine/comm/nccl/nccl.hpp"
#include "engine/device/cuda/cuda_device.hpp"
#include "engine/device/host/shared_host_device.hpp"
#include "engine/kernels/gemm.hpp"
#include "engine/launch/journal.hpp"
#include "engine/launch/matmul_file.hpp"
#include "engine/launch/recover.hpp"
#include "engine/launch/resolve.hpp"
#include "engine/launch/start.hpp"
#include "engine/launch/wire.hpp"
#include "engine/shard/interval.hpp"
#include "engine/world/launchers.hpp"
#include "engine/world/processes.hpp"
#include "engine/world/spawn.hpp"

namespace shardbook::launch {

namespace {

// The folder of the run, for ranks whose parent has made it.
constexpr const char* folder_variable = "SHARDBOOK_RUN_FOLDER";
// CUDA reads it once, when it starts: ranks that we start are started with it, others must be.
constexpr const char* connections_variable = "CUDA_DEVICE_MAX_CONNECTIONS";

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
base::Result<Outcome> spawn(const config::RunConfig& config, const LaunchOptions& launch) {
  RunFolder folder;
  if (launch.write_run) {
    base::Result<RunFolder> made = RunFolder::make(config, launch);
    if (!made) return made.as_error();
    folder = std::move(made).value();
  }
  const std::filesystem::path file = std::filesystem::temp_directory_path() / base::text("shardbook-", ::getpid(), ".json");
  if (!(std::ofstream(file) << config::to_json(config)).flush().good()) {
    return base::Error{base::text("the config for the ranks cannot be written to ", file.string(), ": free some space there, or set TMPDIR")};
  }
  world::SpawnOptions options;
  options.stopped_code = stopped_rank_code;
  // Later than who waits for it in a collective would name it
  const auto patience = std::min(patience_of(config).timeout, comm::Patience::most_for_stopped);
  if (config.device == config::DeviceKind::host && patience.count() > 0) options.longest_stop = patience + std::chrono::seconds(3);
  if (launch.write_run) options.environment.emplace_back(folder_variable, folder.path());
  // A BLAS that makes no threads needs no memory for them
  if (std::getenv("OPENBLAS_NUM_THREADS") == nullptr) options.environment.emplace_back("OPENBLAS_NUM_THREADS", "1");
  if (const int connections = train::choices_of(config).machine.connections; connections > 0) options.environment.emplace_back(connections_variable, std::to_string(connections));
  if (const char* nodes = std::getenv("SHARDBOOK_NODES")) pretend_nodes(nodes, options);
  std::vector<std::string> arguments{"train", "--config", file.string()};
  // What a stored config leaves out
  if (config.json) arguments.push_back("--json");
  const base::Result<world::SpawnOutcome> ended = world::spawn_processes(world::own_program(), arguments, config.ranks, options);
  std::filesystem::remove(file);
  if (!ended) return ended.as_error();
  const world::SpawnOutcome& all = ended.value();
  Outcome outcome;
  outcome.role = Role::parent;
  outcome.stopped_early = all.exit_code == stopped_rank_code;
  // Rank 0 has finished the folder, or there is something to finish.
  const bool whole = launch.write_run && !is_unfinished(folder.path());
  if (whole) folder.keep();
  if (all.exit_code == 0 || outcome.stopped_early) return outcome;
  return base::Error{all.first_cause + (whole ? "" : rescue(folder, all.first_cause))};
}

// Rank 0 makes the folder, or has it from the process that started it; where it cannot, no rank starts. Every rank
// begins its journal there. On a node that does not have the folder, ranks go without, and say so.
Journal begin_record(world::World& world, const config::RunConfig& config, const LaunchOptions& options, RunFolder& folder) {
  if (!options.write_run) return {};
  if (world.rank() == 0) {
    const char* from_parent = std::getenv(folder_variable);
    base::Result<RunFolder> made = from_parent != nullptr ? RunFolder::made_by_parent(from_parent) : RunFolder::make(config, options);
    if (!made) throw base::Failure(made.error());
    folder = std::move(made).value();
  }
  // Only rank 0 has a path to make absolute.
  const std::string path = world.broadcast(world.rank() == 0 ? std::filesystem::absolute(folder.path()).string() : "", 0);
  const std::string id = world.broadcast(folder.id(), 0);
  base::Result<Journal> begun = Journal::begin(path, id, world.rank(), world.size());
  if (begun) return std::move(begun).value();
  if (world.local_rank() == 0) {
    std::fprintf(stderr, "note: should this run be killed, what the ranks of node %d recorded is lost: %s\n", world.node(), begun.error().c_str());
  }
  return {};
}

// Everyone's record goes to rank 0, which writes the run: when the others have left, so that nothing which happens to
// them can disturb it.
std::vector<RankOutcome> gather_outcomes(world::World& world, const RankOutcome& mine) {
  std::vector<RankOutcome> ranks;
  for (const std::string& bytes : world.gather(to_bytes(mine))) ranks.push_back(from_bytes(bytes));
  if (world.rank() == 0) world::hold_parent();
  return ranks;
}

base::Result<Outcome> finish_rank(base::Rank rank, const base::Status& ran, const config::RunConfig& config, const LaunchOptions& options,
                                  RunFolder& folder, const std::vector<RankOutcome>& ranks, const std::string& backend) {
  // A rank that fails when its record is here already does no harm to the run.
  const bool has_all = static_cast<int>(ranks.size()) == config.ranks;
  if (!ran && has_all) std::fprintf(stderr, "note: the run is whole, but one of its ranks failed at the very end: %s\n", ran.error().c_str());
  // Where another process keeps the folder, it rescues what is in it.
  const bool own_folder = std::getenv(folder_variable) == nullptr;
  if (rank == 0 && has_all && own_folder) return conclude_or_keep(config, options, folder, ranks, backend);
  if (rank == 0 && has_all) {
    base::Result<Outcome> concluded = conclude(config, options, folder, ranks, backend);
    if (concluded) return concluded;
    folder.keep();
    const std::string cause = base::text("rank 0 (pid ", ::getpid(), "): ", concluded.error());
    world::tell_parent(cause);
    return base::Error{cause};
  }
  if (!ran) return base::Error{ran.error() + (rank == 0 && own_folder ? rescue(folder, ran.error()) : "")};
  Outcome outcome;
  outcome.role = Role::member;
  return outcome;
}

// Who is stopped where no rank waits for it in a collective is found by its silence: a little later, so that where one
// does the collective is told.
base::Result<world::ProcessOptions> connection_options(const config::RunConfig& config) {
  using namespace std::chrono_literals;
  const world::Environment environment = world::process_environment();
  base::Result<world::ProcessOptions> options = world::process_options(environment);
  const bool left_open = !environment("SHARDBOOK_HEARTBEAT_TIMEOUT_S") && config.comm_timeout > 0;
  if (!options || !left_open) return options;
  const std::chrono::milliseconds silence = std::max<std::chrono::milliseconds>(5s, patience_of(config).timeout + 2s);
  options.value().heartbeat_timeout = std::min(options.value().heartbeat_timeout, silence);
  return options;
}

// What a rank computes on, and what its numbers travel through; the second goes first.
struct Equipment {
  std::unique_ptr<device::Device> device;
  std::unique_ptr<comm::Backend> backend;
};

std::string connections_problem(int connections) {
  const char* set = std::getenv(connections_variable);
  if (connections == 0 || (set != nullptr && set == std::to_string(connections))) return "";
  return base::text("--set host.connections=", connections, " must be there when CUDA starts: give your launcher's ranks ", connections_variable, "=", connections);
}

void use_measured_matmuls(const std::string& path, int gpu) {
  const base::Result<MatmulFile> file = read_matmul_file(path);
  if (!file) throw base::Failure(file.error());
  if (const base::Status here = check_measured_here(file.value(), device::cuda_device_name(gpu), kernels::matmul_library(), path); !here) throw base::Failure(here.error() + ", or leave --matmuls out");
  kernels::use_matmul_plans(file.value().plans);
}

Equipment equipment_on_gpu(world::World& world, const config::RunConfig& config, const LaunchOptions& options, RankOutcome& mine) {
  const int gpu = world.local_rank() % std::max(1, device::cuda_device_count());
  // Each number as its nominal type says: of a run in fp32 gradients alone may cross the network in bf16
  base::Result<std::unique_ptr<device::Device>> device = device::make_cuda_device(gpu, {base::DType::bf16, base::DType::f32}, world.rank());
  if (!device) throw base::Failure(device.error());
  Equipment made{std::move(device).value(), nullptr};
  if (options.with_device) options.with_device(*made.device);
  const train::Choices choices = train::choices_of(config);
  const train::LabMachine machine = choices.machine;
  if (const std::string problem = connections_problem(machine.connections); !problem.empty()) throw base::Failure(problem);
  if (!config.matmuls.empty()) use_measured_matmuls(config.matmuls, gpu);
  made.device->leave_room(room_rule(config, made.device->recorder().catalogue()));
  made.backend = comm::make_nccl_backend(world, *made.device, {.max_ctas = machine.max_ctas, .ctas_beside_nothing = machine.last_ctas, .buffers = machine.buffers, .mark_ends = config.comm_timeout > 0, .in_graphs = choices.graph,
                                                          .behind_kernels = choices.store.reduce == base::DType::bf16});
  mine.device = device::cuda_device_name(gpu);
  return made;
}

Equipment equipment_on_host(world::World& world, const config::RunConfig& config, const LaunchOptions& options, RankOutcome& mine) {
  if (const base::Status room = kernels::make_room_for_gemms(1); !room) throw base::Failure(room.error());
  auto device = std::make_unique<device::SharedHostDevice>(storage_of(config), world.rank(), config.drain_seed);
  if (options.with_device) options.with_device(*device);
  std::unique_ptr<comm::Backend> backend = comm::make_process_backend(world, *device, patience_of(config));
  mine.device = "host";
  return {std::move(device), std::move(backend)};
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
  if (launch.value().launcher == world::Launcher::none && config.ranks > 1) return spawn(config, options);
  if (launch.value().place.size != config.ranks) {
    return base::Error{base::text(world::name_of(launch.value().launcher), " started ", launch.value().place.size,
                                  " ranks, and --tp ", config.tp, " --fsdp ", config.fsdp, config.dp > 1 ? base::text(" --dp ", config.dp) : "", " needs ", config.ranks,
                                  ": start as many, or change the layout")};
  }
  base::Result<world::ProcessOptions> process = connection_options(config);
  if (!process) return process.as_error();
  base::Result<std::unique_ptr<data::TokenSource>> source = open_source(config);
  if (!source) return source.as_error();

  const bool on_gpus = config.device == config::DeviceKind::cuda;
  if (on_gpus && launch.value().launcher == world::Launcher::shardbook) keep_to_own_processors(launch.value().place);
  base::SignalGuard signals;
  RunFolder folder;
  std::vector<RankOutcome> ranks;
  std::string backend_name;
  const base::Status ran = world::run_process(launch.value(), [&](world::World& world) {
    Journal journal = begin_record(world, config, options, folder);
    RankOutcome mine;
    const Equipment made = on_gpus ? equipment_on_gpu(world, config, options, mine) : equipment_on_host(world, config, options, mine);
    const world::FailureHook stop = world.on_failure([&made] { made.backend->abort(); });
    backend_name = made.backend->version();
    train_rank(world, config, *made.device, *made.backend, source.value().get(), options, mine, journal);
    ranks = gather_outcomes(world, mine);
  }, process.value());
  return finish_rank(launch.value().place.rank, ran, config, options, folder, ranks, backend_name);
}

}  // namespace shardbook::launch
