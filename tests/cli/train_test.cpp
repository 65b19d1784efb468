// Training from the command line to the folder of a run, on the host and on meta.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "tests/cli/spoken.hpp"

namespace shardbook::cli {
namespace {

const std::vector<std::string> small_traced = {"train", "--device", "host", "--tp", "2", "--fsdp", "2", "--layers", "2", "--width", "32", "--heads", "4",
                                        "--sequence", "16", "--steps", "6", "--trace-steps", "3:5", "--progress", "2", "--data", "synthetic"};

TEST(Train, LeavesARunAndSaysWhereTheTimeWent) {
  const Folder folder;
  const Spoken spoken = shardbook(with(small_traced, {"--out", folder / "run"}));
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  EXPECT_EQ(spoken.err, "");
  EXPECT_NE(spoken.out.find("tp 2 × fsdp 2"), std::string::npos);
  EXPECT_NE(spoken.out.find("step 0 · loss"), std::string::npos);
  EXPECT_NE(spoken.out.find("step 4 · loss"), std::string::npos);
  EXPECT_NE(spoken.out.find("MODELLED h200x8"), std::string::npos);
  EXPECT_NE(spoken.out.find("exposed comm"), std::string::npos);
  EXPECT_NE(spoken.out.find("./shardbook show " + (folder / "run")), std::string::npos);
  for (const char* name : {"run/rank0.json", "run/rank3.json", "run/rank3.program", "run/run.json", "run/summary.txt"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
  }
  // The summary is what was printed, without the progress.
  std::istringstream lines(content_of(folder / "run/summary.txt"));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_NE(spoken.out.find(line + "\n"), std::string::npos) << line;
    EXPECT_LE(width_of(line), 100) << line;
  }
}

TEST(Train, AStoredRunRepeatsItself) {
  const Folder folder;
  ASSERT_EQ(shardbook(with(small_traced, {"--out", folder / "run"})).code, 0);
  ASSERT_EQ(shardbook({"train", "--config", folder / "run", "--out", folder / "again"}).code, 0);
  const auto losses = [&](const char* run) {
    return base::parse_json(content_of(folder / (std::string(run) + "/run.json")))["results"]["losses"];
  };
  EXPECT_EQ(losses("run"), losses("again"));
}

TEST(Train, JsonHoldsFiguresOnlyAndPartsSumToTheWindow) {
  const Folder folder;
  const Spoken spoken = shardbook(with(small_traced, {"--json", "--out", folder / "run"}));
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  const nlohmann::json json = base::parse_json(spoken.out);
  EXPECT_EQ(json["clock"], "modelled");
  EXPECT_EQ(json["losses"].size(), 6u);
  ASSERT_EQ(json["tables"][0]["ranks"].size(), 4u);
  for (const nlohmann::json& rank : json["tables"][0]["ranks"]) {
    const auto part = [&](const char* name) { return rank[name].get<std::int64_t>(); };
    EXPECT_EQ(part("compute_ns") + part("exposed_communication_ns") + part("exposed_memory_ns") + part("idle_ns"), part("window_ns"));
    EXPECT_GT(part("compute_ns"), 0);
  }
}

TEST(Train, OnMetaThereAreTimesAndNoLosses) {
  const Folder folder;
  const Spoken spoken = shardbook({"train", "--device", "meta", "--model", "gpt-124m", "--tp", "2", "--fsdp", "4", "--json", "--out", folder / "run"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  const nlohmann::json json = base::parse_json(spoken.out);
  EXPECT_EQ(json["losses"].size(), 0u);
  EXPECT_GT(json["tokens_per_second"].get<double>(), 0);
  EXPECT_EQ(json["tables"][0]["clock"], "modelled");
  // Memory is what a GPU would give, as `plan` has it: bf16 in two bytes
  const Spoken plan = shardbook({"plan", "--device", "meta", "--model", "gpt-124m", "--tp", "2", "--fsdp", "4", "--json"});
  EXPECT_EQ(json["allocated_bytes"].get<double>(), base::parse_json(plan.out)["memory"]["bytes"].get<double>());
}

TEST(Train, WithoutTracedStepsItSaysSo) {
  const Folder folder;
  const Spoken spoken = shardbook({"train", "--device", "host", "--layers", "1", "--width", "32", "--sequence", "16", "--steps", "2", "--trace-steps",
                                   "0:0", "--data", "synthetic", "--out", folder / "run"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  EXPECT_NE(spoken.out.find("No step was traced"), std::string::npos);
}

TEST(Run, TheLabTrainsAndTheRunOpens) {
  const Folder folder;
  const Spoken spoken = shardbook({"run", "02", "--device", "host", "--steps", "12", "--out", folder / "run"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  EXPECT_NE(spoken.out.find("Lab 02 · Tensor parallel"), std::string::npos);
  EXPECT_NE(spoken.out.find("./shardbook read 03"), std::string::npos);
  const Spoken shown = shardbook({"show", folder / "run", "--width", "90"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_NE(shown.out.find("MODELLED h200x8"), std::string::npos);
  const Spoken figures = shardbook({"metrics", folder / "run", "--json"});
  EXPECT_EQ(base::parse_json(figures.out)["tables"][0]["ranks"].size(), 4u);
  // The loss fell, and the same sentence stands in the report and in `metrics`.
  const nlohmann::json info = base::parse_json(content_of(folder / "run/run.json"));
  EXPECT_LT(info["results"]["losses"].back().get<double>(), info["results"]["losses"].front().get<double>() - 0.5);
}

}  // namespace
}  // namespace shardbook::cli
