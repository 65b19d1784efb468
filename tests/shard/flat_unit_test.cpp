// Where each parameter of an FSDP unit lies in its flat buffer.
#include "engine/shard/flat_unit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine/base/check.hpp"
#include "engine/shard/shard.hpp"

namespace shardbook::shard {
namespace {

const Placement cut_tp{cut_over("tp")}, alike_tp{alike_over("tp")}, summed_tp{summed_over("tp")};

// What a tp rank counts that is not the first: of parameters that are alike it leaves the counting to that one.
std::vector<Interval> counted_by_others(const FlatUnit& unit) { return unit.counted({{"tp", 1}}); }

// The parameters of one transformer block of width d under tp, as one rank holds them.
std::vector<FlatParameter> block(std::int64_t d, std::int64_t tp) {
  return {{"norm1.weight", {d}, alike_tp, false},
          {"norm1.bias", {d}, alike_tp, false},
          {"qkv.weight", {3 * d / tp, d}, cut_tp, true},
          {"qkv.bias", {3 * d / tp}, cut_tp, false},
          {"out.weight", {d, d / tp}, cut_tp, true},
          {"out.bias", {d}, alike_tp, false},
          {"norm2.weight", {d}, alike_tp, false},
          {"norm2.bias", {d}, alike_tp, false},
          {"up.weight", {4 * d / tp, d}, cut_tp, true},
          {"up.bias", {4 * d / tp}, cut_tp, false},
          {"down.weight", {d, 4 * d / tp}, cut_tp, true},
          {"down.bias", {d}, alike_tp, false}};
}

TEST(FlatUnit, OrdersParametersByZone) {
  const FlatUnit unit("u", {{"bias", {8}, summed_tp, false},
                            {"cut bias", {8}, cut_tp, false},
                            {"cut weight", {8}, cut_tp, true},
                            {"table", {8}, summed_tp, true}},
                      1);
  std::vector<std::string> names;
  for (const FlatParameter& parameter : unit.parameters()) names.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"table", "cut weight", "cut bias", "bias"}));
  EXPECT_EQ(unit.decay_end(), 16);
  EXPECT_EQ(counted_by_others(unit), (std::vector<Interval>{{8, 24}}));
  EXPECT_EQ(unit.counted({{"tp", 0}}), (std::vector<Interval>{{0, 64}}));
  EXPECT_EQ(unit.summands_over("tp"), (std::vector<Interval>{{0, 8}, {24, 32}}));
  EXPECT_EQ(unit.elements(), 32);
  EXPECT_EQ(unit.padded(), 64);
}

TEST(FlatUnit, HoldsABlockWithoutGapsAtTheSizesThatAreTrained) {
  for (std::int64_t d : {128, 768, 2048, 4096}) {
    for (std::int64_t tp : {1, 2, 4}) {
      const FlatUnit unit("blocks.0", block(d, tp), 4);
      EXPECT_EQ(unit.elements(), (12 * d * d + 7 * d) / tp + 6 * d) << d << " under tp " << tp;
      EXPECT_EQ(unit.decay_end(), 12 * d * d / tp);
      EXPECT_EQ(counted_by_others(unit), (std::vector<Interval>{{0, (12 * d * d + 7 * d) / tp}}));
      EXPECT_TRUE(unit.summands_over("tp").empty());
    }
  }
}

TEST(FlatUnit, CountsAllOfItWithItsPaddingWhereEverythingIsCut) {
  const FlatUnit unit("u", {{"a", {8}, cut_tp, true}, {"b", {8}, cut_tp, true}}, 1);
  EXPECT_EQ(counted_by_others(unit), (std::vector<Interval>{{0, 64}}));
  EXPECT_TRUE(unit.summands_over("tp").empty());
  EXPECT_EQ(unit.decay_end(), 16);
}

TEST(FlatUnit, LeavesAllCountingToTheFirstRankWhereEverythingIsAlike) {
  const FlatUnit unit("u", {{"a", {8}, summed_tp, true}, {"b", {8}, summed_tp, false}}, 2);
  EXPECT_TRUE(counted_by_others(unit).empty());
  EXPECT_EQ(unit.summands_over("tp"), (std::vector<Interval>{{0, 16}}));
  EXPECT_EQ(unit.decay_end(), 8);
}

TEST(FlatUnit, GivesEachPlacementAZoneAndThoseWithMorePartsTheMiddle) {
  const Placement of_expert{cut_over("tp"), cut_over("ep")};
  const FlatUnit unit("u", {{"bias", {8}, alike_tp, false},
                            {"expert bias", {8}, of_expert, false},
                            {"expert", {8}, of_expert, true},
                            {"weight", {8}, cut_tp, true},
                            {"row bias", {8}, summed_tp, false},
                            {"table", {8}, {}, true}},   // of no axis anything is said: alike
                      1);
  std::vector<std::string> names;
  for (const FlatParameter& parameter : unit.parameters()) names.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"table", "weight", "expert", "expert bias", "row bias", "bias"}));
  EXPECT_EQ(unit.decay_end(), 24);
  EXPECT_EQ(unit.counted({{"tp", 1}, {"ep", 0}}), (std::vector<Interval>{{8, 32}}));
  EXPECT_EQ(unit.counted({{"tp", 0}, {"ep", 1}}), (std::vector<Interval>{{16, 32}}));
  EXPECT_EQ(unit.summands_over("tp"), (std::vector<Interval>{{32, 40}}));
}

TEST(FlatUnit, AlignsParametersTo16BytesAndShardsTo128BytesInBf16) {
  const FlatUnit unit("u", {{"a", {3}, alike_tp, true}, {"b", {5}, alike_tp, true}, {"c", {1}, alike_tp, false}}, 3);
  EXPECT_EQ(unit.range("a"), (Interval{0, 3}));
  EXPECT_EQ(unit.range("b"), (Interval{8, 13}));
  EXPECT_EQ(unit.range("c"), (Interval{16, 17}));
  EXPECT_EQ(unit.shard_elements(), 64);
  EXPECT_EQ(unit.padded(), 192);
}

TEST(FlatUnit, FindsThePiecesOfAnInterval) {
  const FlatUnit unit("u", {{"a", {10}, alike_tp, true}, {"b", {4, 4}, alike_tp, true}}, 1);
  const std::vector<Piece> pieces = unit.pieces({6, 20});
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(unit.parameters()[static_cast<std::size_t>(pieces[0].parameter)].name, "a");
  EXPECT_EQ(pieces[0].elements, (Interval{6, 10}));
  EXPECT_EQ(pieces[1].elements, (Interval{0, 4}));
  EXPECT_EQ(pieces[1].flat, (Interval{16, 20}));
  EXPECT_TRUE(unit.pieces({10, 16}).empty());
}

// Random units under random tp and fsdp: each global element of each parameter lies in exactly one
// fsdp shard of exactly one tp rank, or of every tp rank when it is replicated.
TEST(FlatUnit, OwnsEveryGlobalElementExactlyOnceForRandomUnits) {
  std::mt19937 random(3);
  auto draw = [&](int least, int most) { return std::uniform_int_distribution<>(least, most)(random); };
  for (int trial = 0; trial < 200; ++trial) {
    const int tp = draw(1, 5);
    const int fsdp = draw(1, 9);
    struct Global {
      base::Shape shape;
      int dim;  // cut over tp; -1 = replicated
      bool decay;
    };
    std::vector<Global> globals;
    for (int parameter = draw(1, 7); parameter > 0; --parameter) {
      globals.push_back({{draw(tp, 24), draw(tp, 24)}, draw(-1, 1), draw(0, 1) == 1});
    }
    std::vector<std::vector<int>> owners;
    for (const Global& global : globals) owners.emplace_back(static_cast<std::size_t>(global.shape.elements()), 0);

    for (int tp_index = 0; tp_index < tp; ++tp_index) {
      std::vector<TensorShard> shards;
      std::vector<FlatParameter> parameters;
      for (std::size_t i = 0; i < globals.size(); ++i) {
        const Global& global = globals[i];
        shards.push_back(global.dim < 0 ? replicated(std::to_string(i), global.shape)
                                        : cut_along(std::to_string(i), global.shape, global.dim, tp, tp_index));
        parameters.push_back({shards.back().name, shards.back().local_shape(), global.dim < 0 ? alike_tp : cut_tp, global.decay});
      }
      const FlatUnit unit("u", parameters, fsdp);
      const std::vector<Interval> by_others = counted_by_others(unit);
      std::int64_t at = 0;
      for (int index = 0; index < fsdp; ++index) {
        ASSERT_EQ(unit.shard(index).begin, at);
        ASSERT_EQ(at * 2 % 16, 0);
        at = unit.shard(index).end;
        for (const Piece& piece : unit.pieces(unit.shard(index))) {
          const auto i = std::stoul(unit.parameters()[static_cast<std::size_t>(piece.parameter)].name);
          ASSERT_EQ(piece.flat.size(), piece.elements.size());
          for (std::int64_t e = piece.elements.begin; e < piece.elements.end; ++e) {
            const std::int64_t flat = piece.flat.begin + e - piece.elements.begin;
            ASSERT_EQ(flat < unit.decay_end(), globals[i].decay);
            ASSERT_EQ(std::any_of(by_others.begin(), by_others.end(), [flat](Interval one) { return one.contains(flat); }), globals[i].dim >= 0);
            ++owners[i].at(static_cast<std::size_t>(shards[i].global_element(e)));
          }
        }
      }
      ASSERT_EQ(at, unit.padded());
      ASSERT_GE(unit.padded(), unit.elements());
    }
    for (std::size_t i = 0; i < globals.size(); ++i) {
      for (int count : owners[i]) ASSERT_EQ(count, globals[i].dim < 0 ? tp : 1);
    }
  }
}

TEST(FlatUnit, StopsAProgrammersMistake) {
  EXPECT_THROW(FlatUnit("u", {}, 1), base::Failure);
  EXPECT_THROW(FlatUnit("u", {{"a", {4}}, {"a", {4}}}, 1), base::Failure);
  EXPECT_THROW(FlatUnit("u", {{"a", {4}}}, 0), base::Failure);
  EXPECT_THROW(FlatUnit("u", {{"a", {4}, {{"tp", Held::part, Held::same, Held::part}}}}, 1), base::Failure);
  const FlatUnit unit("u", {{"a", {4}}}, 2);
  EXPECT_THROW(unit.range("b"), base::Failure);
  EXPECT_THROW(unit.shard(2), base::Failure);
}

}  // namespace
}  // namespace shardbook::shard
