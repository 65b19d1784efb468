// Memory that serves one thing and then another.
#include <gtest/gtest.h>

#include "engine/device/host/host_device.hpp"
#include "engine/tensor/lot.hpp"

namespace shardbook::tests {
namespace {

using base::DType;
using tensor::Lot;
using tensor::Tensor;

Tensor memory_on(device::Device& device, std::int64_t elements) {
  return tensor::allocate(device, {elements}, DType::bf16, program::MemoryKind::activation, "lot");
}

// What is counted first is what is taken then, and no two tensors share a byte.
TEST(Lot, CountsWhatItWouldTake) {
  device::HostDevice device(device::Storage{DType::f64, DType::f64}, 0, 0);
  Lot counts;
  const std::vector<base::Shape> shapes = {{3, 5}, {16}, {1}, {2, 2, 2}};
  for (const base::Shape& shape : shapes) EXPECT_FALSE(counts.take(shape).exists());
  EXPECT_TRUE(counts.only_counts());
  Lot lot(memory_on(device, counts.taken()));
  std::int64_t end = 0;
  for (const base::Shape& shape : shapes) {
    const Tensor taken = lot.take(shape);
    EXPECT_EQ(taken.shape, shape);
    EXPECT_GE(taken.use().begin, end);
    EXPECT_EQ(taken.use().begin % 16, 0) << "where a kernel may load 16 bytes at once";
    end = taken.use().end;
  }
  EXPECT_EQ(lot.taken(), counts.taken());
  EXPECT_THROW(lot.take({1}), base::Failure);
}

// The same bytes of the same buffer, in the record and, in any storage, within the memory.
TEST(Lot, IsSeenAsNumbersOfAnotherTypeWithinItsBytes) {
  for (const device::Storage& storage : {device::Storage{DType::f32, DType::f32}, device::Storage{DType::f64, DType::f64}, device::Storage{DType::bf16, DType::f32}}) {
    device::HostDevice device(storage, 0, 0);
    const Tensor memory = memory_on(device, 64), half = memory.slice(32, {32});
    const Tensor all = tensor::seen_as(device, memory, DType::f32), second = tensor::seen_as(device, half, DType::f32);
    EXPECT_EQ(all.elements(), 32);
    EXPECT_EQ(all.use().buffer, memory.use().buffer);
    EXPECT_EQ(all.use().end, memory.use().end);
    EXPECT_EQ(second.use().begin, half.use().begin);
    EXPECT_EQ(second.data, half.data);
    EXPECT_LE(second.storage_bytes(), half.storage_bytes());
    EXPECT_EQ(all.storage, storage.of(DType::f32));
    EXPECT_THROW(tensor::seen_as(device, memory.slice(1, {4}), DType::f32), base::Failure) << "it begins within a number";
  }
}

}  // namespace
}  // namespace shardbook::tests
