// What a step issues: equal on every device, and as much of it as the formulas say.
#include <gtest/gtest.h>

#include <set>

#include "engine/config/switches.hpp"
#include "engine/train/planned.hpp"
#include "tests/train/meta_step.hpp"
#include "tests/train/ways.hpp"

namespace shardbook::tests {
namespace {

using program::OpKind;
using program::Phase;

TEST(Program, IsTheSameOnHostAndMetaForEachLayout) {
  for (int tp : {1, 2, 4}) {
    for (int fsdp : {1, 2, 4}) {
      config::RunConfig config = small_config(tp, fsdp);
      config.steps = 2;
      const HostRun host = run_on_host(config, TestTokens(config.model.vocab, config.model.sequence));
      ASSERT_EQ(host.error, "");
      for (int rank = 0; rank < config.ranks; ++rank) {
        EXPECT_EQ(MetaStep(config, rank).hash(), host.program_hashes[static_cast<std::size_t>(rank)])
            << "tp " << tp << ", fsdp " << fsdp << ", rank " << rank;
      }
    }
  }
}

TEST(Program, OfAnotherLayoutIsAnother) {
  EXPECT_NE(MetaStep(small_config(2, 1), 0).hash(), MetaStep(small_config(1, 2), 0).hash());
  config::RunConfig later = small_config(2, 2);
  later.prefetch = 2;
  EXPECT_NE(MetaStep(small_config(2, 2), 0).hash(), MetaStep(later, 0).hash());
}

TEST(Counts, TensorParallelReducesTwiceForwardAndTwiceBackwardABlock) {
  for (int tp : {2, 4}) {
    const config::RunConfig config = small_config(tp, 2);
    MetaStep step(config, 0);
    const base::Bytes activations = config.tokens_per_micro_batch() * config.model.width * 2;  // N · D, bf16
    for (int layer = 0; layer < config.model.layers; ++layer) {
      EXPECT_EQ(step.collectives(OpKind::all_reduce, "tp", Phase::forward, layer), (std::vector<base::Bytes>{activations, activations}));
      EXPECT_EQ(step.collectives(OpKind::all_reduce, "tp", Phase::backward, layer), (std::vector<base::Bytes>{activations, activations}));
    }
  }
}

// A bias is whole where the linear's result is summed over tp before it is added, and cut with the outputs where it is not.
TEST(Counts, ABiasIsWholeWhereItIsAddedToASumOverTpAndCutElsewhere) {
  MetaStep step(small_config(2, 1), 0);
  const std::vector<program::Op>& ops = step.program().ops;
  std::vector<std::string> linears{"down", "up", "projection", "qkv"};   // of a block, the next one last
  std::set<std::string> summed;
  for (std::size_t at = 0; at + 1 < ops.size() && !linears.empty(); ++at) {
    if (ops[at].key.layer != 0 || ops[at].key.phase != Phase::forward || std::string_view(ops[at].desc.name) != "linear_forward") continue;
    if (ops[at + 1].desc.kind == OpKind::all_reduce) summed.insert(linears.back());
    linears.pop_back();
  }
  ASSERT_TRUE(linears.empty());
  int biases = 0, others = 0;
  for (const model::Parameter* parameter : step.trainer->model().parameters()) {
    const std::string& name = parameter->name;
    const bool is_whole = parameter->shape == parameter->global_shape;
    if (name.find("norm") != std::string::npos || name.find("position") != std::string::npos) {
      ++others;
      EXPECT_TRUE(is_whole) << name << " meets whole rows";
    } else if (name.ends_with(".bias")) {
      ++biases;
      const std::string linear = name.substr(0, name.rfind('.'));
      EXPECT_EQ(is_whole, summed.contains(linear.substr(linear.rfind('.') + 1))) << name;
    }
  }
  EXPECT_EQ(biases, 8);   // two blocks of qkv, projection, up, down
  EXPECT_EQ(others, 11);  // two norms a block and the last one, weights and biases; positions
}

// With tokens cut an all-reduce is a reduce-scatter and an all-gather of the same bytes, and backward gathers the inputs of
// qkv and up once more. Norms and row biases, six rows of width D in f32, are summed over tp.
TEST(Counts, WithTokensCutABlockScattersAndGathersWhereItReduced) {
  for (int tp : {2, 4}) {
    for (int fsdp : {1, 2}) {
      const config::RunConfig config = with_tokens_cut(small_config(tp, fsdp));
      MetaStep step(config, 0);
      const std::int64_t D = config.model.width;
      const base::Bytes A = config.tokens_per_micro_batch() * D * 2;  // N · D, bf16
      const auto of = [&](OpKind kind, Phase phase, int layer) { return step.collectives(kind, "tp", phase, layer); };
      using Bytes = std::vector<base::Bytes>;
      for (int layer = 0; layer < config.model.layers; ++layer) {
        EXPECT_EQ(of(OpKind::all_gather, Phase::forward, layer), (Bytes{A, A}));
        EXPECT_EQ(of(OpKind::reduce_scatter, Phase::forward, layer), (Bytes{A, A}));
        EXPECT_EQ(of(OpKind::all_reduce, Phase::forward, layer), Bytes{});
        EXPECT_EQ(of(OpKind::all_gather, Phase::backward, layer), (Bytes{A, A, A, A}));   // dy of down, x of up, dy of projection, x of qkv
        EXPECT_EQ(of(OpKind::reduce_scatter, Phase::backward, layer), (Bytes{A, A}));
        EXPECT_EQ(of(OpKind::all_reduce, Phase::backward, layer), (Bytes{6 * D * 4}));
      }
      // Outside the blocks: the embedding's sum and the head's input, and back. The root's positions and last norm
      const std::int64_t N = config.tokens_per_micro_batch(), S = config.model.sequence;
      EXPECT_EQ(of(OpKind::reduce_scatter, Phase::forward, -1), (Bytes{A}));
      EXPECT_EQ(of(OpKind::all_gather, Phase::forward, -1), (Bytes{A}));
      EXPECT_EQ(of(OpKind::all_reduce, Phase::forward, -1), (Bytes{4 * N, 8 * N}));   // the loss
      EXPECT_EQ(of(OpKind::reduce_scatter, Phase::backward, -1), (Bytes{A}));
      EXPECT_EQ(of(OpKind::all_gather, Phase::backward, -1), (Bytes{A, A}));
      EXPECT_EQ(of(OpKind::all_reduce, Phase::backward, -1), (Bytes{S * D * 4, 2 * D * 4}));
    }
  }
}

TEST(Counts, FsdpGathersABlockTwiceAndReducesItOnce) {
  for (int tp : {1, 2}) {
    const config::RunConfig config = small_config(tp, 4);
    MetaStep step(config, 1);
    const std::int64_t d = config.model.width, f = config.model.ffn_width;
    // A block's parameters on this tp rank: norms and row biases whole, the rest cut.
    const std::int64_t parameters = 4 * d + 2 * d + (3 * d * d + 3 * d + d * d + 2 * d * f + f) / tp;
    const base::Bytes padded = (parameters + 4 * 64 - 1) / (4 * 64) * (4 * 64);
    for (int layer = 0; layer < config.model.layers; ++layer) {
      EXPECT_EQ(step.collectives(OpKind::all_gather, "dp_shard", Phase::forward, layer), (std::vector<base::Bytes>{padded * 2}));
      EXPECT_EQ(step.collectives(OpKind::all_gather, "dp_shard", Phase::backward, layer), (std::vector<base::Bytes>{padded * 2}));
      EXPECT_EQ(step.collectives(OpKind::reduce_scatter, "dp_shard", Phase::backward, layer), (std::vector<base::Bytes>{padded * 4}));
      EXPECT_TRUE(step.collectives(OpKind::all_reduce, "dp_shard", Phase::backward, layer).empty());
    }
  }
}

TEST(Counts, WithoutReshardABlockIsGatheredOnce) {
  config::RunConfig config = small_config(1, 4);
  config.reshard = false;
  MetaStep step(config, 0);
  EXPECT_EQ(step.collectives(OpKind::all_gather, "dp_shard", Phase::forward, 1).size(), 1u);
  EXPECT_EQ(step.collectives(OpKind::all_gather, "dp_shard", Phase::backward, 1).size(), 0u);
}

TEST(Counts, EveryMicroBatchGathersAndReducesAnew) {
  config::RunConfig config = small_config(1, 2);
  config.micro_batches = 2;
  MetaStep step(config, 0);
  EXPECT_EQ(step.collectives(OpKind::all_gather, "dp_shard", Phase::forward, 0).size(), 2u);
  EXPECT_EQ(step.collectives(OpKind::reduce_scatter, "dp_shard", Phase::backward, 0).size(), 2u);
}

// ---- Counts and bytes of ZeRO's stages -----------------------------------------------------------

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

// Rajbhandari et al. 2020, §7 and table 1, with gradients of 4 bytes and parameters of b: L blocks, and a tied root that
// stays whole once it is gathered.
TEST(Bytes, OfEachStageOfZeroAreThoseOfThePaper) {
  const int L = 3, n = 4;
  config::RunConfig small = small_config(1, 1);
  small.model.layers = L;
  const std::int64_t d = 32, f = 64, block = 4 * d * d + 4 * d + 2 * d * f + f + d + 4 * d, root = (64 + 8) * d + 2 * d;
  auto padded = [](std::int64_t numbers, std::int64_t ranks) { return (numbers + 64 * ranks - 1) / (64 * ranks) * (64 * ranks); };
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
  const std::int64_t d = 32, f = 64, block = 4 * d * d + 4 * d + 2 * d * f + f + d + 4 * d, root = (64 + 8) * d + 2 * d;
  auto padded = [](std::int64_t numbers) { return (numbers + 64 * n - 1) / (64 * n) * (64 * n); };
  const std::int64_t blocks = L * padded(block), all = blocks + padded(root);
  for (int M : {1, 2}) {
    for (int m : {2, 4}) {
      config::RunConfig config = cut_over(small, zero_3, 1, n, M);
      ASSERT_TRUE(config::set_switch(config, base::text("fsdp.reshard_group=", m)));
      const std::int64_t over_all = 2 * (padded(root) + M * blocks) + M * 4 * all;
      EXPECT_EQ(moved_by(config), (Moved{2 * M * L + 1, M * (L + 1), 0, (n - 1) * over_all / n + (m - 1) * M * 2 * blocks / m})) << M << ", " << m;
      MetaStep step(config, 5);
      for (int layer = 0; layer < L; ++layer) {
        EXPECT_EQ(step.collectives(OpKind::all_gather, "dp_shard", Phase::forward, layer), std::vector<base::Bytes>(static_cast<std::size_t>(M), 2 * padded(block)));
        EXPECT_EQ(step.collectives(OpKind::all_gather, "dp_shard_near", Phase::backward, layer), std::vector<base::Bytes>(static_cast<std::size_t>(M), 2 * padded(block)));
      }
      int copies = 0;
      for (const program::Op& op : step.program().ops) {
        if (op.desc.name != std::string_view("copy")) continue;
        EXPECT_EQ(op.desc.bytes_written, 2 * padded(block) / m);
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
  const std::int64_t d = 32, f = 64, block = 4 * d * d + 4 * d + 2 * d * f + f + d + 4 * d, root = (64 + 8) * d + 2 * d;
  auto padded = [](std::int64_t numbers) { return (numbers + 64 * n - 1) / (64 * n) * (64 * n); };
  for (int M : {1, 2}) {
    for (int each : {1, 2, 3, 4, 100}) {
      const int g = std::min(each, L), left = L % g, u = (L + g - 1) / g;
      const std::int64_t blocks = L / g * padded(g * block) + padded(left * block);
      auto of = [&](const Way& way) {
        config::RunConfig config = cut_over(small, way, 1, n, M);
        EXPECT_TRUE(config::set_switch(config, base::text("fsdp.blocks_a_unit=", each)));
        return moved_by(config);
      };
      EXPECT_EQ(of(zero_1), (Moved{u + 1, u + 1, 0, (n - 1) * (2 + 4) * (blocks + padded(root)) / n})) << M << ", " << each;
      EXPECT_EQ(of(zero_2), (Moved{u + 1, M * (u + 1), 0, (n - 1) * (2 + M * 4) * (blocks + padded(root)) / n})) << M << ", " << each;
      EXPECT_EQ(of(zero_3), (Moved{2 * M * u + 1, M * (u + 1), 0, (n - 1) * ((2 + M * 4) * (blocks + padded(root)) + (2 * M - 1) * 2 * blocks) / n})) << M << ", " << each;
    }
  }
}

// Parameters that are cut and gathered one by one: twelve collectives a block instead of one, four for the root, and each
// parameter is padded by itself.
TEST(Bytes, OfParametersOneByOneAreACollectiveForEach) {
  const int L = 3, n = 4;
  config::RunConfig small = small_config(1, 1);
  small.model.layers = L;
  const std::int64_t d = 32, f = 64;
  auto padded = [](std::initializer_list<std::int64_t> parameters) {
    std::int64_t all = 0;
    for (std::int64_t numbers : parameters) all += (numbers + 64 * n - 1) / (64 * n) * (64 * n);
    return all;
  };
  const std::int64_t blocks = L * padded({d, d, 3 * d * d, 3 * d, d * d, d, d, d, d * f, f, f * d, d}), root = padded({64 * d, 8 * d, d, d});
  for (int M : {1, 2}) {
    for (int each : {1, 3}) {   // units of so many blocks gather no more at once
      auto of = [&](const Way& way) {
        config::RunConfig config = cut_over(small, way, 1, n, M);
        EXPECT_TRUE(config::set_switch(config, "fsdp.sharding=per_parameter"));
        EXPECT_TRUE(config::set_switch(config, base::text("fsdp.blocks_a_unit=", each)));
        return moved_by(config);
      };
      const int all = 12 * L + 4;
      EXPECT_EQ(of(zero_1), (Moved{all, all, 0, (n - 1) * (2 + 4) * (blocks + root) / n})) << M;
      EXPECT_EQ(of(zero_2), (Moved{all, M * all, 0, (n - 1) * (2 + M * 4) * (blocks + root) / n})) << M;
      EXPECT_EQ(of(zero_3), (Moved{2 * M * 12 * L + 4, M * all, 0, (n - 1) * ((2 + M * 4) * (blocks + root) + (2 * M - 1) * 2 * blocks) / n})) << M;
    }
  }
}

TEST(Record, NamesTheBlocksOfAUnitThatHasSeveral) {
  config::RunConfig config = small_config(1, 2);
  config.model.layers = 4;
  ASSERT_TRUE(config::set_switch(config, "fsdp.blocks_a_unit=2"));
  MetaStep step(config, 0);
  std::map<std::string, std::set<int>> layers_of;
  for (const program::Op& op : step.program().ops) {
    if (std::string_view(op.key.part).starts_with("fsdp_unit")) layers_of[op.key.part].insert(op.key.layer);
  }
  EXPECT_EQ(layers_of, (std::map<std::string, std::set<int>>{{"fsdp_unit", {-1}}, {"fsdp_unit 0-1", {0}}, {"fsdp_unit 2-3", {2}}}));
  std::vector<std::string> names;
  for (const plan::Unit& unit : step.trainer->network().units) names.push_back(unit.name);
  EXPECT_EQ(names, (std::vector<std::string>{"root", "blocks.0-1", "blocks.2-3"}));
  ASSERT_TRUE(config::set_switch(config, "fsdp.blocks_a_unit=3"));
  MetaStep uneven(config, 0);
  EXPECT_EQ(uneven.trainer->network().units[1].name, "blocks.0-2");
  EXPECT_EQ(uneven.trainer->network().units[2].name, "blocks.3");
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
  for (const Row& row : {Row{"whole", "none", 0, 0, 4}, Row{"whole", "selective", 0, 0, 4}, Row{"whole", "full", 0, 0, 6},
                         Row{"cut", "none", 6, 4, 0}, Row{"cut", "selective", 6, 4, 0}, Row{"cut", "full", 8, 6, 0}}) {
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

// The ops of a block's backward by name, in order.
std::vector<std::string> backward_of_block(const config::RunConfig& config) {
  MetaStep step(config, 0);
  std::vector<std::string> names;
  for (const program::Op& op : step.program().ops) {
    if (op.key.phase == Phase::backward && op.key.layer == 1) names.push_back(op.desc.name);
  }
  return names;
}

TEST(Counts, OfSelectiveRecomputeAreTwoOpsMoreThatComeJustBeforeAttentionsBackward) {
  for (bool llama : {false, true}) {
    for (bool cut : {false, true}) {
      config::RunConfig config = llama ? small_llama(2, 2) : small_config(2, 2);
      if (cut) config = with_tokens_cut(config);
      std::vector<std::string> names = backward_of_block(config);
      ASSERT_TRUE(config::set_switch(config, "activations.recompute=selective"));
      const auto attention = std::find(names.begin(), names.end(), "split_heads");   // of the gradient: backward begins with it
      ASSERT_NE(attention, names.end());
      names.insert(attention, {"attention_scores", "causal_softmax_forward"});
      EXPECT_EQ(backward_of_block(config), names);
    }
  }
}

TEST(Record, NamesTheLinesOfTheRoomsThatDecide) {
  MetaStep step(small_config(2, 2), 0);
  std::set<std::uint32_t> lines_of_gathers, lines_of_sums;
  for (const program::Command& command : step.program().commands) {
    if (command.kind != program::CommandKind::op) continue;
    const program::Op& op = step.program().ops[command.op];
    const std::string issued = command.where.file, planned = command.planned.file;
    if (op.desc.kind == OpKind::all_gather) {
      EXPECT_TRUE(issued.ends_with("engine/fsdp/parameters.cpp")) << issued;
      EXPECT_TRUE(planned.ends_with("engine/fsdp/schedule.cpp")) << planned;
      EXPECT_TRUE(command.planned_leads);
      lines_of_gathers.insert(command.planned.line);
    }
    if (op.desc.kind == OpKind::all_reduce && op.key.layer >= 0) {
      EXPECT_TRUE(issued.ends_with("engine/tensor_parallel/regions.cpp")) << issued;
      EXPECT_TRUE(planned.ends_with("engine/model/block.cpp")) << planned;
      EXPECT_TRUE(command.planned_leads);
      lines_of_sums.insert(command.planned.line);
    }
  }
  // Two sums of forward and two of backward: each has its line of the block.
  EXPECT_EQ(lines_of_sums.size(), 4u);
  // A gather that is needed now and one that is made ahead are told apart.
  EXPECT_EQ(lines_of_gathers.size(), 2u);
}

TEST(Record, EveryGatherWaitsForTheLastUserOfItsSlot) {
  MetaStep step(small_config(1, 4), 0);
  std::set<program::OpIndex> awaits_reuse;
  for (const program::Edge& edge : program::edges(step.program())) {
    if (edge.kind == program::EdgeKind::buffer_reuse) awaits_reuse.insert(edge.to);
  }
  // Forward fills both slots for the first time in the step; every gather of a block in backward comes second.
  int gathers = 0;
  for (program::OpIndex at = 0; at < step.program().ops.size(); ++at) {
    const program::Op& op = step.program().ops[at];
    if (op.desc.kind != OpKind::all_gather || op.key.layer < 0 || op.key.phase != Phase::backward) continue;
    ++gathers;
    EXPECT_TRUE(awaits_reuse.contains(at)) << "layer " << op.key.layer;
  }
  EXPECT_EQ(gathers, 2);
}

}  // namespace
}  // namespace shardbook::tests
