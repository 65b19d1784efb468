// Two runs side by side.
#include "viewer/scene/compare.hpp"

#include "engine/timeline/run_info.hpp"
#include "tests/viewer_scene/support.hpp"

namespace shardbook::scene {
namespace {

// One step of two ops and a gather that begins `gather_at`.
Timeline step_run(Nanoseconds gather_at, Nanoseconds gemm_ns, int ranks = 1, timeline::Clock clock = timeline::Clock::modelled) {
  Sketch sketch(ranks, 0, clock);
  for (Rank rank = 0; rank < ranks; ++rank) {
    sketch.compute(rank, 1000, 1000 + gemm_ns, sketch.detail("gemm", 0));
    sketch.collective(rank, gather_at, gather_at + 300, 0, sketch.detail("all_gather", 1));
    sketch.compute(rank, gather_at + 300, gather_at + 400, sketch.detail("gemm", 1));
    sketch.builder.add_step({rank, 4, 1000, gather_at + 400, 900, 2000});
  }
  return sketch.done();
}

std::shared_ptr<const timeline::RunInfo> info_with(int prefetch, const char* model) {
  timeline::RunInfo info;
  info.config = {{"model", model}, {"fsdp", {{"prefetch", prefetch}, {"units", {1, 2}}}}};
  return std::make_shared<const timeline::RunInfo>(std::move(info));
}

TEST(Compare, StatesWhatDiffersInConfig) {
  const auto a = scene_of(step_run(1200, 500), info_with(1, "gpt-124m")), b = scene_of(step_run(1500, 500), info_with(0, "gpt-124m"));
  const Comparison comparison = compare(*a, *b, 4, 4);
  ASSERT_EQ(comparison.config.size(), 1u);
  EXPECT_EQ(comparison.config[0].key, "fsdp.prefetch");
  EXPECT_EQ(comparison.config[0].a, "1");
  EXPECT_EQ(comparison.config[0].b, "0");
  EXPECT_TRUE(comparison.remarks.empty()) << comparison.remarks[0];
  EXPECT_FALSE(comparison.clocks_differ);
}

TEST(Compare, SaysASwitchOnce) {
  timeline::RunInfo plain = *info_with(1, "m");
  plain.switches = {{"attention.kernel", "unfused"}, {"loss.kernel", "apart"}};
  plain.config["attention"] = "unfused";
  timeline::RunInfo switched = plain;
  switched.switches = {{"attention.kernel", "cudnn"}, {"loss.kernel", "fused"}};
  switched.config["attention"] = "cudnn";
  switched.config["set"] = {"loss.kernel=fused"};
  const auto a = scene_of(step_run(1200, 500), std::make_shared<timeline::RunInfo>(plain)), b = scene_of(step_run(1200, 500), std::make_shared<timeline::RunInfo>(switched));
  std::vector<std::string> keys;
  for (const Difference& one : compare(*a, *b, 4, 4).config) keys.push_back(one.key);
  EXPECT_EQ(keys, (std::vector<std::string>{"attention", "switches.loss.kernel"}));
}

TEST(Compare, PairsOpsByTheirKeyAndRanksByNumber) {
  const auto a = scene_of(step_run(1200, 500), info_with(1, "m")), b = scene_of(step_run(1500, 700), info_with(1, "m"));
  const Comparison comparison = compare(*a, *b, 4, 4);
  ASSERT_EQ(comparison.ranks.size(), 1u);
  EXPECT_EQ(comparison.ranks[0].a.exposed_communication_ns, 0);
  EXPECT_EQ(comparison.ranks[0].b.exposed_communication_ns, 100);
  ASSERT_EQ(comparison.ops.size(), 2u) << "kernels of all layers are one row";
  EXPECT_EQ(comparison.ops[0].label, "forward, gemm");
  EXPECT_EQ(comparison.ops[0].count_a, 2);
  EXPECT_EQ(comparison.ops[0].sum_a, 600);
  EXPECT_EQ(comparison.ops[0].sum_b, 800);
  for (const OpDelta& op : comparison.ops) {
    if (op.label != "forward, layer 1, all_gather") continue;
    EXPECT_EQ(op.exposed_b - op.exposed_a, 100);
  }
}

// An op is the same one although another before it in its layer is gone.
TEST(Compare, PairsOpsByTheirPartWhateverTheirNumber) {
  const auto run = [](bool with_softmax) {
    Sketch sketch(1);
    int n = 0;
    const auto op = [&](const char* name, const char* part, Nanoseconds begin) {
      timeline::Detail detail = sketch.detail(name, 4);
      detail.part = sketch.builder.intern(part);
      detail.n = n++;
      sketch.compute(0, begin, begin + 100, detail);
    };
    op("linear_forward", "qkv", 1000);
    if (with_softmax) op("softmax", "attention", 1100);
    op("linear_forward", "up", 1200);
    sketch.builder.add_step({0, 4, 1000, 1300, 900, 2000});
    return sketch.done();
  };
  const auto a = scene_of(run(true), info_with(1, "m")), b = scene_of(run(false), info_with(1, "m"));
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> counts;
  for (const OpDelta& op : compare(*a, *b, 4, 4).ops) {
    counts[op.label] = {op.count_a, op.count_b};
    EXPECT_EQ(op.median_a, 100) << op.label;
    const bool is_gone = op.label == "forward, softmax attention";
    EXPECT_EQ(op.median_b, is_gone ? std::optional<Nanoseconds>() : 100) << op.label << ": none is not 0 ns";
    EXPECT_EQ(op.sum_b - op.sum_a, is_gone ? -100 : 0) << op.label;
  }
  const std::map<std::string, std::pair<std::int64_t, std::int64_t>> expected = {
      {"forward, linear_forward qkv", {1, 1}}, {"forward, linear_forward up", {1, 1}}, {"forward, softmax attention", {1, 0}}};
  EXPECT_EQ(counts, expected);
}

// A gather that takes no longer and is hidden no more costs the step more than a kernel that takes a little longer.
TEST(Compare, BeginsWithWhatTheStepLostMostBy) {
  const auto a = scene_of(step_run(1200, 500), info_with(1, "m")), b = scene_of(step_run(1900, 510), info_with(0, "m"));
  const Comparison lost = compare(*a, *b, 4, 4), gained = compare(*b, *a, 4, 4);
  for (const Comparison* one : {&lost, &gained}) EXPECT_EQ(one->ops[0].label, "forward, layer 1, all_gather");
  EXPECT_EQ(lost.ops[0].lost(), 300);
  EXPECT_EQ(lost.ops[0].sum_b, lost.ops[0].sum_a);
  EXPECT_EQ(gained.ops[0].lost(), -300);
}

TEST(Compare, ColumnsOfTheDifferenceSumToTheDifference) {
  const auto a = scene_of(random_run(41, 2, 300)), b = scene_of(random_run(42, 2, 280));
  const Comparison comparison = compare(*a, *b, 0, 0);
  EXPECT_EQ(comparison.window_a, a->whole());
  Nanoseconds expected = 0, told = 0;
  for (const auto& rank : comparison.ranks) expected += rank.b.exposed_communication_ns - rank.a.exposed_communication_ns;
  for (Nanoseconds column : exposed_difference(*a, *b, comparison, 77)) told += column;
  EXPECT_EQ(told, expected);
  EXPECT_NE(expected, 0);
}

TEST(Compare, SaysWhatMakesTheRunsUnlike) {
  const auto a = scene_of(step_run(1200, 500, 2)), b = scene_of(step_run(1200, 500, 1, timeline::Clock::measured));
  const Comparison comparison = compare(*a, *b, 4, 7);
  EXPECT_TRUE(comparison.clocks_differ);
  std::string all;
  for (const std::string& remark : comparison.remarks) all += remark + "\n";
  for (const char* part : {"different clocks", "no run.json", "2 ranks, the second 1", "the second run has no step 7"}) {
    EXPECT_NE(all.find(part), std::string::npos) << part << " in " << all;
  }
}

}  // namespace
}  // namespace shardbook::scene
