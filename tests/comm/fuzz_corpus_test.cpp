// What the fuzzer began with and what it found worth keeping still holds; tests/support/fuzz_all.sh runs the fuzzers.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/comm/fuzz/targets.hpp"

namespace shardbook::comm {
namespace {

TEST(ControlCorpus, IsReadOrRefusedInASentence) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(SHARDBOOK_SOURCE_DIR) / "tests/comm/fuzz/corpus")) {
    SCOPED_TRACE(entry.path().filename().string());
    std::ifstream file(entry.path(), std::ios::binary);
    fuzz::check_control(std::string(std::istreambuf_iterator<char>(file), {}));
    ++files;
  }
  EXPECT_GE(files, 15u);
}

}  // namespace
}  // namespace shardbook::comm
