// Numbers as they are: of one type in the record and in memory.
#pragma once

#include "engine/device/device.hpp"

namespace shardbook::device {

inline constexpr Storage plain{base::DType::f32, base::DType::f32};

}  // namespace shardbook::device
