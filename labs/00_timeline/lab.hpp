// Lab 00, part b: how long does an all-reduce take?
//
// You write one function, from four of nine measured sizes. It is compared with all nine. They were measured on 4 GPUs
// (profile h200x8, `all_reduce` over 4 ranks), by `./shardbook calibrate`.
#pragma once

#include <algorithm>
#include <cmath>

namespace shardbook::lab00 {

// Microseconds that an all-reduce of a buffer of so many bytes takes over 4 GPUs. Bytes are those of the whole buffer on
// one GPU. Called with sizes from 4 KiB to 512 MiB; nothing else is asked of it.
double all_reduce_us(double bytes);

inline constexpr double KiB = 1024, MiB = 1024 * 1024;

}  // namespace shardbook::lab00
