// How many bytes a step sends, and in how many collectives: as the papers' formulas say, for each way of cutting a model.
#include <gtest/gtest.h>

#include "engine/config/switches.hpp"
#include "tests/train/meta_step.hpp"
#include "tests/train/ways.hpp"

namespace shardbook::tests {
namespace {

using program::OpKind;
using program::Phase;

// Collectives of parameters and gradients in one step, and what a rank sends for them: of a buffer of S bytes
// (n − 1)/n · S for a gather or a scatter, twice that for an all-reduce.
struct Moved {
  int gathers = 0, scatters = 0, all_reduces = 0;
  base::Bytes sent = 0;
  bool operator==(const Moved&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Moved& moved) {
  return out << moved.gathers << " all-gathers, " << moved.scatters << " reduce-scatters, " << moved.all_reduces << " all-reduces, " << moved.sent << " B sent";
}

Moved moved_by(const config::RunConfig& config, const std::string& without = "tp") {
  MetaStep step(config, 0);
  Moved moved;
  for (const program::Op& op : step.program().ops) {
    if (op.desc.collective.group == program::no_group || op.key.phase == Phase::reduce) continue;
    const program::GroupInfo& group = step.catalogue().groups[op.desc.collective.group];
    if (group.axis == without) continue;
    const base::Bytes n = static_cast<base::Bytes>(group.ranks.size());
    moved.gathers += op.desc.kind == OpKind::all_gather;
    moved.scatters += op.desc.kind == OpKind::reduce_scatter;
    moved.all_reduces += op.desc.kind == OpKind::all_reduce;
    moved.sent += (op.desc.kind == OpKind::all_reduce ? 2 : 1) * (n - 1) * op.desc.collective.bytes / n;
  }
  return moved;
}

// Of small_config: its width and that of its feed-forward, how many numbers a block and the tied root have, and as many with the
// padding that so many ranks need.
constexpr std::int64_t d = 32, f = 64, block = 4 * d * d + 4 * d + 2 * d * f + f + d + 4 * d, root = (64 + 8) * d + 2 * d;
constexpr std::int64_t padded(std::int64_t numbers, std::int64_t ranks) { return (numbers + 64 * ranks - 1) / (64 * ranks) * (64 * ranks); }

// Rajbhandari et al. 2020, §7 and table 1, with gradients of 4 bytes and parameters of b: L blocks, and a tied root that
// stays whole once it is gathered.
TEST(Bytes, OfEachStageOfZeroAreThoseOfThePaper) {
  const int L = 3, n = 4;
  config::RunConfig small = small_config(1, 1);
  small.model.layers = L;
  const std::int64_t all = L * padded(block, n) + padded(root, n), replica = L * padded(block, 1) + padded(root, 1);
  for (int M : {1, 2}) {
    for (const auto& [precision, b] : {std::pair{config::Precision::bf16, 2}, std::pair{config::Precision::fp32, 4}}) {
      small.precision = precision;
      auto of = [&](const Way& way) { return moved_by(cut_over(small, way, 1, n, M)); };
      EXPECT_EQ(of(ddp), (Moved{0, 0, 1, 2 * (n - 1) * 4 * replica / n})) << M;
      EXPECT_EQ(of(zero_1), (Moved{L + 1, L + 1, 0, (n - 1) * (b + 4) * all / n})) << M;
      EXPECT_EQ(of(zero_2), (Moved{L + 1, M * (L + 1), 0, (n - 1) * (b + M * 4) * all / n})) << M;
      const std::int64_t again = (2 * M - 1) * b * L * padded(block, n);   // gathers of a block after its first
      EXPECT_EQ(of(zero_3), (Moved{2 * M * L + 1, M * (L + 1), 0, (n - 1) * ((b + M * 4) * all + again) / n})) << M;
      // Gradients that cross in bf16: the same collectives, and half the bytes of each reduce-scatter
      auto in_bf16 = [&](const Way& way) {
        config::RunConfig config = cut_over(small, way, 1, n, M);
        EXPECT_TRUE(config::set_switch(config, "fsdp.reduce_dtype=bf16"));
        return moved_by(config);
      };
      EXPECT_EQ(in_bf16(zero_1), (Moved{L + 1, L + 1, 0, (n - 1) * (b + 2) * all / n})) << M;
      EXPECT_EQ(in_bf16(zero_2), (Moved{L + 1, M * (L + 1), 0, (n - 1) * (b + M * 2) * all / n})) << M;
      EXPECT_EQ(in_bf16(zero_3), (Moved{2 * M * L + 1, M * (L + 1), 0, (n - 1) * ((b + M * 2) * all + again) / n})) << M;
    }
  }
}

// Kept over runs of m ranks: as many collectives, but those of backward are over m, and each forward ends with a copy of an
// m-th.
TEST(Bytes, OfBlocksKeptInASmallerGroupAreGatheredThereInBackward) {
  const int L = 3, n = 8;
  config::RunConfig small = small_config(1, 1);
  small.model.layers = L;
  const std::int64_t blocks = L * padded(block, n), all = blocks + padded(root, n);
  for (int M : {1, 2}) {
    for (int m : {2, 4}) {
      config::RunConfig config = cut_over(small, zero_3, 1, n, M);
      ASSERT_TRUE(config::set_switch(config, base::text("fsdp.reshard_group=", m)));
      const std::int64_t over_all = 2 * (padded(root, n) + M * blocks) + M * 4 * all;
      EXPECT_EQ(moved_by(config), (Moved{2 * M * L + 1, M * (L + 1), 0, (n - 1) * over_all / n + (m - 1) * M * 2 * blocks / m})) << M << ", " << m;
      MetaStep step(config, 5);
      for (int layer = 0; layer < L; ++layer) {
        EXPECT_EQ(step.collectives(OpKind::all_gather, "dp_shard", Phase::forward, layer), std::vector<base::Bytes>(static_cast<std::size_t>(M), 2 * padded(block, n)));
        EXPECT_EQ(step.collectives(OpKind::all_gather, "dp_shard_near", Phase::backward, layer), std::vector<base::Bytes>(static_cast<std::size_t>(M), 2 * padded(block, n)));
      }
      int copies = 0;
      for (const program::Op& op : step.program().ops) {
        if (op.desc.name != std::string_view("copy")) continue;
        EXPECT_EQ(op.desc.bytes_written, 2 * padded(block, n) / m);
        EXPECT_EQ(op.key.phase, Phase::forward);
        EXPECT_EQ(op.key.part, std::string_view("fsdp_unit"));
        ++copies;
      }
      EXPECT_EQ(copies, M * L);
    }
  }
}

// Units of g blocks, and one of those that are left: a g-th of the collectives of blocks, and the same bytes but for less padding.
TEST(Bytes, OfUnitsOfSeveralBlocksAreThoseOfFewerAndLargerCollectives) {
  const int L = 4, n = 4;
  config::RunConfig small = small_config(1, 1);
  small.model.layers = L;
  for (int M : {1, 2}) {
    for (int each : {1, 2, 3, 4, 100}) {
      const int g = std::min(each, L), left = L % g, u = (L + g - 1) / g;
      const std::int64_t blocks = L / g * padded(g * block, n) + padded(left * block, n);
      auto of = [&](const Way& way) {
        config::RunConfig config = cut_over(small, way, 1, n, M);
        EXPECT_TRUE(config::set_switch(config, base::text("fsdp.blocks_a_unit=", each)));
        return moved_by(config);
      };
      EXPECT_EQ(of(zero_1), (Moved{u + 1, u + 1, 0, (n - 1) * (2 + 4) * (blocks + padded(root, n)) / n})) << M << ", " << each;
      EXPECT_EQ(of(zero_2), (Moved{u + 1, M * (u + 1), 0, (n - 1) * (2 + M * 4) * (blocks + padded(root, n)) / n})) << M << ", " << each;
      EXPECT_EQ(of(zero_3), (Moved{2 * M * u + 1, M * (u + 1), 0, (n - 1) * ((2 + M * 4) * (blocks + padded(root, n)) + (2 * M - 1) * 2 * blocks) / n})) << M << ", " << each;
    }
  }
}

// Parameters that are cut and gathered one by one: twelve collectives a block instead of one, four for the root, and each
// parameter is padded by itself.
TEST(Bytes, OfParametersOneByOneAreACollectiveForEach) {
  const int L = 3, n = 4;
  config::RunConfig small = small_config(1, 1);
  small.model.layers = L;
  auto each_padded = [](std::initializer_list<std::int64_t> parameters) {
    std::int64_t all = 0;
    for (std::int64_t numbers : parameters) all += padded(numbers, n);
    return all;
  };
  const std::int64_t blocks = L * each_padded({d, d, 3 * d * d, 3 * d, d * d, d, d, d, d * f, f, f * d, d}), root_parts = each_padded({64 * d, 8 * d, d, d});
  for (int M : {1, 2}) {
    for (int each : {1, 3}) {   // units of so many blocks gather no more at once
      auto of = [&](const Way& way) {
        config::RunConfig config = cut_over(small, way, 1, n, M);
        EXPECT_TRUE(config::set_switch(config, "fsdp.sharding=per_parameter"));
        EXPECT_TRUE(config::set_switch(config, base::text("fsdp.blocks_a_unit=", each)));
        return moved_by(config);
      };
      const int all = 12 * L + 4;
      EXPECT_EQ(of(zero_1), (Moved{all, all, 0, (n - 1) * (2 + 4) * (blocks + root_parts) / n})) << M;
      EXPECT_EQ(of(zero_2), (Moved{all, M * all, 0, (n - 1) * (2 + M * 4) * (blocks + root_parts) / n})) << M;
      EXPECT_EQ(of(zero_3), (Moved{2 * M * 12 * L + 4, M * all, 0, (n - 1) * ((2 + M * 4) * (blocks + root_parts) + (2 * M - 1) * 2 * blocks) / n})) << M;
    }
  }
}

// What is computed again is whole then anyway, so nothing is gathered for it; but a cut matmul's result is summed again.
TEST(Bytes, OfFullRecomputeRepeatTheSumsOverTpAndNoGather) {
  for (const Way& way : {zero_1, zero_2, zero_3}) {
    config::RunConfig config = cut_over(small_config(1, 1), way, 2, 2, 2);
    const Moved without = moved_by(config), sums = moved_by(config, "dp_shard");
    const base::Bytes activations = config.tokens_per_micro_batch() * config.model.width * 2;
    ASSERT_TRUE(config::set_switch(config, "activations.recompute=full"));
    EXPECT_EQ(moved_by(config), without) << way.name;
    // Two a block and micro-batch
    const int again = 2 * config.model.layers * config.micro_batches;
    EXPECT_EQ(moved_by(config, "dp_shard"), (Moved{0, 0, sums.all_reduces + again, sums.sent + again * 2 * activations / 2})) << way.name;
    MetaStep step(config, 0);
    EXPECT_EQ(step.collectives(OpKind::all_reduce, "tp", Phase::backward, 1), std::vector<base::Bytes>(8, activations)) << way.name;
  }
}

// Korthikanti et al. 2022, §5: all that lies between two sums over tp is kept but for the square, so none is repeated. A
// block's collectives over tp in a micro-batch, as a table; those of parameters and gradients are the same in each row.
TEST(Bytes, OfABlockOverTpAreRepeatedByFullRecomputeAndByNoOther) {
  struct Row {
    const char *rows, *recompute;
    int gathers, scatters, all_reduces;   // of N D numbers each; sums of the norms' gradients are counted apart
  };
  for (const Row& row : {Row{"whole", "none", 0, 0, 4}, Row{"whole", "cheap", 0, 0, 4}, Row{"whole", "selective", 0, 0, 4}, Row{"whole", "full", 0, 0, 6},
                         Row{"cut", "none", 6, 4, 0}, Row{"cut", "cheap", 6, 4, 0}, Row{"cut", "selective", 6, 4, 0}, Row{"cut", "full", 8, 6, 0}}) {
    for (const Way& way : {ddp, zero_1, zero_2, zero_3}) {
      for (int micro_batches : {1, 2}) {
        config::RunConfig config = cut_over(small_config(1, 1), way, 2, 2, micro_batches);
        ASSERT_TRUE(config::set_switch(config, base::text("tensor_parallel.sequence=", row.rows)));
        const Moved without = moved_by(config);
        ASSERT_TRUE(config::set_switch(config, base::text("activations.recompute=", row.recompute)));
        const std::string where = base::text(way.name, ", ", micro_batches, " micro-batches, rows ", row.rows, ", recompute ", row.recompute);
        EXPECT_EQ(moved_by(config), without) << where;
        MetaStep step(config, 0);
        const base::Bytes activations = config.tokens_per_micro_batch() * config.model.width * 2;
        for (int layer = 0; layer < config.model.layers; ++layer) {
          for (const auto& [kind, count] : {std::pair{OpKind::all_gather, row.gathers}, std::pair{OpKind::reduce_scatter, row.scatters}, std::pair{OpKind::all_reduce, row.all_reduces}}) {
            std::vector<base::Bytes> found = step.collectives(kind, "tp", Phase::forward, layer);
            for (base::Bytes bytes : step.collectives(kind, "tp", Phase::backward, layer)) found.push_back(bytes);
            if (kind == OpKind::all_reduce && *row.rows == 'c') std::erase(found, 6 * config.model.width * 4);   // of norms and row biases
            EXPECT_EQ(found, std::vector<base::Bytes>(static_cast<std::size_t>(count * micro_batches), activations)) << where;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardbook::tests
