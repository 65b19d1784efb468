// Planted problems: each is named with its regime and its cause, and what it is said to cost is within 15 % of what
// happens when it is really taken out: by another run with other options, or by a profile altered in its tables.
#include <algorithm>

#include "tests/cause/planted.hpp"

namespace shardbook::cause {
namespace {

struct Late {
  const char* name;
  Options options;
};

class Gathers : public ::testing::TestWithParam<Late> {};

// 1 to 3: no prefetch, really taken out by prefetching.
TEST_P(Gathers, ThatBeginTooLateAreNamedWithWhatPrefetchingGives) {
  Options late = GetParam().options, mended = late;
  late.emplace_back("prefetch", "0");
  mended.emplace_back("prefetch", "1");
  const PlantedRun run = run_of(late);
  const Why why = why_or_fail(run);
  expect_leads(why, Regime::bandwidth, "all-gathers wait that nothing hides");
  EXPECT_NE(headline(why).find("--prefetch 1 would give"), std::string::npos) << headline(why);
  EXPECT_NE(why.causes.front().line.find("engine/fsdp/"), std::string::npos);
  EXPECT_EQ(why.causes.front().because, "none is issued before what needs it");
  expect_near(static_cast<double>(why.causes.front().gain_ns), step_of(run) - step_of(run_of(mended)), "prefetch 1");
}

INSTANTIATE_TEST_SUITE_P(Planted, Gathers,
                         ::testing::Values(Late{"eight", {{"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequences", "16"}}},
                                           Late{"four", {{"model", "gpt-1.3b"}, {"fsdp", "4"}, {"sequences", "16"}}},
                                           Late{"two", {{"model", "gpt-124m"}, {"fsdp", "2"}, {"sequences", "4"}}}),
                         [](const auto& info) { return info.param.name; });

// What delays a reduction is the gather that is issued too late, and goes with it: the sums are covered then, as in any step.
TEST(Planted, SumsThatAreCoveredOnceGathersAreEarlierAreNoCauseBesideThem) {
  const Why why = why_or_fail(run_of({{"model", "gpt-1.3b"}, {"fsdp", "2"}, {"sequences", "8"}, {"set", "fsdp.backward_prefetch=none"}}));
  expect_leads(why, Regime::bandwidth, "25 all-gathers wait that nothing hides");
  EXPECT_EQ(why.causes.front().remedy, "--set fsdp.backward_prefetch=pre");
  EXPECT_EQ(why.causes.front().where, "backward of layers 0 to 23") << "where they wait, and not where others hide";
  EXPECT_EQ(cause_of(why, "reduce-scatters of dp_shard take longer than compute covers"), nullptr);
}

// A wait of the host may stand before what gains more, and cost less than is worth a change by itself: the step has a problem all the same.
TEST(Planted, AStepHasAProblemWhereAnyCauseIsWorthAChangeThoughItDoesNotStandFirst) {
  const Why why = why_or_fail(run_of({{"model", "gpt-124m"}, {"fsdp", "2"}, {"sequences", "8"}, {"set", "host.synchronize=layer"}}));
  ASSERT_LT(static_cast<double>(why.causes.front().gain_ns), 0.05 * static_cast<double>(why.step_ns)) << "this run no longer tells";
  EXPECT_TRUE(why.has_problem);
  EXPECT_NE(headline(why).find("the host waits for the device 28 times a step"), std::string::npos) << headline(why);
}

// 4: the host, really taken out by a profile whose host costs nothing.
TEST(Planted, AHostThatIsLateIsNamed) {
  const Altered free_host([](simulate::Profile& profile) { host_costs(profile, 0); });
  const PlantedRun run = run_of({{"tp", "2"}}), mended = run_of({{"tp", "2"}, {"profile", free_host.path()}});
  const Why why = why_or_fail(run);
  expect_leads(why, Regime::host, "the host takes");
  const Cause* cause = cause_of(why, "the host takes");
  ASSERT_NE(cause, nullptr);
  expect_near(static_cast<double>(cause->gain_ns), step_of(run) - step_of(mended), "free host");
  EXPECT_NEAR(step_of(run), 1.319e6, 1e3);
  EXPECT_NEAR(static_cast<double>(cause->gain_ns) / step_of(run), 0.40, 0.01);
  EXPECT_EQ(share_of(why, Regime::bandwidth).gain_ns, 0) << "with collectives of 1 ns the step is the same";
  // What is to try: twice the work in as many calls
  EXPECT_NE(cause->remedy.find("--sequences 32 --micro-batches 1 (more work a call)"), std::string::npos) << cause->remedy;
  EXPECT_NEAR(step_of(run_of({{"tp", "2"}, {"sequences", "32"}, {"micro-batches", "1"}})), step_of(run), 0.01 * step_of(run));
}

// What gains next to nothing, whichever of three is taken out, for the host stands right behind, is none of the three.
TEST(Planted, AStepWithItsHostCloseBehindIsNamedByWhatFillsIt) {
  const PlantedRun run = run_of({{"tp", "2"}, {"width", "512"}, {"heads", "16"}});
  const Why why = why_or_fail(run);
  EXPECT_EQ(share_of(why, Regime::latency).gain_ns, share_of(why, Regime::bandwidth).gain_ns);
  EXPECT_GT(static_cast<double>(*share_of(why, Regime::latency).gain_ns), 0.02 * static_cast<double>(why.step_ns));
  EXPECT_EQ(why.regime, Regime::compute) << headline(why);
  EXPECT_FALSE(why.has_problem) << headline(why);
}

// 5: what issuing the sums costs, really taken out by another cut.
TEST(Planted, SumsThatCostTheHostMoreThanTheyTakeAreNamed) {
  const PlantedRun run = run_of({{"tp", "2"}}), mended = run_of({{"tp", "1"}});
  const Why why = why_or_fail(run);
  const Cause* cause = cause_of(why, "all-reduces of tp costs the host");
  ASSERT_NE(cause, nullptr) << headline(why);
  EXPECT_EQ(cause->regime, Regime::host);
  EXPECT_NE(cause->line.find("engine/model/block.cpp"), std::string::npos) << "the layer that asks, not the helper that all sums go through: " << cause->line;
  EXPECT_FALSE(cause->also.empty()) << "a block has more than one sum";
  for (const std::string& line : cause->also) {
    EXPECT_TRUE(line.starts_with("engine/model/") && line != cause->line) << line;
  }
  expect_near(static_cast<double>(cause->gain_ns), step_of(run) - step_of(mended), "tp 1");
}

// 6: latency, where the host is free.
TEST(Planted, LatencyIsNamedWhereTheHostIsFree) {
  const Altered free_host([](simulate::Profile& profile) { host_costs(profile, 0); });
  const Altered no_latency([](simulate::Profile& profile) {
    host_costs(profile, 0);
    collectives(profile, 0, 1);
  });
  const PlantedRun run = run_of({{"tp", "4"}, {"profile", free_host.path()}}), mended = run_of({{"tp", "4"}, {"profile", no_latency.path()}});
  EXPECT_NEAR(step_of(run), 0.867e6, 1e3);
  const Why why = why_or_fail(run);
  expect_leads(why, Regime::latency, "all-reduces of tp");
  expect_near(static_cast<double>(*share_of(why, Regime::latency).gain_ns), step_of(run) - step_of(mended), "alpha 0");
}

// 7: bandwidth.
TEST(Planted, BandwidthIsNamedWhereLittleComputesBesideIt) {
  const Altered free_bytes([](simulate::Profile& profile) { collectives(profile, 1, 0); });
  const Options options = {{"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequences", "8"}};
  Options mended = options;
  mended.emplace_back("profile", free_bytes.path());
  const PlantedRun run = run_of(options);
  const Why why = why_or_fail(run);
  expect_leads(why, Regime::bandwidth, "take longer than compute covers");
  expect_near(static_cast<double>(*share_of(why, Regime::bandwidth).gain_ns), step_of(run) - step_of(run_of(mended)), "beta 0");
}

// 8: a slow link.
TEST(Planted, ALinkThatIsFourTimesAsSlowIsNamed) {
  const Altered slow([](simulate::Profile& profile) { collectives(profile, 1, 4); });
  const Altered none([](simulate::Profile& profile) { collectives(profile, 1, 0); });
  const Options options = {{"model", "gpt-1.3b"}, {"fsdp", "4"}, {"sequences", "16"}};
  Options planted = options, mended = options;
  planted.emplace_back("profile", slow.path());
  mended.emplace_back("profile", none.path());
  const PlantedRun run = run_of(planted);
  const Why why = why_or_fail(run);
  expect_leads(why, Regime::bandwidth, "longer than compute covers");
  expect_near(static_cast<double>(*share_of(why, Regime::bandwidth).gain_ns), step_of(run) - step_of(run_of(mended)), "no bytes");
}

// What is said of rows that cross in pieces leads to the note that has them.
TEST(Planted, ShiftsThatNothingHidesLeadToTheNoteOnTensorParallelism) {
  const PlantedRun run = run_of({{"model", "gpt-1.3b"}, {"tp", "2"}, {"sequences", "8"}, {"set", "tensor_parallel.sequence=cut"}, {"set", "tensor_parallel.overlap=pieces"}});
  const Why why = why_or_fail(run);
  int of_shifts = 0;
  for (const Cause& cause : why.causes) {
    if (cause.what.find("shift") == std::string::npos) continue;
    EXPECT_EQ(cause.note, "03") << cause.what;
    ++of_shifts;
  }
  EXPECT_GE(of_shifts, 1);
}

// 9: sums between kernels, really taken out by collectives that cost nothing.
TEST(Planted, SumsBetweenKernelsAreNamed) {
  const Altered none([](simulate::Profile& profile) { collectives(profile, 0, 0); });
  const Options options = {{"model", "gpt-1.3b"}, {"tp", "8"}};
  Options mended = options;
  mended.emplace_back("profile", none.path());
  const PlantedRun run = run_of(options);
  const Why why = why_or_fail(run);
  expect_leads(why, Regime::bandwidth, "all-reduces of tp stand between kernels");
  expect_near(static_cast<double>(why.causes.front().gain_ns), step_of(run) - step_of(run_of(mended)), "free sums");
}

// --- No problem -----------------------------------------------------------------------------------------

TEST(Planted, ARunWithoutAProblemSaysSo) {
  for (const Options& options : {Options{{"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequences", "64"}},
                                 Options{{"model", "gpt-124m"}, {"sequences", "16"}}}) {
    const Why why = why_or_fail(run_of(options));
    EXPECT_EQ(why.regime, Regime::compute) << headline(why);
    EXPECT_FALSE(why.has_problem) << headline(why);
    EXPECT_NE(headline(why).find("has no problem"), std::string::npos) << headline(why);
  }
}

TEST(Planted, SumsOfEachMicroBatchNameTheSumOnceAStep) {
  const auto step_with = [](const char* reduce) {
    return run_of({{"model", "gpt-124m"}, {"fsdp", "8"}, {"sequences", "32"}, {"micro-batches", "4"}, {"set", std::string("accumulate.reduce=") + reduce}});
  };
  const PlantedRun each = step_with("each"), last = step_with("last");
  EXPECT_NE(headline(why_or_fail(each)).find("52 reduce-scatters of dp_shard take longer than compute covers"), std::string::npos) << headline(why_or_fail(each));
  EXPECT_NE(headline(why_or_fail(each)).find("what acts on it, and need not give that: --set accumulate.reduce=last"), std::string::npos) << headline(why_or_fail(each));
  EXPECT_LT(step_of(last), 0.9 * step_of(each));
  EXPECT_EQ(headline(why_or_fail(last)).find("accumulate.reduce"), std::string::npos) << headline(why_or_fail(last));
}

// Where compute covers most of what a busy stream has to do, each slows the other: less to do on the stream is a shorter step.
TEST(Planted, AStreamWithoutRestIsNamedWhereItsCollectivesAreCovered) {
  const Options options = {{"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequences", "16"}};
  const Why why = why_or_fail(run_of(options));
  expect_leads(why, Regime::bandwidth, "49 all-gathers of dp_shard take as long as what hides them");
  EXPECT_NE(headline(why).find("because their stream is busy for 88 % of the step"), std::string::npos) << headline(why);
  EXPECT_NE(headline(why).find("--reshard false"), std::string::npos) << headline(why);
  // Four times the tokens: the stream rests, and nothing of it is named
  const Why large = why_or_fail(run_of({{"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequences", "64"}}));
  EXPECT_FALSE(large.has_problem) << headline(large);
  EXPECT_EQ(cause_of(large, "take as long as what hides"), nullptr) << headline(large);
}

TEST(Planted, GradientSumsThatAwaitTheEndOfBackwardByChoiceLeadAndNameTheChoice) {
  for (const char* how : {"naive", "flat"}) {
    const Why why = why_or_fail(run_of({{"model", "gpt-124m"}, {"dp", "8"}, {"sequences", "8"}, {"set", std::string("data_parallel.reduce=") + how}}));
    EXPECT_TRUE(why.has_problem) << headline(why);
    EXPECT_NE(headline(why).find("only when backward is over"), std::string::npos) << headline(why);
    EXPECT_NE(headline(why).find("--set data_parallel.reduce=bucketed"), std::string::npos) << headline(why);
  }
  // One bucket that is as large as the model comes to the same
  const Why large = why_or_fail(run_of({{"model", "gpt-124m"}, {"dp", "8"}, {"sequences", "8"}, {"set", "data_parallel.bucket_mib=4096"}}));
  EXPECT_TRUE(large.has_problem) << headline(large);
  EXPECT_NE(headline(large).find("1 all-reduce of dp_replicate begins only when backward is over"), std::string::npos) << headline(large);
  EXPECT_NE(headline(large).find("one bucket holds all gradients"), std::string::npos) << headline(large);
  EXPECT_NE(headline(large).find("--set data_parallel.bucket_mib=25"), std::string::npos) << headline(large);
  // Without the choice, the effect is gone
  const Why why = why_or_fail(run_of({{"model", "gpt-124m"}, {"dp", "8"}, {"sequences", "8"}}));
  EXPECT_EQ(cause_of(why, "only when backward is over"), nullptr) << headline(why);
}

// Smaller buckets than one a unit there are not, and a run that has them already is not told to.
TEST(Planted, NoRunIsToldToSetWhatItHas) {
  const Options small = {{"model", "grammar-tutor"}, {"layers", "1"}, {"width", "512"}, {"heads", "8"}, {"vocab", "2048"},
                         {"fsdp", "2"}, {"dp", "4"}, {"sequences", "512"}, {"micro-batches", "1"}};
  for (const char* mib : {"1", "2", "4096"}) {
    Options options = small;
    options.emplace_back("set", std::string("data_parallel.bucket_mib=") + mib);
    const Why why = why_or_fail(run_of(options));
    for (const Cause& cause : why.causes) EXPECT_NE(cause.remedy, std::string("--set data_parallel.bucket_mib=") + mib) << cause.what;
    if (std::string(mib) == "1") {
      EXPECT_EQ(to_text(why, 9).find("one bucket holds all"), std::string::npos) << to_text(why, 9);
    }
  }
}

TEST(Planted, WhatNothingCanHideIsNamedSoAndDoesNotLead) {
  const Why why = why_or_fail(run_of({{"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequences", "64"}}));
  const Cause* edge = cause_of(why, "before the first kernel");
  ASSERT_NE(edge, nullptr);
  EXPECT_FALSE(edge->avoidable);
  bool seen = false;
  for (const Cause& cause : why.causes) {
    EXPECT_FALSE(seen && cause.avoidable) << "what can be changed comes first";
    seen = seen || !cause.avoidable;
  }
  // Nor is it said that nothing helps where something does
  EXPECT_TRUE(edge->remedy.starts_with("--set fsdp.update=by_unit")) << edge->remedy;
  EXPECT_NE(to_text(why, 9).find("What no change takes away altogether"), std::string::npos);
  const Why finer = why_or_fail(run_of({{"model", "gpt-1.3b"}, {"fsdp", "8"}, {"sequences", "64"}, {"set", "fsdp.update=by_unit"}}));
  const Cause* less = cause_of(finer, "before the first kernel");
  ASSERT_NE(less, nullptr);
  EXPECT_LT(less->gain_ns, edge->gain_ns);
  EXPECT_EQ(less->remedy, "");
  EXPECT_NE(to_text(finer, 9).find("nothing can change it"), std::string::npos);
}

}  // namespace
}  // namespace shardbook::cause
