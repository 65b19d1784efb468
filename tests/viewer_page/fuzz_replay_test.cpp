// What the fuzzers found worth keeping still holds; see fuzz/build.sh for the fuzzers themselves.
#include <gtest/gtest.h>

#include "page_support.hpp"
#include "tests/viewer_page/fuzz/targets.hpp"

namespace shardbook::page {
namespace {

std::size_t replay(const char* folder, void (*check)(std::string_view)) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(SHARDBOOK_SOURCE_DIR) / "tests/viewer_page/fuzz/corpus" / folder)) {
    check(test::content(entry.path()));
    ++files;
  }
  return files;
}

TEST(FuzzReplay, Markdown) { EXPECT_GE(replay("markdown", fuzz::check_markdown), 20u); }
TEST(FuzzReplay, Diagrams) { EXPECT_GE(replay("diagram", fuzz::check_diagram), 20u); }
TEST(FuzzReplay, FormulasAndPrograms) { EXPECT_GE(replay("text", fuzz::check_text), 20u); }

}  // namespace
}  // namespace shardbook::page
