// How many collectives a step has, and where: by the block and the phase, and of a whole step in each way of training.
#include <gtest/gtest.h>

#include <set>

#include "engine/config/switches.hpp"
#include "tests/train/meta_step.hpp"

namespace shardbook::tests {
namespace {

using program::OpKind;
using program::Phase;

// ---- In a block --------------------------------------------------------------------------------

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

// What is issued between an input gradient and the sum of it over tp that follows, by the stream it is issued to.
std::vector<std::string> between_gradients_and_sums(const config::RunConfig& config) {
  using program::CommandKind;
  MetaStep step(config, 0);
  std::vector<std::string> all;
  std::string words;
  program::StreamId compute = 0;
  bool behind_a_gradient = false;
  for (const program::Command& command : step.program().commands) {
    const program::Op* op = command.kind == CommandKind::op ? &step.program().ops[command.op] : nullptr;
    if (op != nullptr && std::string_view(op->desc.name) == "linear_input_gradient") {
      behind_a_gradient = true;
      compute = command.stream;
      words.clear();
      continue;
    }
    if (op != nullptr && (op->desc.kind == OpKind::all_reduce || op->desc.kind == OpKind::reduce_scatter)) {
      if (behind_a_gradient) all.push_back(words);
      behind_a_gradient = false;
    } else if (op != nullptr && op->desc.kind != OpKind::fill) {
      behind_a_gradient = false;   // another linear's, which nobody sums
    }
    const char* what = op != nullptr ? op->desc.name : command.kind == CommandKind::record_event ? "record" : command.kind == CommandKind::wait_event ? "wait" : "?";
    words += base::text(words.empty() ? "" : ", ", what, command.stream == compute ? " on compute" : " on tp");
  }
  return all;
}

TEST(Counts, OfTheStepsOfAHeadStartEachSumOfAnInputGradientHasAllOrNone) {
  for (const bool cut : {false, true}) {
    config::RunConfig config = cut ? with_tokens_cut(small_config(2, 1)) : small_config(2, 1);
    const std::size_t sums = static_cast<std::size_t>(2 * config.model.layers + 1);
    EXPECT_EQ(between_gradients_and_sums(config), std::vector<std::string>(sums, "record on compute, wait on tp")) << cut;
    ASSERT_TRUE(config::set_switch(config, "tensor_parallel.input_gradient_sum=first"));
    EXPECT_EQ(between_gradients_and_sums(config), std::vector<std::string>(sums, "record on compute, wait on tp, record on tp, wait on compute, pause on compute")) << cut;
  }
}

// In turns the same bytes cross: each rank sends t − 1 runs of N D / t rows where it took part in a gather, or a scatter, of N D.
// The rows that backward gathers once more, and the embedding's, cross as before. And a block has so many more matmuls and sums.
TEST(Counts, InTurnsABlockShiftsWhatItGatheredAndScattered) {
  for (int tp : {2, 4}) {
    config::RunConfig config = with_tokens_cut(small_config(tp, 2));
    MetaStep whole(config, 0);
    ASSERT_TRUE(config::set_switch(config, "tensor_parallel.overlap=pieces"));
    MetaStep step(config, 0);
    const base::Bytes A = config.tokens_per_micro_batch() * config.model.width * 2;
    const auto of = [&](OpKind kind, Phase phase, int layer) { return step.collectives(kind, "tp", phase, layer); };
    using Bytes = std::vector<base::Bytes>;
    const auto turns = [&](int linears) { return Bytes(static_cast<std::size_t>(linears * (tp - 1)), A / tp); };
    for (const program::Op& op : step.program().ops) EXPECT_STRNE(op.desc.name, program::pause_name) << "a shift needs none";
    for (int layer = 0; layer < config.model.layers; ++layer) {
      for (Phase phase : {Phase::forward, Phase::backward}) {
        EXPECT_EQ(of(OpKind::shift, phase, layer), turns(4));
        EXPECT_EQ(of(OpKind::reduce_scatter, phase, layer), Bytes{});
      }
      EXPECT_EQ(of(OpKind::all_gather, Phase::forward, layer), Bytes{});
      EXPECT_EQ(of(OpKind::all_gather, Phase::backward, layer), (Bytes{A, A}));   // x of up, x of qkv
    }
    EXPECT_EQ(of(OpKind::shift, Phase::forward, -1), turns(1));   // the head
    EXPECT_EQ(of(OpKind::shift, Phase::backward, -1), turns(1));
    EXPECT_EQ(of(OpKind::reduce_scatter, Phase::forward, -1), (Bytes{A}));   // the embedding
    EXPECT_EQ(of(OpKind::all_gather, Phase::backward, -1), (Bytes{A, A}));   // its gradient, and x of the head
    // Flops are the same, but for the sums; of forward and input gradients there are t matmuls for one
    const int linears = 4 * config.model.layers + 1;
    const auto count = [](MetaStep& of, std::string_view name, std::int64_t* flops = nullptr) {
      int found = 0;
      for (const program::Op& op : of.program().ops) {
        if (op.desc.name != name) continue;
        ++found;
        if (flops != nullptr) *flops += op.desc.flop_count;
      }
      return found;
    };
    for (const char* name : {"linear_forward", "linear_input_gradient"}) {
      std::int64_t before = 0, after = 0;
      EXPECT_EQ(count(step, name, &after), tp * count(whole, name, &before)) << name;
      EXPECT_EQ(after, before) << name;
    }
    EXPECT_EQ(count(step, "linear_weight_gradient"), count(whole, "linear_weight_gradient"));
    EXPECT_EQ(count(step, "sum_parts"), linears);          // each linear scatters one way
    EXPECT_EQ(count(step, "copy") - count(whole, "copy"), 2 * config.model.layers);   // my rows of dy, of row-parallel ones
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

// ---- In a step ---------------------------------------------------------------------------------

struct Count {
  int gathers = 0, scatters = 0, all_reduces = 0;
  bool operator==(const Count&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Count& count) {
  return out << count.gathers << " all-gathers, " << count.scatters << " reduce-scatters, " << count.all_reduces << " all-reduces";
}

// Collectives of one step over all axes but tp, or over tp; not those of the norm. `bytes`: of them all.
Count count_of(const config::RunConfig& config, bool over_tp = false, base::Bytes* bytes = nullptr) {
  MetaStep step(config, 0);
  Count count;
  for (const program::Op& op : step.program().ops) {
    if (op.desc.collective.group == program::no_group || op.key.phase == Phase::reduce) continue;
    const std::string& axis = step.catalogue().groups[op.desc.collective.group].axis;
    if ((axis == "tp") != over_tp) continue;
    if (bytes != nullptr) *bytes += op.desc.collective.bytes;
    count.gathers += op.desc.kind == OpKind::all_gather;
    count.scatters += op.desc.kind == OpKind::reduce_scatter;
    count.all_reduces += op.desc.kind == OpKind::all_reduce;
  }
  return count;
}

// Rajbhandari et al. 2020, table 1, for C = L + 1 units (L blocks and a tied root) and two micro-batches.
TEST(Counts, OfEachStageOfZero) {
  for (int layers : {2, 5}) {
    const int units = layers + 1;
    config::RunConfig config = small_config(1, 4);
    config.model.layers = layers;
    config.micro_batches = 2;

    config::RunConfig zero_3 = config;
    // The root stays whole: it is gathered once. Each block is gathered for forward and for backward.
    EXPECT_EQ(count_of(zero_3), (Count{4 * layers + 1, 2 * units, 0}));

    config::RunConfig zero_2 = config;
    zero_2.reshard = false;
    EXPECT_EQ(count_of(zero_2), (Count{units, 2 * units, 0}));

    config::RunConfig zero_1 = zero_2;
    ASSERT_TRUE(config::set_switch(zero_1, "accumulate.reduce=last"));
    EXPECT_EQ(count_of(zero_1), (Count{units, units, 0}));
  }
}

TEST(Counts, OfDataParallel) {
  config::RunConfig config = small_config(1, 1, 4);
  config.model.layers = 5;
  config.micro_batches = 2;
  // A bucket of 25 MiB holds all of this small model
  EXPECT_EQ(count_of(config), (Count{0, 0, 1}));
  ASSERT_TRUE(config::set_switch(config, "data_parallel.reduce=flat"));
  EXPECT_EQ(count_of(config), (Count{0, 0, 1}));
  // A block has twelve parameters; the root two tables and the last norm's two
  ASSERT_TRUE(config::set_switch(config, "data_parallel.reduce=naive"));
  EXPECT_EQ(count_of(config), (Count{0, 0, 5 * 12 + 4}));
}

// Megatron's tensor parallelism, without and with sequence parallelism, of L blocks: f and g of each, of the embedding and
// of the head. Two all-reduces a micro-batch are of the loss, 4 N and 8 N bytes.
TEST(Counts, OfTensorAndSequenceParallelism) {
  for (int layers : {2, 5}) {
    for (int micro_batches : {1, 2}) {
      config::RunConfig config = small_config(4, 1);
      config.model.layers = layers;
      config.micro_batches = micro_batches;
      const base::Bytes N = config.tokens_per_micro_batch(), D = config.model.width, S = config.model.sequence, A = 2 * N * D;
      base::Bytes bytes = 0;
      EXPECT_EQ(count_of(config, true, &bytes), (Count{0, 0, micro_batches * (4 * layers + 4)}));
      EXPECT_EQ(bytes, micro_batches * ((4 * layers + 2) * A + 12 * N));

      // Of an all-reduce each becomes a gather and a scatter of as many bytes, and 2 L + 1 inputs are gathered once more. A
      // block sums the gradients of six rows of D over tp, the root those of positions and of the last norm
      ASSERT_TRUE(config::set_switch(config, "tensor_parallel.sequence=cut"));
      bytes = 0;
      EXPECT_EQ(count_of(config, true, &bytes), (Count{micro_batches * (6 * layers + 3), micro_batches * (4 * layers + 2), micro_batches * (layers + 2 + 2)}));
      EXPECT_EQ(bytes, micro_batches * ((10 * layers + 5) * A + 12 * N + 4 * (6 * layers * D + S * D + 2 * D)));
    }
  }
}

TEST(Counts, OfHybridSharding) {
  config::RunConfig config = small_config(1, 2, 2);
  config.micro_batches = 2;
  // Shards are summed over replicas once, after the last micro-batch
  EXPECT_EQ(count_of(config), (Count{4 * 2 + 1, 2 * 3, 1}));
}

}  // namespace
}  // namespace shardbook::tests
