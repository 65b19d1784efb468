// Random programs: the checker and brute force agree on every race, and the waits that it asks for are enough.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>

#include "tests/check/issued.hpp"
#include "tests/check/oracle.hpp"

namespace shardbook::tests {
namespace {

using check::Race;

// Three streams, few events and bytes, so that relays, repeated records and half-covered ranges are common.
Issued random_program(std::mt19937& random) {
  auto below = [&](int bound) { return static_cast<std::uint32_t>(random() % static_cast<std::uint32_t>(bound)); };
  const int streams = 2 + static_cast<int>(below(3)), events = 1 + static_cast<int>(below(5)), buffers = 1 + static_cast<int>(below(3));
  Issued issued(streams, events, buffers);
  const std::uint32_t commands = 4 + below(36);
  for (std::uint32_t at = 0; at < commands; ++at) {
    const program::StreamId stream = static_cast<program::StreamId>(below(streams));
    const std::uint32_t kind = below(20);
    if (kind < 8) {
      std::vector<Use> uses;
      for (std::uint32_t use = 0; use <= below(3); ++use) {
        const base::Bytes begin = below(8);
        uses.push_back({below(buffers), begin, begin + 1 + below(static_cast<int>(8 - begin)), below(2) == 0});
      }
      issued.op(stream, uses);
    } else if (kind < 13) {
      issued.record(stream, below(events));
    } else if (kind < 18) {
      issued.wait(stream, below(events));
    } else if (kind == 18) {
      issued.host_wait(below(events));
    } else if (below(4) == 0) {
      issued.read_back(stream);
    }
  }
  return issued;
}

TEST(RandomPrograms, HaveTheRacesThatBruteForceFindsAndNoOthers) {
  int with_races = 0, without = 0;
  for (unsigned seed = 0; seed < 6000; ++seed) {
    std::mt19937 random(seed);
    const Issued issued = random_program(random);
    for (std::size_t count : {1u, 2u, 3u}) {
      const check::Steps steps(count, &issued.program);
      const OracleRaces truth = oracle(issued.catalogue, steps);
      ASSERT_TRUE(truth.closest_tell_every_byte) << "seed " << seed;
      const std::vector<Race> found = check::races(issued.catalogue, steps);
      ASSERT_TRUE(same_races(found, truth.closest)) << "seed " << seed << ", " << count << " steps: " << found.size() << " found, " << truth.closest.size() << " are there";
      ++(found.empty() ? without : with_races);
    }
  }
  EXPECT_GT(with_races, 1000);
  EXPECT_GT(without, 1000);
}

TEST(RandomPrograms, ThatFollowAnotherHaveTheRacesThatBruteForceFinds) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const Issued first = random_program(random);
    Issued second = random_program(random);
    // One catalogue that holds both
    Issued both(5, 6, 4);
    const check::Steps steps{&first.program, &second.program, &second.program, &first.program};
    ASSERT_TRUE(same_races(check::races(both.catalogue, steps), oracle(both.catalogue, steps).closest)) << "seed " << seed;
  }
}

// The steps with the waits that the leading races ask for: an event recorded after the one op, awaited before the other.
std::vector<std::unique_ptr<program::Program>> mended(const check::Steps& steps, const std::vector<Race>& races, program::EventId next_event) {
  std::vector<std::map<program::OpIndex, std::vector<program::EventId>>> recorded(steps.size()), awaited(steps.size());
  for (const Race& race : races) {
    if (race.follows) continue;
    recorded[race.first.step][race.first.op].push_back(next_event);
    awaited[race.second.step][race.second.op].push_back(next_event++);
  }
  std::vector<std::unique_ptr<program::Program>> result;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    result.push_back(std::make_unique<program::Program>(*steps[step]));
    std::vector<program::Command>& commands = result.back()->commands;
    commands.clear();
    auto add = [&](program::CommandKind kind, program::StreamId stream, const std::vector<program::EventId>& events) {
      for (program::EventId event : events) {
        program::Command& command = commands.emplace_back();
        command.kind = kind;
        command.stream = stream;
        command.event = event;
      }
    };
    for (const program::Command& command : steps[step]->commands) {
      const bool is_op = command.kind == program::CommandKind::op;
      if (is_op) add(program::CommandKind::wait_event, command.stream, awaited[step][command.op]);
      commands.push_back(command);
      if (is_op) add(program::CommandKind::record_event, command.stream, recorded[step][command.op]);
    }
  }
  return result;
}

TEST(RandomPrograms, AreFreeOfRacesOnceTheWaitsThatWereAskedForAreThere) {
  int mended_ones = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    const Issued issued = random_program(random);
    const check::Steps steps(2, &issued.program);
    const std::vector<Race> races = check::races(issued.catalogue, steps);
    if (races.empty()) continue;
    ++mended_ones;
    ASSERT_FALSE(races.front().follows) << "seed " << seed;
    const auto programs = mended(steps, races, 100);
    ASSERT_TRUE(oracle(issued.catalogue, {programs[0].get(), programs[1].get()}).closest.empty()) << "seed " << seed;
  }
  EXPECT_GT(mended_ones, 1000);
}

}  // namespace
}  // namespace shardbook::tests
