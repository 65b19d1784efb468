// Layers beside their unsharded twins, on inputs whose sums are exact.
#pragma once

#include <gtest/gtest.h>

#include "engine/model/spec.hpp"
#include "engine/tensor_parallel/spec.hpp"
#include "tests/support/parameters.hpp"

namespace shardbook::tests {

using base::DType;
using tensor::Tensor;

constexpr std::int64_t N = 12, D = 12, H = 4, K = 3, V = 16, S = 6, B = 2;   // a part of four is half a sequence

// One rank with a dense layer and its parallel twin, side by side.
struct Bench {
  HostRank& rank;
  device::Stream& compute;
  device::Stream& stream;
  std::unique_ptr<comm::Communicator> group;
  model::ModelSpec dense, parallel, of_rows, in_turns;   // of_rows: parallel, with tokens cut; in_turns: and rows that cross while others are multiplied
  model::ModelSpec sum_first, of_rows_sum_first;         // parallel and of_rows, with the sums of dx before the weight gradients
  model::Context ctx, rows_ctx;

  explicit Bench(HostRank& host)
      : rank(host), compute(host.device.create_stream("compute")), stream(host.device.create_stream("tp")),
        group(host.backend.communicator_or_alone(host.device, host.everyone("tp"))), dense(model::dense_spec()),
        parallel(tensor_parallel::parallel_spec(dense, host.device, {*group, stream})),
        of_rows(tensor_parallel::parallel_spec(dense, host.device, {*group, stream}, {.cut_tokens = true})),
        in_turns(tensor_parallel::parallel_spec(dense, host.device, {*group, stream}, {.cut_tokens = true, .in_turns = true})),
        sum_first(tensor_parallel::parallel_spec(dense, host.device, {*group, stream}, {.input_gradient_sum = tensor_parallel::InputGradientSum::first})),
        of_rows_sum_first(tensor_parallel::parallel_spec(dense, host.device, {*group, stream}, {.input_gradient_sum = tensor_parallel::InputGradientSum::first, .cut_tokens = true})),
        ctx{host.device, compute, {B, S}, DType::bf16,
            tensor::allocate(host.device, {65536}, DType::f32, program::MemoryKind::workspace, "scratch")},
        rows_ctx(ctx) {
    rows_ctx.cut = of_rows.cut;
  }

  int ranks() const { return rank.world.size(); }
  int me() const { return rank.world.rank(); }
  Tensor make(base::Shape shape, const std::string& name) {
    return tensor::allocate(rank.device, shape, DType::bf16, program::MemoryKind::activation, name);
  }
  Tensor integers(base::Shape shape, const std::string& name, std::uint64_t seed) {
    return filled(rank.device, shape, name, [seed](std::int64_t at) { return small_integer(seed * 1000 + static_cast<std::uint64_t>(at)); });
  }
};

// This rank's columns of a matrix whose columns come in sections, each cut over ranks.
inline std::vector<std::int64_t> my_columns(const std::vector<std::int64_t>& sections, int ranks, int me) {
  std::vector<std::int64_t> columns;
  std::int64_t begin = 0;
  for (std::int64_t section : sections) {
    const shard::Interval part = shard::part_of(section, ranks, me);
    for (std::int64_t column = part.begin; column < part.end; ++column) columns.push_back(begin + column);
    begin += section;
  }
  return columns;
}

inline Tensor pick_columns(Bench& bench, const Tensor& whole, const std::vector<std::int64_t>& columns, const std::string& name) {
  const std::int64_t rows = whole.shape[0], width = whole.shape[1], part = static_cast<std::int64_t>(columns.size());
  return filled(bench.rank.device, {rows, part}, name, [&](std::int64_t at) {
    return get(whole, at / part * width + columns[static_cast<std::size_t>(at % part)]);
  });
}

// This rank's rows of a matrix.
inline Tensor pick_rows(Bench& bench, const Tensor& whole) {
  const shard::Interval rows = bench.rows_ctx.rows();
  return whole.rows(rows.begin, rows.end);
}

inline void expect_equal(const Tensor& found, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(found.elements(), expected.elements()) << what;
  for (std::int64_t at = 0; at < found.elements(); ++at) ASSERT_EQ(get(found, at), get(expected, at)) << what << " at " << at;
}

// Each parameter's gradient is the whole one's, at its place.
inline void expect_gradients(const std::vector<model::Parameter*>& parts, const std::vector<model::Parameter*>& wholes) {
  ASSERT_EQ(parts.size(), wholes.size());
  for (std::size_t parameter = 0; parameter < parts.size(); ++parameter) {
    std::int64_t at = 0;
    for (const shard::Box& box : parts[parameter]->boxes) {
      const shard::TensorShard place{parts[parameter]->name, parts[parameter]->global_shape, box};
      for (std::int64_t local = 0; local < box.elements(); ++local, ++at) {
        ASSERT_EQ(get(parts[parameter]->gradient, at), get(wholes[parameter]->gradient, place.global_element(local)))
            << parts[parameter]->name << " element " << at;
      }
    }
  }
}

class TensorParallel : public testing::TestWithParam<std::tuple<int, std::uint64_t>> {
 protected:
  void run(const std::function<void(Bench&)>& body) {
    EXPECT_EQ(on_host_ranks(std::get<0>(GetParam()), [&](HostRank& rank) {
                Bench bench(rank);
                body(bench);
              }, std::get<1>(GetParam())), "");
  }
};

// What tp ranks hold alike has summands for gradients where each sees its rows alone.
inline void sum_partial_gradients(Bench& bench, const std::vector<model::Parameter*>& parameters) {
  bench.rank.device.synchronize();
  for (model::Parameter* parameter : parameters) {
    if (shard::along(parameter->placement, "tp").gradient == shard::Held::summand) bench.group->all_reduce(bench.stream, parameter->gradient, parameter->gradient);
  }
  bench.rank.device.synchronize();
}

// A linear of `cut` beside the dense one, both with the same whole numbers for weights, and the columns of inputs and outputs that
// this rank has where they are cut.
struct LinearPair {
  std::unique_ptr<model::Linear> whole, part;
  std::int64_t outputs = 0;
  std::vector<std::int64_t> in_columns, out_columns;

  LinearPair(Bench& bench, const model::ModelSpec& cut, const model::LinearConfig& config)
      : whole(bench.dense.linear(config)), part(cut.linear(config)), in_columns(my_columns({config.inputs}, bench.ranks(), bench.me())),
        out_columns(my_columns(config.sections, bench.ranks(), bench.me())) {
    provide(bench.rank.device, whole->parameters(), integer_weight);
    provide(bench.rank.device, part->parameters(), integer_weight);
    for (std::int64_t section : config.sections) outputs += section;
  }
};

}  // namespace shardbook::tests
