// kernels/host/dropout: each element's draw, by its place in the whole tensor.
#include <algorithm>

#include "engine/kernels/host/dispatch.hpp"
#include "engine/kernels/host/references.hpp"
#include "engine/kernels/random.hpp"

namespace shardbook::kernels::host {
namespace {

template <class T>
void drop(const DropoutArgs& args) {
  const DropoutMask& mask = args.mask;
  const T* x = as<T>(args.x);
  T* y = as<T>(args.y);
  const T scale = T(mask.scale);
  const std::uint64_t key = key_of(mask);
  std::int64_t element = mask.first;
  for (std::int64_t begin = 0, size = 0; begin < args.elements; begin += size, element += mask.stride) {
    size = std::min(mask.run, args.elements - begin);
    for (std::int64_t i = 0; i < size; ++i) {
      y[begin + i] = is_dropped(key, static_cast<std::uint64_t>(element + i), mask.threshold) ? T(0) : x[begin + i] * scale;
    }
  }
}

template <class T>
void drop_and_add(const BiasDropoutResidualArgs& args) {
  const DropoutMask& mask = args.mask;
  const T* bias = as<T>(args.bias_D);
  const T scale = T(mask.scale);
  const std::uint64_t key = key_of(mask);
  for (std::int64_t n = 0; n < args.tokens; ++n) {
    const std::int64_t row = n * args.width;
    const T* residual = as<T>(args.residual_ND) + row;
    const T* x = as<T>(args.x_ND) + row;
    T* out = as<T>(args.out_ND) + row;
    for (std::int64_t i = 0; i < args.width; ++i) {
      const T branch = bias == nullptr ? x[i] : x[i] + bias[i];
      const bool dropped = is_dropped(key, static_cast<std::uint64_t>(mask.first + row + i), mask.threshold);
      out[i] = residual[i] + (dropped ? T(0) : branch * scale);
    }
  }
}

}  // namespace

void dropout(const DropoutArgs& args) {
  with_float(args.dtype, [&](auto zero) { drop<decltype(zero)>(args); });
}
void bias_dropout_residual(const BiasDropoutResidualArgs& args) {
  with_float(args.dtype, [&](auto zero) { drop_and_add<decltype(zero)>(args); });
}

}  // namespace shardbook::kernels::host
