// launch/resolve: from every rank's record to one timeline, by the clock of the run.
#pragma once

#include <string>
#include <vector>

#include "engine/config/config.hpp"
#include "engine/launch/rank.hpp"
#include "engine/simulate/cost.hpp"
#include "engine/timeline/timeline.hpp"

namespace shardbook::launch {

// What the config's machine has otherwise than its profile's.
simulate::Conditions conditions_of(const config::RunConfig& config);

// By what its matmuls leave room to the collectives beside them (matmul.sms_beside): the profile's times say how long those
// last. `catalogue` outlives the rule. Throws base::Failure where there is no such profile.
program::Beside::Rule room_rule(const config::RunConfig& config, const program::Catalogue& catalogue);

// The modelled time of one steady step, from the encoded records of all ranks. Throws base::Failure where the
// programs cannot be resolved (a collective without its partner).
double modelled_step_ns(const config::RunConfig& config, const std::vector<std::string>& records);

struct ResolvedRun {
  timeline::Timeline timeline;
  double step_ns = 0;                           // of a modelled or wall clock; 0 when measured
  double traced_step_ns = 0;                    // of a modelled clock: of the timeline's steps; else 0
  double exposed_as_graph = -1;                 // of a modelled clock whose untraced steps are launched by one call: the part of one, over all ranks, that is exposed communication
  std::vector<std::uint64_t> program_hashes;    // by rank
  std::vector<program::Record> records;
};

// Decodes, resolves or aligns, and joins. `ranks` are in order. REQUIRES: all traced the same steps.
//
// A modelled timeline shows traced steps as a GPU runs them: each stands alone, and every op pays for its marks. So
// it is compared with a measured timeline like with like. `step_ns` is that of steps that are not traced, as
// everywhere. Without `make_timeline` there is none, and all else is the same.
base::Result<ResolvedRun> resolve_run(const config::RunConfig& config, const std::vector<RankOutcome>& ranks, bool make_timeline);

}  // namespace shardbook::launch
