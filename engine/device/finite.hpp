// device/finite: does this memory hold a number that is not finite?
//
// Idea: behind each op of a step, on its stream, one op more goes through what the first has written. Where it finds a
// number that is infinite or none, it leaves the op's ticket, if that is less than the one that is there. Tickets count the
// ops of all steps in the order of issue, so the least is that of the first op that went wrong; what it spoiled comes later.
// What a collective reads is looked at, too: behind it all ranks of its group have what one of them brought.
#pragma once

#include <cstdint>

#include "engine/base/types.hpp"
#include "engine/device/cuda_queue.hpp"

namespace shardbook::device {

struct FiniteArgs {
  const void* data;
  std::int64_t elements;
  base::DType dtype;          // as stored: bf16, f32 or f64
  std::uint64_t ticket;
  std::uint64_t* least;       // in host memory that the device reaches
};

// What the op with this index in its step read, or has written. Comes in the order of issue.
struct Ticket {
  std::int64_t step = 0;
  std::uint32_t op = 0;       // less than 2^31
  bool written = true;
  constexpr std::uint64_t number() const { return static_cast<std::uint64_t>(step) << 32 | std::uint64_t{op} << 1 | std::uint64_t{written}; }
  static constexpr Ticket of(std::uint64_t number) {
    return {static_cast<std::int64_t>(number >> 32), static_cast<std::uint32_t>(number) >> 1, (number & 1) != 0};
  }
};
constexpr std::uint64_t no_ticket = ~std::uint64_t{0};

namespace host {
void check_finite(const FiniteArgs& args);
}
namespace cuda {
// The twin without CUDA throws.
void check_finite(const FiniteArgs& args, const CudaQueue& queue);
}

}  // namespace shardbook::device
