// tests/gpu: a cuda device of a test's own, what fills its memory, and what reads it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "tests/gpu/gpu_test.hpp"

namespace shardbook::gpu_test {

using device::Event;
using device::Memory;
using device::Stream;
using program::MemoryKind;
using program::OpDesc;
using program::OpKind;

inline constexpr std::int64_t many = std::int64_t{64} << 20;  // elements: filling them takes tens of microseconds

class CudaDevice : public OneGpu {
 protected:
  std::unique_ptr<device::Device> make() {
    auto made = device::make_cuda_device(0, {DType::bf16, DType::f32}, 0);
    if (!made) throw base::Failure(made.error());
    return std::move(made).value();
  }
  static void fill(Stream& stream, const Memory& memory, float value) {
    OpDesc desc("fill", OpKind::fill, DType::f32);
    stream.device().launch(stream, desc.writes(memory.use),
                           kernels::FillArgs{memory.data, memory.storage_bytes / 4, value, DType::f32}, &kernels::host::fill,
                           &kernels::cuda::fill);
  }
  static float read(device::Device& device, Stream& stream, const Memory& memory) {
    float value = 0;
    device.download(stream, "read", {memory.data, memory.use, 4}, &value);
    device.synchronize();
    return value;
  }
};

}  // namespace shardbook::gpu_test
