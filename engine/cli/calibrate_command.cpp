// A process a GPU, as training has them: this one starts the others, or was started by a launcher. Rank 0 fits the
// profile and writes it.
#include "engine/cli/calibrate_command.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <ostream>

#include "engine/cli/calibrate.hpp"
#include "engine/cli/calibrate_graph.hpp"
#include "engine/comm/nccl/nccl.hpp"
#include "engine/device/cuda/cuda_device.hpp"
#include "engine/launch/launch.hpp"
#include "engine/simulate/profile.hpp"
#include "engine/world/launchers.hpp"
#include "engine/world/processes.hpp"
#include "engine/world/spawn.hpp"

namespace shardbook::cli {

namespace fs = std::filesystem;
using base::text;

namespace {

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char date[16];
  std::strftime(date, sizeof date, "%Y-%m-%d", &parts);
  return date;
}

std::string dotted(int version) { return text(version / 1000, ".", version % 1000 / 10); }

// Everything that no GPU measures.
simulate::Benchmarks prepare(int gpus, const std::string& name, const comm::Backend& backend, int gpu) {
  simulate::Benchmarks plan = simulate::plan(gpus);
  plan.name = name;
  plan.made_at = today();
  plan.device.name = device::cuda_device_name(gpu);
  plan.network.bytes_per_ns = 45;
  plan.network.latency_ns = 8000;
  plan.idle_power = 0.18;
  plan.origin = {
      text(gpus, " × ", plan.device.name, ", driver of CUDA ", dotted(device::cuda_driver_version()), ", runtime ",
           dotted(device::cuda_runtime_version()), ", ", backend.version(), "."),
      text("Measured by `shardbook calibrate` on ", plan.made_at, ": matmuls, kernels and collectives as periods, medians of "
           "five, a matmul of 15 us or more once it has run for 160 ms, and put at the clock that its train settles at; overlap and latencies from timed ops; host costs while a step is recorded; a graph's launch, and how much nearer its ops are, from graphs of some 200 and 600 small ops."),
      "Assumed: 0.8 us between two ops of a stream; launching a graph with collectives costs no more than one without; between nodes 45 GB/s a GPU and 8 us; an idle GPU draws 0.18 of its limit on power; "
      "the CPU's own work goes through 50 GB/s of host memory."};
  return plan;
}

base::Status check_out(const fs::path& path) {
  std::error_code ignored;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (fs::is_directory(path, ignored) || !fs::is_directory(folder, ignored) || ::access(folder.c_str(), W_OK) != 0) {
    return base::Error{text("the profile cannot be written to ", path.string(), ": name a file in a folder that can be written with --out")};
  }
  return base::Done{};
}

// A line that is written over on a terminal; elsewhere only the first of each kind is said.
class Saying {
 public:
  explicit Saying(Console& console) : console_(console) {}
  ~Saying() {
    if (console_.err_is_terminal) console_.err << "\r\x1b[K" << std::flush;
  }
  void operator()(const std::string& what) {
    const std::string kind = what.substr(0, what.find(' '));
    if (console_.err_is_terminal) console_.err << "\r\x1b[Kmeasuring " << what << std::flush;
    else if (kind != kind_) console_.err << "measuring " << what << "\n" << std::flush;
    kind_ = kind;
  }

 private:
  Console& console_;
  std::string kind_;
};

// The file, whatever profile has its name.
base::Result<simulate::Profile> written(const std::string& out) { return simulate::find_profile(fs::absolute(out).string()); }

// What each rank of `launch` does with its GPU and its backend; the exit code where that failed.
std::optional<int> on_gpus(const world::Launch& launch, const comm::NcclOptions& nccl, Console& console,
                           const std::function<void(world::World&, device::Device&, comm::Backend&, int gpu)>& measure) {
  base::Result<world::ProcessOptions> options = world::process_options(world::process_environment());
  if (!options) return refuse(console, options.error());
  const base::Status ran = world::run_process(launch, [&](world::World& world) {
    const int gpu = world.local_rank() % std::max(1, device::cuda_device_count());
    base::Result<std::unique_ptr<device::Device>> device =
        device::make_cuda_device(gpu, {base::DType::bf16, base::DType::f32}, world.rank());
    if (!device) throw base::Failure(device.error());
    const std::unique_ptr<comm::Backend> backend = comm::make_nccl_backend(world, *device.value(), nccl);
    const world::FailureHook stop = world.on_failure([&] { backend->abort(); });
    measure(world, *device.value(), *backend, gpu);
    world.barrier();
  }, options.value());
  if (ran) return std::nullopt;
  if (launch.launcher != world::Launcher::shardbook) console.err << "shardbook: " << ran.error() << "\n";
  return exit_failed;
}

int measure_as_rank(const world::Launch& launch, const std::string& name, const std::string& out, Console& console) {
  simulate::Benchmarks measured;
  const std::optional<int> failed = on_gpus(launch, {}, console, [&](world::World& world, device::Device& device, comm::Backend& backend, int gpu) {
    Saying saying(console);
    measured = measure(world, device, backend, prepare(world.size(), name, backend, gpu), std::ref(saying));
  });
  if (failed || launch.place.rank != 0) return failed.value_or(exit_ok);
  measured.origin.push_back(text("Added to each matmul and kernel, which were measured in trains of one kind: ", short_number(measured.among_others_ns),
                                 " ns, by which they take longer in a mix of small ones."));
  base::Result<simulate::Profile> profile = simulate::fit(measured);
  if (!profile) return refuse(console, profile.error());
  if (base::Status status = simulate::save_profile(profile.value(), out); !status) return refuse(console, status.error());
  return exit_ok;
}

// Adds to the profile that is there already. `how` takes the place of the sentence that says the same up to its colon. REQUIRES: it has one.
int add_to(const std::string& out, const std::string& how, Console& console, const std::function<void(simulate::Profile&)>& add) {
  base::Result<simulate::Profile> profile = written(out);
  if (!profile) return refuse(console, profile.error());
  add(profile.value());
  std::vector<std::string>& origin = profile.value().origin;
  std::erase_if(origin, [&](const std::string& sentence) { return sentence.starts_with(how.substr(0, how.find(':') + 1)); });
  origin.push_back(how);
  if (base::Status status = simulate::save_profile(profile.value(), out); !status) return refuse(console, status.error());
  return exit_ok;
}

// Where calls are to be in graphs NCCL is told another order of launches for the whole process (comm/nccl), so the processes are others
// than those that measured what calls cost.
int measure_graphs_as_rank(const world::Launch& launch, const std::string& out, Console& console) {
  CollectivesInGraph found;
  const std::optional<int> failed = on_gpus(launch, {.in_graphs = true}, console, [&](world::World& world, device::Device& device, comm::Backend& backend, int) {
    Saying saying(console);
    if (world.rank() == 0) saying("collectives of a graph");
    found = collectives_in_graph(world, device, backend, base::Bytes{1} << 28);
  });
  if (failed || launch.place.rank != 0) return failed.value_or(exit_ok);
  const std::string how = "How much nearer collectives of a graph are, and what awaits another stream there: by `shardbook calibrate --graphs`, from graphs of 100 and 300 sums.";
  return add_to(out, how, console, [&](simulate::Profile& profile) {
    profile.device.graph_collective_gap_ns = found.gap_ns;
    profile.device.graph_event_latency_ns = found.event_latency_ns;
  });
}

// What memory is to NCCL it is to all of a backend's calls, so here, too, the processes are others.
int measure_windows_as_rank(const world::Launch& launch, const std::string& out, Console& console) {
  simulate::Benchmarks measured;
  const std::optional<int> failed = on_gpus(launch, {.buffers = comm::Buffers::windows}, console, [&](world::World& world, device::Device& device, comm::Backend& backend, int) {
    Saying saying(console);
    measured = measure_collectives(world, device, backend, simulate::plan_windows(world.size()), std::ref(saying));
  });
  if (failed || launch.place.rank != 0) return failed.value_or(exit_ok);
  const base::Result<simulate::Windows> windows = simulate::fit_windows(measured);
  if (!windows) return refuse(console, windows.error());
  const std::string how = text("Collectives of windows: by `shardbook calibrate --windows`, as the others, reduce-scatters beside matmuls and kernels, and, behind a matmul, sums of 32 MiB, which have room beside it where they end first (us): ",
                               simulate::told(measured.rooms), ". In steps in which gathers by copy engines lie open they take longer (experiments/speed, \"drawn\").");
  return add_to(out, how, console, [&](simulate::Profile& profile) { profile.windows = windows.value(); });
}

// What is measured by processes of its own, and added to the profile of the first ones.
struct Addition {
  const char* name;   // the switch
  const char* what;
  int (*measure)(const world::Launch&, const std::string& out, Console&);
  std::string (*problem)();   // why it cannot be measured here; empty: it can
};
const std::array additions{Addition{"graphs", "collectives in graphs", measure_graphs_as_rank, [] { return std::string(); }},
                           Addition{"windows", "collectives of windows", measure_windows_as_rank, comm::nccl_windows_problem}};

// This process once for each GPU.
int spawned(const std::vector<std::string>& arguments, int gpus, Console& console) {
  const base::Result<world::SpawnOutcome> ended = world::spawn_processes(world::own_program(), arguments, gpus);
  if (!ended) return refuse(console, ended.error());
  if (ended.value().exit_code != 0) console.err << "shardbook: " << ended.value().first_cause << "\n";
  return ended.value().exit_code == 0 ? exit_ok : exit_failed;
}

int tell(const std::string& out, bool json, Console& console) {
  const base::Result<simulate::Profile> saved = written(out);
  if (!saved) return refuse(console, saved.error());
  const simulate::Profile& fitted = saved.value();
  if (json) {
    console.out << simulate::to_json(fitted) << "\n";
    return exit_ok;
  }
  console.out << "profile " << fitted.name << " of " << fitted.device.name << ", measured on " << fitted.made_at << ": " << out << "\n"
              << "  bf16 matmul " << short_number(fitted.gemm.at(base::DType::bf16).peak_flops_per_ns * 1e9, " ") << "FLOP/s · memory "
              << short_number(fitted.device.memory_bytes_per_ns * 1e9, " ") << "B/s · a launch costs the host "
              << short_number(fitted.host.kernel_ns / 1000) << " µs\n"
              << "Use it: ./shardbook train --device host --tp 2 --fsdp 2 --profile " << out << "\n";
  return exit_ok;
}

}  // namespace

std::vector<Switch> calibrate_switches() {
  return {{"name", "NAME", "What the profile is called.", "the host's name"},
          {"out", "FILE", "Where it is written.", "NAME.json"},
          {"gpus", "N", "How many GPUs.", "all"},
          {"graphs", "", "Add to that file what a collective takes less in a graph, and measure nothing else. Done unasked, but where a launcher starts the ranks.", ""},
          {"windows", "", "Add to that file what collectives take where memory is windows (nccl.buffers), and measure nothing else. Done unasked, but where a launcher starts the ranks.", ""},
          {"json", "", "The profile on standard output too.", ""}};
}

int calibrate(const Line& line, Console& console) {
  base::Result<world::Launch> launch = world::from_environment(world::process_environment());
  if (!launch) return refuse(console, launch.error());
  const int here = launch::gpus_available();
  if (here == 0) return refuse(console, text("calibrate measures GPUs, and there is none: ", device::cuda_problem()));
  int gpus = here;
  if (line.has("gpus")) {
    base::Result<int> asked = whole_number("gpus", line.value("gpus"), 1);
    if (!asked) return refuse(console, asked.error());
    if (asked.value() > here) return refuse(console, text("--gpus ", asked.value(), ": ", here, here == 1 ? " is" : " are", " here"));
    gpus = asked.value();
  }
  char host[256] = "node";
  ::gethostname(host, sizeof host - 1);
  const std::string name = line.has("name") ? line.value("name") : host;
  const std::string out = line.has("out") ? line.value("out") : name + ".json";
  if (base::Status status = check_out(out); !status) return refuse(console, status.error());

  const bool json = line.has("json"), by_launcher = launch.value().launcher != world::Launcher::none;
  const int ranks = by_launcher ? launch.value().place.size : gpus;
  const auto more = std::find_if(additions.begin(), additions.end(), [&](const Addition& one) { return line.has(one.name); });
  if (more != additions.end()) {
    if (ranks == 1) return refuse(console, text("calibrate --", more->name, " measures collectives, and one GPU has none: take several, or leave it out"));
    if (const base::Result<simulate::Profile> known = written(out); !known) return refuse(console, known.error());
  }
  if (!by_launcher && ranks > 1) {
    int code = more != additions.end() ? exit_ok : spawned({"calibrate", "--name", name, "--out", out}, gpus, console);
    if (code != exit_ok) return code;
    for (auto one = additions.begin(); one != additions.end(); ++one) {
      if (more != additions.end() && one != more) continue;
      if (const std::string problem = one->problem(); !problem.empty()) {
        console.err << "without " << one->what << ": " << problem << "\n";
        continue;
      }
      const int ended = spawned({"calibrate", text("--", one->name), "--out", out}, gpus, console);
      if (ended == exit_ok) continue;
      code = ended;
      console.err << "the profile " << out << " is without " << one->what << ": calibrate --" << one->name << " --out " << out << " tries those again\n";
    }
    return code == exit_ok ? tell(out, json, console) : code;
  }
  const int code = more != additions.end() ? more->measure(launch.value(), out, console) : measure_as_rank(launch.value(), name, out, console);
  // Those that this program started are told of by the one that did
  const bool tells = launch.value().place.rank == 0 && launch.value().launcher != world::Launcher::shardbook;
  return code == exit_ok && tells ? tell(out, json, console) : code;
}

}  // namespace shardbook::cli
