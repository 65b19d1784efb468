#include "engine/tensor/tensor.hpp"

namespace shardbook::tensor {

Tensor Tensor::as(base::Shape other) const {
  SHARDBOOK_CHECK_EQ(other.elements(), elements(), "elements of ", base::to_string(shape), " seen as ",
                     base::to_string(other));
  Tensor view = *this;
  view.shape = other;
  return view;
}

Tensor Tensor::slice(std::int64_t begin, base::Shape as_shape) const {
  SHARDBOOK_CHECK(begin >= 0 && begin + as_shape.elements() <= elements(), "slice [", begin, ", ",
                  begin + as_shape.elements(), ") of ", elements(), " elements");
  Tensor view = *this;
  view.shape = as_shape;
  view.offset += begin;
  if (data != nullptr) view.data = static_cast<std::byte*>(data) + begin * base::size_of(storage);
  return view;
}

Tensor Tensor::rows(std::int64_t begin, std::int64_t end) const {
  const std::int64_t row = shape[0] == 0 ? 0 : elements() / shape[0];
  base::Shape as_shape{end - begin};
  if (shape.dims() == 2) as_shape = {end - begin, shape[1]};
  if (shape.dims() == 3) as_shape = {end - begin, shape[1], shape[2]};
  if (shape.dims() == 4) as_shape = {end - begin, shape[1], shape[2], shape[3]};
  return slice(begin * row, as_shape);
}

Tensor allocate(device::Device& device, base::Shape shape, base::DType nominal, program::MemoryKind kind,
                const std::string& name) {
  const device::Memory memory = device.allocate(shape.elements(), nominal, kind, name);
  return {memory.data, shape, nominal, device.storage().of(nominal), memory.use.buffer, 0};
}

device::Memory memory_of(const Tensor& tensor) {
  return {tensor.data, tensor.use(), tensor.storage_bytes()};
}

}  // namespace shardbook::tensor
