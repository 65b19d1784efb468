// What ops say of themselves: every op is issued on a device without numbers, in bf16 as a GPU would
// store them, and the record is read.
#include <set>

#include "engine/device/meta/meta_device.hpp"
#include "engine/kernels/activation.hpp"
#include "engine/kernels/attention.hpp"
#include "engine/kernels/cross_entropy.hpp"
#include "engine/kernels/dropout.hpp"
#include "engine/kernels/embedding.hpp"
#include "engine/kernels/cudnn_attention.hpp"
#include "engine/kernels/gemm.hpp"
#include "engine/kernels/initialize.hpp"
#include "engine/kernels/layer_norm.hpp"
#include "engine/kernels/optimizer.hpp"
#include "engine/kernels/pause.hpp"
#include "engine/kernels/reduce.hpp"
#include "engine/kernels/residual.hpp"
#include "engine/kernels/rms_norm.hpp"
#include "engine/kernels/rotary.hpp"
#include "tests/kernels/host_bench.hpp"

namespace shardbook::kernels::testing {
namespace {

using program::OpKind;

class Record : public ::testing::Test {
 protected:
  Record() : device_(0), stream_(device_.create_stream("compute")) {}

  Tensor tensor(base::Shape shape, DType nominal) {
    return tensor::allocate(device_, shape, nominal, program::MemoryKind::activation, "tensor");
  }
  Tensor bf16(base::Shape shape) { return tensor(shape, DType::bf16); }
  Tensor f32(base::Shape shape) { return tensor(shape, DType::f32); }
  Tensor i32(base::Shape shape) { return tensor(shape, DType::i32); }

  // The ops that `issue` issues within a step.
  std::vector<program::Op> record(const std::function<void(device::Stream&)>& issue) {
    device_.begin_step(0, false);
    issue(stream_);
    device_.end_step();
    return device_.recorder().programs().back()->ops;
  }

  // One of each op.
  void issue_all(device::Stream& s) {
    const Tensor x = bf16({6, 10}), y = bf16({6, 10}), vector = bf16({10}), row = f32({10}), stat = f32({6}), one = f32({1});
    const Tensor matrix = f32({10, 10}), scratch = f32({4096}), index = i32({6}), square = bf16({2, 3, 3}), heads = bf16({2, 3, 10});
    linear_forward(s, x, bf16({10, 10}), vector, y);
    linear_input_gradient(s, y, bf16({10, 10}), x);
    linear_weight_gradient(s, y, x, matrix, true);
    layer_norm_forward(s, x, vector, vector, 1e-5f, y, stat, stat);
    layer_norm_input_gradient(s, y, x, vector, stat, stat, y, x);
    layer_norm_weight_gradient(s, y, x, stat, stat, row, row, scratch, false);
    gelu_forward(s, x, y);
    gelu_backward(s, x, y, y);
    rms_norm_forward(s, x, vector, 1e-5f, y, stat);
    rms_norm_input_gradient(s, y, x, vector, stat, y, x);
    rms_norm_weight_gradient(s, y, x, stat, row, scratch, false);
    swiglu_forward(s, bf16({6, 20}), x);
    swiglu_backward(s, bf16({6, 20}), x, bf16({6, 20}));
    rotate(s, x, 3, 2, 4, 10000, false);
    add_bias_residual(s, x, y, vector, y);
    dropout(s, "dropout_forward", x, dropout_mask(0.1, 1, 0), y);
    bias_dropout_residual(s, x, y, vector, dropout_mask(0.1, 1, 0), y);
    bias_gradient(s, y, row, scratch, true);
    accumulate(s, row, row);
    sum_parts(s, bf16({3, 6, 10}), x);
    widen(s, bf16({10}), row, true);
    embedding_forward(s, index, bf16({8, 10}), 0, x);
    embedding_backward(s, x, {index, index, i32({7}), i32({1})}, 0, f32({8, 10}), false);
    position_forward(s, bf16({3, 10}), x, 0);
    position_backward(s, x, f32({3, 10}), true, 0);
    split_heads(s, {1, 2, 1, 3, 10}, x, heads);
    merge_heads(s, {1, 2, 1, 3, 10}, heads, x);
    attention_scores(s, heads, heads, square);
    attention_context(s, square, heads, heads);
    attention_probability_gradient(s, heads, heads, square);
    attention_value_gradient(s, square, heads, heads);
    attention_query_gradient(s, square, heads, heads);
    attention_key_gradient(s, square, heads, heads);
    causal_softmax_forward(s, square, 1, square);
    causal_softmax_backward(s, square, square, 1, square);
    const GroupedHeads grouped{2, 2, 1, 3, 2};
    flash_attention_forward(s, grouped, 1, bf16({6, 8}), bf16({6, 4}), f32({12}));
    flash_attention_backward(s, grouped, 1, bf16({6, 8}), bf16({6, 4}), bf16({6, 4}), f32({12}), f32({12}), bf16({6, 8}));
    cudnn_attention_forward(s, grouped, 1, bf16({6, 8}), bf16({6, 4}), f32({12}), i32({1 << 15}));
    cudnn_attention_backward(s, grouped, 1, bf16({6, 8}), bf16({6, 4}), bf16({6, 4}), f32({12}), f32({12}), bf16({6, 8}), i32({1 << 15}));
    cross_entropy_max(s, x, stat);
    cross_entropy_sums(s, x, stat, index, 0, f32({2, 6}));
    cross_entropy_gradient(s, x, stat, f32({2, 6}), index, 0, 1, stat);
    cross_entropy(s, x, index, 1, stat);
    sum(s, stat, 1, one, false);
    sum_of_squares(s, row, 0, 0, 10, one, scratch, false);
    clip_factor(s, one, 1, one, one);
    adam_w(s, {1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f, 1}, row, one, 0, 10, row, row, row, vector);
    adam_w_on_host(s, {1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f, 1}, row, one, 0, 10, row, row, row, vector);
    accumulate_on_host(s, row, row);
    fill(s, x, 0);
    pause(s, x);
    cast(s, row, vector);
    init_normal(s, row, {0, 0, 10, 10, 0}, 1, 2, 0, 1);
  }
  static constexpr std::size_t op_count = 53;

  device::MetaDevice device_;
  device::Stream& stream_;
};

TEST_F(Record, LinearForwardSaysItsSizesFlopsAndNominalBytesAndTheLineOfItsCaller) {
  const Tensor x_NI = bf16({6, 10}), weight_OI = bf16({14, 10}), bias_O = bf16({14}), y_NO = bf16({6, 14});
  std::uint32_t line = 0;
  const auto ops = record([&](device::Stream& compute) {
    line = __LINE__ + 1;
    linear_forward(compute, x_NI, weight_OI, bias_O, y_NO);
  });
  ASSERT_EQ(ops.size(), 1u);
  const program::Op& op = ops[0];
  EXPECT_STREQ(op.desc.name, "linear_forward");
  EXPECT_EQ(op.desc.kind, OpKind::gemm);
  EXPECT_EQ(op.desc.dtype, DType::bf16);
  EXPECT_EQ(op.desc.gemm.m, 6);
  EXPECT_EQ(op.desc.gemm.n, 14);
  EXPECT_EQ(op.desc.gemm.k, 10);
  EXPECT_EQ(op.desc.gemm.batch, 1);
  EXPECT_EQ(op.desc.flop_count, 2 * 6 * 14 * 10);
  EXPECT_EQ(op.desc.bytes_read, 2 * (6 * 10 + 14 * 10 + 14));
  EXPECT_EQ(op.desc.bytes_written, 2 * 6 * 14);
  EXPECT_EQ(op.where.line, line);
  EXPECT_NE(std::string(op.where.file).find("tests/kernels/record_test.cpp"), std::string::npos);
}

TEST_F(Record, GradientsHaveTheFlopsOfTheirForward) {
  const Tensor x_NI = bf16({6, 10}), weight_OI = bf16({14, 10}), dy_NO = bf16({6, 14}), dweight_OI = f32({14, 10});
  const auto ops = record([&](device::Stream& compute) {
    linear_input_gradient(compute, dy_NO, weight_OI, x_NI);
    linear_weight_gradient(compute, dy_NO, x_NI, dweight_OI, false);
    linear_weight_gradient(compute, dy_NO, x_NI, dweight_OI, true);
  });
  for (const program::Op& op : ops) EXPECT_EQ(op.desc.flop_count, 2 * 6 * 14 * 10) << op.desc.name;
  EXPECT_EQ(ops[1].desc.bytes_written, 4 * 14 * 10) << "gradients of weights are f32";
  EXPECT_EQ(ops[2].desc.bytes_read - ops[1].desc.bytes_read, 4 * 14 * 10) << "accumulating reads them too";
}

// The same flops as by tiles; and the workspace, which backward fills and forward hardly touches.
TEST_F(Record, CudnnAttentionCountsWhatFlashAttentionDoesAndItsWorkspace) {
  const GroupedHeads heads{2, 4, 2, 10, 8};
  const Tensor qkv = bf16({20, 64}), out = bf16({20, 32}), logsumexp = f32({80}), workspace = i32({(cudnn_workspace_bytes(heads) + 3) / 4});
  const auto ops = record([&](device::Stream& s) {
    flash_attention_forward(s, heads, 1, qkv, out, logsumexp);
    flash_attention_backward(s, heads, 1, qkv, out, out, logsumexp, f32({80}), bf16({20, 64}));
    cudnn_attention_forward(s, heads, 1, qkv, out, logsumexp, workspace);
    cudnn_attention_backward(s, heads, 1, qkv, out, out, logsumexp, f32({80}), bf16({20, 64}), workspace);
  });
  for (std::size_t way : {0, 1}) {
    EXPECT_EQ(ops[way + 2].desc.flop_count, ops[way].desc.flop_count);
    EXPECT_EQ(ops[way + 2].desc.bytes_read, ops[way].desc.bytes_read);
    EXPECT_EQ(ops[way + 2].desc.bytes_written, ops[way].desc.bytes_written + (way == 0 ? 256 : cudnn_workspace_bytes(heads)));
  }
  for (const program::Op& op : ops) {
    const program::GemmSize scores = op.desc.gemm;
    EXPECT_TRUE(scores.m == 10 && scores.n == 10 && scores.k == 8 && scores.batch == 2 * 4) << op.desc.name << " says the width of its heads, by which it is timed";
  }
  EXPECT_THROW(record([&](device::Stream& s) { cudnn_attention_forward(s, heads, 1, qkv, out, logsumexp, i32({64})); }), base::Failure) << "too small a workspace";
}

TEST_F(Record, BatchedMatmulsCountEveryEntry) {
  const Tensor q_BHSK = bf16({2, 3, 5, 4}), k_BHSK = bf16({2, 3, 5, 4}), score_BHSS = bf16({2, 3, 5, 5});
  const auto ops = record([&](device::Stream& compute) { attention_scores(compute, q_BHSK, k_BHSK, score_BHSS); });
  EXPECT_EQ(ops.at(0).desc.gemm.batch, 6);
  EXPECT_EQ(ops.at(0).desc.flop_count, 2 * 6 * 5 * 5 * 4);
}

TEST_F(Record, FlashAttentionCountsThePairsThatTheMaskLeavesAndNoSquareOfBytes) {
  const GroupedHeads heads{2, 4, 2, 10, 8};  // 10 · 11 / 2 pairs a head and sequence
  const Tensor qkv = bf16({20, 64}), out = bf16({20, 32}), logsumexp = f32({80});
  const auto ops = record([&](device::Stream& s) {
    flash_attention_forward(s, heads, 1, qkv, out, logsumexp);
    flash_attention_backward(s, heads, 1, qkv, out, out, logsumexp, f32({80}), bf16({20, 64}));
  });
  const std::int64_t product = 2 * (2 * 4 * 55) * 8;
  EXPECT_EQ(ops[0].desc.flop_count, 2 * product);
  EXPECT_EQ(ops[1].desc.flop_count, 5 * product);
  EXPECT_EQ(ops[0].desc.bytes_read, 20 * 64 * 2);
  EXPECT_EQ(ops[0].desc.bytes_written, 20 * 32 * 2 + 80 * 4);
  EXPECT_EQ(ops[1].desc.bytes_read, 20 * (64 + 32 + 32) * 2 + 80 * 4);
  EXPECT_EQ(ops[1].desc.bytes_written, 20 * 64 * 2 + 80 * 4);
}

TEST_F(Record, TheLossInOneMovesTheLogitsOnceEachWayAndInThreeStepsFourTimes) {
  const Tensor logit_NV = bf16({6, 1000}), target_N = i32({6}), row_max_N = f32({6}), sums_2N = f32({2, 6}), loss_N = f32({6});
  const auto ops = record([&](device::Stream& s) {
    cross_entropy(s, logit_NV, target_N, 1, loss_N);
    cross_entropy_max(s, logit_NV, row_max_N);
    cross_entropy_sums(s, logit_NV, row_max_N, target_N, 0, sums_2N);
    cross_entropy_gradient(s, logit_NV, row_max_N, sums_2N, target_N, 0, 1, loss_N);
  });
  const std::int64_t logits = 6 * 1000 * 2, flops = ops.at(1).desc.flop_count + ops.at(2).desc.flop_count + ops.at(3).desc.flop_count;
  EXPECT_EQ(ops[0].desc.bytes_read, logits + 4 * 6);
  EXPECT_EQ(ops[0].desc.bytes_written, logits + 4 * 6);
  EXPECT_EQ(ops[0].desc.flop_count, flops);
  EXPECT_EQ((ops[1].desc.bytes_read + ops[2].desc.bytes_read + ops[3].desc.bytes_read) / logits, 3);
  EXPECT_EQ(ops[3].desc.bytes_written / logits, 1);
}

TEST_F(Record, LookUpsReadTheRowsOfTheirTokensAndNotTheTable) {
  const Tensor token_N = i32({6}), weight_VD = bf16({1000, 10}), x_ND = bf16({6, 10});
  const auto ops = record([&](device::Stream& compute) { embedding_forward(compute, token_N, weight_VD, 0, x_ND); });
  EXPECT_EQ(ops.at(0).desc.kind, OpKind::lookup);
  EXPECT_EQ(ops.at(0).desc.bytes_read, 4 * 6 + 2 * 6 * 10);
  EXPECT_EQ(ops.at(0).desc.uses[1].end - ops.at(0).desc.uses[1].begin, 2 * 1000 * 10) << "any row may be read";
}

TEST_F(Record, SlicesNameTheirRangeOfTheBuffer) {
  const Tensor whole = bf16({8, 10});
  const auto ops = record([&](device::Stream& compute) { fill(compute, whole.rows(2, 5), 0); });
  const program::BufferUse use = ops.at(0).desc.uses[0];
  EXPECT_EQ(use.buffer, whole.buffer);
  EXPECT_EQ(use.begin, 2 * 10 * 2);
  EXPECT_EQ(use.end, 5 * 10 * 2);
}

TEST_F(Record, EveryOpHasItsOwnNameThatNoToolTakesForACollectiveOrASynchronisation) {
  const auto ops = record([&](device::Stream& stream) { issue_all(stream); });
  ASSERT_EQ(ops.size(), op_count);
  std::set<std::string> names;
  for (const program::Op& op : ops) {
    const std::string name = op.desc.name;
    EXPECT_TRUE(names.insert(name).second) << name << " is the name of two ops";
    EXPECT_EQ(name.find("Sync"), std::string::npos) << name;
    EXPECT_EQ(name.find("dma"), std::string::npos) << name;
    EXPECT_NE(name.rfind("nccl", 0), 0u) << name;
  }
}

TEST_F(Record, EveryOpWritesSomethingAndNamesWhatItMoves) {
  for (const program::Op& op : record([&](device::Stream& stream) { issue_all(stream); })) {
    EXPECT_NE(op.desc.written_mask, 0) << op.desc.name;
    EXPECT_GT(op.desc.bytes_written, 0) << op.desc.name;
    if (op.desc.kind != OpKind::fill) {
      EXPECT_GT(op.desc.bytes_read, 0) << op.desc.name;
    }
  }
}

TEST(RecordOfDevices, HostAndMetaIssueTheSameProgram) {
  // The host stores bf16 as f32, which the record must not show.
  device::MetaDevice meta(0);
  device::HostDevice host({DType::f32, DType::f32}, 0, 0);
  std::vector<std::uint64_t> hashes;
  for (device::Device* device : {static_cast<device::Device*>(&meta), static_cast<device::Device*>(&host)}) {
    device::Stream& compute = device->create_stream("compute");
    const Tensor input = tensor::allocate(*device, {6, 10}, DType::bf16, program::MemoryKind::activation, "input");
    const Tensor weight = tensor::allocate(*device, {4, 10}, DType::bf16, program::MemoryKind::parameter, "weight");
    const Tensor output = tensor::allocate(*device, {6, 4}, DType::bf16, program::MemoryKind::activation, "output");
    device->begin_step(0, false);
    linear_forward(compute, input, weight, Tensor{}, output);
    gelu_forward(compute, output, output);
    device->end_step();
    device->synchronize();
    hashes.push_back(device->recorder().program_hashes().back());
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

}  // namespace
}  // namespace shardbook::kernels::testing
