// world/threads: the ranks are threads of this process.
//
// Idea: one hub under one mutex; a collective call fills its slot and sleeps until the last rank
// came. For tests, for the host device, and for a GPU node where one process holds all GPUs.
#pragma once

#include <chrono>

#include "engine/base/result.hpp"
#include "engine/world/world.hpp"

namespace shardbook::world {

struct ThreadOptions {
  // Ranks that still run so long after the first failure (stuck where nothing can wake them) end
  // the whole process with exit code 1 and the cause on stderr. Zero: wait for ever.
  std::chrono::milliseconds patience_after_failure{8000};
};

// Runs `main` as ranks 0 .. size-1, one thread each (all of node 0), and joins them. An error is
// the first cause: "rank 2: <what it threw>". A call that is awaited by some while another rank has
// returned is a failure too. REQUIRES: size >= 1.
base::Status run_threads(int size, const RankMain& main, const ThreadOptions& options = {});

}  // namespace shardbook::world
