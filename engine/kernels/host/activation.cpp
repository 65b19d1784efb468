// kernels/host/activation: GELU by one exponential, and SwiGLU.
//
// ½(1 + tanh u) = σ(2u), so gelu(x) = x · σ(2u) with u = √(2/π)(x + 0.044715 x³): the same function as the
// tanh form, at a third of its cost. Its derivative is σ(2u) + x · σ(2u)(1 − σ(2u)) · 2u′.
#include <numbers>

#include "engine/kernels/host/dispatch.hpp"
#include "engine/kernels/host/exponential.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels::host {
namespace {

// 2u = 2√(2/π)(x + cubic · x³).
template <class T>
constexpr T two_root_two_over_pi = T(2) * std::numbers::sqrt2_v<T> * std::numbers::inv_sqrtpi_v<T>;
template <class T>
constexpr T cubic = T(0.044715);

template <class T>
T sigmoid_of_two_u(T x) {
  return T(1) / (T(1) + exponential(-two_root_two_over_pi<T> * (x + cubic<T> * x * x * x)));
}

template <class T>
void forward(const GeluForwardArgs& args) {
  const T* x = as<T>(args.x);
  T* y = as<T>(args.y);
  for (std::int64_t i = 0; i < args.elements; ++i) y[i] = x[i] * sigmoid_of_two_u(x[i]);
}

template <class T>
void backward(const GeluBackwardArgs& args) {
  const T* x = as<T>(args.x);
  const T* dy = as<T>(args.dy);
  T* dx = as<T>(args.dx);
  for (std::int64_t i = 0; i < args.elements; ++i) {
    const T sigmoid = sigmoid_of_two_u(x[i]);
    const T slope_of_two_u = two_root_two_over_pi<T> * (T(1) + T(3) * cubic<T> * x[i] * x[i]);
    dx[i] = dy[i] * (sigmoid + x[i] * sigmoid * (T(1) - sigmoid) * slope_of_two_u);
  }
}

template <class T>
T sigmoid(T x) {
  return T(1) / (T(1) + exponential(-x));
}

template <class T>
void swiglu(const SwiGluForwardArgs& args) {
  for (std::int64_t n = 0; n < args.tokens; ++n) {
    const T* gate = as<T>(args.up_N2F) + 2 * n * args.width;
    const T* up = gate + args.width;
    T* y = as<T>(args.y_NF) + n * args.width;
    for (std::int64_t i = 0; i < args.width; ++i) y[i] = gate[i] * sigmoid(gate[i]) * up[i];
  }
}

template <class T>
void swiglu_gradient(const SwiGluBackwardArgs& args) {
  for (std::int64_t n = 0; n < args.tokens; ++n) {
    const T* gate = as<T>(args.up_N2F) + 2 * n * args.width;
    const T* up = gate + args.width;
    const T* dy = as<T>(args.dy_NF) + n * args.width;
    T* dgate = as<T>(args.dup_N2F) + 2 * n * args.width;
    T* dup = dgate + args.width;
    for (std::int64_t i = 0; i < args.width; ++i) {
      const T s = sigmoid(gate[i]), silu = gate[i] * s;
      // d/dx x·σ(x) = σ(x) + x·σ(x)(1 − σ(x))
      const T through_gate = dy[i] * up[i] * (s + silu * (T(1) - s));
      dup[i] = dy[i] * silu;
      dgate[i] = through_gate;
    }
  }
}

}  // namespace

void swiglu_forward(const SwiGluForwardArgs& args) {
  with_float(args.dtype, [&](auto zero) { swiglu<decltype(zero)>(args); });
}
void swiglu_backward(const SwiGluBackwardArgs& args) {
  with_float(args.dtype, [&](auto zero) { swiglu_gradient<decltype(zero)>(args); });
}
void gelu_forward(const GeluForwardArgs& args) {
  with_float(args.dtype, [&](auto zero) { forward<decltype(zero)>(args); });
}
void gelu_backward(const GeluBackwardArgs& args) {
  with_float(args.dtype, [&](auto zero) { backward<decltype(zero)>(args); });
}

}  // namespace shardbook::kernels::host
