// `switches`, and the runs that a row names to try it on.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/config/switches.hpp"
#include "tests/cli/spoken.hpp"

namespace shardbook::cli {
namespace {

using config::switches;
using config::Trial;

TEST(Switches, AreListedWithTheirValuesAndSentencesIn80Columns) {
  const Spoken spoken = shardbook({"switches"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  std::istringstream lines(spoken.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  for (const config::Switch& row : switches()) {
    EXPECT_NE(spoken.out.find("\n" + row.key + " "), std::string::npos) << row.key;
    EXPECT_NE(spoken.out.find(row.values_text() + " [" + row.default_value + "]"), std::string::npos) << row.key;
  }
}

TEST(Switches, TellAllOfOneByItsName) {
  const Spoken spoken = shardbook({"switches", "fsdp.backward_prefetch"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  for (const char* said : {"torch/distributed/fsdp/_runtime_utils.py:L686-L689 @a1cb3cc0", "BackwardPrefetch.BACKWARD_PRE", "fsdp > 1", "same bits",
                           "notes/04_fsdp.md#depth", "./shardbook train --device meta --model", "--set fsdp.backward_prefetch=none"}) {
    EXPECT_NE(spoken.out.find(said), std::string::npos) << said << "\n" << spoken.out;
  }
}

TEST(Switches, AreTheSameAsJson) {
  const Spoken all = shardbook({"switches", "--json"});
  ASSERT_EQ(all.code, 0) << all.err;
  const nlohmann::json rows = nlohmann::json::parse(all.out);
  ASSERT_EQ(rows.size(), switches().size());
  for (const nlohmann::json& row : rows) {
    EXPECT_EQ(nlohmann::json::parse(shardbook({"switches", row["key"], "--json"}).out), row);
    for (const nlohmann::json& original : row["originals"]) EXPECT_TRUE(std::string(original["url"]).starts_with("https://github.com/"));
  }
}

TEST(Switches, AMissedNameGetsTheNearestOne) {
  const Spoken spoken = shardbook({"switches", "fsdp.prefetsh"});
  EXPECT_EQ(spoken.code, 2);
  EXPECT_NE(spoken.err.find("the nearest is fsdp.prefetch,"), std::string::npos) << spoken.err;
  EXPECT_EQ(spoken.out, "");
}

TEST(Switches, TheHelpOfTrainAndRunSaysHowToSetThem) {
  for (const char* command : {"train", "run"}) {
    const std::string help = shardbook({command, "--help"}).out;
    EXPECT_NE(help.find("--set fsdp.backward_prefetch=none"), std::string::npos);
    EXPECT_NE(help.find("`shardbook switches`"), std::string::npos);
  }
}

TEST(Switches, InForceAreWrittenBesideTheRun) {
  const Folder folder;
  const std::string run = folder / "run";
  const Spoken trained = shardbook({"train", "--device", "meta", "--fsdp", "2", "--set", "fsdp.backward_prefetch=post", "--out", run});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const nlohmann::json info = nlohmann::json::parse(content_of(run + "/run.json"));
  EXPECT_EQ(info["switches"].size(), switches().size());
  EXPECT_EQ(info["switches"]["fsdp.backward_prefetch"], "post");
  EXPECT_EQ(info["switches"]["fsdp.prefetch"], "1");
}

// ---- Trials ------------------------------------------------------------------------------------

// The modelled step of a line of options, without what tracing costs. The same line is run once.
double step_ns(const std::string& options) {
  static std::map<std::string, double> known;
  if (const auto found = known.find(options); found != known.end()) return found->second;
  const Folder folder;
  std::vector<std::string> words = {"train", "--device", "meta", "--steps", "1", "--trace-steps", "0:0", "--json", "--out", folder / "run"};
  std::istringstream typed(options);
  for (std::string word; typed >> word;) words.push_back(word);
  const Spoken spoken = shardbook(words);
  EXPECT_EQ(spoken.code, 0) << options << "\n" << spoken.err;
  return known[options] = spoken.code == 0 ? nlohmann::json::parse(spoken.out).at("step_ns").get<double>() : 0;
}

double percent_of_change(const std::string& key, const Trial& trial) {
  const double without = step_ns(trial.options), with = step_ns(trial.options + " --set " + key + "=" + trial.value);
  return 100 * std::abs(with / without - 1);
}

class Trials : public testing::TestWithParam<config::Switch> {};

TEST_P(Trials, MoveTheStepWhereTheySayAndNotWhereTheySay) {
  const config::Switch& row = GetParam();
  EXPECT_GE(percent_of_change(row.key, row.moves), row.moves.percent) << row.moves.options;
  if (row.still.value.empty()) return;   // the table says why
  EXPECT_LT(percent_of_change(row.key, row.still), row.still.percent) << row.still.options;
}

INSTANTIATE_TEST_SUITE_P(Table, Trials, testing::ValuesIn(switches()), [](const auto& info) {
  std::string name = info.param.key;
  for (char& letter : name) letter = std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
  return name;
});

}  // namespace
}  // namespace shardbook::cli
