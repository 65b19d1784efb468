// launch/rank: one rank from its first step to its record.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/comm/comm.hpp"
#include "engine/launch/launch.hpp"
#include "engine/program/file.hpp"
#include "engine/world/world.hpp"

namespace shardbook::launch {

// What a rank knows at the end.
struct RankOutcome {
  std::string record;                           // program::encode
  std::string device;                           // "NVIDIA H200", "host"
  world::ClockOffset clock, clock_at_end;       // of this rank's host, to rank 0's; a run that was killed has no second
  base::Nanoseconds device_clock_error = 0;     // of the device's clock, to its host's
  std::vector<train::StepResult> results;
  std::vector<base::Nanoseconds> step_done;     // when the host saw each step done
  std::vector<char> step_timed;
  std::vector<base::Nanoseconds> traced_took;   // of each traced step: from its first call to the end of its last op; what came then, reading marks, counts not
  std::vector<train::Trainer::How> step_how;
  device::GraphInfo graph;                      // of the steps that were launched by one call, if any were
  bool stopped_early = false;
  std::string not_finite;                       // what was the first not to be: "the loss of step 7 is nan"; else "" (not_finite.hpp)
  double allocated_bytes = 0;
  Saves saves;
  double tracing_pair_ns = 0;
};

class Journal;

// Trains on an own device; every rank of the world calls it alike. `progress` is called by rank 0. `outcome` comes with
// what is known of the device, and is filled; `journal` is told of each step as it ends. Throws base::Failure on this
// rank's failure or another's.
void train_rank(world::World& world, const config::RunConfig& config, device::Device& device, comm::Backend& backend,
                const data::TokenSource* source, const LaunchOptions& options, RankOutcome& outcome, Journal& journal);

// Issues one step on meta and hands over its record; needs no world.
RankOutcome issue_on_meta(const config::RunConfig& config, base::Rank rank);

// The layout as a mesh: tp fastest, then dp_shard.
mesh::Mesh mesh_of(const config::RunConfig& config);

// The source that the config names. Errors: see data::open.
base::Result<std::unique_ptr<data::TokenSource>> open_source(const config::RunConfig& config);

}  // namespace shardbook::launch
