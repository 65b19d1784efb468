// libFuzzer target; build.sh builds it, targets.hpp says what must hold.
#include <cstddef>
#include <cstdint>

#include "tests/simulate/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardbook::simulate::fuzz::check_profile({reinterpret_cast<const char*>(data), size});
  return 0;
}
