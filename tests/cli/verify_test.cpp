// `verify`: could what a run issued race, or hang?
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "engine/program/file.hpp"
#include "engine/timeline/pack.hpp"
#include "tests/cli/spoken.hpp"

namespace shardbook::cli {
namespace {

namespace fs = std::filesystem;

// A run of four ranks on meta.
std::string run_of_four(const Folder& folder) {
  const std::string run = folder / "run";
  const Spoken trained = shardbook({"train", "--device", "meta", "--tp", "2", "--fsdp", "2", "--layers", "3", "--out", run});
  EXPECT_EQ(trained.code, 0) << trained.err;
  return run;
}

// Changes one rank's record.
void change(const std::string& run, int rank, const std::function<void(const program::Catalogue&, program::Program&)>& how) {
  const std::string path = run + "/rank" + std::to_string(rank) + ".program";
  base::Result<program::Record> record = program::load(path);
  ASSERT_TRUE(record) << record.error();
  how(record.value().catalogue, *record.value().programs.at(0));
  for (program::StepTimes& step : record.value().steps) {
    step.issued.resize(record.value().programs[step.program]->commands.size(), step.issued.back());
    step.ran.resize(record.value().programs[step.program]->ops.size(), step.ran.back());
  }
  const base::Status saved = program::save(path, rank, record.value().world_size, record.value().catalogue, record.value().programs, record.value().steps);
  ASSERT_TRUE(saved) << saved.error();
}

// No wait for the weights of a block, so that they are used while they come.
void forget_a_wait(const program::Catalogue& catalogue, program::Program& program) {
  for (std::size_t at = 0; at < program.commands.size(); ++at) {
    const program::Command& command = program.commands[at];
    if (command.kind != program::CommandKind::wait_event || catalogue.events[command.event] != "fsdp.gathered.0.gathered") continue;
    program.commands.erase(program.commands.begin() + static_cast<std::ptrdiff_t>(at));
    return;
  }
  FAIL() << "there is no such wait";
}

TEST(Verify, SaysOfACorrectRunThatNothingWasFound) {
  const Folder folder;
  const std::string run = run_of_four(folder);
  const Spoken spoken = shardbook({"verify", run});
  EXPECT_EQ(spoken.code, 0) << spoken.out << spoken.err;
  for (const char* said : {"4 ranks", "No race", "No rank differs", "No hang"}) EXPECT_NE(spoken.out.find(said), std::string::npos) << spoken.out;
  const nlohmann::json json = base::parse_json(shardbook({"verify", run, "--json"}).out);
  EXPECT_TRUE(json["fine"].get<bool>());
  EXPECT_EQ(json["ranks"].size(), 4u);

  // As a pack, too
  const std::string pack = folder / ("run" + timeline::pack_ending());
  ASSERT_EQ(shardbook({"pack", run, "--out", pack}).code, 0);
  EXPECT_EQ(shardbook({"verify", pack}).code, 0);
}

TEST(Verify, NamesAMissingWaitOnceForAllRanksThatLackIt) {
  const Folder folder;
  const std::string run = run_of_four(folder);
  for (int rank : {0, 1, 3}) change(run, rank, forget_a_wait);
  const Spoken spoken = shardbook({"verify", run});
  EXPECT_EQ(spoken.code, 1);
  std::string one_line = spoken.out;
  std::replace(one_line.begin(), one_line.end(), '\n', ' ');
  EXPECT_NE(one_line.find("race on ranks 0, 1, 3: compute reads fsdp.gathered.0"), std::string::npos) << spoken.out;
  EXPECT_NE(one_line.find("compute must wait for an event that fsdp records after that, as fsdp.gathered.0.gathered"), std::string::npos) << spoken.out;
  EXPECT_NE(one_line.find("1 wait missing"), std::string::npos) << spoken.out;
  EXPECT_NE(one_line.find("No rank differs"), std::string::npos) << spoken.out;

  const nlohmann::json json = base::parse_json(shardbook({"verify", run, "--json"}).out);
  EXPECT_FALSE(json["fine"].get<bool>());
  ASSERT_EQ(json["races"].size(), 1u);
  EXPECT_EQ(json["races"][0]["ranks"], nlohmann::json({0, 1, 3}));
  EXPECT_EQ(json["races"][0]["buffer"], "fsdp.gathered.0");
  EXPECT_GT(json["racing_pairs"].get<int>(), 3);
}

TEST(Verify, NamesTheRankWhoseCollectivesDiffer) {
  const Folder folder;
  const std::string run = run_of_four(folder);
  change(run, 2, [](const program::Catalogue&, program::Program& program) {
    for (program::Op& op : program.ops) {
      if (op.desc.kind == program::OpKind::reduce_scatter) {
        op.desc.collective.bytes += 64;
        return;
      }
    }
  });
  const Spoken spoken = shardbook({"verify", run, "--most", "1"});
  EXPECT_EQ(spoken.code, 1);
  std::string one_line = spoken.out;
  std::replace(one_line.begin(), one_line.end(), '\n', ' ');
  EXPECT_NE(one_line.find("ranks differ over dp_shard (ranks 0, 2)"), std::string::npos) << spoken.out;
  EXPECT_NE(one_line.find("rank 2 calls reduce_scatter"), std::string::npos) << spoken.out;
  EXPECT_NE(one_line.find("another size"), std::string::npos) << spoken.out;
}

TEST(Verify, SaysWhichRanksLeftNoRecord) {
  const Folder folder;
  const std::string run = run_of_four(folder);
  fs::remove(run + "/rank2.program");
  const Spoken spoken = shardbook({"verify", run});
  EXPECT_EQ(spoken.code, 1);
  EXPECT_NE(spoken.out.find("rank 2 of 4 left no record"), std::string::npos) << spoken.out;
}

TEST(Verify, FindsNothingInTheRunsThatWereCapturedOnGpus) {
  int runs = 0;
  for (const auto& entry : fs::directory_iterator(std::string(SHARDBOOK_SOURCE_DIR) + "/experiments/captured")) {
    if (!timeline::is_pack_name(entry.path().string())) continue;
    if (timeline::pack_ending() == ".tar") GTEST_SKIP() << "the packs need zlib";
    const Spoken spoken = shardbook({"verify", entry.path().string()});
    EXPECT_EQ(spoken.code, 0) << entry.path() << "\n" << spoken.out << spoken.err;
    ++runs;
  }
  EXPECT_GE(runs, 6);
}

TEST(Verify, RefusesInOneSentenceWhatHoldsNoRecord) {
  const Folder folder;
  const auto refused = [&](const std::vector<std::string>& words, const std::string& reason) { expect_refused(words, reason, folder); };
  refused({"verify"}, "verify");
  refused({"verify", folder / "missing"}, "there is no " + (folder / "missing"));
  refused({"verify", folder.path().string()}, "holds no record");
  refused({"verify", folder.path().string(), "--most", "few"}, "--most");
  const Folder other;
  refused({"verify", other.write("trace.json", "{}")}, "is no folder of a run");
  refused({"verify", other.write("damaged.tar", "no tar")}, "damaged.tar");
  other.write("run/rank0.program", "no record");
  refused({"verify", other / "run"}, "is not a record of a program");
}

}  // namespace
}  // namespace shardbook::cli
