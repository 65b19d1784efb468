// tests/kernels/host_bench: a host device to run ops on, exact numbers to feed them, and bounds to hold them to.
//
// Bounds are derived, never tuned. `unit<T>()` is the unit roundoff u of T. A sum of n terms in any order errs by
// at most n·u·Σ|term| to first order (Higham, "Accuracy and stability of numerical algorithms", §4.2); each
// test adds what its op does beside sums. The naive side computes in long double from the same inputs.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "engine/device/host/host_device.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::kernels::testing {

using Real = long double;
using Reals = std::vector<Real>;
using Numbers = std::vector<double>;
using base::DType;
using tensor::Tensor;

// Of tests of what treats each token alone.
inline constexpr std::int64_t tokens = 3;

template <class T>
constexpr Real unit() {
  return std::numeric_limits<T>::epsilon() / 2;
}
template <class T>
constexpr DType dtype_of() {
  return std::is_same_v<T, float> ? DType::f32 : DType::f64;
}

// `count` numbers in [−range, range] that f32 holds exactly: multiples of range / 1024.
inline Numbers numbers(int seed, std::int64_t count, double range = 1) {
  std::uint64_t state = 0x9E3779B97F4A7C15ull * static_cast<std::uint64_t>(seed + 1);
  Numbers drawn(static_cast<std::size_t>(count));
  for (double& number : drawn) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    number = range * (static_cast<double>((state >> 40) % 2049) - 1024) / 1024;
  }
  return drawn;
}

// Small integers, so that products and their sums are exact in f32.
inline Numbers integers(int seed, std::int64_t count) {
  Numbers drawn = numbers(seed, count);
  for (double& number : drawn) number = std::round(number * 4);
  return drawn;
}

// A host device whose floating numbers are all of type T, with one stream.
template <class T>
class HostBench {
 public:
  HostBench() : device_({dtype_of<T>(), dtype_of<T>()}, 0, 0), stream_(device_.create_stream("compute")) {}

  device::HostDevice& device() { return device_; }
  device::Stream& stream() { return stream_; }

  // A tensor that holds `values`; without values it holds 777, so that an op which forgets to write shows.
  Tensor tensor(base::Shape shape, const Numbers& values) {
    const Tensor made = tensor::allocate(device_, shape, DType::f32, program::MemoryKind::activation, "tensor");
    EXPECT_EQ(made.elements(), static_cast<std::int64_t>(values.size()));
    for (std::size_t i = 0; i < values.size(); ++i) static_cast<T*>(made.data)[i] = static_cast<T>(values[i]);
    return made;
  }
  Tensor tensor(base::Shape shape) { return tensor(shape, Numbers(static_cast<std::size_t>(shape.elements()), 777)); }
  Tensor indices(const std::vector<std::int32_t>& values) {
    const Tensor made = tensor::allocate(device_, {static_cast<std::int64_t>(values.size())}, DType::i32,
                                         program::MemoryKind::input, "indices");
    std::memcpy(made.data, values.data(), values.size() * sizeof(std::int32_t));
    return made;
  }

  // What a tensor holds once all that was issued has run.
  Numbers values(const Tensor& tensor) {
    device_.synchronize();
    const T* data = static_cast<const T*>(tensor.data);
    return Numbers(data, data + tensor.elements());
  }
  double value(const Tensor& tensor) { return values(tensor).at(0); }

 private:
  device::HostDevice device_;
  device::Stream& stream_;
};

// Each |actual − expected| ≤ bound.
inline void expect_within(const Numbers& actual, const Reals& expected, const Reals& bound, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_LE(std::abs(actual[i] - expected[i]), bound[i])
        << what << "[" << i << "] is " << actual[i] << " and should be " << static_cast<double>(expected[i]);
  }
}

// --- Gradients against finite differences --------------------------------------------------------

// Σ weight · output: the scalar whose gradient with respect to the output is `weight`.
inline double weighted(const Numbers& weight, const Numbers& output) {
  double total = 0;
  for (std::size_t i = 0; i < weight.size(); ++i) total += weight[i] * output[i];
  return total;
}

// `gradient` is that of `scalar` at `at`. The central difference D(h) errs by h²f‴/6 + O(h⁴) + rounding / h. The
// first is 1/3 of D(2h) − D(h) to leading order; the whole of it is allowed. Rounding: `scalar` is a sum
// of at most `terms` terms no larger than 16, each after at most 64 roundings, in fp64.
inline void expect_gradient(const std::function<double(const Numbers&)>& scalar, const Numbers& at,
                            const Numbers& gradient, std::int64_t terms, const std::string& what) {
  ASSERT_EQ(at.size(), gradient.size()) << what;
  const double h = std::ldexp(1.0, -11);
  const double rounding = static_cast<double>(terms) * 16 * 64 * static_cast<double>(unit<double>()) / h;
  for (std::size_t i = 0; i < at.size(); ++i) {
    const auto slope = [&](double step) {
      Numbers moved = at;
      moved[i] = at[i] + step;
      const double above = scalar(moved);
      moved[i] = at[i] - step;
      return (above - scalar(moved)) / (2 * step);
    };
    const double near = slope(h), far = slope(2 * h);
    EXPECT_NEAR(gradient[i], near, std::abs(far - near) + rounding) << what << "[" << i << "]";
  }
}

using FloatTypes = ::testing::Types<float, double>;

}  // namespace shardbook::kernels::testing
