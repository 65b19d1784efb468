// kernels/host/optimizer: the norm of the gradients, the clip factor, and AdamW, element by element.
//
// AdamW has a second form, for shards that live in host memory beside a GPU: many threads, and a copy in bf16. Each of its
// operations is rounded by itself, as those of kernels/cuda/optimizer.cu are, so both give the same bits.
//
// Scalars of AdamW arrive in f32 and are widened before use; a decay rate such as 0.999f stays what f32
// makes of it, on every device.
#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/device/crew.hpp"
#include "engine/kernels/host/dispatch.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels::host {
namespace {

template <class T>
void add_squares(const SumOfSquaresArgs& args) {
  // The counted range, in elements of this shard.
  const std::int64_t begin = std::clamp<std::int64_t>(args.counted_begin - args.shard_begin, 0, args.elements);
  const std::int64_t end = std::clamp<std::int64_t>(args.counted_end - args.shard_begin, begin, args.elements);
  const T* counted = as<T>(args.gradient) + begin;
  const T added = lane_sum<T>(end - begin, [&](std::int64_t i) { return counted[i] * counted[i]; });
  T& total = *as<T>(args.total);
  total = args.accumulate ? total + added : added;
}

template <class T>
void factor_of_norm(const ClipFactorArgs& args) {
  const T norm = std::sqrt(*as<T>(args.total));
  *as<T>(args.norm) = norm;
  *as<T>(args.factor) = args.clip > 0 ? std::min(T(1), T(args.clip) / (norm + T(1e-6))) : T(1);
}

// A number of the copy that is computed with, rounded to the nearest, of two the even one.
struct Bf16 {
  std::uint16_t bits;
  Bf16& operator=(float value) {
    const std::uint32_t whole = std::bit_cast<std::uint32_t>(value);
    const bool is_number = (whole & 0x7fffffffu) <= 0x7f800000u;
    bits = static_cast<std::uint16_t>(is_number ? (whole + 0x7fffu + (whole >> 16 & 1u)) >> 16 : 0x7fffu);
    return *this;
  }
};

// Elements [begin, end). T is the type of masters, moments and gradient, P that of the copy.
template <class T, class P>
void update(const AdamWArgs& args, std::int64_t begin, std::int64_t end) {
  T* master = as<T>(args.master);
  T* first = as<T>(args.first_moment);
  T* second = as<T>(args.second_moment);
  P* parameter = as<P>(args.parameter);
  const T* gradient = as<T>(args.gradient);
  const T factor = *as<T>(args.clip_factor);
  const T beta1 = T(args.beta1), beta2 = T(args.beta2), epsilon = T(args.epsilon);
  const AdamWFactors factors = args.factors != nullptr ? *args.factors : factors_of(args);
  const T step_size = T(factors.step_size), root_correction = T(factors.root_correction), keep = T(factors.keep);
  const std::int64_t decayed = std::clamp<std::int64_t>(args.decay_end - args.shard_begin, 0, args.elements);
  for (std::int64_t i = begin; i < end; ++i) {
    const T g = factor * gradient[i];
    first[i] = beta1 * first[i] + (T(1) - beta1) * g;
    second[i] = beta2 * second[i] + (T(1) - beta2) * g * g;
    const T kept = i < decayed ? keep * master[i] : master[i];
    master[i] = kept - step_size * first[i] / (std::sqrt(second[i]) * root_correction + epsilon);
    if (parameter != nullptr) parameter[i] = master[i];
  }
}

// What a processor takes at once: small beside a shard, large beside what taking it costs.
constexpr std::int64_t elements_a_part = std::int64_t{1} << 16;

template <class Range>
void in_parts(std::int64_t elements, device::Crew* crew, Range range) {
  if (crew == nullptr) return range(std::int64_t{0}, elements);
  crew->run((elements + elements_a_part - 1) / elements_a_part, [&](std::int64_t part) {
    const std::int64_t begin = part * elements_a_part;
    range(begin, std::min(begin + elements_a_part, elements));
  });
}

}  // namespace

AdamWFactors factors_of(const AdamWArgs& args) {
  const double rate = args.learning_rate, step = static_cast<double>(args.step);
  return {1 - rate * double{args.weight_decay}, rate / (1 - std::pow(double{args.beta1}, step)), 1 / std::sqrt(1 - std::pow(double{args.beta2}, step))};
}

void sum_of_squares(const SumOfSquaresArgs& args) {
  with_float(args.dtype, [&](auto zero) { add_squares<decltype(zero)>(args); });
}
void clip_factor(const ClipFactorArgs& args) {
  with_float(args.dtype, [&](auto zero) { factor_of_norm<decltype(zero)>(args); });
}
void adam_w(const AdamWArgs& args) {
  with_float(args.dtype, [&](auto zero) { update<decltype(zero), decltype(zero)>(args, 0, args.elements); });
}

void adam_w_on_host(const AdamWOnHostArgs& args, device::Crew* crew) {
  in_parts(args.of.elements, crew, [&](std::int64_t begin, std::int64_t end) {
    if (args.stat == base::DType::f64) update<double, double>(args.of, begin, end);
    else if (args.of.dtype == base::DType::bf16) update<float, Bf16>(args.of, begin, end);
    else update<float, float>(args.of, begin, end);
  });
}

void accumulate_on_host(const AccumulateArgs& args, device::Crew* crew) {
  in_parts(args.elements, crew, [&](std::int64_t begin, std::int64_t end) {
    with_float(args.dtype, [&](auto zero) {
      using T = decltype(zero);
      const T* from = as<T>(args.from);
      T* into = as<T>(args.into);
      for (std::int64_t i = begin; i < end; ++i) into[i] += from[i];
    });
  });
}

}  // namespace shardbook::kernels::host
