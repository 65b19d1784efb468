// Where each parameter of an FSDP unit lies in its flat buffer.
#include "engine/shard/flat_unit.hpp"

#include <gtest/gtest.h>

#include <random>

#include "engine/base/check.hpp"
#include "engine/shard/shard.hpp"

namespace shardbook::shard {
namespace {

// The parameters of one transformer block of width d under tp, as one rank holds them.
std::vector<FlatParameter> block(std::int64_t d, std::int64_t tp) {
  return {{"norm1.weight", {d}, true, false},
          {"norm1.bias", {d}, true, false},
          {"qkv.weight", {3 * d / tp, d}, false, true},
          {"qkv.bias", {3 * d / tp}, false, false},
          {"out.weight", {d, d / tp}, false, true},
          {"out.bias", {d}, true, false},
          {"norm2.weight", {d}, true, false},
          {"norm2.bias", {d}, true, false},
          {"up.weight", {4 * d / tp, d}, false, true},
          {"up.bias", {4 * d / tp}, false, false},
          {"down.weight", {d, 4 * d / tp}, false, true},
          {"down.bias", {d}, true, false}};
}

TEST(FlatUnit, OrdersParametersByZone) {
  const FlatUnit unit("u", {{"bias", {8}, true, false},
                            {"sharded bias", {8}, false, false},
                            {"sharded weight", {8}, false, true},
                            {"table", {8}, true, true}},
                      1);
  std::vector<std::string> names;
  for (const FlatParameter& parameter : unit.parameters()) names.push_back(parameter.name);
  EXPECT_EQ(names, (std::vector<std::string>{"table", "sharded weight", "sharded bias", "bias"}));
  EXPECT_EQ(unit.decay_end(), 16);
  EXPECT_EQ(unit.tp_sharded(), (Interval{8, 24}));
  EXPECT_EQ(unit.replicated_over_tp(), (std::vector<Interval>{{0, 8}, {24, 32}}));
  EXPECT_EQ(unit.elements(), 32);
  EXPECT_EQ(unit.padded(), 64);
}

TEST(FlatUnit, HoldsABlockWithoutGapsAtTheSizesThatAreTrained) {
  for (std::int64_t d : {128, 768, 2048, 4096}) {
    for (std::int64_t tp : {1, 2, 4}) {
      const FlatUnit unit("blocks.0", block(d, tp), 4);
      EXPECT_EQ(unit.elements(), (12 * d * d + 7 * d) / tp + 6 * d) << d << " under tp " << tp;
      EXPECT_EQ(unit.decay_end(), 12 * d * d / tp);
      EXPECT_EQ(unit.tp_sharded(), (Interval{0, (12 * d * d + 7 * d) / tp}));
      EXPECT_EQ(unit.replicated_over_tp(), (std::vector<Interval>{{(12 * d * d + 7 * d) / tp, unit.elements()}}));
    }
  }
}

TEST(FlatUnit, BeginsTheTpShardedIntervalAtZeroWhenNothingDecayedIsReplicated) {
  const FlatUnit unit("u", {{"a", {8}, false, true}, {"b", {8}, false, true}}, 1);
  EXPECT_EQ(unit.tp_sharded(), (Interval{0, 16}));
  EXPECT_TRUE(unit.replicated_over_tp().empty());
  EXPECT_EQ(unit.decay_end(), 16);
}

TEST(FlatUnit, HasAnEmptyTpShardedIntervalWhenEverythingIsReplicated) {
  const FlatUnit unit("u", {{"a", {8}, true, true}, {"b", {8}, true, false}}, 2);
  EXPECT_TRUE(unit.tp_sharded().empty());
  EXPECT_EQ(unit.replicated_over_tp(), (std::vector<Interval>{{0, 16}}));
  EXPECT_EQ(unit.decay_end(), 8);
}

TEST(FlatUnit, AlignsParametersTo16BytesAndShardsTo128BytesInBf16) {
  const FlatUnit unit("u", {{"a", {3}, true, true}, {"b", {5}, true, true}, {"c", {1}, true, false}}, 3);
  EXPECT_EQ(unit.range("a"), (Interval{0, 3}));
  EXPECT_EQ(unit.range("b"), (Interval{8, 13}));
  EXPECT_EQ(unit.range("c"), (Interval{16, 17}));
  EXPECT_EQ(unit.shard_elements(), 64);
  EXPECT_EQ(unit.padded(), 192);
}

TEST(FlatUnit, FindsThePiecesOfAnInterval) {
  const FlatUnit unit("u", {{"a", {10}, true, true}, {"b", {4, 4}, true, true}}, 1);
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
        parameters.push_back({shards.back().name, shards.back().local_shape(), global.dim < 0, global.decay});
      }
      const FlatUnit unit("u", parameters, fsdp);
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
            ASSERT_EQ(unit.tp_sharded().contains(flat), globals[i].dim >= 0);
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
  const FlatUnit unit("u", {{"a", {4}}}, 2);
  EXPECT_THROW(unit.range("b"), base::Failure);
  EXPECT_THROW(unit.shard(2), base::Failure);
}

}  // namespace
}  // namespace shardbook::shard
