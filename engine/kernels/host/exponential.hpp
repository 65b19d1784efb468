// kernels/host/exponential: what is eˣ, several at a time?
//
// A step takes millions of exponentials, and a library's exp is a call for each. This one is a few
// additions and products without a branch, so that a compiler turns a loop of it into vector code; and
// it gives the same bits with every C library.
//
// Idea (Cody and Waite, "Software manual for the elementary functions", 1980): eˣ = 2ⁿ · eʳ with n the integer
// nearest to x / ln 2 and |r| ≤ ln 2 / 2. ln 2 is split in a short and a small part, so that r is nearly
// exact; eʳ is its Taylor polynomial, cut where the rest is below half a unit roundoff; 2ⁿ is written
// into the exponent's bits. Adding 1.5 · 2^(mantissa bits) leaves n in the lowest bits of the sum.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace shardbook::kernels::host {

template <class T>
struct ExponentialOf;

template <>
struct ExponentialOf<float> {
  using Bits = std::uint32_t;
  static constexpr int mantissa_bits = 23, bias = 127, degree = 7;
  static constexpr float rounder = 0x1.8p23f, ln2_short = 0x1.62e4p-1f, ln2_small = 0x1.7f7d1cp-20f;
  static constexpr float lowest = -87.6f, highest = 88.3f;
};

template <>
struct ExponentialOf<double> {
  using Bits = std::uint64_t;
  static constexpr int mantissa_bits = 52, bias = 1023, degree = 13;
  static constexpr double rounder = 0x1.8p52, ln2_short = 0x1.62e42fefap-1, ln2_small = 0x1.cf79abc9e3b3ap-40;
  static constexpr double lowest = -708.7, highest = 709.4;
};

// eˣ with a relative error of at most 4 unit roundoffs for x in [lowest, highest]; 0 below, infinity above, and
// NaN for NaN.
template <class T>
inline T exponential(T x) {
  using Of = ExponentialOf<T>;
  constexpr T one_over_ln2 = T(1.44269504088896340736);
  const T shifted = x * one_over_ln2 + Of::rounder;
  const T n = shifted - Of::rounder;
  const T r = (x - n * Of::ln2_short) - n * Of::ln2_small;

  T polynomial = T(1);
#pragma GCC unroll 16
  for (int i = Of::degree; i > 0; --i) polynomial = T(1) + polynomial * r * (T(1) / T(i));

  const auto exponent = std::bit_cast<typename Of::Bits>(shifted) + Of::bias;
  const T power = std::bit_cast<T>(static_cast<typename Of::Bits>(exponent << Of::mantissa_bits));
  const T inside = polynomial * power;
  const T not_below = x < Of::lowest ? T(0) : inside;
  return x > Of::highest ? std::numeric_limits<T>::infinity() : not_below;
}

}  // namespace shardbook::kernels::host
