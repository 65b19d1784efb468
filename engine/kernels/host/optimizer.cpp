// kernels/host/optimizer: the norm of the gradients, the clip factor, and AdamW, element by element.
//
// Scalars of AdamW arrive in f32 and are widened before use; a decay rate such as 0.999f stays what f32
// makes of it, on every device.
#include <algorithm>
#include <cmath>

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

template <class T>
void update(const AdamWArgs& args) {
  T* master = as<T>(args.master);
  T* first = as<T>(args.first_moment);
  T* second = as<T>(args.second_moment);
  T* parameter = as<T>(args.parameter);
  const T* gradient = as<T>(args.gradient);
  const T factor = *as<T>(args.clip_factor);
  const T beta1 = T(args.beta1), beta2 = T(args.beta2), epsilon = T(args.epsilon);
  const T step_size = T(args.learning_rate / (1 - std::pow(double{args.beta1}, double(args.step))));
  const T root_correction = T(1 / std::sqrt(1 - std::pow(double{args.beta2}, double(args.step))));
  const T keep = T(1 - double{args.learning_rate} * double{args.weight_decay});
  const std::int64_t decayed = std::clamp<std::int64_t>(args.decay_end - args.shard_begin, 0, args.elements);
  for (std::int64_t i = 0; i < args.elements; ++i) {
    const T g = factor * gradient[i];
    first[i] = beta1 * first[i] + (T(1) - beta1) * g;
    second[i] = beta2 * second[i] + (T(1) - beta2) * g * g;
    const T kept = i < decayed ? keep * master[i] : master[i];
    master[i] = kept - step_size * first[i] / (std::sqrt(second[i]) * root_correction + epsilon);
    parameter[i] = master[i];
  }
}

}  // namespace

void sum_of_squares(const SumOfSquaresArgs& args) {
  with_float(args.dtype, [&](auto zero) { add_squares<decltype(zero)>(args); });
}
void clip_factor(const ClipFactorArgs& args) {
  with_float(args.dtype, [&](auto zero) { factor_of_norm<decltype(zero)>(args); });
}
void adam_w(const AdamWArgs& args) {
  with_float(args.dtype, [&](auto zero) { update<decltype(zero)>(args); });
}

}  // namespace shardbook::kernels::host
