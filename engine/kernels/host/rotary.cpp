// kernels/host/rotary: the rotations of a position, made once and used for all its heads.
//
// Angles are made in fp64 whatever T is: a position's sine and cosine are then right to the last bit of a float.
#include <cmath>
#include <vector>

#include "engine/kernels/host/dispatch.hpp"
#include "engine/kernels/host/references.hpp"

namespace shardbook::kernels::host {
namespace {

template <class T>
void turn(const RotateArgs& args) {
  const std::int64_t half = args.head_dim / 2;
  std::vector<T> cosine(static_cast<std::size_t>(half)), sine(static_cast<std::size_t>(half));
  for (std::int64_t s = 0; s < args.positions; ++s) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double frequency = std::pow(static_cast<double>(args.theta), -static_cast<double>(i) / static_cast<double>(half));
      const double angle = static_cast<double>(s) * frequency;
      cosine[static_cast<std::size_t>(i)] = static_cast<T>(std::cos(angle));
      sine[static_cast<std::size_t>(i)] = static_cast<T>(args.inverse ? -std::sin(angle) : std::sin(angle));
    }
    for (std::int64_t b = 0; b < args.sequences; ++b) {
      for (std::int64_t h = 0; h < args.heads; ++h) {
        T* first = as<T>(args.rows) + (b * args.positions + s) * args.row_stride + h * args.head_dim;
        T* second = first + half;
        for (std::int64_t i = 0; i < half; ++i) {
          const T x = first[i], y = second[i];
          const T c = cosine[static_cast<std::size_t>(i)], z = sine[static_cast<std::size_t>(i)];
          first[i] = x * c - y * z;
          second[i] = y * c + x * z;
        }
      }
    }
  }
}

}  // namespace

void rotate(const RotateArgs& args) {
  with_float(args.dtype, [&](auto zero) { turn<decltype(zero)>(args); });
}

}  // namespace shardbook::kernels::host
