// Can what a cause names as its remedy be typed?
#include "engine/cause/remedies.hpp"

#include <sstream>

#include "engine/cause/recorded.hpp"
#include "engine/config/switches.hpp"
#include "tests/cause/runs.hpp"

namespace shardbook::cause {
namespace {

using program::OpKind;

// Ranks of a GPT over tp 2, as a run records it: blocks stay sharded over `near` of the fsdp ranks, 0: over all.
Recorded recorded_of(int fsdp, int near) {
  Recorded recorded;
  recorded.info.emplace();
  recorded.info->config = {{"tp", 2}, {"fsdp", fsdp}, {"sequences", 192}, {"reshard", true}};
  recorded.info->switches = {{"fsdp.reshard_group", std::to_string(near)}};
  return recorded;
}

// The run again with these words behind its command; what refuses them, or "".
std::string refused(int fsdp, int near, const std::string& words) {
  config::RunConfig config;
  std::istringstream line(base::text("--device meta --tp 2 --fsdp ", fsdp, " --sequences 192 --set fsdp.reshard_group=", near, " ", words));
  std::map<std::string, std::vector<std::string>> asked;   // of one option the last counts, of switches each
  for (std::string option, value; line >> option >> value;) {
    if (option != "--set") asked[option].clear();
    asked[option].push_back(value);
  }
  for (const auto& [option, values] : asked) {
    const base::Status status = config::ask(config, option.substr(2), values);
    if (!status) return status.error();
  }
  const base::Result<config::RunConfig> valid = config::validate(config, 0);
  return valid ? "" : valid.error();
}

TEST(Remedies, ThatKeepBlocksWholeOrHalveTheRanksLeaveTheGroupThatKeepsThemSharded) {
  for (const auto& [fsdp, near] : {std::pair{4, 0}, std::pair{4, 2}, std::pair{8, 2}, std::pair{8, 4}, std::pair{12, 4}, std::pair{2, 0}}) {
    SCOPED_TRACE(base::text("fsdp ", fsdp, ", near ", near));
    ASSERT_EQ(refused(fsdp, near, ""), "");
    const Recorded recorded = recorded_of(fsdp, near);
    const Remedies remedies(recorded);
    for (const char* axis : {"dp_shard", "dp_shard_near"}) {
      const std::string less = remedies.less_of(OpKind::all_gather, axis, Regime::bandwidth);
      const std::size_t begin = less.find(" or ") + 4, end = less.find(" (", begin);
      ASSERT_NE(less.find("--reshard false", begin), std::string::npos) << less;
      EXPECT_EQ(refused(fsdp, near, less.substr(begin, end - begin)), "") << less;
      const std::string fewer = remedies.fewer_calls_of(axis);
      ASSERT_EQ(fewer.starts_with("--set fsdp.reshard_group=0 "), near > 0 && (near >= fsdp / 2 || fsdp / 2 % near != 0)) << fewer;
      EXPECT_EQ(refused(fsdp, near, fewer), "") << fewer;
    }
  }
}

// A step as a graph is advised wherever the host takes no part in a step, and only there.
TEST(Remedies, AdviseAGraphWhereASwitchOfTheRunDoesNotExcludeIt) {
  const std::vector<Options> runs = {{}, {{"micro-batches", "2"}}, {{"set", "host.graph=on"}}, {{"set", "host.synchronize=layer"}}, {{"set", "fsdp.offload=optimizer"}}, {{"check-finite", "true"}}};
  int advised = 0;
  for (Options options : runs) {
    options.insert(options.begin(), {"fsdp", "1"});
    const PlantedRun run = run_of(options);
    const std::string remedy = Remedies(run.recorded).fewer_calls();
    SCOPED_TRACE(options.back().second + ": " + remedy);
    EXPECT_EQ(remedy.rfind("--sequences ", 0), 0u);
    const bool advises = remedy.find("--set host.graph=on (") != std::string::npos;
    config::RunConfig config;
    ASSERT_TRUE(config::ask(config, "device", {"meta"}));
    for (const auto& [option, value] : options) ASSERT_TRUE(config::ask(config, option, {value}));
    ASSERT_TRUE(config::set_switch(config, "host.graph=on"));   // beside those that are set
    const bool is_new = options.back().second != "host.graph=on";
    EXPECT_EQ(advises, is_new && config::validate(config, 0).ok());
    advised += advises;
  }
  EXPECT_EQ(advised, 2);
}

// What lets rows cross while others are multiplied is named for large gathers and sums of rows that are cut; to cut them costs as much.
TEST(Remedies, NameMatmulsInPiecesWhereRowsAreCutAndOnlyThere) {
  struct Case {
    const char *sequence, *overlap, *chunks;
    OpKind kind;
    Regime regime;
    std::string advised;
  };
  const std::string pieces = "--set tensor_parallel.overlap=pieces";
  for (const Case& one : {Case{"whole", "none", "1", OpKind::all_reduce, Regime::bandwidth, ""}, Case{"whole", "none", "1", OpKind::all_reduce, Regime::latency, ""},
                          Case{"whole", "none", "2", OpKind::all_reduce, Regime::bandwidth, ""}, Case{"cut", "none", "1", OpKind::all_reduce, Regime::bandwidth, ""},
                          Case{"cut", "none", "1", OpKind::all_gather, Regime::bandwidth, pieces}, Case{"cut", "none", "1", OpKind::reduce_scatter, Regime::bandwidth, pieces},
                          Case{"cut", "pieces", "1", OpKind::all_gather, Regime::bandwidth, ""}, Case{"cut", "pieces", "1", OpKind::shift, Regime::bandwidth, ""}}) {
    Recorded recorded = recorded_of(1, 0);
    recorded.info->switches = {{"tensor_parallel.sequence", one.sequence}, {"tensor_parallel.overlap", one.overlap}, {"loss.chunks", one.chunks}};
    const std::string remedy = Remedies(recorded).less_of(one.kind, "tp", one.regime);
    EXPECT_EQ(remedy, one.advised.empty() ? "--tp 1 --fsdp 2" : "--tp 1 --fsdp 2 or " + one.advised);
    if (!one.advised.empty()) {
      EXPECT_EQ(refused(1, 0, base::text("--set tensor_parallel.sequence=", one.sequence, " ", one.advised)), "");
    }
  }
}

// Two ranks of tp issue as many calls as four: only without a cut there are fewer.
TEST(Remedies, AgainstCallsOfTpAdviseNoCutAtAll) {
  for (const char* tp : {"2", "4"}) {
    const PlantedRun run = run_of({{"tp", tp}, {"fsdp", "1"}});
    EXPECT_EQ(Remedies(run.recorded).fewer_calls_of("tp"), "--tp 1 --fsdp 1");
  }
  const auto calls = [](const char* tp) { return run_of({{"tp", tp}, {"fsdp", "1"}}).recorded.records.front().programs.back()->commands.size(); };
  EXPECT_EQ(calls("2"), calls("4"));
  EXPECT_LT(calls("1"), calls("2"));
}

TEST(Remedies, AdviseAGraphOverSeveralGpusToo) {
  for (const char* cut : {"tp", "fsdp", "dp"}) {
    const PlantedRun run = run_of({{cut, "2"}});
    const std::string remedy = Remedies(run.recorded).fewer_calls();
    EXPECT_NE(remedy.find("--set host.graph=on ("), std::string::npos) << remedy;
    config::RunConfig config;
    for (const auto& [option, value] : {std::pair{"device", "cuda"}, {cut, "2"}}) ASSERT_TRUE(config::ask(config, option, {value}));
    ASSERT_TRUE(config::set_switch(config, "host.graph=on"));
    const base::Result<config::RunConfig> valid = config::validate(config, 2);
    EXPECT_TRUE(valid.ok()) << valid.error();
  }
}

}  // namespace
}  // namespace shardbook::cause
