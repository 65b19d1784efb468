// launch/start: where the ranks live, for each device.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/comm/loopback/hall.hpp"
#include "engine/launch/launch.hpp"
#include "engine/launch/rank.hpp"
#include "engine/launch/run_folder.hpp"

namespace shardbook::launch {

// From the outcomes of ranks to the run on disk, in order. `interruption` says what ended the run, if it did not end by
// itself. Where it cannot be written, what the ranks keep on disk is still there.
base::Result<Outcome> conclude(const config::RunConfig& config, const LaunchOptions& options, RunFolder& folder,
                               const std::vector<RankOutcome>& ranks, const std::string& backend,
                               const std::string& interruption = "");

// The same of ranks that have trained: where the run cannot be written, what they recorded stays, and it is said where.
base::Result<Outcome> conclude_or_keep(const config::RunConfig& config, const LaunchOptions& options, RunFolder& folder,
                                       const std::vector<RankOutcome>& ranks, const std::string& backend);

base::Result<Outcome> run_meta(const config::RunConfig& config, const LaunchOptions& options);
base::Result<Outcome> run_threads(const config::RunConfig& config, const LaunchOptions& options);
base::Result<Outcome> run_processes(const config::RunConfig& config, const LaunchOptions& options);

// What the ranks of the host store numbers as, and how long they wait for each other.
device::Storage storage_of(const config::RunConfig& config);
comm::Patience patience_of(const config::RunConfig& config);

// What is linked in and found: ("shardbook", "0.1.0"), ("CUDA driver", "13.0") …
std::vector<std::pair<std::string, std::string>> versions();

}  // namespace shardbook::launch
