// Does the cost model give back what was measured, and something sensible between and beyond?
#include "engine/simulate/cost.hpp"

#include <gtest/gtest.h>

#include "tests/simulate/programs.hpp"

namespace shardbook::simulate {
namespace {

using base::DType;

CostModel model() {
  base::Result<Profile> profile = find_profile(SHARDBOOK_SOURCE_DIR "/tests/simulate/data/machine.json");
  EXPECT_TRUE(profile.ok()) << (profile.ok() ? "" : profile.error());
  return CostModel(std::move(profile).value());
}

std::vector<base::Rank> ranks(int count, int stride = 1) {
  std::vector<base::Rank> list;
  for (int at = 0; at < count; ++at) list.push_back(at * stride);
  return list;
}

TEST(CostModel, GivesBackEachMeasuredMatmulAndCollective) {
  const CostModel costs = model();
  for (const auto& [dtype, table] : costs.profile().gemm) {
    for (const GemmPoint& point : table.points) EXPECT_NEAR(costs.gemm_ns(point.size, dtype) / point.ns, 1, 1e-3);
  }
  for (const auto& [kind, by_ranks] : costs.profile().collectives) {
    for (const auto& [count, curve] : by_ranks) {
      for (const CurvePoint& point : curve) {
        EXPECT_NEAR(costs.collective_ns(kind, point.bytes, ranks(count)) / point.ns, 1, 1e-9);
      }
    }
  }
}

TEST(CostModel, SaysWhichMatmulsLeaveACollectiveNoRoom) {
  base::Result<Profile> profile = find_profile("h200x8");
  ASSERT_TRUE(profile.ok()) << profile.error();
  const CostModel costs(std::move(profile).value());
  const auto fills = [&](program::GemmSize size) {
    OpDesc desc("matmul", OpKind::gemm, DType::bf16);
    desc.gemm = size;
    return costs.fills(desc);
  };
  // gpt-1.3b's weight gradients at tp 4: even the smallest is dealt to (nearly) all 132 multiprocessors.
  EXPECT_TRUE(fills({2048, 1536, 8192, 1}));
  EXPECT_TRUE(fills({2048, 2048, 8192, 1}));
  EXPECT_TRUE(fills({8192, 8192, 8192, 1}));
  EXPECT_FALSE(fills({256, 256, 256, 1}));
  EXPECT_FALSE(costs.fills(OpDesc("gelu", OpKind::pointwise, DType::bf16)));
}

// Each matmul of a modelled program loses beside a collective what those of its size were measured to lose.
TEST(CostModel, GivesEachMatmulItsOwnFactorBesideACollective) {
  base::Result<Profile> profile = find_profile("h200x8");
  ASSERT_TRUE(profile.ok()) << profile.error();
  const CostModel model(std::move(profile).value());
  const program::GemmSize large{8192, 6144, 2048, 1}, small{2048, 2048, 8192, 1};
  program::Recorder recorder(0);
  recorder.add_stream("compute");
  recorder.begin_step(0);
  for (program::GemmSize size : {large, small}) recorder.op(0, OpDesc("matmul", OpKind::gemm, DType::bf16).size(size), {"test.cpp", 1});
  recorder.op(0, OpDesc("matmul", OpKind::gemm, DType::f32).size(large), {"test.cpp", 2});
  recorder.op(0, OpDesc("gelu", OpKind::pointwise, DType::bf16), {"test.cpp", 3});
  recorder.end_step();
  const std::vector<float> beside = model.costs(*recorder.programs().front(), recorder.catalogue())->beside;
  ASSERT_EQ(beside.size(), 4u);
  for (std::size_t at = 0; at < 2; ++at) {
    const program::GemmSize size = at == 0 ? large : small;
    for (const GemmPoint& point : model.profile().gemm.at(DType::bf16).points) {
      if (point.size.m != size.m || point.size.n != size.n || point.size.k != size.k) continue;
      EXPECT_NEAR(beside[at], point.beside_ns / point.ns, 1e-3);
    }
  }
  EXPECT_GT(beside[1], 1.5f * beside[0]) << "one whose tiles just fill the device loses most";
  EXPECT_EQ(beside[2], 0) << "in f32 none was measured: the machine's factor holds";
  EXPECT_EQ(beside[3], 0) << "no matmul";
}

// One call issues the whole step and costs what the profile says, and each op's period is shorter by what it says; a step that is
// traced is issued one by one all the same.
TEST(CostModel, OfAStepAsAGraphHasOneCallOfTheHostUnlessItIsTraced) {
  base::Result<Profile> profile = find_profile("h200x8");
  ASSERT_TRUE(profile.ok()) << profile.error();
  program::Recorder recorder(0);
  recorder.add_stream("compute");
  const program::EventId event = recorder.add_event("done");
  recorder.begin_step(0);
  for (int op = 0; op < 3; ++op) recorder.op(0, OpDesc("gelu", OpKind::pointwise, DType::bf16), {"test.cpp", 1});
  recorder.record_event(0, event, {"test.cpp", 2});
  recorder.end_step();
  const program::Program& program = *recorder.programs().front();
  Conditions conditions;
  conditions.as_graph = true;
  conditions.call_ns = 5000;
  const CostModel plain(profile.value()), graph(profile.value(), conditions);
  const auto costs = graph.costs(program, recorder.catalogue()), before = plain.costs(program, recorder.catalogue());
  EXPECT_EQ(costs->issue_ns, (std::vector<base::Nanoseconds>{std::llround(profile.value().host.graph_ns), 0, 0, 0}));
  for (std::size_t op = 0; op < 3; ++op) EXPECT_EQ(costs->op_ns[op], before->op_ns[op] - std::llround(profile.value().device.graph_gap_ns));
  EXPECT_EQ(costs->step_ns, before->step_ns);
  const auto traced = graph.costs(program, recorder.catalogue(), {}, true);
  EXPECT_EQ(traced->op_ns, before->op_ns);
  EXPECT_EQ(traced->issue_ns[0], std::llround(profile.value().host.kernel_ns + profile.value().host.trace_ns) + 5000);
}

// A graph saves a collective more than a kernel, where a profile says so, and what awaits an event waits less long.
TEST(CostModel, OfAGraphHasItsOwnGapBehindCollectivesAndItsOwnEvents) {
  base::Result<Profile> profile = find_profile("h200x8");
  ASSERT_TRUE(profile.ok()) << profile.error();
  program::Recorder recorder(0);
  recorder.add_stream("compute");
  const program::GroupId group = recorder.add_group({"tp", {0, 1}});
  recorder.begin_step(0);
  recorder.op(0, OpDesc("gelu", OpKind::pointwise, DType::bf16), {"test.cpp", 1});
  recorder.op(0, OpDesc("all_reduce", OpKind::all_reduce, DType::bf16).collective_of({group, 0, 1 << 19}), {"test.cpp", 2});
  recorder.end_step();
  const program::Program& program = *recorder.programs().front();
  Conditions conditions;
  conditions.as_graph = true;
  profile.value().device.graph_gap_ns = 150;
  const auto of = [&](const Conditions& under, const Scale& scale = {}) { return CostModel(profile.value(), under).costs(program, recorder.catalogue(), scale); };
  const auto plain = of({}), not_measured = of(conditions);
  EXPECT_EQ(not_measured->op_ns, (std::vector<base::Nanoseconds>{plain->op_ns[0] - 150, plain->op_ns[1] - 150}));
  EXPECT_EQ(not_measured->event_latency_ns, -1);
  profile.value().device.graph_collective_gap_ns = 900;
  profile.value().device.graph_event_latency_ns = 500;
  const auto measured = of(conditions);
  EXPECT_EQ(measured->op_ns, (std::vector<base::Nanoseconds>{plain->op_ns[0] - 150, plain->op_ns[1] - 900}));
  EXPECT_EQ(measured->event_latency_ns, 500);
  EXPECT_EQ(of({})->event_latency_ns, -1);
  Scale slower;
  slower.launch = 3;
  EXPECT_EQ(of(conditions, slower)->event_latency_ns, 1500);
  EXPECT_EQ(profile_from_json(to_json(profile.value()), "again").value(), profile.value());
}

// What makes a kernel slower is another one behind it, which its host launches, too; the network's calls have none.
TEST(CostModel, OfASlowRankHasEachKernelLaunchedTwice) {
  base::Result<Profile> profile = find_profile("h200x8");
  ASSERT_TRUE(profile.ok()) << profile.error();
  program::Recorder recorder(0);
  recorder.add_stream("compute");
  recorder.add_group({"fsdp", {0, 1}});
  recorder.begin_step(0);
  recorder.op(0, OpDesc("gelu", OpKind::pointwise, DType::bf16), {"test.cpp", 1});
  recorder.op(0, OpDesc("all_reduce", OpKind::all_reduce, DType::bf16).collective_of({0, 0, 1024, -1}), {"test.cpp", 2});
  recorder.end_step();
  const program::Program& program = *recorder.programs().front();
  Conditions conditions;
  conditions.slow_rank = 1;
  conditions.kernel_ns = 1000;
  const CostModel plain(profile.value()), slow(profile.value(), conditions);
  const auto before = plain.costs(program, recorder.catalogue());
  const auto of_other = slow.costs(program, recorder.catalogue(), {}, false, 0), of_slow = slow.costs(program, recorder.catalogue(), {}, false, 1);
  EXPECT_EQ(of_other->issue_ns, before->issue_ns);
  EXPECT_EQ(of_other->op_ns, before->op_ns);
  EXPECT_NEAR(static_cast<double>(of_slow->issue_ns[0]), 2 * profile.value().host.kernel_ns, 1);
  EXPECT_EQ(of_slow->op_ns[0], before->op_ns[0] + 1000 + std::llround(profile.value().device.stream_gap_ns));
  EXPECT_EQ(of_slow->issue_ns[1], before->issue_ns[1]);
  EXPECT_EQ(of_slow->op_ns[1], before->op_ns[1]);
  // And taken away again
  Costs costs = *of_slow;
  const SmallCosts small{profile.value().host.record_ns, profile.value().host.kernel_ns, profile.value().device.stream_gap_ns};
  conditions.kernel_ns = -1000;
  put_under(conditions, costs, program, 1, small);
  EXPECT_EQ(costs.op_ns, before->op_ns);
  EXPECT_NEAR(static_cast<double>(costs.issue_ns[0]), static_cast<double>(before->issue_ns[0]), 1);
}

TEST(CostModel, NeverLetsAMatmulBeatItsPeakOrItsMemory) {
  const CostModel costs = model();
  const double peak = costs.profile().gemm.at(DType::bf16).peak_flops_per_ns;
  for (std::int64_t m : {64, 1000, 8192}) {
    for (std::int64_t n : {128, 2000, 50304}) {
      for (std::int64_t k : {32, 128, 4096}) {
        const double ns = costs.gemm_ns({m, n, k, 1}, DType::bf16);
        EXPECT_GT(ns, 0.9 * 2.0 * m * n * k / peak) << m << " " << n << " " << k;
        EXPECT_GT(ns, 0.9 * 2.0 * (m * n + n * k + m * k) / costs.profile().device.memory_bytes_per_ns);
      }
    }
  }
}

TEST(CostModel, LosesTimeToALastWaveThatIsNotFull) {
  Profile profile = model().profile();
  profile.gemm[DType::bf16].points.clear();
  const CostModel costs(profile);
  // 132 multiprocessors: 132 tiles of 128 x 256 are one wave. One more would take another, of which half counts;
  // 266 tiles of half the size and 0.9 of the efficiency take (2.015 + 3) / 2 halves: that is chosen.
  const auto ns = [&](std::int64_t rows) { return costs.gemm_ns({128 * rows, 256, 8192, 1}, DType::bf16); };
  EXPECT_NEAR(ns(133) / ns(132), (2.015 + 3) / 2 / 2 / 0.9, 0.02);
  EXPECT_GT(ns(66), 0.5 * ns(132));
}

TEST(CostModel, PrefersAKernelsNameToItsKind) {
  Profile profile = model().profile();
  profile.kernels["gelu_forward"] = {{1024, 777}};
  const CostModel costs(profile);
  OpDesc named("gelu_forward", OpKind::pointwise, DType::bf16), unnamed("other", OpKind::pointwise, DType::bf16);
  EXPECT_DOUBLE_EQ(costs.kernel_ns(named), 777);
  EXPECT_DOUBLE_EQ(costs.kernel_ns(unnamed), profile.kernels.at("pointwise").front().ns);
}

TEST(CostModel, TimesAPauseByWhatItIsToldAndByTheFillBehindIt) {
  const CostModel costs = model();
  const program::OpDesc fill = OpDesc("fill", OpKind::fill, DType::f32).writes({0, 0, 32}), pause = OpDesc(program::pause_name, OpKind::fill, DType::f32).writes({0, 0, 32});
  program::Catalogue catalogue;
  catalogue.buffers.push_back({"scratch", program::MemoryKind::workspace, 32});
  EXPECT_EQ(costs.op_ns(pause, catalogue), costs.op_ns(fill, catalogue) + program::pause_ns);
  EXPECT_EQ(costs.fixed_ns(pause, catalogue), costs.fixed_ns(fill, catalogue) + program::pause_ns);
}

// What an epilogue reads or writes beside is not hidden behind the sums.
TEST(CostModel, AddsToAMatmulWhatItsEpilogueMovesBeside) {
  const CostModel costs = model();
  for (const char* name : {"linear_forward", "linear_input_gradient"}) {
    OpDesc plain(name, OpKind::gemm, DType::bf16);
    plain.size({65536, 3072, 768, 1});
    const std::string with_gelu = std::string(name) + "_gelu";
    OpDesc gelu(with_gelu.c_str(), OpKind::gemm, DType::bf16);
    gelu.size({65536, 3072, 768, 1});
    EXPECT_NEAR(costs.op_ns(gelu, {}) - costs.op_ns(plain, {}), 2.0 * 65536 * 3072 * 2 / costs.profile().device.memory_bytes_per_ns, 1) << name;
  }
}

// By bytes of host memory, on no device: the curve of its name, else that of all such work, else an assumed 50 GB/s.
TEST(CostModel, TimesTheCpusWorkByTheBytesOfHostMemoryThatItGoesThrough) {
  Profile profile = model().profile();
  OpDesc desc("adam_w_on_host", OpKind::host, DType::bf16);
  desc.bytes_read = 16'000'000'000;
  desc.bytes_written = 14'000'000'000;
  const auto ns = [&] { return CostModel(profile).op_ns(desc, {}); };
  EXPECT_NEAR(ns(), 30e9 / 50, 1e6);
  profile.kernels.erase("host");
  EXPECT_DOUBLE_EQ(ns(), 20'000 + 30e9 / 50);
  profile.kernels["adam_w_on_host"] = {{30'000'000'000, 777}};
  EXPECT_DOUBLE_EQ(ns(), 777);
  EXPECT_TRUE(leaves_device_alone(desc));
  EXPECT_FALSE(crosses_to_host(desc));
}

// A kernel that reads host memory is no faster than the bus.
TEST(CostModel, HoldsKernelsThatReadHostMemoryToTheBus) {
  Profile profile = model().profile();
  profile.kernels["to_device"] = {{1 << 20, 25'000}, {1 << 26, 1'750'000}};
  const CostModel costs(profile);
  const program::Catalogue catalogue{{}, {}, {{"sum", program::MemoryKind::gradient, 1 << 26}, {"sum in host memory", program::MemoryKind::gradient, 1 << 26}}, {}};
  const auto ns = [&](program::BufferId buffer) {
    OpDesc desc("sum_of_squares", OpKind::reduction, DType::f32);
    return costs.op_ns(desc.reads({buffer, 0, 1 << 26}), catalogue);
  };
  EXPECT_DOUBLE_EQ(ns(1), 1'750'000);
  EXPECT_LT(ns(0), 0.1 * ns(1));
}

TEST(CostModel, TimesAttentionByTilesByItsFlopsAndLessOfItThanWasMeasuredByTheMatmulsPeak) {
  Profile profile = model().profile();
  OpDesc desc("flash_attention_forward", OpKind::attention, DType::bf16);
  const auto ns = [&](std::int64_t flops) { return CostModel(profile).attention_ns(desc.flops(flops)); };
  const double assumed = ns(1'000'000'000);
  profile.kernels["flash_attention_forward"] = {{4'000'000'000, 1e6}, {16'000'000'000, 3e6}};
  EXPECT_DOUBLE_EQ(ns(4'000'000'000), 1e6);
  EXPECT_DOUBLE_EQ(ns(16'000'000'000), 3e6);
  EXPECT_DOUBLE_EQ(ns(160'000'000'000), 3e7);
  EXPECT_DOUBLE_EQ(ns(1'000'000'000), assumed) << "it is less than the least that was measured";
  profile.kernels["flash_attention_forward"][0].ns = assumed / 2;
  EXPECT_DOUBLE_EQ(ns(1'000'000'000), assumed / 2) << "and takes no longer than that took";
}

TEST(CostModel, TimesAttentionByTheMeasuredCurveOfHeadsThatAreNearestInWidth) {
  Profile profile = model().profile();
  profile.kernels["flash_attention_forward/128"] = {{1'000'000'000, 1e6}};
  profile.kernels["flash_attention_forward/64"] = {{1'000'000'000, 2e6}};
  profile.kernels["flash_attention_forward_of_more/32"] = {{1'000'000'000, 9e6}};
  const CostModel costs(profile);
  const auto ns = [&](std::int64_t width) {
    OpDesc desc("flash_attention_forward", OpKind::attention, DType::bf16);
    return costs.attention_ns(desc.scores({1024, 1024, width, 8}).flops(1'000'000'000));
  };
  EXPECT_DOUBLE_EQ(ns(64), 2e6);
  EXPECT_DOUBLE_EQ(ns(32), 2e6);
  EXPECT_DOUBLE_EQ(ns(128), 1e6);
  EXPECT_DOUBLE_EQ(ns(256), 1e6);
  EXPECT_DOUBLE_EQ(ns(0), 1e6) << "an old record does not say how wide: curves of that time were of 128";
  OpDesc wide("flash_attention_forward", OpKind::attention, DType::bf16);
  EXPECT_EQ(curve_of_heads(wide.scores({1024, 1024, 128, 8})), "flash_attention_forward/128");
}

TEST(CostModel, PutsUnmeasuredNumbersOfRanksBetweenAndBeyondTheMeasuredOnes) {
  const CostModel costs = model();
  const base::Bytes bytes = 64 << 20;
  const auto ns = [&](int count) { return costs.collective_ns(OpKind::all_gather, bytes, ranks(count)); };
  EXPECT_GT(ns(6), ns(4));
  EXPECT_LT(ns(6), ns(8));
}

TEST(CostModel, GoesThroughAsManyAdaptersAsANodeHasRanksOfTheGroup) {
  const CostModel costs = model();
  const base::Bytes bytes = 512 << 20;
  const double one_each = costs.collective_ns(OpKind::all_gather, bytes, ranks(8, 8));   // a rank of each of 8 nodes
  const double whole_nodes = costs.collective_ns(OpKind::all_gather, bytes, ranks(64));  // all ranks of 8 nodes
  EXPECT_NEAR(one_each, bytes * 7.0 / 8 / 45 + 3 * 8000, 0.001 * one_each);
  EXPECT_LT(whole_nodes, one_each / 4);
}

// A shift that was not measured: its bytes are those of one rank, as in a gather of two they are half.
TEST(CostModel, TimesAShiftAsAGatherOfTwoWhateverTheGroupAndByOneAdapterBetweenNodes) {
  const CostModel costs = model();
  const base::Bytes bytes = 8 << 20;
  const double alone = costs.collective_ns(OpKind::all_gather, 2 * bytes, ranks(2));
  for (int count : {2, 4, 8}) EXPECT_EQ(costs.collective_ns(OpKind::shift, bytes, ranks(count)), alone) << count;
  const Network& network = costs.profile().network;
  const double between = costs.collective_ns(OpKind::shift, 100 * bytes, ranks(64));
  EXPECT_DOUBLE_EQ(between, static_cast<double>(100 * bytes) / network.bytes_per_ns + 3 * network.latency_ns);
}

TEST(CostModel, TakesTheGapOffEachOpAndScalesByClass) {
  const CostModel costs = model();
  TestRank rank(0);
  rank.op(0, 0, 0, OpKind::pointwise);
  rank.op(0, 0, 0, OpKind::copy);
  rank.collective(0, rank.group("tp", {0, 1}), 0);
  const RankSteps given = rank.steps();
  Scale scale;
  scale.communication = 0.5;
  scale.host = 2;
  const auto plain = costs.costs(rank.program(), *given.catalogue);
  const auto scaled = costs.costs(rank.program(), *given.catalogue, scale);
  EXPECT_EQ(plain->op_ns[0], 2300 - 800);
  EXPECT_EQ(plain->op_ns[0], scaled->op_ns[0]);
  EXPECT_NEAR(scaled->op_ns[2] + 800, (plain->op_ns[2] + 800) / 2.0, 1);
  EXPECT_EQ(scaled->issue_ns[0], 2 * plain->issue_ns[0]);
}

// --- The wall clock -----------------------------------------------------------------------------------

TEST(MeasuredCosts, AreDurationsAndTheHostsOwnTime) {
  TestRank rank(0);
  rank.op(0, 0);
  rank.record(0, 0);
  rank.host_wait(0);
  rank.op(1, 0);
  program::StepTimes times;
  times.window = {1000, 2000};
  times.issued = {{1010, 1015}, {1020, 1021}, {1030, 1500}, {1510, 1512}};
  times.ran = {{1100, 1400}, {1600, 1650}};
  const auto costs = measured_costs(rank.program(), times);
  EXPECT_EQ(costs->op_ns, (std::vector<base::Nanoseconds>{300, 50}));
  // From call to call; the wait itself is the resolver's to find.
  EXPECT_EQ(costs->issue_ns, (std::vector<base::Nanoseconds>{10, 10, 10, 2}));
  EXPECT_EQ(costs->step_ns, 10);
}

TEST(MeasuredCosts, RefuseDurationsThatAreNotKnown) {
  TestRank rank(0);
  rank.op(0, 0);
  program::StepTimes times;
  times.issued = {{0, 1}};
  times.ran = {{}};
  EXPECT_THROW((void)measured_costs(rank.program(), times), base::Failure);
}

// --- The whole way ------------------------------------------------------------------------------------

TEST(ByProfile, ResolvesSeveralStepsOfRanksThatShareNothing) {
  TestRank one(0), two(1);
  for (TestRank* rank : {&one, &two}) {
    rank->op(0, 0, 0, OpKind::pointwise);
    rank->collective(0, rank->group("tp", {0, 1}), 0);
    (void)rank->program();
  }
  const RankSteps first = one.steps(), second = two.steps();
  const auto out = resolve(std::vector<RankProgram>{{0, first.catalogue, &one.program()}, {1, second.catalogue, &two.program()}}, model(), 3);
  ASSERT_TRUE(out.ok()) << out.error();
  EXPECT_EQ(out.value().step_end.size(), 3u);
  EXPECT_GT(out.value().step_ns, 0);
}

TEST(ByProfile, CountsWhatTracingCostsHostAndDevice) {
  Profile profile = model().profile();
  profile.host.kernel_ns = 1000;
  profile.host.trace_ns = 4400;
  profile.host.step_ns = 0;
  profile.device.trace_ns = 500;
  TestRank rank(0);
  for (int at = 0; at < 4; ++at) rank.op(0, 0, 0, OpKind::pointwise);
  const RankSteps given = rank.steps();
  const std::vector<RankProgram> programs = {{0, given.catalogue, &rank.program()}};
  ResolveOptions options;
  const auto step_ns = [&] { return resolve(programs, CostModel(profile), 3, options).value().step_ns; };
  EXPECT_EQ(step_ns(), 4 * 2300);  // the device is the limit: the smallest kernel's period
  options.traced = true;
  EXPECT_EQ(step_ns(), 4 * 5400);  // the host is
  profile.host.trace_ns = 0;
  EXPECT_EQ(step_ns(), 4 * 2800);  // the device is, with a longer gap
}

TEST(ByProfile, SaysThatAProfileOfOneGpuHasNoCollectives) {
  Profile profile = model().profile();
  profile.collectives.clear();
  TestRank rank(0);
  rank.collective(0, rank.group("tp", {0, 1}), 0);
  const RankSteps given = rank.steps();
  const auto out = resolve(std::vector<RankProgram>{{0, given.catalogue, &rank.program()}}, CostModel(profile));
  ASSERT_FALSE(out.ok());
  EXPECT_NE(out.error().find("has no collectives"), std::string::npos) << out.error();
}

}  // namespace
}  // namespace shardbook::simulate
