// The table of switches: what a row says of the originals and of the notes is there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "engine/config/config.hpp"
#include "engine/config/in_force.hpp"
#include "engine/config/switches.hpp"
#include "tests/support/switch_names.hpp"

namespace shardbook::config {
namespace {

class Rows : public testing::TestWithParam<Switch> {};

TEST_P(Rows, NameTheLinesOfTheirOriginals) {
  for (const Original& original : GetParam().originals) {
    const auto known = {"pytorch/pytorch", "NVIDIA/Megatron-LM", "NVIDIA/cudnn-frontend", "NVIDIA/TransformerEngine", "NVIDIA/nccl", "pytorch/torchtitan", "karpathy/llm.c"};
    EXPECT_NE(std::find(known.begin(), known.end(), original.repository), known.end()) << original.repository;
    // A whole hash: a branch moves, and a short hash may one day mean two commits
    EXPECT_EQ(original.commit.size(), 40u) << original.commit;
    EXPECT_EQ(original.commit.find_first_not_of("0123456789abcdef"), std::string::npos) << original.commit;
    const auto endings = {".py", ".h", ".hpp", ".cpp", ".cc", ".cu", ".cuh"};
    EXPECT_TRUE(std::any_of(endings.begin(), endings.end(), [&](const char* ending) { return original.path.ends_with(ending); })) << original.path;
    EXPECT_GT(original.first_line, 0) << original.path;
    EXPECT_GE(original.last_line, original.first_line) << original.path;
    EXPECT_LE(original.last_line - original.first_line, 100) << original.path << ": a place to look at, not a file";
    EXPECT_NE(original.what, "") << original.path;
  }
  // What is taken from somebody says from where
  const bool planted = GetParam().sentence.starts_with("A planted mistake"), of_labs = GetParam().sentence.starts_with("A machine of the labs");
  EXPECT_EQ(GetParam().originals.empty(), planted || of_labs);
  EXPECT_EQ(GetParam().seam == Seam::machine, of_labs);
}

TEST_P(Rows, ThatAreWrongSayWhatCatchesThemAndNeedConsent) {
  const Switch& row = GetParam();
  const bool wrong = row.promise == Promise::wrong;
  EXPECT_EQ(row.caught_by.empty(), !wrong);
  EXPECT_TRUE(!wrong || row.sentence.starts_with("A planted mistake"));
  if (!row.option.empty()) return;
  const std::string value = !row.form.empty() ? "0:1" : row.values.empty() ? std::to_string(row.most) : row.values.back();
  RunConfig config;
  EXPECT_EQ(static_cast<bool>(ask(config, "set", {row.key + "=" + value})), !wrong);
  EXPECT_EQ(static_cast<bool>(ask(config, "wrong", {row.key + "=" + value})), wrong);
  // Either way it is stored with the run, as what it was set by
  RunConfig stored;
  ASSERT_TRUE(read_json(stored, to_json(config), "run.json"));
  EXPECT_EQ(switch_value(stored, row.key), value);
  EXPECT_EQ(stored.switches, config.switches);
  EXPECT_EQ(warnings(stored).size(), wrong || row.promise == Promise::time_only ? 1u : 0u);
  EXPECT_EQ(wrong_on_purpose(stored), wrong ? row.key + "=" + value : "");
  EXPECT_EQ(only_times_count(stored), row.promise == Promise::time_only);
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
  if (row.promise == Promise::wrong) return;   // a check finds it, not a clock
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

INSTANTIATE_TEST_SUITE_P(Table, Rows, testing::ValuesIn(switches()), tests::name_of_row);

TEST(SwitchTable, IsInTheOrderOfItsKeysAndHasEachOnce) {
  EXPECT_TRUE(std::is_sorted(switches().begin(), switches().end(), [](const Switch& a, const Switch& b) { return a.key < b.key; }));
  EXPECT_EQ(std::adjacent_find(switches().begin(), switches().end(), [](const Switch& a, const Switch& b) { return a.key == b.key; }), switches().end());
}

TEST(SwitchOfARank, TakesARankAndATimeAndRefusesARankThatIsNotThere) {
  RunConfig config;
  config.tp = 2;
  for (const char* refused : {"rank.slow=1", "rank.slow=1:", "rank.slow=:5", "rank.slow=-1:5", "rank.slow=1:5.5", "rank.slow=one:5"}) {
    EXPECT_FALSE(set_switch(config, refused)) << refused;
  }
  for (const char* rank : {"0", "1", "2"}) {
    RunConfig tried = config;
    ASSERT_TRUE(set_switch(tried, std::string("rank.slow=") + rank + ":5"));
    const auto valid = validate(tried, 0);
    EXPECT_EQ(static_cast<bool>(valid), std::string(rank) != "2");
    if (!valid) {
      EXPECT_EQ(valid.error(), "--set rank.slow=2:5 names rank 2, and the ranks are 0 to 1");
    }
  }
}

// Of attention by tiles there is no square to compute again; a whole block is.
TEST(SwitchesThatExclude, AValueRefuseThatValueAloneInOneSentence) {
  RunConfig config;
  for (const AttentionKind fused : {AttentionKind::flash, AttentionKind::cudnn}) {
    config.attention = fused;
    ASSERT_TRUE(set_switch(config, "activations.recompute=full"));
    EXPECT_TRUE(validate(config, 0));
    ASSERT_TRUE(set_switch(config, "activations.recompute=selective"));
    const auto refused = validate(config, 0);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), base::text("--set activations.recompute=selective cannot go with attention = ", name_of(fused), ": leave one of them out"));
  }
  config.attention = AttentionKind::unfused;
  EXPECT_TRUE(validate(config, 0));
}

// Nothing degrades silently: where bf16 is a type by name alone, the run says so.
TEST(SwitchOfTheReduction, SaysThatTheHostRoundsNothing) {
  RunConfig config;
  config.fsdp = 2;
  config.device = DeviceKind::host;
  config.asked.insert("device");
  const auto notes = [&] {
    const auto valid = validate(config, 0);
    EXPECT_TRUE(valid);
    return std::count_if(valid.value().notes.begin(), valid.value().notes.end(), [](const std::string& note) { return note.find("rounds no gradient") != std::string::npos; });
  };
  EXPECT_EQ(notes(), 0);
  ASSERT_TRUE(set_switch(config, "fsdp.reduce_dtype=bf16"));
  EXPECT_EQ(notes(), 1);
  config.device = DeviceKind::meta;
  EXPECT_EQ(notes(), 0);
}

TEST(UnitsOfBlocks, AreAsLargeAsOneAsksOfWhicheverNumberOfBlocks) {
  RunConfig config;
  config.fsdp = 2;
  config.model.layers = 6;
  for (const char* each : {"1", "2", "4", "5", "6", "7", "256"}) {
    ASSERT_TRUE(set_switch(config, std::string("fsdp.blocks_a_unit=") + each));
    EXPECT_TRUE(validate(config, 0)) << each;
  }
  // By number or by size
  ASSERT_TRUE(set_switch(config, "fsdp.min_num_params=100"));
  const auto both = validate(config, 0);
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error(), "--set fsdp.min_num_params=100 cannot go with fsdp.blocks_a_unit > 1: leave one of them out");
  ASSERT_TRUE(set_switch(config, "fsdp.blocks_a_unit=1"));
  EXPECT_TRUE(validate(config, 0));
}

TEST(ReshardGroup, CutsTheRanksThatShard) {
  RunConfig config;
  config.device = DeviceKind::meta;
  config.fsdp = 12;
  const auto said = [&](const std::string& value) {
    EXPECT_TRUE(set_switch(config, "fsdp.reshard_group=" + value));
    config.sequences = config.fsdp;
    const auto valid = validate(config, 0);
    return valid ? "" : valid.error();
  };
  for (const char* near : {"0", "2", "3", "4", "6"}) EXPECT_EQ(said(near), "") << near;
  for (const char* near : {"5", "8", "12", "24"}) {
    EXPECT_EQ(said(near), base::text("--set fsdp.reshard_group=", near, ": the 12 ranks of --fsdp are not cut into runs of ", near, ": choose from 2, 3, 4, 6, or 0 for all of them"));
  }
  EXPECT_EQ(said("1"), "--set fsdp.reshard_group=1: a rank that keeps a block by itself keeps all of it, which is --reshard false");
  config.fsdp = 7;
  EXPECT_EQ(said("2"), "--set fsdp.reshard_group=2: the 7 ranks of --fsdp are not cut into runs of 2, nor of any other size");
  config.fsdp = 2;
  EXPECT_EQ(said("2"), "--set fsdp.reshard_group=2 does nothing here: it needs fsdp > 2, and fsdp is 2");
}

TEST(AttentionDropout, GoesWithEitherKernelOfTheEngineAndNotWithCudnns) {
  RunConfig config;
  ASSERT_TRUE(ask(config, "attention-dropout", {"0.1"}));
  for (const char* kernel : {"unfused", "flash"}) {
    ASSERT_TRUE(set_switch(config, std::string("attention.kernel=") + kernel));
    EXPECT_TRUE(validate(config, 0)) << kernel;
  }
  EXPECT_EQ(config.attention, AttentionKind::flash) << "the switch is another name of the option";
  EXPECT_FALSE(ask(config, "hidden-dropout", {"1"})) << "nothing would be left";
  ASSERT_TRUE(set_switch(config, "attention.kernel=cudnn"));
  for (const DeviceKind device : {DeviceKind::host, DeviceKind::meta, DeviceKind::cuda}) {
    config.device = device;
    const auto refused = validate(config, 1);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), "--attention cudnn drops nothing, for cuDNN would draw by a stream of its own, and --attention-dropout is 0.1: choose --attention flash, or leave the dropout out");
  }
  config.device = DeviceKind::meta;
  config.attention_dropout = 0;
  config.hidden_dropout = 0.1;
  EXPECT_TRUE(validate(config, 0)) << "what is dropped elsewhere is the engine's own";
}

TEST(SwitchesThatAreWrong, AreMadeOneAtATime) {
  RunConfig config;
  config.tp = config.fsdp = 2;
  ASSERT_TRUE(ask(config, "wrong", {"loss.divisor=own_tokens", "tensor_parallel.row_bias=after_the_sum"}));
  EXPECT_TRUE(validate(config, 0));
  ASSERT_TRUE(ask(config, "wrong", {"loss.divisor=own_tokens", "tensor_parallel.row_bias=before_the_sum"}));
  const auto refused = validate(config, 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), "--wrong takes one mistake at a time, not loss.divisor=own_tokens, tensor_parallel.row_bias=before_the_sum");
}

TEST(SwitchesOfBothSorts, AreSetApartAndReplacedApart) {
  RunConfig config;
  ASSERT_TRUE(ask(config, "set", {"fsdp.backward_prefetch=post"}));
  ASSERT_TRUE(ask(config, "wrong", {"loss.divisor=own_tokens"}));
  ASSERT_TRUE(ask(config, "set", {"fsdp.backward_prefetch=none"}));
  EXPECT_EQ(set_switches(config, false), (std::vector<std::string>{"fsdp.backward_prefetch=none"}));
  EXPECT_EQ(set_switches(config, true), (std::vector<std::string>{"loss.divisor=own_tokens"}));
  const base::Status refused = ask(config, "set", {"loss.divisor=own_tokens"});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().find("--wrong loss.divisor=own_tokens asks for it"), std::string::npos) << refused.error();
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
