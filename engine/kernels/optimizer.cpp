#include "engine/kernels/optimizer.hpp"

#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/expect.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels {

using program::OpDesc;
using program::OpKind;

void sum_of_squares(Lane lane, const Tensor& gradient, std::int64_t shard_begin, std::int64_t counted_begin,
                    std::int64_t counted_end, const Tensor& total, const Tensor& scratch, bool accumulate) {
  static constexpr const char* op = "sum_of_squares";
  expect_nominal(op, "gradient", gradient, base::DType::f32);
  expect_stat(op, "total", total, 1);
  expect_nominal(op, "scratch", scratch, base::DType::f32);
  expect_at_least(op, "scratch", scratch, sum_of_squares_scratch());
  OpDesc desc(op, OpKind::reduction, gradient.nominal);
  desc.flops(2 * gradient.elements())
      .reads(gradient.use())
      .writes(scratch.use(), sum_of_squares_scratch() * base::size_of(scratch.nominal));
  if (accumulate) desc.updates(total.use());
  else desc.writes(total.use());
  const SumOfSquaresArgs args{gradient.data, total.data,  scratch.data, shard_begin,     gradient.elements(),
                              counted_begin, counted_end, accumulate,   gradient.storage};
  lane.device().launch(lane, desc, args, &host::sum_of_squares, &cuda::sum_of_squares);
}

std::int64_t sum_of_squares_scratch() { return square_blocks; }

void clip_factor(Lane lane, const Tensor& total, float clip, const Tensor& factor, const Tensor& norm) {
  static constexpr const char* op = "clip_factor";
  expect_stat(op, "total", total, 1);
  expect_stat(op, "factor", factor, 1);
  expect_stat(op, "norm", norm, 1);
  OpDesc desc(op, OpKind::pointwise, total.nominal);
  desc.flops(4).reads(total.use()).writes(factor.use()).writes(norm.use());
  const ClipFactorArgs args{total.data, factor.data, norm.data, clip, total.storage};
  lane.device().launch(lane, desc, args, &host::clip_factor, &cuda::clip_factor);
}

namespace {

// Both forms of AdamW: what they are given, and what they say of themselves.
struct Update {
  OpDesc desc;
  AdamWArgs args;
};
Update update_of(const char* op, OpKind kind, const AdamWStep& step, const Tensor& gradient, const Tensor& factor, std::int64_t shard_begin,
                 std::int64_t decay_end, const Tensor& master, const Tensor& first_moment, const Tensor& second_moment, const Tensor& parameter,
                 const Tensor& factors = {}) {
  const std::int64_t elements = master.elements();
  expect_stat(op, "gradient", gradient, elements);
  expect_stat(op, "factor", factor, 1);
  expect_stat(op, "master", master, elements);
  expect_stat(op, "first_moment", first_moment, elements);
  expect_stat(op, "second_moment", second_moment, elements);
  if (parameter.exists()) expect_elements(op, "parameter", parameter, elements);
  SHARDBOOK_CHECK(step.step >= 1, op, ": steps count from 1, and this one is ", step.step);

  const Tensor& made = parameter.exists() ? parameter : master;
  OpDesc desc(op, kind, made.nominal);
  desc.flops(15 * elements)
      .reads(gradient.use()).reads(factor.use())
      .updates(master.use()).updates(first_moment.use()).updates(second_moment.use());
  if (parameter.exists()) desc.writes(parameter.use());
  if (factors.exists()) desc.reads(factors.use());
  return {desc, {master.data,    first_moment.data, second_moment.data, gradient.data, parameter.data,
                 factor.data,    shard_begin,       elements,           decay_end,     step.learning_rate,
                 step.beta1,     step.beta2,        step.epsilon,       step.weight_decay, step.step,
                 made.storage, static_cast<const AdamWFactors*>(factors.data)}};
}

}  // namespace

void adam_w(Lane lane, const AdamWStep& step, const Tensor& gradient, const Tensor& factor, std::int64_t shard_begin,
            std::int64_t decay_end, const Tensor& master, const Tensor& first_moment, const Tensor& second_moment,
            const Tensor& parameter, const Tensor& factors) {
  const Update update = update_of("adam_w", OpKind::pointwise, step, gradient, factor, shard_begin, decay_end, master, first_moment, second_moment, parameter, factors);
  lane.device().launch(lane, update.desc, update.args, &host::adam_w, &cuda::adam_w);
}

AdamWFactors factors_of(const AdamWStep& step) {
  AdamWArgs args{};
  args.learning_rate = step.learning_rate;
  args.beta1 = step.beta1;
  args.beta2 = step.beta2;
  args.weight_decay = step.weight_decay;
  args.step = step.step;
  return host::factors_of(args);
}

void adam_w_on_host(Lane lane, const AdamWStep& step, const Tensor& gradient, const Tensor& factor, std::int64_t shard_begin,
                    std::int64_t decay_end, const Tensor& master, const Tensor& first_moment, const Tensor& second_moment,
                    const Tensor& parameter) {
  const Update update = update_of("adam_w_on_host", OpKind::host, step, gradient, factor, shard_begin, decay_end, master, first_moment, second_moment, parameter);
  lane.device().launch_on_host(lane, update.desc, AdamWOnHostArgs{update.args, master.storage}, &host::adam_w_on_host);
}

void accumulate_on_host(Lane lane, const Tensor& from, const Tensor& into) {
  static constexpr const char* op = "accumulate_on_host";
  expect_stat(op, "from", from, into.elements());
  expect_stat(op, "into", into, into.elements());
  OpDesc desc(op, OpKind::host, into.nominal);
  desc.flops(into.elements()).reads(from.use()).updates(into.use());
  lane.device().launch_on_host(lane, desc, AccumulateArgs{from.data, into.data, into.elements(), into.storage}, &host::accumulate_on_host);
}

}  // namespace shardbook::kernels
