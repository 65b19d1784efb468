// How fast a measured run is said to be.
#include "engine/launch/speed.hpp"

#include <gtest/gtest.h>

namespace shardbook::launch {
namespace {

using How = train::Trainer::How;

config::RunConfig on_gpus() {
  config::RunConfig config;
  config.device = config::DeviceKind::cuda;
  config.clock = config::Clock::measured;
  config.ranks = 1;
  config.sequences = 16;
  return config;
}

// Ten steps that end after so many microseconds each; step 5 is traced.
RankOutcome ten_steps(const std::vector<base::Nanoseconds>& took_us, const std::vector<How>& how) {
  RankOutcome rank;
  base::Nanoseconds now = 0;
  for (std::size_t step = 0; step < took_us.size(); ++step) {
    now += 1000 * took_us[step];
    rank.step_done.push_back(now);
    rank.step_timed.push_back(step == 5);
  }
  rank.step_how = how;
  rank.graph = {210, 1000};
  return rank;
}

// The capture (steps 1 and 2), the traced step, the one behind it and the last are others.
TEST(Speed, OfStepsThatAreLaunchedByOneCallIsTheirsAlone) {
  const std::vector<How> how = {How::one_by_one, How::captured, How::captured, How::replayed, How::replayed, How::one_by_one, How::replayed, How::replayed, How::replayed, How::replayed};
  const Speed speed = speed_of(on_gpus(), ten_steps({5000, 9000, 9000, 800, 700, 2000, 900, 702, 701, 10}, how), 0, 0);
  EXPECT_TRUE(speed.as_graph);
  EXPECT_EQ(speed.replayed, 6);
  EXPECT_EQ(speed.graph.nodes, 210u);
  EXPECT_EQ(speed.steps_counted, 3);
  EXPECT_EQ(speed.step_ns, 701'000);
  EXPECT_EQ(speed.step_max_ns, 702'000);
  EXPECT_EQ(speed.traced_step_ns, 2'000'000);
}

TEST(Speed, OfStepsThatCameOneByOneIsOfAllThatWereNotTraced) {
  const Speed speed = speed_of(on_gpus(), ten_steps({5000, 900, 900, 800, 700, 2000, 900, 702, 701, 10}, std::vector<How>(10, How::one_by_one)), 0, 0);
  EXPECT_FALSE(speed.as_graph);
  EXPECT_EQ(speed.replayed, 0);
  EXPECT_EQ(speed.steps_counted, 5);
  EXPECT_EQ(speed.step_ns, 702'000);
}

}  // namespace
}  // namespace shardbook::launch
