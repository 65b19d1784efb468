// kernels/host/residual: additions along the residual path.
#include "engine/kernels/host/dispatch.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels::host {
namespace {

template <class T>
void add(const AddBiasResidualArgs& args) {
  const T* bias = as<T>(args.bias_D);
  for (std::int64_t n = 0; n < args.tokens; ++n) {
    const T* residual = as<T>(args.residual_ND) + n * args.width;
    const T* x = as<T>(args.x_ND) + n * args.width;
    T* out = as<T>(args.out_ND) + n * args.width;
    if (bias == nullptr) {
      for (std::int64_t i = 0; i < args.width; ++i) out[i] = residual[i] + x[i];
    } else {
      for (std::int64_t i = 0; i < args.width; ++i) out[i] = residual[i] + (x[i] + bias[i]);
    }
  }
}

template <class T>
void sum_columns(const BiasGradientArgs& args) {
  T* dbias = as<T>(args.dbias_O);
  if (!args.accumulate) {
    for (std::int64_t i = 0; i < args.width; ++i) dbias[i] = T(0);
  }
  for (std::int64_t n = 0; n < args.tokens; ++n) {
    const T* dy = as<T>(args.dy_NO) + n * args.width;
    for (std::int64_t i = 0; i < args.width; ++i) dbias[i] += dy[i];
  }
}

template <class T>
void add_into(const AccumulateArgs& args) {
  const T* from = as<T>(args.from);
  T* into = as<T>(args.into);
  for (std::int64_t i = 0; i < args.elements; ++i) into[i] += from[i];
}

template <class T>
void add_parts(const SumPartsArgs& args) {
  const T* parts = as<T>(args.parts_P);
  T* out = as<T>(args.out);
  for (std::int64_t i = 0; i < args.elements; ++i) {
    T total = parts[i];
    for (std::int64_t part = 1; part < args.parts; ++part) total += parts[part * args.elements + i];
    out[i] = total;
  }
}

template <class T>
void write_or_add(const WidenArgs& args) {
  const T* from = as<T>(args.from);
  T* into = as<T>(args.into);
  for (std::int64_t i = 0; i < args.elements; ++i) into[i] = args.accumulate ? into[i] + from[i] : from[i];
}

}  // namespace

void add_bias_residual(const AddBiasResidualArgs& args) {
  with_float(args.dtype, [&](auto zero) { add<decltype(zero)>(args); });
}
void bias_gradient(const BiasGradientArgs& args) {
  with_float(args.dtype, [&](auto zero) { sum_columns<decltype(zero)>(args); });
}
void accumulate(const AccumulateArgs& args) {
  with_float(args.dtype, [&](auto zero) { add_into<decltype(zero)>(args); });
}
void sum_parts(const SumPartsArgs& args) {
  with_float(args.dtype, [&](auto zero) { add_parts<decltype(zero)>(args); });
}
void widen(const WidenArgs& args) {
  with_float(args.dtype, [&](auto zero) { write_or_add<decltype(zero)>(args); });
}

}  // namespace shardbook::kernels::host
