#include "engine/data/order.hpp"

#include <bit>

#include "engine/base/check.hpp"

namespace shardbook::data {

std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

std::int64_t permute(std::int64_t index, std::int64_t count, std::uint64_t key) {
  SHARDBOOK_CHECK(0 <= index && index < count, "index ", index, " of ", count);
  constexpr std::uint64_t rounds = 4;
  const int bits = std::bit_width(static_cast<std::uint64_t>(count - 1));
  const int half = (bits + 1) / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  auto place = static_cast<std::uint64_t>(index);
  do {
    std::uint64_t left = place >> half;
    std::uint64_t right = place & mask;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::uint64_t next = left ^ (mix(key + mix(right * rounds + round)) & mask);
      left = right;
      right = next;
    }
    place = (left << half) | right;
  } while (place >= static_cast<std::uint64_t>(count));
  return static_cast<std::int64_t>(place);
}

}  // namespace shardbook::data
