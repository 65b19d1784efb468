// kernels/cuda/token_sums: how are the sums of blocks of rows added?
//
// The second stage of every gradient that is a sum over tokens; the first is in token_sums.cu, or, for a norm whose
// gradients are made in one pass, in layer_norm_gradients.cu.
#pragma once

#include <cstdint>

#include "engine/device/cuda_queue.hpp"

namespace shardbook::kernels::cuda {

// first (+)= Σ_b scratch[b][0][column], and second (+)= Σ_b scratch[b][1][column] where there are two `sums`, over
// row_blocks(tokens) blocks b in one fixed order.
void add_row_blocks(const char* op, const float* scratch, int sums, float* first, float* second, std::int64_t tokens, std::int64_t width,
                    bool accumulate, const device::CudaQueue& queue);

}  // namespace shardbook::kernels::cuda
