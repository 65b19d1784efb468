// Positions grouped by token, for a backward of the embedding without atomics.
#include "engine/data/sort_by_token.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "engine/base/check.hpp"

namespace shardbook::data {
namespace {

using Numbers = std::vector<std::int32_t>;

struct Sorted {
  int segments;
  Numbers order;
  Numbers token;
  Numbers begin;
};

Sorted sort(const Numbers& tokens, int vocab_begin, int vocab_end) {
  const auto rows = static_cast<std::size_t>(vocab_end - vocab_begin);
  Sorted sorted{0, Numbers(tokens.size(), -1), Numbers(std::min(tokens.size(), rows), -1), Numbers(rows + 1, -1)};
  sorted.segments = sort_by_token(tokens, vocab_begin, vocab_end, sorted.order, sorted.token, sorted.begin);
  return sorted;
}

TEST(SortByToken, GroupsPositionsAndKeepsTheirOrder) {
  const Sorted sorted = sort({5, 2, 5, 0, 2, 5}, 0, 8);
  EXPECT_EQ(sorted.segments, 3);
  EXPECT_EQ(sorted.order, (Numbers{3, 1, 4, 0, 2, 5}));
  EXPECT_EQ(Numbers(sorted.token.begin(), sorted.token.begin() + 3), (Numbers{0, 2, 5}));
  EXPECT_EQ(Numbers(sorted.begin.begin(), sorted.begin.begin() + 4), (Numbers{0, 1, 3, 6}));
}

TEST(SortByToken, LeavesOutTheTokensOfOtherRanks) {
  const Sorted sorted = sort({5, 2, 4, 0, 3}, 2, 5);
  EXPECT_EQ(sorted.segments, 3);
  EXPECT_EQ(Numbers(sorted.order.begin(), sorted.order.begin() + 3), (Numbers{1, 4, 2}));
  EXPECT_EQ(sorted.begin[3], 3);
}

TEST(SortByToken, FindsNothingWhereNothingIs) {
  EXPECT_EQ(sort({}, 0, 4).segments, 0);
  const Sorted sorted = sort({7, 8}, 0, 4);
  EXPECT_EQ(sorted.segments, 0);
  EXPECT_EQ(sorted.begin[0], 0);
}

TEST(SortByToken, AgreesWithAMapOnRandomTokens) {
  std::mt19937 random(4);
  auto draw = [&](int least, int most) { return std::uniform_int_distribution<>(least, most)(random); };
  for (int trial = 0; trial < 300; ++trial) {
    const int begin = draw(0, 20);
    const int end = begin + draw(0, 30);
    Numbers tokens(static_cast<std::size_t>(draw(0, 100)));
    for (std::int32_t& token : tokens) token = draw(0, 60);
    std::map<int, Numbers> expected;
    for (std::size_t at = 0; at < tokens.size(); ++at) {
      if (begin <= tokens[at] && tokens[at] < end) expected[tokens[at]].push_back(static_cast<std::int32_t>(at));
    }
    const Sorted sorted = sort(tokens, begin, end);
    ASSERT_EQ(static_cast<std::size_t>(sorted.segments), expected.size());
    std::size_t segment = 0;
    for (const auto& [token, positions] : expected) {
      ASSERT_EQ(sorted.token[segment], token);
      ASSERT_EQ(Numbers(sorted.order.begin() + sorted.begin[segment], sorted.order.begin() + sorted.begin[segment + 1]),
                positions);
      ++segment;
    }
  }
}

TEST(SortByToken, StopsWhenItsSpansAreTooSmall) {
  Numbers tokens{1, 2};
  Numbers one(1);
  Numbers many(10);
  EXPECT_THROW(sort_by_token(tokens, 0, 4, one, many, many), base::Failure);
  EXPECT_THROW(sort_by_token(tokens, 0, 4, many, one, many), base::Failure);
  EXPECT_THROW(sort_by_token(tokens, 0, 4, many, many, one), base::Failure);
}

}  // namespace
}  // namespace shardbook::data
