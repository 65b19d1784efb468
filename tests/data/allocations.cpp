#include "tests/data/allocations.hpp"

#include <cstdlib>
#include <new>

namespace {
thread_local std::int64_t count = 0;
}  // namespace

std::int64_t shardbook::data::allocations() { return count; }

void* operator new(std::size_t size) {
  ++count;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
