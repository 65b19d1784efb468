#include "engine/tensor/lot.hpp"

namespace shardbook::tensor {

Tensor Lot::take(base::Shape shape) {
  constexpr std::int64_t aligned = 8;   // elements: 16 bytes, of the narrowest type
  const std::int64_t begin = taken_;
  taken_ += (shape.elements() + aligned - 1) / aligned * aligned;
  return only_counts() ? Tensor{} : memory_.slice(begin, shape);
}

Tensor seen_as(const device::Device& device, const Tensor& memory, base::DType nominal) {
  const base::Bytes size = base::size_of(nominal), begin = memory.offset * base::size_of(memory.nominal);
  SHARDBOOK_CHECK_EQ(begin % size, 0, "memory that is seen as another type begins within a number of it: remainder");
  Tensor seen = memory;
  seen.nominal = nominal;
  seen.storage = device.storage().of(nominal);
  seen.shape = {memory.nominal_bytes() / size};
  seen.offset = begin / size;
  SHARDBOOK_CHECK(seen.storage_bytes() <= memory.storage_bytes(), "memory of ", memory.storage_bytes(), " bytes is seen as ", seen.storage_bytes());
  return seen;
}

}  // namespace shardbook::tensor
