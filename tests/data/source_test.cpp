// Which tokens come next: the same global batch whatever the layout, every window once an epoch.
#include "engine/data/source.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "engine/base/check.hpp"
#include "engine/data/order.hpp"
#include "tests/data/allocations.hpp"
#include "tests/data/temporary.hpp"

namespace shardbook::data {
namespace {

using Tokens = std::vector<std::int32_t>;

struct Batch {
  Tokens tokens;
  Tokens targets;
};

Batch part_of_batch(const TokenSource& source, std::int64_t step, int global, int first, int count, int sequence) {
  Batch batch{Tokens(static_cast<std::size_t>(count * sequence)), Tokens(static_cast<std::size_t>(count * sequence))};
  source.fill(step, global, first, count, batch.tokens, batch.targets);
  return batch;
}

TEST(Permutation, IsABijectionOfEverySmallRange) {
  for (std::int64_t count = 1; count < 200; ++count) {
    std::set<std::int64_t> places;
    for (std::int64_t index = 0; index < count; ++index) {
      const std::int64_t place = permute(index, count, 7);
      EXPECT_GE(place, 0);
      EXPECT_LT(place, count);
      places.insert(place);
    }
    EXPECT_EQ(static_cast<std::int64_t>(places.size()), count);
  }
}

TEST(Permutation, DiffersFromKeyToKeyAndFromTheIdentity) {
  constexpr std::int64_t count = 1000;
  int same_as_other_key = 0;
  int fixed = 0;
  for (std::int64_t index = 0; index < count; ++index) {
    same_as_other_key += permute(index, count, 1) == permute(index, count, 2) ? 1 : 0;
    fixed += permute(index, count, 1) == index ? 1 : 0;
  }
  // Either count has mean 1 over random permutations; 20 is beyond any chance.
  EXPECT_LT(same_as_other_key, 20);
  EXPECT_LT(fixed, 20);
}

TEST(Permutation, HandlesRangesBeyond32Bits) {
  const std::int64_t count = (std::int64_t{1} << 40) + 3;
  EXPECT_NE(permute(0, count, 1), permute(count - 1, count, 1));
  EXPECT_LT(permute(count - 1, count, 1), count);
}

class Sources : public Temporary {
 protected:
  // Each source that there is, over the same sizes.
  std::vector<SourceSpec> all() {
    std::string text;
    for (int i = 0; i < 100; ++i) text += "línea " + std::to_string(i) + "\n";
    Tokens ids(1000);
    std::iota(ids.begin(), ids.end(), 0);
    write("ids.bin", bytes_of(std::vector<std::uint16_t>(ids.begin(), ids.end())));
    write("ids.idx", index_bytes({400, 600}, 8, 2));
    return {{{"grammar"}, 256, 16, 5},
            {{"synthetic"}, 300, 16, 5},
            {{write("a.txt", text), write("b.txt", text)}, 256, 16, 5},
            {{path("ids.bin")}, 1000, 16, 5}};
  }
};

TEST_F(Sources, GiveEachLayoutThePartsOfTheSameGlobalBatch) {
  for (const SourceSpec& spec : all()) {
    const auto source = open(spec).value();
    for (std::int64_t step : {0, 1, 77}) {
      const Batch whole = part_of_batch(*source, step, 12, 0, 12, spec.sequence);
      for (int parts : {2, 3, 4, 12}) {
        const int count = 12 / parts;
        for (int part = 0; part < parts; ++part) {
          const Batch mine = part_of_batch(*source, step, 12, part * count, count, spec.sequence);
          const auto begin = static_cast<std::ptrdiff_t>(part * count * spec.sequence);
          EXPECT_TRUE(std::equal(mine.tokens.begin(), mine.tokens.end(), whole.tokens.begin() + begin));
          EXPECT_TRUE(std::equal(mine.targets.begin(), mine.targets.end(), whole.targets.begin() + begin));
        }
      }
    }
  }
}

TEST_F(Sources, GiveTheNextTokenAsTheTarget) {
  for (const SourceSpec& spec : all()) {
    const auto source = open(spec).value();
    const Batch batch = part_of_batch(*source, 3, 8, 0, 8, spec.sequence);
    for (std::size_t at = 0; at + 1 < batch.tokens.size(); ++at) {
      if ((at + 1) % static_cast<std::size_t>(spec.sequence) == 0) continue;
      EXPECT_EQ(batch.targets[at], batch.tokens[at + 1]) << spec.names[0];
    }
    for (std::int32_t token : batch.targets) {
      EXPECT_GE(token, 0);
      EXPECT_LT(token, spec.vocab);
    }
  }
}

TEST_F(Sources, RepeatFromTheSeedAndDifferBetweenSeeds) {
  for (SourceSpec spec : all()) {
    const Batch first = part_of_batch(*open(spec).value(), 2, 8, 0, 8, spec.sequence);
    const Batch again = part_of_batch(*open(spec).value(), 2, 8, 0, 8, spec.sequence);
    EXPECT_EQ(first.tokens, again.tokens);
    spec.seed = 6;
    EXPECT_NE(part_of_batch(*open(spec).value(), 2, 8, 0, 8, spec.sequence).tokens, first.tokens) << spec.names[0];
  }
}

TEST_F(Sources, AllocateNothingWhenFilling) {
  for (const SourceSpec& spec : all()) {
    const auto source = open(spec).value();
    Batch batch = part_of_batch(*source, 0, 8, 0, 8, spec.sequence);
    const std::int64_t before = allocations();
    for (int step = 0; step < 20; ++step) source->fill(step, 8, 0, 8, batch.tokens, batch.targets);
    EXPECT_EQ(allocations(), before) << spec.names[0];
  }
}

// 1000 distinct ids in windows of 16: an epoch is 62 windows, each read once; the next is in another order.
TEST_F(Sources, ReadEveryWindowOnceAnEpoch) {
  const auto source = open(all().back()).value();
  const int windows = 62;
  auto epoch = [&](int number) {
    Tokens firsts;
    for (int sample = 0; sample < windows; ++sample) {
      firsts.push_back(part_of_batch(*source, number * windows + sample, 1, 0, 1, 16).tokens[0]);
    }
    return firsts;
  };
  const Tokens first = epoch(0);
  const Tokens second = epoch(1);
  EXPECT_NE(first, second);
  for (Tokens firsts : {first, second}) {
    std::sort(firsts.begin(), firsts.end());
    for (int window = 0; window < windows; ++window) EXPECT_EQ(firsts[static_cast<std::size_t>(window)], window * 16);
  }
}

TEST_F(Sources, JoinTextFilesWithANewline) {
  const auto source = open({{write("a.txt", "abc"), write("b.txt", "d\303\251")}, 256, 6, 1}).value();
  EXPECT_EQ(source->tokens(), 7);
  const Batch batch = part_of_batch(*source, 0, 1, 0, 1, 6);
  EXPECT_EQ(batch.tokens, (Tokens{'a', 'b', 'c', '\n', 'd', 0xc3}));
  EXPECT_EQ(batch.targets, (Tokens{'b', 'c', '\n', 'd', 0xc3, 0xa9}));
}

TEST_F(Sources, SayWhatTheyAre) {
  EXPECT_EQ(open({{write("a.txt", "abcdefg")}, 256, 3, 1}).value()->describe(),
            path("a.txt") + ", 7 tokens in 2 windows of 3");
  EXPECT_EQ(open({{"synthetic"}, 300, 3, 1}).value()->describe(), "synthetic tokens, uniform over 300");
  EXPECT_EQ(open({{"synthetic"}, 300, 3, 1}).value()->tokens(), 0);
}

// Chi-square over 64 bins of 64 000 draws: mean 63, deviation 11.2; 63 + 6 deviations is 131.
TEST(SyntheticSource, IsUniform) {
  const auto source = open({{"synthetic"}, 64, 1000, 9}).value();
  const Batch batch = part_of_batch(*source, 0, 64, 0, 64, 1000);
  std::map<std::int32_t, int> counts;
  for (std::int32_t token : batch.tokens) ++counts[token];
  double chi_square = 0;
  for (int token = 0; token < 64; ++token) chi_square += (counts[token] - 1000.0) * (counts[token] - 1000.0) / 1000.0;
  EXPECT_LT(chi_square, 131);
  EXPECT_GT(chi_square, 10);
}

TEST(SpecOf, TakesWhatTheRunAsksFor) {
  config::RunConfig config;
  config.seed = 3;
  const SourceSpec spec = spec_of(config);
  EXPECT_EQ(spec.names, std::vector<std::string>{"grammar"});
  EXPECT_EQ(spec.vocab, 256);
  EXPECT_EQ(spec.sequence, 128);
  EXPECT_EQ(spec.seed, 3u);
}

TEST(Fill, StopsAProgrammersMistake) {
  const auto source = open({{"synthetic"}, 300, 4, 1}).value();
  Tokens four(4);
  Tokens eight(8);
  EXPECT_THROW(source->fill(0, 1, 1, 1, four, four), base::Failure);
  EXPECT_THROW(source->fill(0, 2, 0, 1, eight, eight), base::Failure);
  EXPECT_THROW(source->fill(0, 2, 0, 1, four, eight), base::Failure);
}

}  // namespace
}  // namespace shardbook::data
