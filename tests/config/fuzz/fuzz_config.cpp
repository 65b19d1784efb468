// libFuzzer target; build.sh builds it, targets.hpp says what must hold.
#include <cstddef>
#include <cstdint>

#include "tests/config/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardbook::config::fuzz::check_config({reinterpret_cast<const char*>(data), size});
  return 0;
}
