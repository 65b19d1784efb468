#include "engine/kernels/optimizer.hpp"

#include <bit>

#include "engine/device/crew.hpp"
#include "engine/kernels/host/references.hpp"
#include "tests/kernels/host_bench.hpp"

namespace shardbook::kernels::testing {
namespace {

template <class T>
class Optimizer : public ::testing::Test {};
TYPED_TEST_SUITE(Optimizer, FloatTypes);

constexpr AdamWStep settings{1e-3f, 0.9f, 0.95f, 1e-8f, 0.1f, 1};

// A shard's state on a device.
template <class T>
struct Shard {
  Tensor master, first_moment, second_moment, parameter;
  Shard(HostBench<T>& bench, const Numbers& start)
      : master(bench.tensor({std::int64_t(start.size())}, start)),
        first_moment(bench.tensor({std::int64_t(start.size())}, Numbers(start.size(), 0))),
        second_moment(bench.tensor({std::int64_t(start.size())}, Numbers(start.size(), 0))),
        parameter(bench.tensor({std::int64_t(start.size())})) {}
};

TYPED_TEST(Optimizer, AdamWFollowsPyTorchsFormula) {
  using T = TypeParam;
  const Real u = unit<T>();
  HostBench<T> bench;
  const std::int64_t elements = 37, decay_end = 20;
  Shard<T> shard(bench, numbers(1, elements));
  const double clip = 0.5;
  const Tensor factor = bench.tensor({1}, {clip});
  for (int step = 1; step <= 3; ++step) {
    // One step at a time from the state that the op left, so that roundings do not pile up.
    const Numbers gradient = numbers(10 + step, elements), master = bench.values(shard.master);
    const Numbers first = bench.values(shard.first_moment), second = bench.values(shard.second_moment);
    AdamWStep now = settings;
    now.step = step;
    adam_w(bench.stream(), now, bench.tensor({elements}, gradient), factor, 0, decay_end, shard.master,
           shard.first_moment, shard.second_moment, shard.parameter);
    // torch/optim/adamw.py, _single_tensor_adamw: param.mul_(1 − lr·wd); exp_avg.lerp_(grad, 1 − beta1);
    // exp_avg_sq.mul_(beta2).addcmul_(grad, grad, 1 − beta2); step_size = lr / bias_correction1;
    // denom = (exp_avg_sq.sqrt() / √bias_correction2).add_(eps); param.addcdiv_(exp_avg, denom, −step_size).
    Reals masters, master_bound, firsts, first_bound, seconds, second_bound;
    for (std::int64_t i = 0; i < elements; ++i) {
      const Real g = clip * gradient[i], lr = settings.learning_rate;
      const Real param = i < decay_end ? master[i] * (1 - lr * settings.weight_decay) : Real(master[i]);
      const Real exp_avg = first[i] + (g - first[i]) * (1 - Real(settings.beta1));
      const Real exp_avg_sq = second[i] * Real(settings.beta2) + g * g * (1 - Real(settings.beta2));
      const Real step_size = lr / (1 - std::pow(Real(settings.beta1), step));
      const Real denom = std::sqrt(exp_avg_sq) / std::sqrt(1 - std::pow(Real(settings.beta2), step)) + settings.epsilon;
      firsts.push_back(exp_avg);
      first_bound.push_back(4 * u * (std::abs(first[i]) + std::abs(g)));
      seconds.push_back(exp_avg_sq);
      second_bound.push_back(5 * u * exp_avg_sq);
      masters.push_back(param - step_size * exp_avg / denom);
      master_bound.push_back(3 * u * std::abs(param) + step_size / denom * (first_bound[i] + 12 * u * std::abs(exp_avg)));
    }
    expect_within(bench.values(shard.first_moment), firsts, first_bound, "first moment");
    expect_within(bench.values(shard.second_moment), seconds, second_bound, "second moment");
    expect_within(bench.values(shard.master), masters, master_bound, "master");
    EXPECT_EQ(bench.values(shard.parameter), bench.values(shard.master));
  }
}

// Note 03: a gradient that is t times too large hides behind Adam, which divides by the gradient's size. Without its moments'
// quotient (plain descent) the step would be t times as long.
TYPED_TEST(Optimizer, AdamWMovesAsFarByFourTimesTheGradient) {
  using T = TypeParam;
  HostBench<T> bench;
  const std::int64_t elements = 24;
  const Numbers start = numbers(1, elements);
  Shard<T> once(bench, start), four_times(bench, start);
  const Tensor one = bench.tensor({1}, {1.0}), four = bench.tensor({1}, {4.0});
  for (int step = 1; step <= 3; ++step) {
    AdamWStep now = settings;
    now.step = step;
    const Tensor gradient = bench.tensor({elements}, numbers(10 + step, elements));
    adam_w(bench.stream(), now, gradient, one, 0, 0, once.master, once.first_moment, once.second_moment, once.parameter);
    adam_w(bench.stream(), now, gradient, four, 0, 0, four_times.master, four_times.first_moment, four_times.second_moment, four_times.parameter);
  }
  const Numbers a = bench.values(once.master), b = bench.values(four_times.master), moment = bench.values(once.first_moment), larger = bench.values(four_times.first_moment);
  double moved = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(b[i] - start[i], a[i] - start[i], 1e-4 * settings.learning_rate) << i;
    EXPECT_NEAR(larger[i], 4 * moment[i], 1e-6 * std::abs(larger[i]) + 1e-12);
    moved = std::max(moved, std::abs(a[i] - start[i]));
  }
  EXPECT_GT(moved, 0.5 * settings.learning_rate);
}

TYPED_TEST(Optimizer, AdamWIsTheSameBitForBitWhetherAUnitIsCutInOneOrFourShards) {
  using T = TypeParam;
  HostBench<T> bench;
  const std::int64_t elements = 44, decay_end = 17, part = 11;
  const Numbers start = numbers(1, elements);
  const Tensor factor = bench.tensor({1}, {0.75});
  Shard<T> whole(bench, start);
  std::vector<Shard<T>> parts;
  for (std::int64_t p = 0; p < 4; ++p) parts.emplace_back(bench, Numbers(start.begin() + p * part, start.begin() + (p + 1) * part));
  for (int step = 1; step <= 3; ++step) {
    AdamWStep now = settings;
    now.step = step;
    const Tensor gradient = bench.tensor({elements}, numbers(10 + step, elements));
    adam_w(bench.stream(), now, gradient, factor, 0, decay_end, whole.master, whole.first_moment, whole.second_moment,
           whole.parameter);
    for (std::int64_t p = 0; p < 4; ++p) {
      adam_w(bench.stream(), now, gradient.slice(p * part, {part}), factor, p * part, decay_end, parts[p].master,
             parts[p].first_moment, parts[p].second_moment, parts[p].parameter);
    }
  }
  Numbers joined;
  for (const Shard<T>& shard : parts) {
    const Numbers mine = bench.values(shard.parameter);
    joined.insert(joined.end(), mine.begin(), mine.end());
  }
  EXPECT_EQ(joined, bench.values(whole.parameter));
}

TYPED_TEST(Optimizer, SumOfSquaresCountsOnlyItsRangeOfTheFlatUnit) {
  HostBench<TypeParam> bench;
  const Numbers flat = integers(1, 44);
  const Tensor scratch = bench.tensor({sum_of_squares_scratch()});
  const auto expected = [&](std::int64_t begin, std::int64_t end) {
    double total = 0;
    for (std::int64_t i = begin; i < end; ++i) total += flat[i] * flat[i];
    return total;
  };
  for (const auto& [counted_begin, counted_end] : {std::pair{0, 44}, {5, 30}, {12, 13}, {20, 20}, {33, 44}}) {
    const Tensor total = bench.tensor({1});
    const Tensor gradient = bench.tensor({44}, flat);
    for (std::int64_t p = 0; p < 4; ++p) {
      sum_of_squares(bench.stream(), gradient.slice(p * 11, {11}), p * 11, counted_begin, counted_end, total, scratch, p > 0);
    }
    EXPECT_EQ(bench.value(total), expected(counted_begin, counted_end)) << counted_begin << " to " << counted_end;
  }
}

TYPED_TEST(Optimizer, SumOfSquaresRepeatsBitForBit) {
  HostBench<TypeParam> bench;
  const Tensor gradient = bench.tensor({1001}, numbers(1, 1001)), scratch = bench.tensor({sum_of_squares_scratch()});
  const Tensor first = bench.tensor({1}), second = bench.tensor({1});
  sum_of_squares(bench.stream(), gradient, 0, 0, 1001, first, scratch, false);
  sum_of_squares(bench.stream(), gradient, 0, 0, 1001, second, scratch, false);
  EXPECT_EQ(bench.value(first), bench.value(second));
}

TYPED_TEST(Optimizer, ClipFactorClipsOnlyWhatIsLongerThanAllowed) {
  using T = TypeParam;
  HostBench<T> bench;
  const auto factor_of = [&](double total, float clip) {
    const Tensor factor = bench.tensor({1}), norm = bench.tensor({1});
    clip_factor(bench.stream(), bench.tensor({1}, {total}), clip, factor, norm);
    EXPECT_EQ(bench.value(norm), std::sqrt(static_cast<T>(total)));
    return bench.value(factor);
  };
  EXPECT_EQ(factor_of(16, 2), T(2) / (T(4) + T(1e-6)));
  EXPECT_EQ(factor_of(16, 5), 1);
  EXPECT_EQ(factor_of(0, 1), 1) << "no gradient at all";
  EXPECT_EQ(factor_of(1e-30, 1), 1) << "a tiny gradient";
  EXPECT_EQ(factor_of(16, 0), 1) << "clip = 0 does not clip";
}

TEST(OptimizerShapes, StepsCountFromOne) {
  HostBench<float> bench;
  Shard<float> shard(bench, {1});
  AdamWStep zero = settings;
  zero.step = 0;
  EXPECT_THROW(adam_w(bench.stream(), zero, bench.tensor({1}), bench.tensor({1}), 0, 1, shard.master,
                      shard.first_moment, shard.second_moment, shard.parameter),
               base::Failure);
}

// The CPU's form of the update, in one piece or shared by a crew: the bits of the device's, and a copy rounded to bf16.
TEST(AdamWOnHost, GivesTheBitsOfTheOtherFormWhoeverTakesPart) {
  for (std::int64_t elements : {1, 37, 200'000}) {
    const auto size = static_cast<std::size_t>(elements);
    std::vector<float> gradient(size), start(size);
    for (std::size_t i = 0; i < size; ++i) {
      gradient[i] = static_cast<float>(std::sin(0.37 * static_cast<double>(i)) * std::exp(-12 * std::cos(static_cast<double>(i))));
      start[i] = static_cast<float>(std::cos(1.3 * static_cast<double>(i)));
    }
    const float factor = 0.37f;
    struct State {
      std::vector<float> master, first, second, copy;
      std::vector<std::uint16_t> rounded;
    };
    device::Crew crew(3);
    std::vector<State> ways(4);
    for (std::size_t way = 0; way < ways.size(); ++way) {
      State& state = ways[way];
      state = {start, std::vector<float>(size), std::vector<float>(size), std::vector<float>(size), std::vector<std::uint16_t>(size)};
      for (std::int64_t step = 1; step <= 3; ++step) {
        AdamWArgs args{state.master.data(), state.first.data(), state.second.data(), gradient.data(), state.copy.data(), &factor, 5, elements, 5 + elements / 2,
                       settings.learning_rate, settings.beta1, settings.beta2, settings.epsilon, settings.weight_decay, step, base::DType::f32};
        if (way == 0) host::adam_w(args);
        if (way == 1) host::adam_w_on_host({args, base::DType::f32}, nullptr);
        if (way == 2) host::adam_w_on_host({args, base::DType::f32}, &crew);
        args.dtype = base::DType::bf16;
        args.parameter = state.rounded.data();
        if (way == 3) host::adam_w_on_host({args, base::DType::f32}, &crew);
      }
      EXPECT_EQ(state.master, ways[0].master) << way;
      EXPECT_EQ(state.first, ways[0].first) << way;
      EXPECT_EQ(state.second, ways[0].second) << way;
      if (way < 3) {
        EXPECT_EQ(state.copy, ways[0].copy) << way;
      }
    }
    for (std::size_t i = 0; i < size; ++i) {
      // The nearest of 8 bits, and of two the even one
      const float whole = ways[3].master[i], nearest = std::bit_cast<float>(std::uint32_t{ways[3].rounded[i]} << 16);
      const float ulp = std::ldexp(1.0f, std::ilogb(whole) - 7);
      ASSERT_LE(std::abs(nearest - whole), 0.5f * ulp) << whole;
      if (std::abs(nearest - whole) == 0.5f * ulp) {
        ASSERT_EQ(ways[3].rounded[i] & 1, 0) << whole;
      }
    }
  }
}

TEST(AccumulateOnHost, AddsEachNumberOnce) {
  device::Crew crew(3);
  for (std::int64_t elements : {1, 65536, 200'001}) {
    const auto size = static_cast<std::size_t>(elements);
    std::vector<float> from(size), into(size);
    for (std::size_t i = 0; i < size; ++i) from[i] = static_cast<float>(i % 1000), into[i] = static_cast<float>(i % 7);
    host::accumulate_on_host({from.data(), into.data(), elements, base::DType::f32}, &crew);
    for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(into[i], static_cast<float>(i % 1000 + i % 7));
  }
}

}  // namespace
}  // namespace shardbook::kernels::testing
