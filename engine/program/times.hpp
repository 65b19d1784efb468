// program/times: when each command of a program was issued and each of its ops ran.
//
// Kept apart from the program, since a program is stored once and run many times.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/types.hpp"

namespace shardbook::program {

// Half-open, in nanoseconds of the rank's clock base. start > end means "not known".
struct TimeSpan {
  base::Nanoseconds start = 0;
  base::Nanoseconds end = -1;
};

inline constexpr std::uint32_t no_program = ~std::uint32_t{0};

struct StepTimes {
  std::int64_t step = 0;
  std::uint32_t program = 0;        // index into Recorder::programs(), or no_program (Recorder::end_step)
  TimeSpan window;                  // host: from begin_step to end_step
  std::vector<TimeSpan> issued;     // per command: the host entered and left the call
  std::vector<TimeSpan> ran;        // per op: on the device's clock, mapped to the host's
};

}  // namespace shardbook::program
