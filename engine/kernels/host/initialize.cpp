// kernels/host/initialize: first numbers, and copies between types (which the host has one of).
#include <algorithm>

#include "engine/kernels/host/dispatch.hpp"
#include "engine/kernels/host/references.hpp"
#include "engine/kernels/random.hpp"

namespace shardbook::kernels::host {
namespace {

template <class T>
void draw(const InitNormalArgs& args) {
  T* to = as<T>(args.to);
  for (std::int64_t i = 0; i < args.elements; ++i) {
    const std::int64_t row = args.row_begin + (args.begin + i) / args.columns;
    const std::int64_t column = args.column_begin + (args.begin + i) % args.columns;
    const auto element = static_cast<std::uint64_t>(row * args.global_columns + column);
    to[i] = T(normal_value(args.seed, args.parameter, element, args.mean, args.deviation));
  }
}

}  // namespace

void fill(const FillArgs& args) {
  with_float(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    std::fill_n(as<T>(args.to), args.elements, T(args.value));
  });
}
void cast(const CastArgs& args) {
  with_float(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    std::copy_n(as<T>(args.from), args.elements, as<T>(args.to));
  });
}
void init_normal(const InitNormalArgs& args) {
  with_float(args.dtype, [&](auto zero) { draw<decltype(zero)>(args); });
}

}  // namespace shardbook::kernels::host
