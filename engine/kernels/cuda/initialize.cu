// kernels/cuda/initialize: the first values of a shard of a parameter, drawn on a GPU.
//
// The value is a function of the global element alone (kernels/random.hpp), so the bits are those that
// the host reference draws, however the parameter is cut.
//
// Flops: 2 a number, and the draw. Bytes: 4 a number, written. Floor: those bytes; drawn once a run, it is not held to it.
// Reference: kernels/host/initialize.cpp.
#include "engine/kernels/cuda/common.cuh"
#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/random.hpp"

namespace shardbook::kernels::cuda {
namespace {

struct InitNormal {
  InitNormalArgs args;
  template <int N>
  __device__ void run(std::int64_t at) const {
    static_assert(N == 1);
    const RowColumn place = row_and_column(args.begin + at, args.columns);
    const std::int64_t element =
        (args.row_begin + place.row) * args.global_columns + args.column_begin + place.column;
    static_cast<float*>(args.to)[at] = normal_value(args.seed, args.parameter, static_cast<std::uint64_t>(element),
                                                    args.mean, args.deviation);
  }
};

}  // namespace

void init_normal(const InitNormalArgs& args, const device::CudaQueue& queue) {
  launch_pointwise<1>("init_normal", args.elements, InitNormal{args}, queue);
}

}  // namespace shardbook::kernels::cuda
