// The table of switches: what a row says of the originals and of the notes is there.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/config/config.hpp"
#include "engine/config/in_force.hpp"
#include "engine/config/switches.hpp"

namespace shardbook::config {
namespace {

class Rows : public testing::TestWithParam<Switch> {};

TEST_P(Rows, NameTheLinesOfTheirOriginals) {
  for (const Original& original : GetParam().originals) {
    EXPECT_TRUE(original.repository == "pytorch/pytorch" || original.repository == "NVIDIA/Megatron-LM") << original.repository;
    // A whole hash: a branch moves, and a short hash may one day mean two commits
    EXPECT_EQ(original.commit.size(), 40u) << original.commit;
    EXPECT_EQ(original.commit.find_first_not_of("0123456789abcdef"), std::string::npos) << original.commit;
    EXPECT_TRUE(original.path.ends_with(".py") || original.path.ends_with(".hpp") || original.path.ends_with(".cpp")) << original.path;
    EXPECT_GT(original.first_line, 0) << original.path;
    EXPECT_GE(original.last_line, original.first_line) << original.path;
    EXPECT_LE(original.last_line - original.first_line, 100) << original.path << ": a place to look at, not a file";
    EXPECT_NE(original.what, "") << original.path;
  }
  // What is taken from somebody says from where
  const bool planted = GetParam().sentence.starts_with("A planted mistake");
  EXPECT_EQ(GetParam().originals.empty(), planted);
}

TEST_P(Rows, NameAPlaceInTheNotes) {
  const std::string& note = GetParam().note;
  const std::size_t hash = note.find('#');
  ASSERT_NE(hash, std::string::npos) << note << " names no anchor";
  const std::filesystem::path path = std::filesystem::path(SHARDBOOK_SOURCE_DIR) / "notes" / (note.substr(0, hash) + ".md");
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(page.find("<a id=\"" + note.substr(hash + 1) + "\"></a>"), std::string::npos) << path << " has no anchor " << note.substr(hash + 1);
}

TEST_P(Rows, AreTriedWithAValueThatIsNotTheDefault) {
  const Switch& row = GetParam();
  EXPECT_NE(row.moves.value, "") << "no configuration shows what " << row.key << " is for";
  for (const Trial* trial : {&row.moves, &row.still}) {
    if (trial->value.empty()) continue;
    EXPECT_NE(trial->value, row.default_value);
    RunConfig config;
    EXPECT_TRUE(set_switch(config, row.key + "=" + trial->value)) << trial->value;
  }
  EXPECT_GE(row.moves.percent, 5) << "too little to be seen";
  EXPECT_LE(row.still.percent, 0.5) << "that is not still";
}

INSTANTIATE_TEST_SUITE_P(Table, Rows, testing::ValuesIn(switches()), [](const auto& info) {
  std::string name = info.param.key;
  for (char& letter : name) letter = std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
  return name;
});

TEST(SwitchTable, IsInTheOrderOfItsKeysAndHasEachOnce) {
  EXPECT_TRUE(std::is_sorted(switches().begin(), switches().end(), [](const Switch& a, const Switch& b) { return a.key < b.key; }));
  EXPECT_EQ(std::adjacent_find(switches().begin(), switches().end(), [](const Switch& a, const Switch& b) { return a.key == b.key; }), switches().end());
}

TEST(SwitchesInForce, AreThoseThatWereSetAndTheDefaultsOfAllOthers) {
  RunConfig config;
  ASSERT_TRUE(set_switch(config, "fsdp.backward_prefetch=post"));
  config.prefetch = 3;   // the option of which fsdp.prefetch is another name
  const auto values = switches_in_force(config);
  EXPECT_EQ(values.size(), switches().size());
  EXPECT_EQ(values.at("fsdp.backward_prefetch"), "post");
  EXPECT_EQ(values.at("fsdp.prefetch"), "3");
  EXPECT_EQ(values.at("data_parallel.reduce"), "bucketed");
}

}  // namespace
}  // namespace shardbook::config
