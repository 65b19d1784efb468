// `--set host.graph=on`: what commands say of steps that are launched by one call.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "tests/cli/spoken.hpp"

namespace shardbook::cli {
namespace {

// Lines are broken anywhere.
std::string in_one_line(std::string text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += word + " ";
  return line;
}

double step_ns_of_run(const std::string& folder, const char* key = "step_ns") {
  return base::parse_json(content_of(folder + "/run.json"))["results"][key].get<double>();
}

TEST(StepsAsAGraph, AreForetoldByWhatifAsTrainWithoutADeviceHasThem) {
  const Folder folder;
  const std::vector<std::string> tutor = {"train", "--device", "meta", "--tp", "2", "--fsdp", "1", "--out"};
  std::vector<std::string> off = tutor, on = tutor;
  off.push_back(folder / "off");
  on.insert(on.end(), {folder / "on", "--set", "host.graph=on"});
  ASSERT_EQ(shardbook(off).code, 0);
  const Spoken trained = shardbook(on);
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_NE(in_one_line(trained.out).find("launched by one call, and without tracing, a step takes"), std::string::npos) << trained.out;
  EXPECT_LT(step_ns_of_run(folder / "on"), 0.85 * step_ns_of_run(folder / "off"));

  const Spoken foretold = shardbook({"whatif", folder / "off", "--set", "host.graph=on", "--json"});
  ASSERT_EQ(foretold.code, 0) << foretold.err;
  EXPECT_NEAR(base::parse_json(foretold.out)["would_be_ns"].get<double>(), step_ns_of_run(folder / "on"), 0.01 * step_ns_of_run(folder / "on"));
  // And back: of a run of graphs, what its steps would be one by one
  const Spoken back = shardbook({"whatif", folder / "on", "--set", "host.graph=off", "--json"});
  ASSERT_EQ(back.code, 0) << back.err;
  EXPECT_NEAR(base::parse_json(back.out)["would_be_ns"].get<double>(), step_ns_of_run(folder / "off"), 0.01 * step_ns_of_run(folder / "off"));
}

// The timeline is that of traced steps, which come one by one with the switch and without.
TEST(StepsAsAGraph, LeaveTheTimelineAsItWasAndSaySo) {
  const Folder folder;
  ASSERT_EQ(shardbook({"train", "--device", "meta", "--model", "grammar-tutor", "--out", folder / "off"}).code, 0);
  ASSERT_EQ(shardbook({"train", "--device", "meta", "--model", "grammar-tutor", "--set", "host.graph=on", "--out", folder / "on"}).code, 0);
  // But for one op: the numbers that are new in each step are copied
  EXPECT_NEAR(step_ns_of_run(folder / "on", "traced_step_ns"), step_ns_of_run(folder / "off", "traced_step_ns"), 10'000);
  EXPECT_GT(step_ns_of_run(folder / "on", "traced_step_ns"), 1.3 * step_ns_of_run(folder / "on"));
  const Spoken why = shardbook({"why", folder / "on"});
  ASSERT_EQ(why.code, 0) << why.err;
  EXPECT_NE(in_one_line(why.out).find("launched by one call (host.graph)"), std::string::npos) << why.out;
  EXPECT_EQ(in_one_line(shardbook({"why", folder / "off"}).out).find("host.graph)"), std::string::npos);
  // So does the page, beside the speed
  for (const char* name : {"off", "on"}) {
    const std::string page = folder / (std::string(name) + ".html");
    ASSERT_EQ(shardbook({"report", folder / name, "--out", page}).code, 0);
    EXPECT_EQ(content_of(page).find("launched by one call each; the traced ones below were issued one by one") != std::string::npos, std::string(name) == "on");
  }
}

// A large step's host is ahead of the GPU, and costs nothing already; that ops are nearer to each other is little of what each takes.
TEST(StepsAsAGraph, GainNothingWhereTheHostIsAheadAnyway) {
  const Folder folder;
  ASSERT_EQ(shardbook({"train", "--device", "meta", "--model", "gpt-6.9b", "--data", "synthetic", "--sequences", "8", "--out", folder / "run"}).code, 0);
  const Spoken spoken = shardbook({"whatif", folder / "run", "--set", "host.graph=on", "--json"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  const nlohmann::json answer = base::parse_json(spoken.out);
  EXPECT_NEAR(answer["would_be_ns"].get<double>(), answer["step_ns"].get<double>(), 0.005 * answer["step_ns"].get<double>());
}

// What a run on several GPUs would gain is foretold, too.
TEST(StepsAsAGraph, AreForetoldOfARunOnSeveralGpus) {
  const Spoken spoken = shardbook({"whatif", std::string(SHARDBOOK_SOURCE_DIR) + "/experiments/captured/gpt-1.3b-fsdp4.tar.gz", "--set", "host.graph=on", "--json"});
  ASSERT_EQ(spoken.code, 0) << spoken.err;
  const nlohmann::json answer = base::parse_json(spoken.out);
  EXPECT_GT(answer["would_be_ns"].get<double>(), 0);
  EXPECT_LE(answer["would_be_ns"].get<double>(), 1.005 * answer["step_ns"].get<double>());
}

TEST(StepsAsAGraph, AreRefusedBesideWhatTheHostTakesPartInWithOneSentence) {
  const Spoken spoken = shardbook({"train", "--device", "meta", "--fsdp", "2", "--set", "host.graph=on", "--set", "fsdp.limit_all_gathers=2"});
  EXPECT_EQ(spoken.code, 2);
  EXPECT_NE(in_one_line(spoken.err).find("--set host.graph=on cannot go with fsdp.limit_all_gathers > 0"), std::string::npos) << spoken.err;
}

}  // namespace
}  // namespace shardbook::cli
