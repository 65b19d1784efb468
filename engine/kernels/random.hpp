// kernels/random: which random number belongs to this element of this parameter, or of this activation?
//
// A weight is a function of (seed, parameter, index of the global element), so that every cut of the
// parameters draws the same network, whatever the layout and the device. What dropout does to an activation is
// one of (seed, step, place, index of the global element), so no mask and no state of a generator is kept.
//
// Idea: a counter-based generator (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11):
// two rounds of a 64-bit mixing function give eight 16-bit integers, whose sum is near normal (Irwin–Hall
// of order 8: excess kurtosis −0.15, no tail beyond 4.9 deviations, which suits initial weights).
// Mixer: the finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
// generators", OOPSLA'14).
//
// Invariant: the same bits on host and GPU. The sum is an integer of 20 bits, the scale has 24 bits, so
// their product is exact in fp64, and a fused multiply-add cannot differ from a product and a sum.
#pragma once

#include <cstdint>

namespace shardbook::kernels {

constexpr std::uint64_t mix64(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ull;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBull;
  return bits ^ (bits >> 31);
}

// The sum of eight uniform 16-bit integers, doubled and centred: in [−524280, 524280], mean 0,
// variance 32 · (2^32 − 1) / 12.
constexpr std::int32_t centred_sum(std::uint64_t seed, std::uint32_t parameter, std::uint64_t element) {
  constexpr std::uint64_t golden = 0x9E3779B97F4A7C15ull;
  const std::uint64_t key = mix64(mix64(seed + golden) + parameter);
  std::int32_t sum = 0;
  for (std::uint64_t half = 0; half < 2; ++half) {
    const std::uint64_t bits = mix64(key + (2 * element + half) * golden);
    for (int shift = 0; shift < 64; shift += 16) sum += static_cast<std::int32_t>((bits >> shift) & 0xFFFF);
  }
  return 2 * sum - 8 * 65535;
}

// mean + deviation · g, where g has mean 0 and variance 1.
constexpr float normal_value(std::uint64_t seed, std::uint32_t parameter, std::uint64_t element, float mean,
                             float deviation) {
  constexpr double one_over_deviation_of_sum = 9.344061825059267e-06;  // 1 / √(32 · (2^32 − 1) / 12)
  const float scale = static_cast<float>(deviation * one_over_deviation_of_sum);
  return static_cast<float>(static_cast<double>(mean) +
                            static_cast<double>(scale) * centred_sum(seed, parameter, element));
}

// A key of its own for each (seed, step, place): the fate of every element of one tensor in one step.
constexpr std::uint64_t step_key(std::uint64_t seed, std::uint64_t step) {
  constexpr std::uint64_t golden = 0x9E3779B97F4A7C15ull;
  return mix64(mix64(seed + 2 * golden) + step);
}
constexpr std::uint64_t mask_key(std::uint64_t key_of_step, std::uint64_t place) { return mix64(key_of_step + place); }
constexpr std::uint64_t mask_key(std::uint64_t seed, std::uint64_t step, std::uint32_t place) { return mask_key(step_key(seed, step), place); }

// The draws, 32 bits each, of elements 2 · pair (lower half) and 2 · pair + 1: number `pair` of the SplitMix64 sequence
// that begins at `key`. Two for one: half of the mixing.
constexpr std::uint64_t draws_of_pair(std::uint64_t key, std::uint64_t pair) {
  constexpr std::uint64_t golden = 0x9E3779B97F4A7C15ull;
  return mix64(key + (pair + 1) * golden);
}

// Whether the draw of this element is below `threshold`: with probability threshold / 2^32.
constexpr bool is_dropped(std::uint64_t key, std::uint64_t element, std::uint32_t threshold) {
  const std::uint64_t draws = draws_of_pair(key, element / 2);
  return static_cast<std::uint32_t>(element % 2 == 0 ? draws : draws >> 32) < threshold;
}

}  // namespace shardbook::kernels
