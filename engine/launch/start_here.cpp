// Ranks in this process: on meta one after the other, on the host a thread each.
#include <mutex>

#include "engine/base/signals.hpp"
#include "engine/comm/loopback/loopback.hpp"
#include "engine/device/host/host_device.hpp"
#include "engine/kernels/gemm.hpp"
#include "engine/launch/journal.hpp"
#include "engine/launch/recover.hpp"
#include "engine/launch/start.hpp"
#include "engine/world/launchers.hpp"
#include "engine/world/threads.hpp"

namespace shardbook::launch {

base::Result<config::RunConfig> settle_ranks(config::RunConfig config) {
  const base::Result<world::Launch> launch = world::from_environment(world::process_environment());
  if (!launch) return launch.as_error();
  const std::string launcher = world::name_of(launch.value().launcher);
  const int started = launch.value().launcher == world::Launcher::none ? 1 : launch.value().place.size;
  const bool processes_asked = config.launch == config::Launch::processes && config.was_asked("launch");
  const bool threads_asked = config.launch == config::Launch::threads && config.was_asked("launch");
  switch (config.device) {
    case config::DeviceKind::cuda: config.launch = config::Launch::processes; break;
    case config::DeviceKind::meta:
      if (processes_asked) return base::Error{"--launch processes needs ranks that compute, and --device meta has shapes only: choose --device host"};
      if (started > 1) {
        return base::Error{base::text(launcher, " started ", started, " processes, but all ranks of --device meta live in one: start it by itself, or use another device")};
      }
      break;
    case config::DeviceKind::host:
      if (started > 1 && threads_asked) {
        return base::Error{base::text(launcher, " started ", started, " processes, and --launch threads has all ranks in one: leave one of the two out")};
      }
      if (started > 1) config.launch = config::Launch::processes;
      if (config.is_open("comm-timeout")) config.comm_timeout = config::usual_comm_timeout(config);
      break;
  }
  return config;
}

base::Result<Outcome> run_meta(const config::RunConfig& config, const LaunchOptions& options) {
  RunFolder folder;
  if (options.write_run) {
    base::Result<RunFolder> made = RunFolder::make(config, options);
    if (!made) return made.as_error();
    folder = std::move(made).value();
  }
  std::vector<RankOutcome> ranks;
  base::SignalGuard signals;
  try {
    for (base::Rank rank = 0; rank < config.ranks; ++rank) {
      ranks.push_back(issue_on_meta(config, rank));
      if (options.issued) options.issued(rank + 1);
      if (base::stop_signal() == 0) continue;
      Outcome stopped;
      stopped.role = Role::parent;   // nothing was computed, and there is nothing to say
      stopped.stopped_early = true;
      return stopped;
    }
  } catch (const base::Failure& failure) {
    return base::Error{failure.what()};
  }
  return conclude(config, options, folder, ranks, "meta");
}

device::Storage storage_of(const config::RunConfig& config) {
  const base::DType stored = config.host_dtype == config::HostDtype::f64 ? base::DType::f64 : base::DType::f32;
  return {stored, stored};
}

comm::Patience patience_of(const config::RunConfig& config) {
  return {std::chrono::milliseconds(static_cast<std::int64_t>(config.comm_timeout * 1000))};
}

base::Result<Outcome> run_threads(const config::RunConfig& config, const LaunchOptions& options) {
  // Whatever can be refused is refused before a rank starts.
  base::Result<std::unique_ptr<data::TokenSource>> source = open_source(config);
  if (!source) return source.as_error();
  if (base::Status room = kernels::make_room_for_gemms(config.ranks); !room) return base::Error{room.error()};
  RunFolder folder;
  if (options.write_run) {
    base::Result<RunFolder> made = RunFolder::make(config, options);
    if (!made) return made.as_error();
    folder = std::move(made).value();
  }

  comm::LoopbackHub hub;
  std::vector<RankOutcome> ranks(static_cast<std::size_t>(config.ranks));
  // Devices outlive all ranks: where one fails, another may still carry out a collective that reads its memory.
  std::vector<std::unique_ptr<device::HostDevice>> devices(static_cast<std::size_t>(config.ranks));
  base::SignalGuard signals;
  const base::Status ran = world::run_threads(config.ranks, [&](world::World& world) {
    std::unique_ptr<device::HostDevice>& own = devices[static_cast<std::size_t>(world.rank())];
    own = std::make_unique<device::HostDevice>(storage_of(config), world.rank(), config.drain_seed);
    device::HostDevice& device = *own;
    if (options.with_device) options.with_device(device);
    const std::unique_ptr<comm::Backend> backend = comm::make_loopback_backend(hub, device, patience_of(config));
    Journal journal;
    if (options.write_run) {
      base::Result<Journal> begun = Journal::begin(folder.path(), folder.id(), world.rank(), world.size());
      if (!begun) throw base::Failure(begun.error());
      journal = std::move(begun).value();
    }
    RankOutcome& outcome = ranks[static_cast<std::size_t>(world.rank())];
    outcome.device = "host";
    train_rank(world, config, device, *backend, source.value().get(), options, outcome, journal);
  });
  if (!ran) return base::Error{ran.error() + rescue(folder, ran.error())};
  return conclude_or_keep(config, options, folder, ranks, "loopback");
}

}  // namespace shardbook::launch
