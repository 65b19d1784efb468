// kernels/cuda/exponential: how exact must e^x be?
//
// As exact as what it is made for: numbers of f32 get the exact one, numbers of bf16 the hardware's approximation.
#pragma once

#include <type_traits>

namespace shardbook::kernels::cuda {

template <class T>
__device__ inline float exponential(float x) {
  if constexpr (std::is_same_v<T, float>) {
    return expf(x);
  } else {
    return __expf(x);
  }
}

}  // namespace shardbook::kernels::cuda
