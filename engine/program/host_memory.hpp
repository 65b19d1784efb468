// program/host_memory: does a buffer lie in the host's memory?
//
// A buffer's kind says what it is for. Where it lies its name says: whoever makes a buffer of page-locked host memory
// ends its name so. It is in the record like any other, for copies to it and from it can race; but no device holds it.
#pragma once

#include <string_view>

#include "engine/program/program.hpp"

namespace shardbook::program {

inline constexpr std::string_view host_memory_mark = " in host memory";

inline bool in_host_memory(const BufferInfo& buffer) { return std::string_view(buffer.name).ends_with(host_memory_mark); }

}  // namespace shardbook::program
