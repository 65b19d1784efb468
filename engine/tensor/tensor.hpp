// tensor: what shape is this memory?
//
// A Tensor is a view by value: where the numbers are, their shape, their nominal and their storage type,
// and which bytes of which recorded buffer they are. Always contiguous, outermost dim first. It owns
// nothing; the device's arena does.
//
// Shape suffixes, used in every room above (after Shazeer, "Shape Suffixes", 2024):
//   N tokens of a micro-batch on this rank (= B·S)      B sequences     S positions of a sequence
//   D model width       F width of the MLP              V vocabulary
//   H heads on this rank   K head dimension             P parts of a fused projection (3: q, k, v)
//   I inputs and O outputs of a linear, as cut on this rank   R of N: the rows that are here where tokens are cut
#pragma once

#include <string>

#include "engine/base/types.hpp"
#include "engine/device/device.hpp"
#include "engine/program/program.hpp"

namespace shardbook::tensor {

struct Tensor {
  void* data = nullptr;  // null on meta
  base::Shape shape;
  base::DType nominal = base::DType::f32;
  base::DType storage = base::DType::f32;
  program::BufferId buffer = program::no_buffer;
  std::int64_t offset = 0;  // elements from the buffer's begin

  bool exists() const { return buffer != program::no_buffer; }
  std::int64_t elements() const { return shape.elements(); }
  base::Bytes nominal_bytes() const { return elements() * base::size_of(nominal); }
  base::Bytes storage_bytes() const { return elements() * base::size_of(storage); }

  // The recorded range of bytes that an op on this tensor reads or writes.
  program::BufferUse use() const {
    const base::Bytes size = base::size_of(nominal);
    return {buffer, offset * size, (offset + elements()) * size};
  }

  // The same numbers under another shape of as many elements.
  Tensor as(base::Shape other) const;
  // Elements [begin, begin + shape.elements()) of the flattened tensor, in a shape.
  Tensor slice(std::int64_t begin, base::Shape as_shape) const;
  // Rows [begin, end) of the outermost dim.
  Tensor rows(std::int64_t begin, std::int64_t end) const;
};

// A tensor over memory of its own. Set-up only (see Device::allocate).
Tensor allocate(device::Device& device, base::Shape shape, base::DType nominal, program::MemoryKind kind,
                const std::string& name);

// The bytes of a tensor as device memory, for upload and download.
device::Memory memory_of(const Tensor& tensor);

}  // namespace shardbook::tensor
