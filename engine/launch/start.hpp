// launch/start: where the ranks live, for each device.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/launch/launch.hpp"
#include "engine/launch/rank.hpp"

namespace shardbook::launch {

// A run's folder. What was made for it goes again with this object where nothing came to stand in it: a run that
// fails, or finds the disk full, leaves no empty folder.
class RunFolder {
 public:
  RunFolder() = default;   // of a run that is not written
  RunFolder(std::string path, std::vector<std::string> made) : path_(std::move(path)), made_(std::move(made)) {}
  RunFolder(RunFolder&& other) noexcept { *this = std::move(other); }
  RunFolder& operator=(RunFolder&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(made_, other.made_);
    return *this;
  }
  ~RunFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::vector<std::string> made_;   // folders that were not there before, the innermost first
};

// Makes the run's folder, and makes sure that it can be written. Errors: it cannot.
base::Result<RunFolder> make_run_folder(const config::RunConfig& config);

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
