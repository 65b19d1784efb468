// device/cuda/owners: streams, events and memory, each with one owner.
//
// Move-only: what is made is destroyed once. Destruction reports nothing, since it may run while a
// failure is on its way up.
#pragma once

#include <cuda_runtime_api.h>

#include <cstring>
#include <utility>

#include "engine/base/types.hpp"
#include "engine/device/cuda/check.hpp"

namespace shardbook::device::cuda {

// A handle that Destroy gives back.
template <class Handle, cudaError_t (*Destroy)(Handle)>
class Owner {
 public:
  Owner() = default;
  explicit Owner(Handle handle) : handle_(handle) {}
  Owner(Owner&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owner& operator=(Owner&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owner() {
    if (handle_ != nullptr) Destroy(handle_);
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};

using OwnedStream = Owner<cudaStream_t, &cudaStreamDestroy>;
using OwnedEvent = Owner<cudaEvent_t, &cudaEventDestroy>;
using OwnedPinned = Owner<void*, &cudaFreeHost>;
using OwnedDeviceMemory = Owner<void*, &cudaFree>;

// Non-blocking: it never waits for the legacy default stream. Lower numbers go first.
inline OwnedStream make_stream(int priority, const std::string& context) {
  cudaStream_t stream = nullptr;
  SHARDBOOK_CUDA(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), context);
  return OwnedStream(stream);
}

// For order only: cheaper to record than one that keeps the time.
inline OwnedEvent make_order_event(const std::string& context) {
  cudaEvent_t event = nullptr;
  SHARDBOOK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), context);
  return OwnedEvent(event);
}

inline OwnedEvent make_timed_event(const std::string& context) {
  cudaEvent_t event = nullptr;
  SHARDBOOK_CUDA(cudaEventCreateWithFlags(&event, cudaEventDefault), context);
  return OwnedEvent(event);
}

// Zeroed.
inline OwnedPinned make_pinned(base::Bytes bytes, const std::string& context) {
  void* memory = nullptr;
  const std::size_t size = bytes > 0 ? static_cast<std::size_t>(bytes) : 1;
  SHARDBOOK_CUDA(cudaHostAlloc(&memory, size, cudaHostAllocDefault), context);
  std::memset(memory, 0, size);
  return OwnedPinned(memory);
}

// Of the device, not of its arena: set-up, or between steps, for the driver may wait for the device.
inline OwnedDeviceMemory make_device_memory(std::size_t bytes, const std::string& context) {
  void* memory = nullptr;
  SHARDBOOK_CUDA(cudaMalloc(&memory, bytes), context);
  return OwnedDeviceMemory(memory);
}

}  // namespace shardbook::device::cuda
