// labs/harness/bench: where is an exercise tried?
//
// Twice. On ranks of this machine, that compute real numbers, with queues that drain in several legal orders, so that a
// wait that is missing gives wrong numbers. And on no device at all, where only the program is written down: it is
// checked for races, and a profile says how long each step takes.
//
// Source of the race check: engine/check. Of the times: engine/simulate.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/check/races.hpp"
#include "engine/device/meta/meta_device.hpp"
#include "engine/base/intervals.hpp"
#include "engine/simulate/replay.hpp"
#include "engine/train/trainer.hpp"

namespace shardbook::labs {

using base::Nanoseconds;

// What the learner wrote, in the engine's words.
struct Written {
  train::PlanMaker plan;
  train::Instead instead;
};

using Options = std::vector<std::pair<std::string, std::string>>;
// A config of options as on the command line; "set" takes "KEY=VALUE". Throws base::Failure.
config::RunConfig config_of(const Options& options);

// What host ranks computed.
struct Numbers {
  std::string error;                  // the first cause where a rank failed
  std::vector<double> losses, norms;  // of each step
};
// `steps` steps on threads of this process. `drain_seed` 0 drains queues in turn.
Numbers on_host(const config::RunConfig& config, const Written& written, std::uint64_t drain_seed, int steps = 2);
// Equal to `digits` significant ones or so: losses and norms of all steps.
bool agree(const Numbers& a, const Numbers& b, double relative = 1e-5);

// The numbers of three drain orders against the engine's own: the first that differs, or the last.
struct Tried {
  Numbers expected, found;
  std::uint64_t seed = 0;   // of the drain order
  bool right = true;
};
Tried tried_on_host(const config::RunConfig& config, const Written& written);

// What all ranks issued in a step, on no device.
class Issued {
 public:
  // Throws base::Failure with the verifier's sentence where the plan cannot be carried out.
  Issued(const config::RunConfig& config, const Written& written);

  const program::Program& program(int rank = 0) const { return *ranks_[static_cast<std::size_t>(rank)].device->recorder().programs()[0]; }
  const program::Catalogue& catalogue(int rank = 0) const { return ranks_[static_cast<std::size_t>(rank)].device->recorder().catalogue(); }
  int size() const { return static_cast<int>(ranks_.size()); }
  const train::Trainer& trainer() const { return *ranks_[0].trainer; }

  // Races of two steps in a row on one rank, those that no other would mend.
  std::vector<check::Race> races(int rank = 0) const;
  const program::Op& op_of(check::Place place, int rank = 0) const { return program(rank).ops[place.op]; }
  // Every op of a collective, in the order of issue.
  std::vector<program::OpIndex> collectives(int rank = 0) const;
  // The command that issued an op: its planned line and its own.
  const program::Command& command_of(program::OpIndex op, int rank = 0) const;
  // How often the host itself waits in a step.
  std::vector<program::SourceLine> host_waits(int rank = 0) const;

 private:
  struct Rank {
    std::unique_ptr<device::MetaDevice> device;
    std::unique_ptr<comm::Backend> backend;
    std::unique_ptr<train::Trainer> trainer;
  };
  config::RunConfig config_;
  std::vector<Rank> ranks_;
};

// The line to change: the learner's plan's, where that decides, else the one that issued the command.
program::SourceLine line_of(const program::Command& command);

// A step as the profile has it.
struct Timing {
  Nanoseconds step_ns = 0;
  Nanoseconds exposed_ns = 0;          // of rank 0: communication beside which no compute runs
  Nanoseconds compute_ns = 0;
  std::vector<Nanoseconds> exposed_of; // by op of rank 0
  std::vector<Nanoseconds> took;       // by op of rank 0
  Nanoseconds exposed(const std::vector<program::OpIndex>& ops) const;
};

// Resolves again and again, each time with one change.
class Clock {
 public:
  explicit Clock(const Issued& issued, const std::string& profile = "h200x8");
  Timing timing(const simulate::Change& change = {}) const;
  Nanoseconds step_ns(const simulate::Change& change = {}) const { return timing(change).step_ns; }
  const simulate::Profile& profile() const { return model_->profile(); }

 private:
  const Issued& issued_;
  std::shared_ptr<simulate::CostModel> model_;
  simulate::Replay replay_;
};

}  // namespace shardbook::labs
