// launch/recover: a run of what its ranks left.
//
// A run that was killed leaves what its ranks kept on disk (journal.hpp). The steps that all of them traced become the
// timeline, by the clock of the run; the losses are those of the rank that came farthest. What ended it stands in
// run.json, and everyone who opens the run is told.
#pragma once

#include <string>

#include "engine/launch/launch.hpp"
#include "engine/launch/run_folder.hpp"

namespace shardbook::launch {

// True for the folder of a run that has not ended, or did not.
bool is_unfinished(const std::string& folder);

// Finishes a run that was killed some time ago. Errors: it has not ended yet; nobody recorded a step; its files are
// damaged, or cannot be written.
base::Result<Outcome> recover(const std::string& folder);

// The same right after `cause` has ended the run that this process started; what is to be said behind the cause: where
// the run is, or "" where nothing had been recorded. Ranks that are still about to end are given a few seconds.
std::string rescue(RunFolder& folder, const std::string& cause);

}  // namespace shardbook::launch
