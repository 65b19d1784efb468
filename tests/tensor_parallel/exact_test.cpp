// Each sharded layer equals its unsharded twin bit for bit, on inputs whose sums are exact.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "engine/data/sort_by_token.hpp"
#include "engine/model/dropout.hpp"
#include "tests/tensor_parallel/exact.hpp"

namespace shardbook::tests {
namespace {

// One linear of either kind against the dense one.
void compare_linear(Bench& bench, const model::ModelSpec& parallel, model::LinearConfig config, bool cuts_inputs) {
  const auto [whole, part, outputs, in_columns, out_columns] = LinearPair(bench, parallel, config);

  // Whole
  const Tensor x = bench.integers({N, config.inputs}, "x", 1), dy = bench.integers({N, outputs}, "dy", 2);
  const Tensor y = bench.make({N, outputs}, "y"), dx = bench.make({N, config.inputs}, "dx");
  whole->forward(bench.ctx, x, y);
  whole->input_gradient(bench.ctx, dy, dx);
  whole->weight_gradient(bench.ctx, x, dy);

  // Cut
  const Tensor my_x = cuts_inputs ? pick_columns(bench, x, in_columns, "my_x") : x;
  const Tensor my_dy = cuts_inputs ? dy : pick_columns(bench, dy, out_columns, "my_dy");
  const Tensor my_y = bench.make({N, part->outputs()}, "my_y"), my_dx = bench.make({N, part->inputs()}, "my_dx");
  part->forward(bench.ctx, my_x, my_y);
  part->input_gradient(bench.ctx, my_dy, my_dx);
  part->weight_gradient(bench.ctx, my_x, my_dy);
  part->await_input_gradient(bench.ctx);
  bench.rank.device.synchronize();

  expect_equal(my_y, cuts_inputs ? y : pick_columns(bench, y, out_columns, "picked_y"), "y");
  expect_equal(my_dx, cuts_inputs ? pick_columns(bench, dx, in_columns, "picked_dx") : dx, "dx");
  expect_gradients(part->parameters(), whole->parameters());
}

TEST_P(TensorParallel, AColumnParallelLinearIsTheDenseOneCutInItsOutputs) {
  run([](Bench& bench) { compare_linear(bench, bench.parallel, {"up", model::LinearRole::up, D, {2 * D}}, false); });
}

TEST_P(TensorParallel, AProjectionOfThreeSectionsIsCutInEachOfThem) {
  run([](Bench& bench) { compare_linear(bench, bench.parallel, {"qkv", model::LinearRole::qkv, D, {D, D, D}}, false); });
}

TEST_P(TensorParallel, AColumnParallelLinearIsTheSameWithItsSumFirst) {
  run([](Bench& bench) {
    compare_linear(bench, bench.sum_first, {"qkv", model::LinearRole::qkv, D, {D, D, D}}, false);
    compare_linear(bench, bench.sum_first, {"head", model::LinearRole::head, D, {V}, false}, false);
  });
}

TEST_P(TensorParallel, ARowParallelLinearIsTheDenseOneCutInItsInputs) {
  run([](Bench& bench) { compare_linear(bench, bench.parallel, {"down", model::LinearRole::down, 2 * D, {D}, true, true}, true); });
}

// GELU of a summand is no summand of GELU: y of a row-parallel linear and dx of a column-parallel one are still to be summed.
TEST_P(TensorParallel, ALinearDoesNothingBesideWithWhatIsStillToBeSummed) {
  run([](Bench& bench) {
    const auto up = bench.parallel.linear({"up", model::LinearRole::up, D, {2 * D}});
    const auto down = bench.parallel.linear({"down", model::LinearRole::down, 2 * D, {D}, true, true});
    const Tensor x = bench.integers({N, D}, "x", 1), wide = bench.make({N, up->outputs()}, "wide");
    EXPECT_THROW(down->forward(bench.ctx, wide, x, {kernels::Beside::gelu, x}), base::Failure);
    EXPECT_THROW(up->input_gradient(bench.ctx, wide, x, {kernels::Beside::gelu_slope, x}), base::Failure);
  });
}

TEST_P(TensorParallel, TheHeadIsCutInTheVocabulary) {
  run([](Bench& bench) { compare_linear(bench, bench.parallel, {"head", model::LinearRole::head, D, {V}, false}, false); });
}

// What the projection would have written where this attention wants it.
Tensor projected(const model::Attention& attention, const model::Kept& kept, const Tensor& qkv) {
  const Tensor place = attention.qkv_NE(kept, qkv);
  for (std::int64_t at = 0; at < qkv.elements(); ++at) set(place, at, get(qkv, at));
  return place;
}

void compare_attention(Bench& bench, const model::ModelSpec& dense, std::int64_t key_value_heads) {
  const model::ModelSpec parallel = tensor_parallel::parallel_spec(dense, bench.rank.device, {*bench.group, bench.stream});
  constexpr std::int64_t all = 2 * H, dim = 2;
  const auto whole = dense.attention({all, key_value_heads, dim});
  const auto part = parallel.attention({all, key_value_heads, dim});
  whole->allocate_workspace(bench.ctx);
  part->allocate_workspace(bench.ctx);
  model::Kept whole_kept = whole->keep(bench.ctx, "whole"), part_kept = part->keep(bench.ctx, "part");
  const std::int64_t keys = key_value_heads * dim;
  const auto qkv_columns = my_columns({all * dim, keys, keys}, bench.ranks(), bench.me());
  const auto out_columns = my_columns({all * dim}, bench.ranks(), bench.me());

  // Heads that share no keys do not meet in any sum, so any numbers will do.
  auto real = [](std::int64_t at) { return std::sin(static_cast<double>(at)); };
  const Tensor qkv = filled(bench.rank.device, {N, all * dim + 2 * keys}, "qkv", real), dout = filled(bench.rank.device, {N, all * dim}, "dout", real);
  const Tensor my_qkv = pick_columns(bench, qkv, qkv_columns, "my_qkv"), my_dout = pick_columns(bench, dout, out_columns, "my_dout");
  const Tensor out = bench.make({N, all * dim}, "out"), dqkv = bench.make(qkv.shape, "dqkv");
  whole->forward(bench.ctx, projected(*whole, whole_kept, qkv), out, whole_kept);
  whole->backward(bench.ctx, dout, out, dqkv, whole_kept);

  const Tensor my_out = bench.make(my_dout.shape, "my_out"), my_dqkv = bench.make(my_qkv.shape, "my_dqkv");
  part->forward(bench.ctx, projected(*part, part_kept, my_qkv), my_out, part_kept);
  part->backward(bench.ctx, my_dout, my_out, my_dqkv, part_kept);
  bench.rank.device.synchronize();
  expect_equal(my_out, pick_columns(bench, out, out_columns, "picked_out"), "out");
  expect_equal(my_dqkv, pick_columns(bench, dqkv, qkv_columns, "picked_dqkv"), "dqkv");
}

TEST_P(TensorParallel, HeadsOfAttentionAreThoseOfTheWholeLayer) {
  run([](Bench& bench) { compare_attention(bench, bench.dense, 2 * H); });
}

TEST_P(TensorParallel, HeadsThatShareKeysAreThoseOfTheWholeLayer) {
  run([](Bench& bench) { compare_attention(bench, bench.dense, H); });
}

TEST_P(TensorParallel, HeadsOfFlashAttentionAreThoseOfTheWholeLayer) {
  run([](Bench& bench) {
    compare_attention(bench, model::with_flash_attention(bench.dense), 2 * H);
    compare_attention(bench, model::with_flash_attention(bench.dense), H);
  });
}

TEST_P(TensorParallel, HeadsWithRotaryPositionsAreThoseOfTheWholeLayer) {
  run([](Bench& bench) {
    compare_attention(bench, model::with_llama_pieces(bench.dense, 10000), H);
    compare_attention(bench, model::with_llama_pieces(model::with_flash_attention(bench.dense), 10000), H);
    compare_attention(bench, model::with_llama_pieces(model::with_cudnn_attention(bench.dense), 10000), H);
  });
}

// Masks are those of the whole layer: no head of any rank differs in a bit.
TEST_P(TensorParallel, HeadsThatDropProbabilitiesAreThoseOfTheWholeLayer) {
  run([](Bench& bench) {
    bench.ctx.draw = {5, 3, 1000};
    const model::DropoutRates rates{0, 0.3};
    compare_attention(bench, model::with_dropout(bench.dense, rates), 2 * H);
    compare_attention(bench, model::with_dropout(model::with_recomputed_attention(bench.dense), rates), H);
    compare_attention(bench, model::with_llama_pieces(model::with_dropout(bench.dense, rates), 10000), H);
  });
}

// What is whole on each rank is dropped alike, and of rows that are cut each rank drops those of its tokens.
TEST_P(TensorParallel, RowsAreDroppedByTheirTokensWhetherTheyAreCutOrNot) {
  run([](Bench& bench) {
    bench.ctx.draw = bench.rows_ctx.draw = {5, 3, 1000};
    const model::ModelSpec spec = model::with_dropout(bench.dense, {0.3, 0});
    const auto residual = spec.residual("here");
    const auto embedded = spec.embedded("there");
    const Tensor x = bench.integers({N, D}, "x", 1), branch = bench.integers({N, D}, "branch", 2), dy = bench.integers({N, D}, "dy", 3);
    const Tensor bias = bench.integers({D}, "bias", 4);
    const auto through = [&](model::Context& ctx, const Tensor& x_RD, const Tensor& branch_RD, const Tensor& dy_RD) {
      const Tensor out = bench.make(x_RD.shape, "out"), into = bench.make(x_RD.shape, "into");
      residual->forward(ctx, x_RD, branch_RD, bias, out);
      embedded->forward(ctx, out);
      const Tensor dbranch = residual->backward(ctx, dy_RD, into);
      embedded->backward(ctx, dbranch);
      return std::pair(out, dbranch);
    };
    const auto [y, dx] = through(bench.ctx, x, branch, dy);
    const auto [my_y, my_dx] = through(bench.rows_ctx, pick_rows(bench, x), pick_rows(bench, branch), pick_rows(bench, dy));
    bench.rank.device.synchronize();
    expect_equal(my_y, pick_rows(bench, y), "y");
    expect_equal(my_dx, pick_rows(bench, dx), "dx");
    int dropped = 0;
    for (std::int64_t at = 0; at < dx.elements(); ++at) dropped += get(dx, at) == 0 && get(dy, at) != 0;
    EXPECT_GT(dropped, 0);
  });
}

// Tokens on the device, with their order for the rows that are here.
model::Batch batch_of(Bench& bench, shard::Interval rows) {
  std::vector<std::int32_t> token(N), order(N), segment(static_cast<std::size_t>(rows.size())), begin(static_cast<std::size_t>(rows.size()) + 1);
  for (std::size_t at = 0; at < token.size(); ++at) token[at] = static_cast<std::int32_t>((at * 5 + 3) % static_cast<std::size_t>(V - 1));
  token.back() = token.front();
  const int segments = data::sort_by_token(token, static_cast<int>(rows.begin), static_cast<int>(rows.end), order, segment, begin);
  auto put = [&](const std::vector<std::int32_t>& values, std::size_t count, const std::string& name) {
    return filled(bench.rank.device, {static_cast<std::int64_t>(count)}, name, [&](std::int64_t at) { return values[static_cast<std::size_t>(at)]; }, DType::i32);
  };
  model::Batch batch;
  batch.token_N = put(token, N, "token");
  batch.target_N = put(token, N, "target");
  const std::size_t most = std::min<std::size_t>(N, segment.size());
  batch.segments = {put(order, N, "order"), put(segment, most, "segment"), put(begin, most + 1, "begin"), put({segments}, 1, "segments")};
  return batch;
}

TEST_P(TensorParallel, AnEmbeddingCutInTheVocabularyLooksUpTheSameRows) {
  run([](Bench& bench) {
    const auto whole = bench.dense.embedding("token", V, D);
    const auto part = bench.parallel.embedding("token", V, D);
    auto real = [](const std::string&, std::int64_t row, std::int64_t column) { return std::sin(static_cast<double>(row * 100 + column)); };
    provide(bench.rank.device, *whole->weight(), real);
    provide(bench.rank.device, *part->weight(), real);
    const model::Batch all = batch_of(bench, whole->vocabulary()), mine = batch_of(bench, part->vocabulary());
    const Tensor x = bench.make({N, D}, "x"), my_x = bench.make({N, D}, "my_x"), dx = bench.integers({N, D}, "dx", 5);
    whole->forward(bench.ctx, all, x);
    part->forward(bench.ctx, mine, my_x);
    whole->weight_gradient(bench.ctx, all, dx);
    part->weight_gradient(bench.ctx, mine, dx);
    bench.rank.device.synchronize();
    expect_equal(my_x, x, "x: one rank contributes to each row");
    expect_gradients({part->weight()}, {whole->weight()});
  });
}

TEST_P(TensorParallel, OfRowsEmbeddingsOfTokensAndPositionsAreThoseOfTheirTokens) {
  run([](Bench& bench) {
    const auto whole = bench.dense.embedding("token", V, D);
    const auto part = bench.of_rows.embedding("token", V, D);
    const auto positions = bench.dense.positions("position", S, D), my_positions = bench.of_rows.positions("position", S, D);
    const auto linear = bench.of_rows.linear({"head", model::LinearRole::head, D, {V}, false});   // allocates what they gather into
    linear->allocate(bench.rows_ctx);
    for (model::Parameter* parameter : {whole->weight(), part->weight(), positions->parameters()[0], my_positions->parameters()[0]}) {
      provide(bench.rank.device, *parameter, integer_weight);
    }
    const model::Batch all = batch_of(bench, whole->vocabulary()), mine = batch_of(bench, part->vocabulary());
    const Tensor x = bench.make({N, D}, "x"), my_x = bench.make({bench.rows_ctx.rows().size(), D}, "my_x"), dx = bench.integers({N, D}, "dx", 5);
    whole->forward(bench.ctx, all, x);
    positions->forward(bench.ctx, x);
    part->forward(bench.rows_ctx, mine, my_x);
    my_positions->forward(bench.rows_ctx, my_x);
    whole->weight_gradient(bench.ctx, all, dx);
    positions->weight_gradient(bench.ctx, dx);
    part->weight_gradient(bench.rows_ctx, mine, pick_rows(bench, dx));
    my_positions->weight_gradient(bench.rows_ctx, pick_rows(bench, dx));
    if (bench.ranks() > 1) sum_partial_gradients(bench, my_positions->parameters());
    bench.rank.device.synchronize();
    expect_equal(my_x, pick_rows(bench, x), "x");
    expect_gradients({part->weight()}, {whole->weight()});
    expect_gradients(my_positions->parameters(), positions->parameters());
  });
}

TEST_P(TensorParallel, CrossEntropyOfEqualLogitsIsTheWholeOnes) {
  run([](Bench& bench) {
    const auto whole = bench.dense.loss(V);
    const auto part = bench.parallel.loss(V);
    whole->allocate(bench.ctx, N);
    part->allocate(bench.ctx, N);
    const model::Batch batch = batch_of(bench, {0, V});
    const auto columns = my_columns({V}, bench.ranks(), bench.me());
    const Tensor logit = filled(bench.rank.device, {N, V}, "logit", [](std::int64_t) { return 2.0; });
    const Tensor my_logit = pick_columns(bench, logit, columns, "my_logit");
    const Tensor loss = filled(bench.rank.device, {2}, "loss", [](std::int64_t) { return 0.0; }, DType::f32);
    whole->forward_backward(bench.ctx, logit, batch, 0.25f, loss.slice(0, {1}), false);
    part->forward_backward(bench.ctx, my_logit, batch, 0.25f, loss.slice(1, {1}), false);
    bench.rank.device.synchronize();
    EXPECT_EQ(get(loss, 0), get(loss, 1));
    EXPECT_NEAR(get(loss, 0), 0.25 * N * std::log(static_cast<double>(V)), 1e-5);
    expect_equal(my_logit, pick_columns(bench, logit, columns, "picked"), "gradient of the logits");
  });
}

INSTANTIATE_TEST_SUITE_P(RanksAndDrainOrders, TensorParallel, testing::Combine(testing::Values(1, 2, 4), testing::Values(0, 7)));

// The pair is conjugate: <f'(dy), x> summed as it must be. Swapping a backward shows as a factor of the ranks.
TEST(Regions, CopyIsSummedInBackwardAndReduceInForward) {
  EXPECT_EQ(on_host_ranks(4, [](HostRank& rank) {
              Bench bench(rank);
              tensor_parallel::CopyToRegion copy(rank.device, {*bench.group, bench.stream}, "copy");
              tensor_parallel::ReduceFromRegion reduce(rank.device, {*bench.group, bench.stream}, "reduce");
              const Tensor dx = filled(rank.device, {N}, "dx", [&](std::int64_t at) { return at + 10 * bench.me(); });
              const Tensor y = filled(rank.device, {N}, "y", [&](std::int64_t at) { return at - bench.me(); });
              copy.backward(bench.ctx, dx);
              copy.await_backward(bench.ctx);
              reduce.forward(bench.ctx, y);
              rank.device.synchronize();
              for (int at = 0; at < N; ++at) {
                ASSERT_EQ(get(dx, at), 4 * at + 60);
                ASSERT_EQ(get(y, at), 4 * at - 6);
              }
            }, 3), "");
}

// With rows cut each is still the other's backward: rank r has rows r of three, and what is summed is 10 r apart.
TEST(Regions, OfRowsGatherOneWayAndScatterTheSumTheOther) {
  EXPECT_EQ(on_host_ranks(4, [](HostRank& rank) {
              Bench bench(rank);
              tensor_parallel::GatherToRegion gather(rank.device, {*bench.group, bench.stream}, "gather");
              tensor_parallel::ScatterFromRegion scatter(rank.device, {*bench.group, bench.stream}, "scatter");
              const Tensor mine = filled(rank.device, {N / 4}, "mine", [&](std::int64_t at) { return at + N / 4 * bench.me(); });
              const Tensor partial = filled(rank.device, {N}, "partial", [&](std::int64_t at) { return at + 10 * bench.me(); });
              const Tensor x = bench.make({N}, "x"), dy = bench.make({N}, "dy"), dx = bench.make({N / 4}, "dx"), y = bench.make({N / 4}, "y");
              gather.forward(bench.ctx, mine, x);
              scatter.backward(bench.ctx, mine, dy);
              gather.backward(bench.ctx, partial, dx);
              gather.await_backward(bench.ctx);
              scatter.forward(bench.ctx, partial, y);
              rank.device.synchronize();
              for (std::int64_t at = 0; at < N; ++at) {
                ASSERT_EQ(get(x, at), at);
                ASSERT_EQ(get(dy, at), at);
              }
              for (std::int64_t at = 0; at < N / 4; ++at) {
                ASSERT_EQ(get(dx, at), 4 * get(mine, at) + 60);
                ASSERT_EQ(get(y, at), 4 * get(mine, at) + 60);
              }
            }, 3), "");
}

}  // namespace
}  // namespace shardbook::tests
