// train/batches: how do this rank's tokens get to the device?
//
// Each micro-batch is one block of i32 in host memory (tokens, targets, and the tokens' order for the
// embedding's backward), uploaded in one copy. Host memory is kept twice, so that the host may fill the next
// step's batch while this step's copies are still queued.
#pragma once

#include <span>
#include <vector>

#include "engine/config/config.hpp"
#include "engine/data/source.hpp"
#include "engine/model/pieces.hpp"
#include "engine/shard/interval.hpp"

namespace shardbook::train {

class Batches {
 public:
  // Set-up. `fsdp_index` says which sequences of the global batch are this rank's; `vocabulary` which rows of the
  // embedding. `source` may be null on meta.
  Batches(device::Device& device, const config::RunConfig& config, const data::TokenSource* source, int fsdp_index,
          shard::Interval vocabulary);

  // Draws the tokens of this step's micro-batches into host memory, and sorts them, before the step begins: a step that is
  // traced stands alone, and would show the device waiting for it. REQUIRES: the copies of step − 2 have run.
  void fill(std::int64_t step);
  // Issues the copy of one micro-batch, which fill() has filled.
  void upload(device::Lane lane, std::int64_t step, int micro_batch);
  // Where the sequences of a micro-batch begin in the global batch.
  int first_sequence(int micro_batch) const { return (fsdp_index_ * config_.micro_batches + micro_batch) * config_.sequences_per_micro_batch(); }
  const model::Batch& batch(int micro_batch) const { return batches_[static_cast<std::size_t>(micro_batch)]; }

 private:
  std::int32_t* host_block(std::int64_t step, int micro_batch) const { return host_blocks_[static_cast<std::size_t>(2 * micro_batch + step % 2)]; }
  void fill(std::int64_t step, int micro_batch, std::span<std::int32_t> block);

  const config::RunConfig& config_;
  const data::TokenSource* source_;
  int fsdp_index_;
  shard::Interval vocabulary_;
  std::int64_t tokens_, segments_, block_;  // sizes in elements: N, most segments, one whole block
  std::vector<tensor::Tensor> device_blocks_;   // by micro-batch
  std::vector<std::int32_t*> host_blocks_;      // by 2 · micro-batch + (step mod 2)
  std::vector<model::Batch> batches_;
};

}  // namespace shardbook::train
