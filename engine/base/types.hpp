// base/types: the nouns that every room shares.
//
// Rank, Bytes and Nanoseconds are plain integers with a name; DType says how one number is
// stored; Shape says how many numbers a tensor has along each dim. Nothing here allocates.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>

namespace shardbook::base {

using Rank = int;
using Bytes = std::int64_t;
using Nanoseconds = std::int64_t;

// How one number is stored. Every tensor has two: the *nominal* one is what a GPU would use (it
// decides bytes and modelled times), the *storage* one is what the numbers really have here.
enum class DType : std::uint8_t { bf16, f32, f64, i32 };

constexpr Bytes size_of(DType dtype) {
  switch (dtype) {
    case DType::bf16: return 2;
    case DType::f32: return 4;
    case DType::f64: return 8;
    case DType::i32: return 4;
  }
  return 0;
}

constexpr const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::bf16: return "bf16";
    case DType::f32: return "f32";
    case DType::f64: return "f64";
    case DType::i32: return "i32";
  }
  return "?";
}

// Sizes of a tensor, outermost dim first. At most four dims; a scalar has none.
class Shape {
 public:
  static constexpr int max_dims = 4;

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<std::int64_t> sizes) {
    for (std::int64_t size : sizes) {
      if (dims_ < max_dims) sizes_[dims_++] = size;
    }
  }

  constexpr int dims() const { return dims_; }
  constexpr std::int64_t operator[](int dim) const { return sizes_[dim]; }
  constexpr std::int64_t elements() const {
    std::int64_t product = 1;
    for (int dim = 0; dim < dims_; ++dim) product *= sizes_[dim];
    return product;
  }
  constexpr bool operator==(const Shape& other) const {
    if (dims_ != other.dims_) return false;
    for (int dim = 0; dim < dims_; ++dim) {
      if (sizes_[dim] != other.sizes_[dim]) return false;
    }
    return true;
  }

 private:
  std::array<std::int64_t, max_dims> sizes_{};
  int dims_ = 0;
};

// "[8192, 2048]"
std::string to_string(const Shape& shape);
std::ostream& operator<<(std::ostream& out, const Shape& shape);

}  // namespace shardbook::base
