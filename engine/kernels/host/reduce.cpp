// kernels/host/reduce: a sum in one fixed order.
#include "engine/kernels/host/dispatch.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels::host {

void sum(const SumArgs& args) {
  with_float(args.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* value = as<T>(args.value_N);
    T& total = *as<T>(args.total);
    const T added = T(args.scale) * lane_sum<T>(args.elements, [&](std::int64_t i) { return value[i]; });
    total = args.accumulate ? total + added : added;
  });
}

}  // namespace shardbook::kernels::host
