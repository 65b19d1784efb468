// Clocks of hosts that run at rates of their own: made up, and found again.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/launch/clocks.hpp"
#include "engine/launch/wire.hpp"

namespace shardbook::launch {
namespace {

using base::Nanoseconds;

constexpr Nanoseconds second = 1'000'000'000, us = 1000;

// A host whose clock began elsewhere and gains `ppm` millionths on rank 0's.
struct Host {
  Nanoseconds began = 5'000 * second;
  double ppm = 0;
  Nanoseconds own(Nanoseconds zero) const { return began + zero - static_cast<Nanoseconds>(std::llround(static_cast<double>(zero) * ppm * 1e-6)); }
  // As measure_clock would, wrong by `wrong`, which it knows.
  world::ClockOffset measured(Nanoseconds zero, Nanoseconds wrong) const { return {zero - own(zero) + wrong, std::abs(wrong), own(zero)}; }
};

TEST(Clocks, ThatDriftAreFoundAgainWithinTheErrorThatIsStated) {
  for (const double ppm : {-80.0, -3.0, 0.0, 0.5, 20.0, 100.0}) {
    for (const Nanoseconds length : {2 * second, 600 * second, 86'400 * second}) {
      const Host host{5'000 * second, ppm};
      const Nanoseconds begin = 100 * second;
      const ClockLine line(host.measured(begin, 4 * us), host.measured(begin + length, -3 * us));
      EXPECT_NEAR(static_cast<double>(line.drift()), static_cast<double>(length) * ppm * 1e-6, 8.0 * us);
      for (int part = 0; part <= 10; ++part) {
        const Nanoseconds zero = begin + length / 10 * part;
        EXPECT_LE(std::abs(line.at(host.own(zero)) - zero), 4 * us + 1) << ppm << " ppm, part " << part << " of " << length;
      }
      EXPECT_GE(line.error(host.own(begin + length)), 4 * us + std::abs(line.drift()) / 2);
    }
  }
}

TEST(Clocks, OfOneMeasurementAreWrongByTheDriftWhichTheErrorIncludes) {
  const Host host{5'000 * second, 60};
  const Nanoseconds begin = 100 * second;
  const ClockLine once(host.measured(begin, 2 * us), {});
  for (const Nanoseconds later : {Nanoseconds{0}, second, 60 * second}) {
    const Nanoseconds zero = begin + later, wrong = std::abs(once.at(host.own(zero)) - zero);
    EXPECT_GE(wrong, later * 60 / 1'000'000 - 2 * us) << "a shift by a constant would be right, and this test shows nothing";
    EXPECT_LE(wrong, once.error(host.own(zero)) + 1);
  }
}

TEST(Clocks, WhoseRateChangesHalfwayStayWithinTheErrorThatIsStated) {
  // 50 millionths in the first half, none in the second
  const Nanoseconds length = 100 * second, half = length / 2, base = 1'000 * second;
  const auto own = [&](Nanoseconds zero) { return base + zero - static_cast<Nanoseconds>(static_cast<double>(std::min(zero, half)) * 50e-6); };
  const ClockLine line({0 - own(0), us, own(0)}, {length - own(length), us, own(length)});
  Nanoseconds worst = 0;
  for (Nanoseconds zero = 0; zero <= length; zero += second) worst = std::max(worst, std::abs(line.at(own(zero)) - zero));
  EXPECT_GT(worst, us);
  EXPECT_LE(worst, line.error(own(length)));
}

TEST(Clocks, ThatAreOneAndTheSameNeverPart) {
  const ClockLine line({}, {});
  EXPECT_EQ(line.at(12'345), 12'345);
  EXPECT_EQ(line.error(86'400 * second), 0);
}

TEST(Clocks, OfBothMeasurementsArriveWithTheOutcome) {
  RankOutcome outcome;
  outcome.clock = {1, 2, 3};
  outcome.clock_at_end = {4, 5, 6};
  const RankOutcome read = from_bytes(to_bytes(outcome));
  EXPECT_EQ(read.clock.at, 3);
  EXPECT_EQ(read.clock_at_end.offset, 4);
  EXPECT_EQ(read.clock_at_end.error, 5);
  EXPECT_EQ(read.clock_at_end.at, 6);
}

}  // namespace
}  // namespace shardbook::launch
