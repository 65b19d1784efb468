// libFuzzer target; build.sh builds it, targets.hpp says what must hold.
#include <cstddef>
#include <cstdint>

#include "tests/comm/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardbook::comm::fuzz::check_control({reinterpret_cast<const char*>(data), size});
  return 0;
}
