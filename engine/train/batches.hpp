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

  // Fills the host memory of this step and issues the copy of one micro-batch. REQUIRES: the copies of step − 2
  // have run.
  void upload(device::Lane lane, std::int64_t step, int micro_batch);
  // Fills the host memory of this step alone, of all micro-batches: the copies are in a graph.
  void fill(std::int64_t step);
  // Where the sequences of a micro-batch begin in the global batch.
  int first_sequence(int micro_batch) const { return (fsdp_index_ * config_.micro_batches + micro_batch) * config_.sequences_per_micro_batch(); }
  const model::Batch& batch(int micro_batch) const { return batches_[static_cast<std::size_t>(micro_batch)]; }

 private:
  std::int32_t* fill(std::int64_t step, int micro_batch);
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
