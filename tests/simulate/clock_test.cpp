// Does the clock follow from what a step draws?
#include "engine/simulate/clock.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace shardbook::simulate {
namespace {

const PowerCosts machine{.exponent = 2, .idle = 0.2, .communication = 0.5, .memory = 0.6, .fastest = 1.2};

// A step of so much of each; what is left of the window is idle.
Load load(double window_ns, double matmul_ns, double memory_ns = 0, double communication_ns = 0) {
  return {.window_ns = window_ns, .matmul_ns = matmul_ns, .matmul_power_ns = matmul_ns, .memory_ns = memory_ns, .communication_ns = communication_ns};
}

TEST(Clock, OfMatmulsWithoutAPauseIsSpeedOne) {
  EXPECT_NEAR(speed_of(machine, load(1000, 1000)), 1, 1e-9);
  EXPECT_NEAR(speed_at_limit(machine, load(1000, 1000), 1), 1, 1e-6);
}

// A tenth of rest: nine tenths may draw (1 - 0.02) / 0.9.
TEST(Clock, IsFasterWhereTheDeviceRests) {
  EXPECT_NEAR(speed_of(machine, load(1000, 900)), std::sqrt((1 - 0.02) / 0.9), 1e-9);
}

TEST(Clock, IsSlowerBesideKernelsAndCollectivesThanBesideRest) {
  const double rest = speed_of(machine, load(1000, 900));
  const double communication = speed_of(machine, load(1000, 900, 0, 100));
  const double memory = speed_of(machine, load(1000, 900, 100));
  EXPECT_GT(rest, communication);
  EXPECT_GT(communication, memory);
  EXPECT_NEAR(memory, std::sqrt((1 - 0.06) / 0.9), 1e-9);
}

TEST(Clock, IsNeverFasterThanTheFastest) {
  EXPECT_EQ(speed_of(machine, load(1000, 100)), 1.2);
  EXPECT_EQ(speed_at_limit(machine, load(1000, 100), 1.2), 1.2);
  EXPECT_EQ(speed_of(machine, load(1000, 0)), 1.2);
}

// Matmuls that leave multiprocessors idle draw less.
TEST(Clock, IsFasterWithMatmulsThatDrawLess) {
  Load little = load(1000, 1000);
  little.matmul_power_ns = 800;
  EXPECT_NEAR(speed_of(machine, little), std::sqrt(1 / 0.8), 1e-9);
}

// The two agree: at the speed that a step ran at it draws just its limit.
TEST(Clock, OfAStepIsTheOneAtItsLimit) {
  for (double matmul_ns : {750.0, 800.0, 900.0}) {
    const Load step = load(1000, matmul_ns, 50, 150);
    const double speed = speed_of(machine, step);
    ASSERT_LT(speed, machine.fastest);
    EXPECT_NEAR(speed_at_limit(machine, step, speed), speed, 1e-6);
    // In a shorter step the same matmuls run more slowly, in a longer one faster
    Load shorter = step, longer = step;
    shorter.window_ns -= 40;
    longer.window_ns += 40;
    EXPECT_LT(speed_at_limit(machine, shorter, speed), speed);
    EXPECT_GT(speed_at_limit(machine, longer, speed), speed);
  }
}

TEST(Clock, StandsWherePowerIsNotKnown) {
  EXPECT_EQ(speed_of({}, load(1000, 1000)), 1);
  EXPECT_EQ(speed_at_limit({}, load(1000, 10), 1), 1);
}

}  // namespace
}  // namespace shardbook::simulate
