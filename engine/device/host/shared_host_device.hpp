// device/host: the same CPU device, with memory that the other ranks' processes can see.
//
// For ranks that are processes of one host: a collective reads and writes the numbers where they are, as it does
// between threads.
#pragma once

#include "engine/device/host/host_device.hpp"
#include "engine/device/host/shared_memory.hpp"

namespace shardbook::device {

class SharedHostDevice final : public HostDevice {
 public:
  using HostDevice::HostDevice;
  SharedMemory& memory() { return memory_; }

 protected:
  void* allocate_storage(base::Bytes bytes) override { return memory_.allocate(bytes); }

 private:
  SharedMemory memory_;
};

}  // namespace shardbook::device
