// DDP and the three stages of ZeRO, as options of one engine.
#pragma once

#include "engine/config/switches.hpp"
#include "tests/train/host_run.hpp"

namespace shardbook::tests {

// Ways to cut the same model over the same ranks.
struct Way {
  const char* name;
  bool sharded, reshard;
  const char* reduce;   // accumulate.reduce
};
inline const Way ddp{"DDP", false, true, "each"}, zero_1{"ZeRO-1", true, false, "last"}, zero_2{"ZeRO-2", true, false, "each"}, zero_3{"ZeRO-3", true, true, "each"};

inline config::RunConfig cut_over(config::RunConfig config, const Way& way, int tp, int ranks, int micro_batches) {
  config.tp = tp;
  (way.sharded ? config.fsdp : config.dp) = ranks;
  config.ranks = tp * ranks;
  config.reshard = way.reshard;
  config.micro_batches = micro_batches;
  EXPECT_TRUE(config::set_switch(config, base::text("accumulate.reduce=", way.reduce)));
  return config;
}

}  // namespace shardbook::tests
