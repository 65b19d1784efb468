// How often this program has called operator new: a test compares the count before and after.
#pragma once

#include <cstddef>

namespace shardbook::program {

std::size_t allocation_count();

}  // namespace shardbook::program
