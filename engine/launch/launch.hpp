// launch: how do I start it?
//
// From a validated config to ranks that run, and from their records to a run on disk. Where the ranks live:
//   host   threads of this process, or processes of this host
//   meta   one after the other in this process: nothing is exchanged
//   cuda   a process a GPU
// Processes are started by us, or by torchrun, mpirun or srun (their variables are read).
// Each rank trains and keeps its record; at the end rank 0 has them all, resolves or aligns their times, writes the
// run folder and says what came of it.
//
// One rank's failure ends all within seconds; the first cause is the error. Ctrl-C ends all ranks after the same
// step, and what was recorded until then is written. So it is where a loss or norm is not finite any more: the run
// stops, whole. What a killed rank has recorded is in its journal (journal.hpp), of which recover.hpp makes a run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/config/config.hpp"
#include "engine/program/file.hpp"
#include "engine/timeline/run_info.hpp"
#include "engine/timeline/timeline.hpp"
#include "engine/train/trainer.hpp"

namespace shardbook::launch {

// What can be said while it runs, by rank 0 only.
struct Progress {
  train::StepResult result;
  bool has_numbers = true;         // else only times count: no loss is told
  std::int64_t steps = 0;
  double tokens_per_second = 0;    // by `clock`: of the modelled step, or of the steps since the last line
  config::Clock clock = config::Clock::modelled;
  std::string profile;             // of a modelled clock
  double wall_seconds = 0;         // since the first step began
};

// "step 40 · loss 2.31 · ≈ 410k tok/s modelled h200x8 · wall 3.1 s": steps count from 0, as in every record and table.
std::string progress_text(const Progress& progress);

// How fast, by the clock of the run.
struct Speed {
  config::Clock clock = config::Clock::modelled;
  double step_ns = 0;              // median of the steady steps (measured), or of the resolved one
  double step_min_ns = 0, step_max_ns = 0;
  int steps_counted = 0;
  double tokens_per_second = 0;
  double mfu = -1;                 // config::flops_per_token over peak_flops; −1: not on cuda, or the peak is not known
  double peak_flops = 0;           // a second, of one GPU: dense bf16, by its data sheet
  double traced_step_ns = 0;       // the same of the traced steps, which the timeline shows; 0: not known, or wall clock
  double near_traced_ns = 0;       // median of the ten steady steps nearest to a traced one; 0: none is traced
  double tracing_cost = 0;         // by how much of near_traced_ns a traced step is longer; 0: not known, or wall clock
  double tracing_pair_ns = 0;      // what timing one op costs the stream, measured at set-up; 0: not known, or host and meta
  double peak_memory_bytes = 0;    // of rank 0's device, allocated
  bool as_graph = false;           // step_ns is that of steps that are launched by one call (host.graph)
  double exposed_as_graph = -1;    // modelled, of such a step: the part that is exposed communication, which its traced steps, issued one by one, do not tell; −1: not known
  int replayed = 0;                // how many were, by a measured clock
  device::GraphInfo graph;         // what they are, if there were any
};

// What saving took, on one rank.
struct Saves {
  int count = 0;
  base::Bytes bytes = 0;            // of the last checkpoint: what this rank wrote; of rank 0 all of it
  base::Nanoseconds writing = 0;    // in sum over the saves, beside the steps
  base::Nanoseconds waited = 0;     // steps waited for a save before theirs, or the run's end for the last
  std::string left;                 // why checkpoints are there still that should have gone, of the last save; "": none are
};

// Who this process was in the run.
enum class Role {
  reporter,  // holds rank 0: everything below is filled
  member,    // another rank, started by a launcher: nothing to say
  parent,    // started the ranks as processes of their own: rank 0 has spoken already
};

struct Outcome {
  Role role = Role::reporter;
  bool stopped_early = false;               // Ctrl-C, or what `failure` says
  std::string failure;                      // "rank 0: the loss of step 7 is nan": why the run is none that went well
  std::string folder;                       // of the run
  std::vector<train::StepResult> results;   // a step each
  Speed speed;
  Saves saves;                              // of rank 0
  timeline::Timeline timeline;              // of the traced steps, all ranks
  timeline::RunInfo info;
  std::vector<program::Record> records;     // of all ranks, as they were written
  std::vector<std::uint64_t> program_hashes;   // by rank: of the last traced step's program
};

struct LaunchOptions {
  std::function<void(const Progress&)> progress;   // may be empty
  std::function<void(int ranks)> issued;           // of meta, whose ranks come one after the other: so many have been; may be empty
  std::string command;                             // as it was typed, for run.json
  std::string source_root;                         // root of the project, for source excerpts; may be empty
  bool write_run = true;                           // false: keep everything in memory (tests)
  bool make_timeline = true;                       // false: records and figures are all that is asked for. REQUIRES: !write_run
  std::function<void(device::Device&)> with_device;   // of tests: what a rank's device gets before it trains; may be empty
};

// The config with what a rank is settled: of cuda always a process, of meta a part of this one, of the host what was
// asked for; and where a launcher started several processes, each is a rank. Errors: what was asked for, or who started
// this process, does not fit the device. Idempotent; run() does it, too.
base::Result<config::RunConfig> settle_ranks(config::RunConfig config);

// Trains. The error is the first cause, one sentence. REQUIRES: config::validate has accepted the config.
base::Result<Outcome> run(const config::RunConfig& config, const LaunchOptions& options);

// With this code a rank that was asked to stop ends (cli's exit_stopped): its parent takes it for no failure.
inline constexpr int stopped_rank_code = 3;

// GPUs that this process may use: 0 without CUDA or a driver.
int gpus_available();

}  // namespace shardbook::launch
