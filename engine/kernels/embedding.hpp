// kernels/embedding: which row of a table does a token or a position fetch, and where does its gradient go?
//
// The token table may be cut over the vocabulary: a rank holds rows [vocab_begin, vocab_begin + V), yields 0
// for tokens of other ranks, and the sum over ranks is the whole look-up. Backward must add the gradients
// of equal tokens; that they come grouped (data/sort_by_token) gives each row one writer and one order,
// so no float atomics are needed and a run repeats bit for bit.
//
// Token tensors are i32. None is a collective; all check shapes.
#pragma once

#include "engine/device/device.hpp"
#include "engine/tensor/tensor.hpp"

namespace shardbook::kernels {

using device::Lane;
using tensor::Tensor;

// What data::sort_by_token made of a micro-batch for this rank's part of the vocabulary, on the device.
struct TokenSegments {
  Tensor order_N;          // positions, grouped by token
  Tensor segment_token_N;  // token of each segment
  Tensor segment_begin_N;  // where each segment begins in order_N, and where the last one ends
  Tensor segments;         // [1]: how many there are
};

// x_ND[n] = weight_VD[token_N[n] − vocab_begin] where the token lies in this part, else 0.
void embedding_forward(Lane lane, const Tensor& token_N, const Tensor& weight_VD, std::int64_t vocab_begin,
                       const Tensor& x_ND);
// dweight_VD (+)= for each row the sum of dx_ND over its token's positions, nominal f32. Without `accumulate`
// the rows of absent tokens become 0.
void embedding_backward(Lane lane, const Tensor& dx_ND, const TokenSegments& segments, std::int64_t vocab_begin,
                        const Tensor& dweight_VD, bool accumulate);

// x_ND[n] += weight_SD[(first + n) mod S]: N tokens, of which the one before them is number first − 1. S is the rows of the
// table: pass rows(0, S) of one that is longer than the sequences.
void position_forward(Lane lane, const Tensor& weight_SD, const Tensor& x_ND, std::int64_t first);
// dweight_SD[s] (+)= Σ of dx_ND[n] where (first + n) mod S = s, nominal f32. Without `accumulate` the rows whose positions are
// not here become 0.
void position_backward(Lane lane, const Tensor& dx_ND, const Tensor& dweight_SD, bool accumulate, std::int64_t first);

}  // namespace shardbook::kernels
