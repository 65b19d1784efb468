// data/order: a shuffled order that is computed, not stored.
//
// permute() is a small block cipher on [0, count): a Feistel network of four rounds on the least
// even number of bits that holds count, applied again while the result lies outside ("cycle
// walking"; at most four times on average). So any element of an epoch's order is found without a
// table, alike on every rank. It shuffles; it keeps no secret.
//
// Sources: Black and Rogaway 2002, Ciphers with Arbitrary Finite Domains (cycle walking);
// Steele, Lea and Flood 2014, Fast Splittable Pseudorandom Number Generators (the mixing function).
#pragma once

#include <cstdint>

namespace shardbook::data {

// A well-mixed function of 64 bits: a bijection (SplitMix64's finalizer after its increment).
std::uint64_t mix(std::uint64_t value);

// Where `index` comes to lie in the shuffle of [0, count) that `key` draws. For a fixed key and
// count this is a bijection. REQUIRES: 0 <= index < count.
std::int64_t permute(std::int64_t index, std::int64_t count, std::uint64_t key);

}  // namespace shardbook::data
