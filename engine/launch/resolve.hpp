// launch/resolve: from every rank's record to one timeline, by the clock of the run.
#pragma once

#include <string>
#include <vector>

#include "engine/config/config.hpp"
#include "engine/launch/rank.hpp"
#include "engine/timeline/timeline.hpp"

namespace shardbook::launch {

// The modelled time of one steady step, from the encoded records of all ranks. Throws base::Failure where the
// programs cannot be resolved (a collective without its partner).
double modelled_step_ns(const config::RunConfig& config, const std::vector<std::string>& records);

struct ResolvedRun {
  timeline::Timeline timeline;
  double step_ns = 0;                           // of a modelled or wall clock; 0 when measured
  std::vector<std::uint64_t> program_hashes;    // by rank
  std::vector<program::Record> records;
};

// Decodes, resolves or aligns, and joins. `ranks` are in order. REQUIRES: all traced the same steps.
base::Result<ResolvedRun> resolve_run(const config::RunConfig& config, const std::vector<RankOutcome>& ranks);

}  // namespace shardbook::launch
