// libFuzzer target; build.sh builds it, targets.hpp says what must hold.
#include <cstddef>
#include <cstdint>

#include "tests/data/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardbook::data::fuzz::check_indexed({reinterpret_cast<const char*>(data), size});
  return 0;
}
