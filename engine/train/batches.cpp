#include "engine/train/batches.hpp"

#include <algorithm>

#include "engine/data/sort_by_token.hpp"

namespace shardbook::train {

Batches::Batches(device::Device& device, const config::RunConfig& config, const data::TokenSource* source, int fsdp_index,
                 shard::Interval vocabulary)
    : config_(config), source_(source), fsdp_index_(fsdp_index), vocabulary_(vocabulary),
      tokens_(config.tokens_per_micro_batch()), segments_(std::min(tokens_, vocabulary.size())) {
  // One block: token, target, order [N each]; segment_token; segment_begin (as long as sort_by_token's
  // counters need); the number of segments.
  const std::int64_t begins = vocabulary.size() + 1;
  block_ = 3 * tokens_ + segments_ + begins + 1;
  for (int micro_batch = 0; micro_batch < config.micro_batches; ++micro_batch) {
    const std::string name = "batch." + std::to_string(micro_batch);
    const tensor::Tensor block = tensor::allocate(device, {block_}, base::DType::i32, program::MemoryKind::input, name);
    device_blocks_.push_back(block);
    for (int parity = 0; parity < 2; ++parity) {
      host_blocks_.push_back(static_cast<std::int32_t*>(device.pinned(block_ * 4)));
    }
    model::Batch& batch = batches_.emplace_back();
    batch.token_N = block.slice(0, {tokens_});
    batch.target_N = block.slice(tokens_, {tokens_});
    batch.segments.order_N = block.slice(2 * tokens_, {tokens_});
    batch.segments.segment_token_N = block.slice(3 * tokens_, {segments_});
    batch.segments.segment_begin_N = block.slice(3 * tokens_ + segments_, {segments_ + 1});
    batch.segments.segments = block.slice(block_ - 1, {1});
  }
}

void Batches::fill(std::int64_t step) {
  if (source_ == nullptr) return;
  for (int micro_batch = 0; micro_batch < config_.micro_batches; ++micro_batch) {
    std::int32_t* block = host_block(step, micro_batch);
    if (block != nullptr) fill(step, micro_batch, {block, static_cast<std::size_t>(block_)});
  }
}

void Batches::upload(device::Lane lane, std::int64_t step, int micro_batch) {
  lane.device().upload(lane, "upload_batch", host_block(step, micro_batch), tensor::memory_of(device_blocks_[static_cast<std::size_t>(micro_batch)]));
}

void Batches::fill(std::int64_t step, int micro_batch, std::span<std::int32_t> block) {
  // This rank's sequences: the fsdp ranks cut the global batch, the micro-batches cut a rank's part.
  const int count = config_.sequences_per_micro_batch();
  const int first = first_sequence(micro_batch);
  const std::size_t tokens = static_cast<std::size_t>(tokens_), segments = static_cast<std::size_t>(segments_);
  source_->fill(step, config_.sequences, first, count, block.subspan(0, tokens), block.subspan(tokens, tokens));
  block.back() = data::sort_by_token(block.subspan(0, tokens), static_cast<int>(vocabulary_.begin), static_cast<int>(vocabulary_.end),
                                     block.subspan(2 * tokens, tokens), block.subspan(3 * tokens, segments),
                                     block.subspan(3 * tokens + segments, block.size() - 3 * tokens - segments - 1));
}

}  // namespace shardbook::train
