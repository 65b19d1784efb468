// tensor/lot: how does memory serve one thing, and then another?
//
// Tensors that are needed for the same stretch of a step may lie side by side in one piece of memory, so that when the last
// of them has been read another can have all of it, under another type. Which is when is the order's to see to; the record
// knows one buffer and its ranges of bytes, so a reader that comes too late is found as any race is (check/).
#pragma once

#include "engine/tensor/tensor.hpp"

namespace shardbook::tensor {

class Lot {
 public:
  // Takes nothing, and counts what would be taken: to know how large a lot must be.
  Lot() = default;
  // Takes from `memory`, of which all are of one type.
  explicit Lot(const Tensor& memory) : memory_(memory) {}

  bool only_counts() const { return !memory_.exists(); }
  // The next of it, in multiples of 8 elements; a tensor that does not exist where it only counts.
  Tensor take(base::Shape shape);
  std::int64_t taken() const { return taken_; }   // elements

 private:
  Tensor memory_;
  std::int64_t taken_ = 0;
};

// The same memory as numbers of another type, as many as its nominal bytes hold.
Tensor seen_as(const device::Device& device, const Tensor& memory, base::DType nominal);

}  // namespace shardbook::tensor
