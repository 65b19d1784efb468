#include "engine/train/step_values.hpp"

#include <cstddef>

namespace shardbook::train {

StepValues::StepValues(device::Device& device)
    : there_(tensor::allocate(device, {words(sizeof(Values))}, base::DType::i32, program::MemoryKind::input, "step.values")) {
  static_assert(offsetof(Values, update) == 0 && sizeof(Values) % sizeof(std::int32_t) == 0);
  for (Values*& here : here_) here = static_cast<Values*>(device.pinned(sizeof(Values)));
}

void StepValues::fill(std::int64_t step, const kernels::AdamWFactors& update, std::uint64_t step_key) {
  Values* here = here_[static_cast<std::size_t>(step % 2)];
  if (here != nullptr) *here = {update, step_key};
}

void StepValues::upload(device::Lane lane, std::int64_t step) {
  lane.device().upload(lane, "upload_step", here_[static_cast<std::size_t>(step % 2)], tensor::memory_of(there_));
}

const std::uint64_t* StepValues::step_key() const {
  if (there_.data == nullptr) return nullptr;
  return reinterpret_cast<const std::uint64_t*>(static_cast<const std::byte*>(there_.data) + offsetof(Values, step_key));
}

}  // namespace shardbook::train
