// Who decides: the line, then the file, then the lab, then the model; and which layout a lab takes on which node.
#include <gtest/gtest.h>

#include "engine/cli/train_config.hpp"
#include "engine/launch/matmul_file.hpp"
#include "tests/cli/spoken.hpp"

namespace shardbook::cli {
namespace {

using config::DeviceKind;

Line typed(std::map<std::string, std::vector<std::string>> switches) { return {{}, std::move(switches)}; }

const book::Lab& lab() {
  static const book::Lab found = book::find_lab(SHARDBOOK_SOURCE_DIR, "02").value();
  return found;
}

TrainingConfig lab_on(int gpus, std::map<std::string, std::vector<std::string>> switches = {}) {
  return training_config(typed(std::move(switches)), lab(), gpus).value();
}

TEST(Lab, RunsOnTheHostWithoutGpusAndSaysSo) {
  const TrainingConfig made = lab_on(0);
  EXPECT_EQ(made.config.device, DeviceKind::host);
  EXPECT_EQ(made.config.tp, 2);
  EXPECT_EQ(made.config.fsdp, 2);
  EXPECT_EQ(made.config.lab, "02_tensor_parallel");
  ASSERT_EQ(made.said.size(), 1u);
  EXPECT_NE(made.said[0].find("no GPU"), std::string::npos);
}

TEST(Lab, TakesTheLargestLayoutThatTheGpusAllow) {
  for (const auto& [gpus, fsdp] : {std::pair{8, 4}, {7, 2}, {4, 2}, {3, 1}, {2, 1}}) {
    const TrainingConfig made = lab_on(gpus);
    EXPECT_EQ(made.config.device, DeviceKind::cuda) << gpus;
    EXPECT_EQ(made.config.tp, 2) << gpus;
    EXPECT_EQ(made.config.fsdp, fsdp) << gpus;
    EXPECT_NE(made.said.front().find("largest layout"), std::string::npos);
  }
}

TEST(Lab, GoesToTheHostWhereOneGpuIsTooFew) {
  const TrainingConfig made = lab_on(1);
  EXPECT_EQ(made.config.device, DeviceKind::host);
  EXPECT_EQ(made.config.ranks, 4);
  EXPECT_NE(made.said.front().find("needs 2 GPUs and 1 is here"), std::string::npos);
}

TEST(Lab, GrantsWhatWasAskedFor) {
  EXPECT_EQ(lab_on(8, {{"device", {"host"}}}).config.ranks, 4);
  EXPECT_EQ(lab_on(0, {{"tp", {"4"}}}).config.tp, 4);
  EXPECT_EQ(lab_on(8, {{"tp", {"4"}}}).config.tp, 4);
  EXPECT_EQ(lab_on(8, {{"tp", {"4"}}}).config.fsdp, 2);
  EXPECT_EQ(lab_on(0, {{"ranks", {"2"}}}).config.ranks, 2);
}

TEST(Lab, RefusesWhatWasAskedForAndCannotBe) {
  EXPECT_FALSE(training_config(typed({{"tp", {"3"}}}), lab(), 0).ok());
  EXPECT_FALSE(training_config(typed({{"device", {"cuda"}}}), lab(), 0).ok());
  EXPECT_FALSE(training_config(typed({{"tp", {"4"}}}), lab(), 2).ok());
}

// A plan is made, and matmuls are named, of layouts that other nodes run.
TEST(Config, OfShapesMayHaveMoreGpusThanThereAreHere) {
  for (const int gpus : {1, 2}) {
    const base::Result<TrainingConfig> made = config_of_shapes(typed({{"fsdp", {"64"}}}), gpus);
    ASSERT_TRUE(made) << made.error();
    EXPECT_EQ(made.value().config.device, DeviceKind::meta);
    EXPECT_EQ(made.value().config.ranks, 64);
  }
  EXPECT_EQ(config_of_shapes(typed({{"fsdp", {"2"}}}), 2).value().config.device, DeviceKind::cuda);
  EXPECT_EQ(config_of_shapes(typed({{"fsdp", {"2"}}}), 0).value().config.device, DeviceKind::host);
  // What was asked for is refused where it cannot be, and so is what GPUs cannot do of which there are enough
  const std::string many_ranks = "257";   // one more than the host runs
  EXPECT_TRUE(training_config(typed({{"device", {"meta"}}, {"fsdp", {many_ranks}}, {"sequences", {many_ranks}}}), std::nullopt, 1));
  for (const char* device : {"host", "cuda"}) {
    const base::Result<TrainingConfig> refused =
        config_of_shapes(typed({{"device", {device}}, {"fsdp", {many_ranks}}, {"sequences", {many_ranks}}}), 1);
    ASSERT_FALSE(refused) << device;
    EXPECT_NE(refused.error().find(many_ranks), std::string::npos) << refused.error();
  }
  const base::Result<TrainingConfig> not_on_gpus = config_of_shapes(typed({{"attention", {"flash"}}, {"precision", {"fp32"}}}), 1);
  ASSERT_FALSE(not_on_gpus);
  EXPECT_NE(not_on_gpus.error().find("--attention flash"), std::string::npos) << not_on_gpus.error();
  // What is wrong on any node is said, not that GPUs are missing
  const base::Result<TrainingConfig> wrong = config_of_shapes(typed({{"fsdp", {"64"}}, {"sequences", {"63"}}}), 1);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().find("GPU"), std::string::npos) << wrong.error();
  EXPECT_NE(wrong.error().find("63"), std::string::npos) << wrong.error();
}

// `tune` measures one GPU for the run of a larger node, named by its folder, with all that only GPUs have.
TEST(Config, OfAnyNodeMayBeThatOfALargerNodesRun) {
  const Folder folder;
  folder.write("run.json", R"({"format": 1, "lab": "", "config": {"device": "cuda", "clock": "measured", "launch": "processes", "fsdp": 8, "sequences": 8,
                               "set": ["nccl.buffers=windows", "nccl.last_ctas=32", "matmul.sms_beside=24"]}})");
  const Line of_the_run = typed({{"config", {folder.path().string()}}}), on_the_line = typed({{"device", {"cuda"}}, {"fsdp", {"8"}}, {"sequences", {"8"}}});
  for (const Line& line : {of_the_run, on_the_line, typed({{"fsdp", {"8"}}, {"sequences", {"8"}}}), typed({{"ranks", {"8"}}, {"sequences", {"8"}}})}) {
    const base::Result<TrainingConfig> made = config_of_any_node(line, 1);
    ASSERT_TRUE(made) << made.error();
    EXPECT_EQ(made.value().config.device, DeviceKind::cuda);
    EXPECT_EQ(made.value().config.ranks, 8);
    EXPECT_EQ(config_of_any_node(line, 8).value().config.ranks, 8);
    EXPECT_FALSE(launch::matmuls_of_step(made.value().config).empty());
    EXPECT_FALSE(training_config(line, std::nullopt, 1)) << "such a run is no run of this node";
  }
  for (const Line& line : {of_the_run, on_the_line}) {
    const base::Result<TrainingConfig> refused = config_of_shapes(line, 1);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().find("1 GPU is here"), std::string::npos) << refused.error();
  }
  // Without a layout it is that of the GPUs here; and what no node does is refused
  EXPECT_EQ(config_of_any_node(typed({{"sequences", {"8"}}}), 2).value().config.ranks, 2);
  for (const auto& [device_or_clock, value] : {std::pair{"clock", "wall"}, {"device", "host"}}) {
    for (const char* ranks : {"257", "4"}) {
      const base::Result<TrainingConfig> made = config_of_any_node(typed({{device_or_clock, {value}}, {"fsdp", {ranks}}, {"sequences", {ranks}}}), 1);
      if (std::string(ranks) == "4") EXPECT_EQ(made.value().config.device, DeviceKind::host) << device_or_clock;
      else EXPECT_NE(made.error().find("257 ranks are more than"), std::string::npos) << device_or_clock;
    }
  }
  EXPECT_FALSE(config_of_any_node(typed({{"fsdp", {"8"}}, {"sequences", {"7"}}}), 1));
}

TEST(TrainingConfig, TheLineGoesBeforeTheFile) {
  const Folder folder;
  const std::string file = folder.write("c.json", R"({"steps": 7, "tp": 2})");
  const config::RunConfig made = training_config(typed({{"config", {file}}, {"steps", {"9"}}}), std::nullopt, 0).value().config;
  EXPECT_EQ(made.steps, 9);
  EXPECT_EQ(made.tp, 2);
}

TEST(TrainingConfig, AFolderOfARunRepeatsIt) {
  const Folder folder;
  folder.write("run.json", R"({"format": 1, "lab": "", "config": {"steps": 11, "seed": 5}})");
  const config::RunConfig made = training_config(typed({{"config", {folder.path().string()}}}), std::nullopt, 0).value().config;
  EXPECT_EQ(made.steps, 11);
  EXPECT_EQ(made.seed, 5u);
}

TEST(TrainingConfig, ErrorsOfAFileNameFileLineAndKey) {
  const Folder folder;
  const std::string file = folder.write("c.json", "{\n \"steps\": 7,\n \"tp\": \"two\"\n}");
  const base::Result<TrainingConfig> made = training_config(typed({{"config", {file}}}), std::nullopt, 0);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.error().find(file + ":3: "), std::string::npos) << made.error();
  EXPECT_NE(made.error().find("tp"), std::string::npos);
}

}  // namespace
}  // namespace shardbook::cli
