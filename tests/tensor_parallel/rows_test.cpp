// With tokens cut, and with rows that cross in turns, each linear still equals its unsharded twin bit for bit.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/kernels/residual.hpp"
#include "engine/tensor_parallel/overlap.hpp"
#include "tests/tensor_parallel/exact.hpp"

namespace shardbook::tests {
namespace {

// One linear of either kind against the dense one, with rows cut: of what is not cut over ranks each has the rows of its tokens.
void compare_linear_of_rows(Bench& bench, const model::ModelSpec& of_rows, const model::LinearConfig& config, bool cuts_inputs) {
  const auto [whole, part, outputs, in_columns, out_columns] = LinearPair(bench, of_rows, config);
  const std::int64_t R = bench.rows_ctx.rows().size();

  // Whole
  const Tensor x = bench.integers({N, config.inputs}, "x", 1), dy = bench.integers({N, outputs}, "dy", 2);
  const Tensor y = bench.make({N, outputs}, "y"), dx = bench.make({N, config.inputs}, "dx");
  whole->forward(bench.ctx, x, y);
  whole->input_gradient(bench.ctx, dy, dx);
  whole->weight_gradient(bench.ctx, x, dy);

  // Cut
  const Tensor my_x = cuts_inputs ? pick_columns(bench, x, in_columns, "my_x") : pick_rows(bench, x);
  const Tensor my_dy = cuts_inputs ? pick_rows(bench, dy) : pick_columns(bench, dy, out_columns, "my_dy");
  const Tensor my_y = bench.make({cuts_inputs ? R : N, part->outputs()}, "my_y"), my_dx = bench.make({cuts_inputs ? N : R, part->inputs()}, "my_dx");
  part->allocate(bench.rows_ctx);
  part->forward(bench.rows_ctx, my_x, my_y);
  bench.rank.device.synchronize();   // in a model an exchange stands between them
  part->begin_backward(bench.rows_ctx, my_x);
  part->input_gradient(bench.rows_ctx, my_dy, my_dx);
  part->weight_gradient(bench.rows_ctx, my_x, my_dy);
  part->await_input_gradient(bench.rows_ctx);
  sum_partial_gradients(bench, part->parameters());

  expect_equal(my_y, cuts_inputs ? pick_rows(bench, y) : pick_columns(bench, y, out_columns, "picked_y"), "y");
  expect_equal(my_dx, cuts_inputs ? pick_columns(bench, dx, in_columns, "picked_dx") : pick_rows(bench, dx), "dx");
  expect_gradients(part->parameters(), whole->parameters());
}

TEST_P(TensorParallel, OfRowsAColumnParallelLinearGathersThemAndScattersTheirGradient) {
  run([](Bench& bench) { compare_linear_of_rows(bench, bench.of_rows, {"qkv", model::LinearRole::qkv, D, {D, D, D}}, false); });
}

TEST_P(TensorParallel, OfRowsARowParallelLinearScattersItsSumAndGathersItsGradient) {
  run([](Bench& bench) { compare_linear_of_rows(bench, bench.of_rows, {"down", model::LinearRole::down, 2 * D, {D}, true, true}, true); });
}

TEST_P(TensorParallel, OfRowsAColumnParallelLinearIsTheSameWithItsSumFirst) {
  run([](Bench& bench) { compare_linear_of_rows(bench, bench.of_rows_sum_first, {"qkv", model::LinearRole::qkv, D, {D, D, D}}, false); });
}

TEST_P(TensorParallel, InTurnsAColumnParallelLinearIsTheSame) {
  run([](Bench& bench) {
    compare_linear_of_rows(bench, bench.in_turns, {"qkv", model::LinearRole::qkv, D, {D, D, D}}, false);
    compare_linear_of_rows(bench, bench.in_turns, {"head", model::LinearRole::head, D, {V}, false}, false);
  });
}

TEST_P(TensorParallel, InTurnsARowParallelLinearIsTheSame) {
  run([](Bench& bench) { compare_linear_of_rows(bench, bench.in_turns, {"down", model::LinearRole::down, 2 * D, {D}, true, true}, true); });
}

// Numbers of any kind: what crosses in turns is added in the order of ranks, as the host's reduce-scatter adds it, so that both
// have the same bits, on every rank and in any order of the queues.
TEST_P(TensorParallel, InTurnsSumsAreAddedInTheOrderOfRanks) {
  run([](Bench& bench) {
    if (bench.ranks() == 1) return;
    const tensor_parallel::TensorParallelGroup group{*bench.group, bench.stream};
    const std::int64_t R = bench.rows_ctx.rows().size();
    tensor_parallel::AllRows all;
    all.allocate(bench.rows_ctx, D, bench.ranks());
    const Tensor summands = filled(bench.rank.device, {N, D}, "summands", [&](std::int64_t at) { return std::sin(static_cast<double>(at * 7 + bench.me() * 1001)); });
    const Tensor scattered = bench.make({R, D}, "scattered"), added = bench.make({R, D}, "added");
    tensor_parallel::SumInTurns sum(bench.rank.device, group, "sum");
    std::vector<int> order;
    sum.start(bench.rows_ctx, all, [&](int rank, const Tensor& summand_RD) {
      order.push_back(rank);
      kernels::add_bias_residual(bench.compute, summands.rows(rank * R, (rank + 1) * R), filled(bench.rank.device, {R, D}, "zeros", [](std::int64_t) { return 0.0; }), {}, summand_RD);
    });
    sum.finish(bench.rows_ctx, all, added);
    bench.rank.device.synchronize();
    bench.group->reduce_scatter(bench.stream, summands, scattered);
    bench.rank.device.synchronize();
    expect_equal(added, scattered, "sum");
    // The next rank's rows first, mine last
    for (std::size_t turn = 0; turn < order.size(); ++turn) EXPECT_EQ(order[turn], (bench.me() + static_cast<int>(turn) + 1) % bench.ranks());
  });
}

}  // namespace
}  // namespace shardbook::tests
