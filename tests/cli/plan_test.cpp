// A plan on the command line.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "engine/cli/command.hpp"
#include "tests/cli/spoken.hpp"

namespace shardbook::cli {
namespace {

const std::vector<std::string> small_on_meta = {"plan", "--device", "meta", "--layers", "2", "--fsdp", "2"};

std::string kinds_of(const nlohmann::json& json) {
  std::string all;
  for (const nlohmann::json& action : json["actions"]) all += action["kind"].get<std::string>() + " ";
  return all;
}

TEST(Plan, ListsTheActionsOfARankWithTheirLines) {
  const nlohmann::json json = json_of(with(small_on_meta, {"--prefetch", "0"}));
  EXPECT_EQ(kinds_of(json),
            "load gather forward gather forward release gather forward release forward "
            "backward gather backward release reduce gather backward release reduce backward reduce norm update ");
  EXPECT_EQ(json["actions"][3]["unit"], "blocks.0");
  EXPECT_EQ(json["actions"][3]["buffer"], 0);
  EXPECT_NE(json["actions"][3]["planned"].get<std::string>().find("engine/fsdp/schedule.cpp:"), std::string::npos);
  EXPECT_EQ(json["actions"][14]["axis"], "dp_shard");
  EXPECT_EQ(json["peak"]["gathered_in_shared_buffers"], 1);
  EXPECT_TRUE(json["problem"].is_null());
}

TEST(Plan, CountsWhatPrefetchCosts) {
  const nlohmann::json none = json_of(with(small_on_meta, {"--prefetch", "0"})), one = json_of(with(small_on_meta, {"--prefetch", "1"}));
  EXPECT_EQ(one["peak"]["gathered_in_shared_buffers"], 2);
  // One block more is whole
  const std::int64_t block = one["peak"]["gathered_bytes"].get<std::int64_t>() - none["peak"]["gathered_bytes"].get<std::int64_t>();
  EXPECT_EQ(one["buffers_bytes"]["gathered"].get<std::int64_t>() - none["buffers_bytes"]["gathered"].get<std::int64_t>(), block);
  EXPECT_GT(block, 0);
}

TEST(Plan, FitsTheTerminalAndFoldsWhatRepeats) {
  const std::vector<std::string> large = {"plan", "--device", "meta", "--layers", "24", "--fsdp", "2", "--micro-batches", "4"};
  const Spoken folded = shardbook(large), all = shardbook(with(large, {"--all"}));
  ASSERT_EQ(folded.code, 0) << folded.err;
  ASSERT_EQ(all.code, 0);
  EXPECT_LT(lines_in(folded.out), lines_in(all.out) / 4);
  EXPECT_GT(lines_in(all.out), 700);
  for (const std::string& out : {folded.out, all.out}) {
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(width_of(line), 80) << line;
  }
  EXPECT_NE(folded.out.find("times more: actions "), std::string::npos);
  EXPECT_NE(folded.out.find("Verified: every unit is whole where it is used"), std::string::npos);
  EXPECT_NE(folded.out.find("2 ranks call the same"), std::string::npos);
  // The folded list is the whole one with lines left out
  std::istringstream lines(folded.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("--all shows them") == std::string::npos) { EXPECT_NE(all.out.find(line), std::string::npos) << line; }
  }
}

TEST(Plan, IsOfTheRankThatIsAskedFor) {
  EXPECT_EQ(json_of(with(small_on_meta, {"--rank", "1"}))["rank"], 1);
  const Spoken spoken = shardbook(with(small_on_meta, {"--rank", "2"}));
  EXPECT_EQ(spoken.code, 2);
  EXPECT_EQ(spoken.err, "shardbook: there is no rank 2: this layout has ranks 0 to 1\n");
  EXPECT_EQ(shardbook(with(small_on_meta, {"--rank", "x"})).err, "shardbook: --rank must be a whole number of at least 0, not 'x'\n");
  EXPECT_EQ(shardbook(with(small_on_meta, {"--tp", "7"})).code, 2);
}

TEST(Plan, DerivesWhatARankHoldsBesideWhatIsLaidOut) {
  const std::vector<std::string> words = {"plan", "--device", "meta", "--model", "gpt-1.3b", "--tp", "2", "--fsdp", "4", "--micro-batches", "4", "--memory"};
  const Spoken spoken = shardbook(words);
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  std::istringstream lines(spoken.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(width_of(line), 80) << line;
  EXPECT_NE(spoken.out.find("  shards of parameters "), std::string::npos);
  EXPECT_NE(spoken.out.find("\n      P / n · 2 B\n"), std::string::npos);
  EXPECT_NE(spoken.out.find("Formulas and layout agree to the byte.\n"), std::string::npos);

  const nlohmann::json memory = json_of(words)["memory"];
  std::int64_t all = 0;
  for (const nlohmann::json& line : memory["lines"]) {
    EXPECT_EQ(line["bytes"], line["laid_out_bytes"]) << line;
    all += line["bytes"].get<std::int64_t>();
  }
  EXPECT_EQ(memory["bytes"], all);
  EXPECT_EQ(memory["forgotten_bytes"], 0);
  EXPECT_EQ(memory["host_bytes"], 0);
  // With masters and moments in host memory their lines stand apart, and the sum is the device's
  std::vector<std::string> offloaded = words;
  offloaded.insert(offloaded.end(), {"--set", "fsdp.offload=optimizer"});
  const std::string said = shardbook(offloaded).out;
  EXPECT_NE(said.find("\nand in host memory "), std::string::npos) << said;
  EXPECT_NE(said.find("Formulas and layout agree to the byte.\n"), std::string::npos) << said;
  const nlohmann::json there = json_of(offloaded)["memory"];
  EXPECT_GT(there["host_bytes"], 0);
  EXPECT_LT(there["bytes"], all);
  EXPECT_EQ(there["forgotten_bytes"], 0);
  // With shards there as well the list says what comes, what goes and who updates
  offloaded.back() = "fsdp.offload=parameters";
  const std::string whole = shardbook(offloaded).out;
  EXPECT_NE(whole.find("Formulas and layout agree to the byte.\n"), std::string::npos) << whole;
  EXPECT_EQ(json_of(offloaded)["memory"]["forgotten_bytes"], 0);
  std::erase(offloaded, "--memory");
  const std::string list = shardbook(offloaded).out;
  for (const char* line : {"  to_device   ", "  to_host     ", "  update      by the CPU ", "places for shards on their way", "its shards, their gradients"}) EXPECT_NE(list.find(line), std::string::npos) << line << list;
  offloaded.back() = "fsdp.offload=optimizer";
  EXPECT_NE(shardbook(offloaded).out.find("    0  states      the first pieces "), std::string::npos);
  // Widths that are no multiple of 8 leave gaps, which the formulas leave out
  const Spoken odd = shardbook({"plan", "--device", "meta", "--width", "100", "--heads", "4", "--ffn-width", "203", "--memory"});
  ASSERT_EQ(odd.code, 0) << odd.err;
  EXPECT_NE(odd.out.find("agree within 1 %"), std::string::npos) << odd.out;
}

// The block of text that stands below `command` in a page.
std::string shown_below(const std::string& page, const std::string& command) {
  std::ifstream file(std::string(SHARDBOOK_SOURCE_DIR) + "/notes/" + page);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::string fence = "```text\n";
  const std::size_t begin = text.find(fence, text.find(command)) + fence.size();
  return text.substr(begin, text.find("```\n", begin) - begin);
}

TEST(Plan, SaysOfEachParameterWhatThisRankHoldsAndWhatTheOthersDo) {
  const std::vector<std::string> words = {"plan", "--device", "meta", "--tp", "2", "--fsdp", "2", "--rank", "1", "--parameters"};
  const Spoken spoken = shardbook(words);
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  const std::string note = shown_below("04_fsdp.md", "./shardbook plan --tp 2 --fsdp 2 --rank 1 --parameters");
  ASSERT_GT(note.size(), 1000u);
  EXPECT_NE(spoken.out.find(note), std::string::npos) << spoken.out;
  std::istringstream lines(spoken.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(width_of(line), 80) << line;

  // The kept parts of the two shards are the whole of what is here; q, k and v are cut each by itself
  const nlohmann::json one = json_of(words)["parameters"];
  const nlohmann::json three = json_of({"plan", "--device", "meta", "--tp", "2", "--fsdp", "2", "--rank", "3"})["parameters"];
  ASSERT_EQ(one.size(), 4u + 4 * 12);
  for (std::size_t at = 0; at < one.size(); ++at) {
    EXPECT_EQ(one[at]["elements_kept"].get<int>() + three[at]["elements_kept"].get<int>(), one[at]["elements_here"].get<int>()) << one[at]["name"];
    EXPECT_EQ(one[at]["placement"]["dp_shard"]["after_backward"], "reduce-scatter");
  }
  const auto qkv = std::find_if(one.begin(), one.end(), [](const nlohmann::json& parameter) { return parameter["name"] == "blocks.2.attention.qkv.weight"; });
  ASSERT_NE(qkv, one.end());
  EXPECT_EQ(base::json_text((*qkv)["boxes"]), "[[[64,128],[0,128]],[[192,256],[0,128]],[[320,384],[0,128]]]");
}

TEST(Plan, SaysThatNormsHaveSummandsOverTpWhereTokensAreCut) {
  std::vector<std::string> words = {"plan", "--device", "meta", "--tp", "2", "--fsdp", "1", "--parameters"};
  EXPECT_NE(shardbook(words).out.find("  not decayed, alike over tp\n    norm_1.weight "), std::string::npos);
  words.insert(words.end(), {"--set", "tensor_parallel.sequence=cut"});
  const std::string cut = shardbook(words).out;
  EXPECT_NE(cut.find("  not decayed, summed over tp\n    norm_1.weight "), std::string::npos);
  EXPECT_NE(cut.find("\nsummed   alike in use; each has a summand of the gradient (all-reduce)\n"), std::string::npos) << cut;
  // Over an axis of one rank there is nobody to hold anything, also where micro-batches are added up
  EXPECT_NE(shardbook({"plan", "--device", "meta", "--tp", "1", "--fsdp", "1", "--micro-batches", "2", "--parameters"}).out.find("There are no other ranks."), std::string::npos);
}

TEST(Plan, RefusesTwoListsAtOnceAndGivesBothAsJson) {
  std::vector<std::string> words = {"plan", "--device", "meta", "--tp", "2", "--fsdp", "2", "--memory", "--parameters"};
  const Spoken both = shardbook(words);
  EXPECT_EQ(both.code, exit_bad_input);
  EXPECT_NE(both.err.find("ask for one of them, or for --json, which has both"), std::string::npos) << both.err;
  EXPECT_EQ(both.out, "");
  words.resize(words.size() - 2);
  const nlohmann::json json = json_of(words);
  EXPECT_FALSE(json["memory"]["lines"].empty());
  EXPECT_FALSE(json["parameters"].empty());
}

TEST(Plan, StandsInTheHelp) {
  EXPECT_NE(shardbook({"--help"}).out.find("  plan "), std::string::npos);
  EXPECT_NE(shardbook({"plan", "--help"}).out.find("--rank N"), std::string::npos);
}

}  // namespace
}  // namespace shardbook::cli
