// Ranks in this process: on meta one after the other, on the host a thread each.
#include <mutex>

#include "engine/base/signals.hpp"
#include "engine/comm/loopback/loopback.hpp"
#include "engine/device/host/host_device.hpp"
#include "engine/launch/journal.hpp"
#include "engine/launch/recover.hpp"
#include "engine/launch/start.hpp"
#include "engine/world/launchers.hpp"
#include "engine/world/threads.hpp"

namespace shardbook::launch {

base::Status expect_no_launcher(const config::RunConfig& config) {
  const char* device = config::name_of(config.device);
  if (config.launch == config::Launch::processes && config.was_asked("launch")) {
    return base::Error{base::text("--launch processes needs --device cuda: the ranks of --device ", device, " are threads of one process")};
  }
  const base::Result<world::Launch> launch = world::from_environment(world::process_environment());
  if (!launch) return launch.as_error();
  if (launch.value().launcher != world::Launcher::none && launch.value().place.size > 1) {
    return base::Error{base::text(world::name_of(launch.value().launcher), " started ", launch.value().place.size,
                                  " processes, but the ranks of --device ", device, " live in one: start it by itself, or use --device cuda")};
  }
  return base::Done{};
}

base::Result<Outcome> run_meta(const config::RunConfig& config, const LaunchOptions& options) {
  RunFolder folder;
  if (options.write_run) {
    base::Result<RunFolder> made = RunFolder::make(config, options);
    if (!made) return made.as_error();
    folder = std::move(made).value();
  }
  std::vector<RankOutcome> ranks;
  try {
    for (base::Rank rank = 0; rank < config.ranks; ++rank) ranks.push_back(issue_on_meta(config, rank));
  } catch (const base::Failure& failure) {
    return base::Error{failure.what()};
  }
  return conclude(config, options, folder, ranks, "meta");
}

base::Result<Outcome> run_threads(const config::RunConfig& config, const LaunchOptions& options) {
  // Whatever can be refused is refused before a rank starts.
  base::Result<std::unique_ptr<data::TokenSource>> source = open_source(config);
  if (!source) return source.as_error();
  RunFolder folder;
  if (options.write_run) {
    base::Result<RunFolder> made = RunFolder::make(config, options);
    if (!made) return made.as_error();
    folder = std::move(made).value();
  }

  const base::DType stored = config.host_dtype == config::HostDtype::f64 ? base::DType::f64 : base::DType::f32;
  comm::LoopbackHub hub;
  std::vector<RankOutcome> ranks(static_cast<std::size_t>(config.ranks));
  // Devices outlive all ranks: where one fails, another may still carry out a collective that reads its memory.
  std::vector<std::unique_ptr<device::HostDevice>> devices(static_cast<std::size_t>(config.ranks));
  base::SignalGuard signals;
  const base::Status ran = world::run_threads(config.ranks, [&](world::World& world) {
    std::unique_ptr<device::HostDevice>& own = devices[static_cast<std::size_t>(world.rank())];
    own = std::make_unique<device::HostDevice>(device::Storage{stored, stored}, world.rank(), config.drain_seed);
    device::HostDevice& device = *own;
    const std::unique_ptr<comm::Backend> backend = comm::make_loopback_backend(hub, device);
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
