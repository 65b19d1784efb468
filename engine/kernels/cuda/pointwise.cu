// kernels/cuda/pointwise: GELU, SwiGLU, bias and residual, dropout, sums in place, fills and casts on a GPU.
//
// All are bound by memory: each number is read once and written once, 16 bytes a thread, and as fast as a copy moves it: on an H200
// 8192 x 8192 numbers in bf16 take GELU 67.2 us forward (a copy of them 65) and 94.7 us backward (98 for as many bytes). With
// two or four times 16 bytes a thread, or blocks that stay and take pack after pack, they took up to a fifth longer.
//
// Flops a number: GELU 9 and 18 backward, SwiGLU 5 and 11, bias and residual 2, with dropout 3, sums of parts one a part but the first, all others 1 or none. Bytes: what each
// reads and writes, once: in bf16 4 a number of GELU, 6 backward. Floor: a copy of as many bytes.
// References: kernels/host/activation.cpp, residual.cpp, dropout.cpp and initialize.cpp.
#include "engine/kernels/cuda/common.cuh"
#include "engine/kernels/cuda/launchers.hpp"
#include "engine/kernels/random.hpp"

namespace shardbook::kernels::cuda {
namespace {

constexpr float root_two_over_pi = 0.7978845608028654f;
constexpr float cubic = 0.044715f;

// ½(1 + tanh u) = 1 / (1 + e^(−2u)): no cancellation where tanh is near −1, and one exponential. With
// bf16 the fast exponential's error (2^-21) disappears in the rounding of the store (2^-9).
template <class T>
__device__ inline float half_one_plus_tanh(float u) {
  if constexpr (std::is_same_v<T, float>) {
    return 1.0f / (1.0f + expf(-2.0f * u));
  } else {
    return __fdividef(1.0f, 1.0f + __expf(-2.0f * u));
  }
}

template <class T>
struct GeluForward {
  const T* x;
  T* y;
  template <int N>
  __device__ void run(std::int64_t at) const {
    float value[N];
    load<N>(x + at, value);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float v = value[i];
      value[i] = v * half_one_plus_tanh<T>(root_two_over_pi * (v + cubic * v * v * v));
    }
    store<N>(y + at, value);
  }
};

template <class T>
struct GeluBackward {
  const T* x;
  const T* dy;
  T* dx;
  template <int N>
  __device__ void run(std::int64_t at) const {
    float value[N], gradient[N];
    load<N>(x + at, value);
    load<N>(dy + at, gradient);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float v = value[i];
      const float s = half_one_plus_tanh<T>(root_two_over_pi * (v + cubic * v * v * v));
      // d/dx x·s(2u) = s + x · s(1 − s) · 2u'
      const float twice_du = 2.0f * root_two_over_pi * (1.0f + 3.0f * cubic * v * v);
      gradient[i] *= s + v * s * (1.0f - s) * twice_du;
    }
    store<N>(dx + at, gradient);
  }
};

template <class T>
__device__ inline float sigmoid(float x) {
  return half_one_plus_tanh<T>(0.5f * x);
}

// Numbers count over [tokens, F]; gate and up of a token lie side by side.
template <class T>
struct SwiGluForward {
  const T* up;
  T* y;
  std::int64_t width;
  template <int N>
  __device__ void run(std::int64_t at) const {
    const std::int64_t place = at + row_and_column(at, width).row * width;
    float gate[N], other[N];
    load<N>(up + place, gate);
    load<N>(up + place + width, other);
#pragma unroll
    for (int i = 0; i < N; ++i) other[i] *= gate[i] * sigmoid<T>(gate[i]);
    store<N>(y + at, other);
  }
};

template <class T>
struct SwiGluBackward {
  const T* up;
  const T* dy;
  T* dup;
  std::int64_t width;
  template <int N>
  __device__ void run(std::int64_t at) const {
    const std::int64_t place = at + row_and_column(at, width).row * width;
    float gate[N], other[N], gradient[N];
    load<N>(up + place, gate);
    load<N>(up + place + width, other);
    load<N>(dy + at, gradient);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float s = sigmoid<T>(gate[i]), silu = gate[i] * s;
      gate[i] = gradient[i] * other[i] * (s + silu * (1.0f - s));
      other[i] = gradient[i] * silu;
    }
    store<N>(dup + place, gate);
    store<N>(dup + place + width, other);
  }
};

template <class T>
struct AddBiasResidual {
  const T* residual;
  const T* x;
  const T* bias;  // may be null
  T* out;
  std::int64_t width;
  template <int N>
  __device__ void run(std::int64_t at) const {
    float total[N], other[N];
    load<N>(residual + at, total);
    load<N>(x + at, other);
#pragma unroll
    for (int i = 0; i < N; ++i) total[i] += other[i];
    if (bias != nullptr) {
      load<N>(bias + row_and_column(at, width).column, other);
#pragma unroll
      for (int i = 0; i < N; ++i) total[i] += other[i];
    }
    store<N>(out + at, total);
  }
};

// Drops among the N numbers from `at` on; all of one run.
template <int N>
__device__ inline void drop(const DropoutMask& mask, std::int64_t at, float (&value)[N]) {
  const std::uint64_t key = key_of(mask);
  std::int64_t element = mask.first + at;
  if (at >= mask.run) {
    const RowColumn place = row_and_column(at, mask.run);
    element = mask.first + place.row * mask.stride + place.column;
  }
  if (N > 1 && element % 2 == 0) {
#pragma unroll
    for (int i = 0; i + 1 < N; i += 2) {
      const std::uint64_t draws = draws_of_pair(key, static_cast<std::uint64_t>(element + i) / 2);
      value[i] = static_cast<std::uint32_t>(draws) < mask.threshold ? 0.0f : value[i] * mask.scale;
      value[i + 1] = static_cast<std::uint32_t>(draws >> 32) < mask.threshold ? 0.0f : value[i + 1] * mask.scale;
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < N; ++i) {
    value[i] = is_dropped(key, static_cast<std::uint64_t>(element + i), mask.threshold) ? 0.0f : value[i] * mask.scale;
  }
}

template <class T>
struct Dropout {
  const T* x;
  T* y;
  DropoutMask mask;
  template <int N>
  __device__ void run(std::int64_t at) const {
    float value[N];
    load<N>(x + at, value);
    drop<N>(mask, at, value);
    store<N>(y + at, value);
  }
};

template <class T>
struct BiasDropoutResidual {
  const T* residual;
  const T* x;
  const T* bias;  // may be null
  T* out;
  std::int64_t width;
  DropoutMask mask;
  template <int N>
  __device__ void run(std::int64_t at) const {
    float branch[N], other[N];
    load<N>(x + at, branch);
    if (bias != nullptr) {
      load<N>(bias + row_and_column(at, width).column, other);
#pragma unroll
      for (int i = 0; i < N; ++i) branch[i] += other[i];
    }
    drop<N>(mask, at, branch);
    load<N>(residual + at, other);
#pragma unroll
    for (int i = 0; i < N; ++i) other[i] += branch[i];
    store<N>(out + at, other);
  }
};

struct Accumulate {
  const float* from;
  float* into;
  template <int N>
  __device__ void run(std::int64_t at) const {
    float total[N], other[N];
    load<N>(into + at, total);
    load<N>(from + at, other);
#pragma unroll
    for (int i = 0; i < N; ++i) total[i] += other[i];
    store<N>(into + at, total);
  }
};

template <class T>
struct Fill {
  T* to;
  float value;
  template <int N>
  __device__ void run(std::int64_t at) const {
    float all[N];
#pragma unroll
    for (int i = 0; i < N; ++i) all[i] = value;
    store<N>(to + at, all);
  }
};

template <class T>
struct Widen {
  const T* from;
  float* into;
  bool accumulate;
  template <int N>
  __device__ void run(std::int64_t at) const {
    float value[N];
    load<N>(from + at, value);
    if (accumulate) {
      float before[N];
      load<N>(into + at, before);
#pragma unroll
      for (int i = 0; i < N; ++i) value[i] += before[i];
    }
    store<N>(into + at, value);
  }
};

template <class T>
struct SumParts {
  const T* parts;
  T* out;
  std::int64_t elements, count;
  template <int N>
  __device__ void run(std::int64_t at) const {
    float total[N];
    load<N>(parts + at, total);
    for (std::int64_t part = 1; part < count; ++part) {
      float other[N];
      load<N>(parts + part * elements + at, other);
#pragma unroll
      for (int i = 0; i < N; ++i) total[i] += other[i];
    }
    store<N>(out + at, total);
  }
};

template <class T>
struct Cast {
  const float* from;
  T* to;
  template <int N>
  __device__ void run(std::int64_t at) const {
    float value[N];
    load<N>(from + at, value);
    store<N>(to + at, value);
  }
};

}  // namespace

void swiglu_forward(const SwiGluForwardArgs& args, const device::CudaQueue& queue) {
  with_type(args.dtype, "swiglu_forward", [&](auto zero) {
    using T = decltype(zero);
    const SwiGluForward<T> op{static_cast<const T*>(args.up_N2F), static_cast<T*>(args.y_NF), args.width};
    with_width<T>(rows_are_wide<T>(args.width, {args.up_N2F, args.y_NF}), [&](auto width) {
      launch_pointwise<width.value>("swiglu_forward", args.tokens * args.width, op, queue);
    });
  });
}

void swiglu_backward(const SwiGluBackwardArgs& args, const device::CudaQueue& queue) {
  with_type(args.dtype, "swiglu_backward", [&](auto zero) {
    using T = decltype(zero);
    const SwiGluBackward<T> op{static_cast<const T*>(args.up_N2F), static_cast<const T*>(args.dy_NF), static_cast<T*>(args.dup_N2F), args.width};
    with_width<T>(rows_are_wide<T>(args.width, {args.up_N2F, args.dy_NF, args.dup_N2F}), [&](auto width) {
      launch_pointwise<width.value>("swiglu_backward", args.tokens * args.width, op, queue);
    });
  });
}

void gelu_forward(const GeluForwardArgs& args, const device::CudaQueue& queue) {
  with_type(args.dtype, "gelu_forward", [&](auto zero) {
    using T = decltype(zero);
    const GeluForward<T> op{static_cast<const T*>(args.x), static_cast<T*>(args.y)};
    with_width<T>(aligned({args.x, args.y}), [&](auto width) {
      launch_pointwise<width.value>("gelu_forward", args.elements, op, queue);
    });
  });
}

void gelu_backward(const GeluBackwardArgs& args, const device::CudaQueue& queue) {
  with_type(args.dtype, "gelu_backward", [&](auto zero) {
    using T = decltype(zero);
    const GeluBackward<T> op{static_cast<const T*>(args.x), static_cast<const T*>(args.dy), static_cast<T*>(args.dx)};
    with_width<T>(aligned({args.x, args.dy, args.dx}), [&](auto width) {
      launch_pointwise<width.value>("gelu_backward", args.elements, op, queue);
    });
  });
}

void add_bias_residual(const AddBiasResidualArgs& args, const device::CudaQueue& queue) {
  with_type(args.dtype, "add_bias_residual", [&](auto zero) {
    using T = decltype(zero);
    const AddBiasResidual<T> op{static_cast<const T*>(args.residual_ND), static_cast<const T*>(args.x_ND),
                                static_cast<const T*>(args.bias_D), static_cast<T*>(args.out_ND), args.width};
    const bool wide = rows_are_wide<T>(args.width, {args.residual_ND, args.x_ND, args.bias_D, args.out_ND});
    with_width<T>(wide, [&](auto width) {
      launch_pointwise<width.value>("add_bias_residual", args.tokens * args.width, op, queue);
    });
  });
}

void dropout(const DropoutArgs& args, const device::CudaQueue& queue) {
  with_type(args.dtype, "dropout", [&](auto zero) {
    using T = decltype(zero);
    const Dropout<T> op{static_cast<const T*>(args.x), static_cast<T*>(args.y), args.mask};
    const bool one_run = args.mask.run >= args.elements;   // else no pack may lie in two
    const bool wide = one_run ? aligned({args.x, args.y}) : rows_are_wide<T>(args.mask.run, {args.x, args.y});
    with_width<T>(wide, [&](auto width) {
      launch_pointwise<width.value>("dropout", args.elements, op, queue);
    });
  });
}

void bias_dropout_residual(const BiasDropoutResidualArgs& args, const device::CudaQueue& queue) {
  with_type(args.dtype, "bias_dropout_residual", [&](auto zero) {
    using T = decltype(zero);
    const BiasDropoutResidual<T> op{static_cast<const T*>(args.residual_ND), static_cast<const T*>(args.x_ND),
                                    static_cast<const T*>(args.bias_D), static_cast<T*>(args.out_ND), args.width, args.mask};
    const bool wide = rows_are_wide<T>(args.width, {args.residual_ND, args.x_ND, args.bias_D, args.out_ND});
    with_width<T>(wide, [&](auto width) {
      launch_pointwise<width.value>("bias_dropout_residual", args.tokens * args.width, op, queue);
    });
  });
}

void accumulate(const AccumulateArgs& args, const device::CudaQueue& queue) {
  const Accumulate op{static_cast<const float*>(args.from), static_cast<float*>(args.into)};
  with_width<float>(aligned({args.from, args.into}), [&](auto width) {
    launch_pointwise<width.value>("accumulate", args.elements, op, queue);
  });
}

void sum_parts(const SumPartsArgs& args, const device::CudaQueue& queue) {
  with_type(args.dtype, "sum_parts", [&](auto zero) {
    using T = decltype(zero);
    const SumParts<T> op{static_cast<const T*>(args.parts_P), static_cast<T*>(args.out), args.elements, args.parts};
    with_width<T>(rows_are_wide<T>(args.elements, {args.parts_P, args.out}), [&](auto width) {   // each part begins where a pack may
      launch_pointwise<width.value>("sum_parts", args.elements, op, queue);
    });
  });
}

void widen(const WidenArgs& args, const device::CudaQueue& queue) {
  with_type(args.dtype, "widen", [&](auto zero) {
    using T = decltype(zero);
    const Widen<T> op{static_cast<const T*>(args.from), static_cast<float*>(args.into), args.accumulate};
    with_width<T>(aligned({args.from, args.into}), [&](auto width) {
      launch_pointwise<width.value>("widen", args.elements, op, queue);
    });
  });
}

void fill(const FillArgs& args, const device::CudaQueue& queue) {
  with_type(args.dtype, "fill", [&](auto zero) {
    using T = decltype(zero);
    const Fill<T> op{static_cast<T*>(args.to), args.value};
    with_width<T>(aligned({args.to}), [&](auto width) {
      launch_pointwise<width.value>("fill", args.elements, op, queue);
    });
  });
}

void cast(const CastArgs& args, const device::CudaQueue& queue) {
  with_type(args.dtype, "cast", [&](auto zero) {
    using T = decltype(zero);
    const Cast<T> op{static_cast<const float*>(args.from), static_cast<T*>(args.to)};
    with_width<T>(aligned({args.from, args.to}), [&](auto width) {
      launch_pointwise<width.value>("cast", args.elements, op, queue);
    });
  });
}

}  // namespace shardbook::kernels::cuda
