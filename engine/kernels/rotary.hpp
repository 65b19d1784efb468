// kernels/rotary: how does a query know how far away a key is?
//
// Numbers i and i + K/2 of a head are a vector in a plane; at position s it is turned by s · theta^(−2i/K). The
// product of a query at s and a key at t then depends on s − t alone. Rotations keep lengths, so backward turns the
// gradient back. Source: Su et al., "RoFormer" (2021); halves, not neighbours, are paired, as in Hugging Face's Llama
// (transformers, models/llama/modeling_llama.py, rotate_half).
// No collective; checks shapes.
#pragma once

#include "engine/device/device.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::kernels {

using device::Lane;
using tensor::Tensor;

// In place: turns the first `heads` heads of each row of rows_NE, token n being at position n mod `positions`; back
// where `inverse`. REQUIRES: head_dim is even.
void rotate(Lane lane, const Tensor& rows_NE, std::int64_t positions, std::int64_t heads, std::int64_t head_dim, float theta,
            bool inverse);

}  // namespace shardbook::kernels
