// launch/run_folder: whose is the folder of a run, and has the run ended?
//
// Idea: a folder is taken by making `run.partial` in it, which only one process can do. That file says what the run
// is (its id, its config), stays locked while the process lives, and goes when all is written. So two runs never mix,
// and a folder with an unlocked run.partial is of a run that was killed: recover.hpp makes a run of it.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/config/config.hpp"

namespace shardbook::launch {

struct LaunchOptions;

class RunFolder {
 public:
  RunFolder() = default;   // of a run that is not written
  // Makes and takes the folder that the config names, or a new one. Errors: it cannot be written, it holds something
  // already, another run was faster.
  static base::Result<RunFolder> make(const config::RunConfig& config, const LaunchOptions& options);
  // The folder of a run that did not end, which this process finishes now. Errors: it has not ended, or is none.
  static base::Result<RunFolder> taken_over(const std::string& path);
  // The folder that the process which started this one has made and keeps.
  static base::Result<RunFolder> made_by_parent(const std::string& path);
  RunFolder(RunFolder&& other) noexcept { *this = std::move(other); }
  RunFolder& operator=(RunFolder&& other) noexcept;
  // A folder that was neither finished nor kept goes, as far as it was made for this run: a run that fails before it
  // recorded anything leaves nothing.
  ~RunFolder();

  const std::string& path() const { return path_; }
  const std::string& id() const { return id_; }
  const std::string& made_at() const { return made_at_; }
  // All is written: the marks of a run under way go.
  void finish();
  // What is there stays, as the marks do.
  void keep() { kept_ = true; }

 private:
  std::string path_, id_, made_at_;
  std::vector<std::string> made_;   // folders that were not there before, the innermost first
  int claim_ = -1;                  // the locked descriptor of run.partial; -1: not ours
  bool kept_ = false;
};

// What run.partial says.
struct Claim {
  std::string id, command, made_at, source_root;
  config::RunConfig config;
};
base::Result<Claim> read_claim(const std::string& folder);

// "2026-11-21T00:58:23Z", of now.
std::string utc_now(const char* form);

}  // namespace shardbook::launch
