// How often this thread has allocated: operator new is replaced for the whole test program.
#pragma once

#include <cstdint>

namespace shardbook::data {

std::int64_t allocations();

}  // namespace shardbook::data
