// libFuzzer target; tests/support/fuzz_all.sh builds it, targets.hpp says what must hold.
#include <cstddef>
#include <cstdint>

#include "tests/reading/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardbook::reading::fuzz::check_bytes({reinterpret_cast<const char*>(data), size});
  return 0;
}
