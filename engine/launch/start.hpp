// launch/start: where the ranks live, for each device.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/launch/launch.hpp"
#include "engine/launch/rank.hpp"

namespace shardbook::launch {

// Makes the run's folder, and makes sure that it can be written. Errors: it cannot.
base::Result<std::string> make_run_folder(const config::RunConfig& config);

// From all ranks' outcomes to the run on disk.
base::Result<Outcome> conclude(const config::RunConfig& config, const LaunchOptions& options, const std::string& folder,
                               const std::vector<RankOutcome>& ranks, const std::string& backend);

// The ranks of host and meta live in one process: being one of several that a launcher started is refused, as is
// asking for processes.
base::Status expect_no_launcher(const config::RunConfig& config);

base::Result<Outcome> run_meta(const config::RunConfig& config, const LaunchOptions& options);
base::Result<Outcome> run_threads(const config::RunConfig& config, const LaunchOptions& options);
base::Result<Outcome> run_processes(const config::RunConfig& config, const LaunchOptions& options);

// What is linked in and found: ("shardbook", "0.1.0"), ("CUDA driver", "13.0") …
std::vector<std::pair<std::string, std::string>> versions();

}  // namespace shardbook::launch
