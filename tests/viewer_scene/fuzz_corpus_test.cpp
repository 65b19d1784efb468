// What the fuzzers began with and what they found worth keeping still holds; see fuzz/README.md for the fuzzers themselves.
#include <gtest/gtest.h>

#include "tests/viewer_scene/fuzz/targets.hpp"

namespace shardbook::scene {
namespace {

std::size_t replay(const std::string& folder, void (*check)(std::string_view)) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(SHARDBOOK_SOURCE_DIR) / "tests" / folder)) {
    SCOPED_TRACE(entry.path().filename().string());
    std::ostringstream bytes;
    bytes << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    EXPECT_NO_THROW(check(bytes.str()));
    ++files;
  }
  return files;
}

TEST(SceneCorpus, AnswersEveryQuestion) { EXPECT_GE(replay("viewer_scene/fuzz/corpus/scene", fuzz::check_scene), 20u); }
TEST(SceneCorpus, OfTheReadersFilesAnswersEveryQuestion) {
  EXPECT_GE(replay("timeline/fuzz/corpus/trace", fuzz::check_scene), 59u);
  EXPECT_GE(replay("timeline/fuzz/corpus/columns", fuzz::check_scene), 15u);
}
TEST(SidecarCorpus, IsReadOrKeptAside) { EXPECT_GE(replay("viewer_scene/fuzz/corpus/sidecar", fuzz::check_sidecar), 15u); }

}  // namespace
}  // namespace shardbook::scene
