// Is the path over many steps the paths of its steps, at the cost of looking at each span once?
#include <gtest/gtest.h>

#include <ctime>

#include "engine/metrics/critical_path.hpp"
#include "tests/metrics/scene.hpp"

namespace shardbook::metrics {
namespace {

constexpr Nanoseconds step_ns = 10'000;

// Two ranks in steps of 10 us: work of random length on two streams, launched early or late, waits of the host, some edges;
// spans may reach over a step's end.
Timeline random_steps(int seed, int steps) {
  std::mt19937 random(static_cast<unsigned>(seed));
  const auto upto = [&](int most) { return static_cast<Nanoseconds>(random() % static_cast<unsigned>(most)); };
  Scene scene(2);
  for (int step = 0; step < steps; ++step) {
    for (Rank rank : {0, 1}) {
      const Nanoseconds begin = step * step_ns;
      Nanoseconds now = begin + upto(400), host = begin;
      for (int i = 0; i < 8; ++i) {
        const Nanoseconds length = 200 + upto(1000);
        const auto work = scene.compute(rank, now, now + length);
        if (random() % 2 == 0) scene.launched_at(rank, std::min(host += 10 + upto(500), now), now);
        if (random() % 2 == 0) scene.builder.add_edge(work, scene.compute(rank, now + length, now + length + 100 + upto(300), {}, 8), EdgeKind::event);
        if (random() % 4 == 0) scene.host_wait(rank, now + length / 2, now + length);
        now += length + upto(300);
      }
      scene.collective(rank, std::max(now, begin + 8500 + upto(500)), begin + step_ns + upto(40), step);
      scene.builder.add_step({rank, step, begin, begin + step_ns, begin, begin + step_ns});
    }
  }
  return scene.done();
}

TEST(PathOfSteps, is_that_of_each_step_alone_one_after_the_other) {
  for (int seed = 0; seed < 20; ++seed) {
    const Timeline timeline = random_steps(seed, 5);
    const CriticalPath whole = critical_path(timeline, {0, 5 * step_ns});
    std::vector<PathPiece> expected;
    for (int step = 0; step < 5; ++step) {
      const CriticalPath alone = critical_path(timeline, {step * step_ns, (step + 1) * step_ns});
      expected.insert(expected.end(), alone.pieces.begin(), alone.pieces.end());
    }
    ASSERT_GT(expected.size(), 20U);
    ASSERT_EQ(whole.pieces.size(), expected.size()) << "seed " << seed;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(whole.pieces[i].span, expected[i].span) << "seed " << seed << ", piece " << i;
      EXPECT_EQ(whole.pieces[i].time, expected[i].time) << "seed " << seed << ", piece " << i;
      EXPECT_EQ(whole.pieces[i].kind, expected[i].kind) << "seed " << seed << ", piece " << i;
    }
  }
}

// Of sixteen times as many steps it takes about sixteen times as long; if each step looked at all spans, 256 times.
TEST(PathOfSteps, costs_as_much_more_as_there_are_more_steps) {
  const auto seconds = [](int steps) {
    const Timeline timeline = random_steps(1, steps);
    double best = 1e9;
    for (int again = 0; again < 3; ++again) {
      const std::clock_t begin = std::clock();   // of this process: others may keep it waiting
      EXPECT_GT(critical_path(timeline, {0, steps * step_ns}).pieces.size(), static_cast<std::size_t>(steps));
      best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    }
    return best;
  };
  const double few = seconds(200);
  EXPECT_LT(seconds(3200), 80 * few);
}

}  // namespace
}  // namespace shardbook::metrics
