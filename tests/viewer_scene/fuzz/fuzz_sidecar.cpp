// libFuzzer target; build.sh builds it, targets.hpp says what must hold.
#include <cstddef>
#include <cstdint>

#include "tests/viewer_scene/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardbook::scene::fuzz::check_sidecar({reinterpret_cast<const char*>(data), size});
  return 0;
}
