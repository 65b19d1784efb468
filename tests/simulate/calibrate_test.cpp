// Does a profile that was fitted from samples of a known machine predict what was held out?
#include "engine/simulate/calibrate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "engine/simulate/cost.hpp"
#include "tests/simulate/programs.hpp"

namespace shardbook::simulate {
namespace {

using base::DType;
using program::GemmSize;

// A machine with laws of its own: tiles and waves at a peak that the fit must find, and beyond the small model a
// loss on few rows and on short sums, of which the fit knows nothing.
struct Truth {
  PowerCosts power{.exponent = 1.9, .idle = 0.2, .communication = 0.5, .memory = 0.65, .fastest = 1.17};
  double gemm_ns(GemmSize size, DType dtype) const {
    DeviceCosts device;
    device.multiprocessors = 132;
    device.memory_bytes_per_ns = 4000;
    const GemmTable table{dtype == DType::bf16 ? 700e3 : 50e3, 3000, {}};
    return gemm_model_ns(size, dtype, table, device) * (1 + 200.0 / static_cast<double>(size.m)) *
           (1 + 100.0 / static_cast<double>(size.k));
  }
  double kernel_ns(base::Bytes bytes) const { return 2500 + static_cast<double>(bytes) / 4000; }
  double collective_ns(OpKind kind, int ranks, base::Bytes bytes) const {
    const double part = (kind == OpKind::all_reduce ? 2.0 : 1.0) * (ranks - 1) / ranks;
    return 9000 + 3000 * std::log2(ranks) + part * static_cast<double>(bytes) / 340;
  }
};

Benchmarks measured_on(const Truth& truth, int gpus) {
  Benchmarks benchmarks = plan(gpus);
  benchmarks.name = "test";
  benchmarks.device.name = "a machine of the test";
  benchmarks.device.multiprocessors = 132;
  benchmarks.network = {8, 45, 8000};
  for (GemmBenchmark& gemm : benchmarks.gemms) gemm.ns = truth.gemm_ns(gemm.size, gemm.dtype);
  for (KernelBenchmark& kernel : benchmarks.kernels) kernel.ns = truth.kernel_ns(kernel.bytes);
  for (CollectiveBenchmark& collective : benchmarks.collectives) {
    collective.ns = truth.collective_ns(collective.kind, collective.ranks, collective.bytes);
  }
  for (OverlapBenchmark& overlap : benchmarks.overlaps) {
    overlap.compute_alone_ns = 5.6e6;
    overlap.collectives_alone_ns = 2.8e6;
    overlap.compute_together_ns = 6.4e6;
    overlap.collectives_together_ns = 4.7e6;
  }
  // Of every sort of mix, as a machine of known power runs it: matmuls of 1.6 ms at speed 1.
  benchmarks.idle_power = truth.power.idle;
  for (PowerBenchmark& mix : benchmarks.power) {
    mix.collectives_ns = mix.collectives * 1.2e6;
    mix.kernels_ns = mix.kernels * 0.13e6;
    Load load;
    load.matmul_ns = load.matmul_power_ns = mix.matmuls * 1.6e6;
    load.communication_ns = mix.collectives_ns;
    load.memory_ns = mix.kernels_ns;
    double speed = 1;
    for (int round = 0; round < 100; ++round) {
      load.window_ns = load.matmul_ns / speed + mix.collectives_ns + mix.kernels_ns + mix.rest_ns;
      speed = std::sqrt(speed * speed_at_limit(truth.power, load, 1));
    }
    mix.window_ns = load.window_ns;
    mix.matmuls_ns = load.matmul_ns / speed;
  }
  return benchmarks;
}

CostModel fitted(int gpus = 8) {
  base::Result<Profile> profile = fit(measured_on(Truth(), gpus));
  EXPECT_TRUE(profile.ok()) << (profile.ok() ? "" : profile.error());
  return CostModel(std::move(profile).value());
}

TEST(Plan, IsShortEnoughToRunInAMinute) {
  const Benchmarks benchmarks = plan(8);
  double ns = 0;
  constexpr int repeats = 20;
  for (const GemmBenchmark& gemm : benchmarks.gemms) ns += repeats * Truth().gemm_ns(gemm.size, gemm.dtype);
  for (const KernelBenchmark& kernel : benchmarks.kernels) ns += repeats * Truth().kernel_ns(kernel.bytes);
  for (const CollectiveBenchmark& one : benchmarks.collectives) ns += repeats * Truth().collective_ns(one.kind, one.ranks, one.bytes);
  EXPECT_LT(ns, 20e9);
}

TEST(Plan, OfOneGpuHasNoCollectives) {
  EXPECT_TRUE(plan(1).collectives.empty());
  EXPECT_TRUE(plan(1).overlaps.empty());
  EXPECT_TRUE(fit(measured_on(Truth(), 1)).ok());
}

TEST(Plan, OfThreeGpusMeasuresTwoAndThree) {
  for (const CollectiveBenchmark& collective : plan(3).collectives) {
    EXPECT_TRUE(collective.ranks == 2 || collective.ranks == 3) << collective.ranks;
  }
}

// Matmuls of the sizes that models have, none of them in the plan.
TEST(Fit, PredictsMatmulsThatWereHeldOut) {
  const CostModel model = fitted();
  const Truth truth;
  std::vector<double> errors;
  std::mt19937 draw(1);
  const auto between = [&draw](double low, double high) {
    const double part = static_cast<double>(draw()) / 4294967296.0;
    return static_cast<std::int64_t>(low * std::pow(high / low, part)) / 64 * 64;
  };
  for (int sample = 0; sample < 200; ++sample) {
    const GemmSize size{between(512, 16384), between(512, 16384), between(512, 16384), 1};
    errors.push_back(std::abs(model.gemm_ns(size, DType::bf16) / truth.gemm_ns(size, DType::bf16) - 1));
  }
  std::sort(errors.begin(), errors.end());
  EXPECT_LT(errors[100], 0.02) << "median";
  EXPECT_LT(errors[180], 0.05) << "nine tenths";
}

TEST(Fit, PredictsKernelsAndCollectivesThatWereHeldOut) {
  const CostModel model = fitted();
  const Truth truth;
  for (base::Bytes bytes : {3000, 200'000, 3'000'000, 40'000'000, 700'000'000}) {
    OpDesc desc("anything", OpKind::pointwise, DType::bf16);
    desc.bytes_read = bytes;
    EXPECT_NEAR(model.kernel_ns(desc) / truth.kernel_ns(bytes), 1, 0.12) << bytes;
    for (OpKind kind : {OpKind::all_reduce, OpKind::all_gather, OpKind::reduce_scatter}) {
      for (int count : {2, 4, 8}) {
        std::vector<base::Rank> ranks;
        for (int rank = 0; rank < count; ++rank) ranks.push_back(rank);
        EXPECT_NEAR(model.collective_ns(kind, bytes, ranks) / truth.collective_ns(kind, count, bytes), 1, 0.12) << bytes;
      }
    }
  }
}

// The experiment of the overlap, resolved by the profile fitted from it, takes the times that were measured.
TEST(Fit, ReproducesTheOverlapExperiment) {
  Benchmarks benchmarks = measured_on(Truth(), 8);
  const OverlapBenchmark* measured = nullptr;
  for (OverlapBenchmark& overlap : benchmarks.overlaps) {
    if (overlap.compute != OverlapBenchmark::Compute::gemm || overlap.ranks != 8) continue;
    overlap.compute_alone_ns = overlap.repeat * Truth().gemm_ns(overlap.size, DType::bf16);
    overlap.collectives_alone_ns = overlap.collectives * Truth().collective_ns(overlap.kind, 8, overlap.bytes);
    overlap.compute_together_ns = 1.12 * overlap.compute_alone_ns;
    overlap.collectives_together_ns = 1.66 * overlap.collectives_alone_ns;
    measured = &overlap;
  }
  ASSERT_NE(measured, nullptr);
  base::Result<Profile> profile = fit(benchmarks);
  ASSERT_TRUE(profile.ok()) << profile.error();
  profile.value().power.train = 0;   // it lasts some milliseconds, in which no clock moves
  const CostModel model(std::move(profile).value());

  std::vector<TestRank> ranks;
  std::vector<RankProgram> programs;
  for (int rank = 0; rank < 8; ++rank) {
    Recorder& recorder = ranks.emplace_back(rank).recorder();
    const program::GroupId group = ranks.back().group("dp_shard", {0, 1, 2, 3, 4, 5, 6, 7});
    OpDesc gemm("gemm", OpKind::gemm, DType::bf16);
    gemm.size(measured->size);
    // As calibrate issues it: both follow a small collective, the large ones on its stream, the matmuls by an event.
    const auto gather = [&](base::Bytes bytes) {
      OpDesc desc("all_gather", OpKind::all_gather, DType::bf16);
      recorder.op(1, desc.collective_of({group, recorder.next_sequence(group), bytes, -1}), {});
    };
    gather(4096);
    recorder.record_event(1, 0, {});
    recorder.wait_event(0, 0, WaitReason::data, {});
    for (int at = 0; at < measured->collectives; ++at) gather(measured->bytes);
    for (int at = 0; at < measured->repeat; ++at) recorder.op(0, gemm, {});
  }
  for (TestRank& rank : ranks) programs.push_back({rank.recorder().rank(), &rank.recorder().catalogue(), &rank.program()});
  const auto out = resolve(programs, model, 1);
  ASSERT_TRUE(out.ok()) << out.error();
  const std::vector<program::TimeSpan>& ran = out.value().ranks[0].steps[0].ran;
  const auto end = [&](int op) { return static_cast<double>(ran[static_cast<std::size_t>(op)].end - ran[0].end); };
  EXPECT_NEAR(end(measured->collectives + measured->repeat) / measured->compute_together_ns, 1, 0.02);
  EXPECT_NEAR(end(measured->collectives) / measured->collectives_together_ns, 1, 0.02);
}

TEST(Fit, FindsWhatEachSortOfWorkDraws) {
  const PowerCosts truth = Truth().power, found = fitted().profile().power;
  EXPECT_NEAR(found.exponent, truth.exponent, 0.05);
  EXPECT_NEAR(found.fastest, truth.fastest, 0.01);
  EXPECT_NEAR(found.communication, truth.communication, 0.03);
  EXPECT_NEAR(found.memory, truth.memory, 0.03);
  EXPECT_EQ(found.idle, truth.idle);
  // 1.6 ms are speed 1 there, so a train of the same matmul ran this fast
  EXPECT_NEAR(found.train, std::min(truth.fastest, 1.6e6 / Truth().gemm_ns({8192, 8192, 8192, 1}, DType::bf16)), 0.01);
}

// Trains of matmuls at clocks that are what their power has settled at, within `noise`. What each takes at speed one comes out, and where
// there is no noise, what matmuls draw.
void expect_what_trains_draw(double noise) {
  SCOPED_TRACE(noise);
  Benchmarks measured = measured_on(Truth(), 2);
  const auto clock_at = [](double speed) { return 1.5 * std::pow(speed, speed < 1 ? 1 : 1.4); };
  for (PowerBenchmark& mix : measured.power) mix.clock = clock_at(1.6e6 / mix.matmul_ns());
  const Profile settled = fit(measured).value();
  EXPECT_EQ(settled.power.multiplying, 0) << "no cycles are told";
  PowerCosts power = settled.power;
  power.train = 1, power.multiplying = 0.7, power.moving = 0.35;
  const auto settles_at = [&](const PowerCosts& of, const Profile& profile, GemmSize size, double ns) {
    const auto [m, n, k, batch] = size;
    const double of_peak = 2.0 * static_cast<double>(m * n * k * batch) / (ns * profile.gemm.at(DType::bf16).peak_flops_per_ns);
    const double of_bandwidth = 2.0 * static_cast<double>(batch * (m * k + k * n + m * n)) / (ns * profile.device.memory_bytes_per_ns);
    return speed_in_train(of, drawn_by_matmul(of, of_peak, of_bandwidth));
  };
  std::mt19937 draw(1);
  std::vector<double> at_speed_one_ns, settled_ns;   // 0: too short to tell
  double off_before = 0, off_behind = 0;
  for (GemmBenchmark& gemm : measured.gemms) {
    if (gemm.dtype != DType::bf16) continue;
    at_speed_one_ns.push_back(0);
    settled_ns.push_back(gemm.ns);
    if (gemm.ns < 15'000) continue;
    const double settled_at = settles_at(power, settled, gemm.size, gemm.ns), part = static_cast<double>(draw()) / 4294967296.0;
    at_speed_one_ns.back() = gemm.ns * settled_at;
    // Nothing slows down a train that leaves power to spare
    const double was_at = settled_at < power.fastest ? std::min(power.fastest, settled_at * (1 - noise + 2 * noise * part)) : settled_at;
    gemm.ns *= settled_at / was_at;
    gemm.cycles = gemm.ns * clock_at(was_at);
    off_before += std::pow(gemm.ns / settled_ns.back() - 1, 2);
  }
  const Profile found = fit(measured).value();
  EXPECT_EQ(found.power.train, 1);
  if (noise == 0) {
    EXPECT_NEAR(found.power.multiplying, power.multiplying, 0.01);
    EXPECT_NEAR(found.power.moving, power.moving, 0.01);
  }
  EXPECT_EQ(profile_from_json(to_json(found), "text").value(), found);
  const std::vector<GemmPoint>& points = found.gemm.at(DType::bf16).points;
  ASSERT_EQ(points.size(), at_speed_one_ns.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (at_speed_one_ns[i] <= 0) continue;
    EXPECT_NEAR(points[i].ns * settles_at(found.power, found, points[i].size, points[i].ns) / at_speed_one_ns[i], 1, 0.005) << i;
    off_behind += std::pow(points[i].ns / settled_ns[i] - 1, 2);
  }
  if (noise > 0) {
    EXPECT_LT(off_behind, off_before) << "squares: no nearer to what trains settle at than what was measured";
  }
}

TEST(Fit, FindsWhatMatmulsDrawByTheClocksOfTheirTrains) { expect_what_trains_draw(0); }

TEST(Fit, TakesTheClockOfTheMomentOutOfMatmuls) { expect_what_trains_draw(0.05); }

// A card whose power supply is never the limit: all mixes run alike, and nothing is said of power.
TEST(Fit, SaysNothingOfPowerThatIsNeverShort) {
  Benchmarks measured = measured_on(Truth(), 2);
  for (PowerBenchmark& mix : measured.power) mix.matmuls_ns = mix.matmuls * 1.4e6;
  const base::Result<Profile> profile = fit(measured);
  ASSERT_TRUE(profile.ok()) << profile.error();
  EXPECT_EQ(profile.value().power, PowerCosts{});
}

TEST(Fit, KeepsWhatMatmulsTakeBesideCollectives) {
  Benchmarks measured = measured_on(Truth(), 2);
  for (GemmBenchmark& gemm : measured.gemms) {
    if (gemm.dtype == DType::bf16 && gemm.ns > 20'000) gemm.beside_ns = (gemm.size.m * gemm.size.n > 1 << 24 ? 1.3 : 1.8) * gemm.ns;
  }
  base::Result<Profile> profile = fit(measured);
  ASSERT_TRUE(profile.ok()) << profile.error();
  EXPECT_EQ(profile_from_json(to_json(profile.value()), "text").value(), profile.value());
  const CostModel model(std::move(profile).value());
  EXPECT_NEAR(model.gemm_beside({8192, 8192, 2048, 1}, DType::bf16), 1.3, 1e-3);   // at measured points theirs
  EXPECT_NEAR(model.gemm_beside({2048, 2048, 8192, 1}, DType::bf16), 1.8, 1e-3);
  EXPECT_NEAR(model.gemm_beside({8192, 8192, 2304, 1}, DType::bf16), 1.3, 0.1);    // between them, theirs nearly
  EXPECT_NEAR(model.gemm_beside({2048, 2048, 7000, 1}, DType::bf16), 1.8, 0.1);
  EXPECT_EQ(model.gemm_beside({2048, 2048, 2048, 1}, DType::f32), 0) << "none was measured: the machine's factor holds";
}

// Of windows: each collective of the plan, how reduce-scatters and what computes slow each other, and which sums are let in beside a matmul.
TEST(Fit, KeepsWhatCollectivesOfWindowsTake) {
  Benchmarks measured = plan_windows(2);
  EXPECT_TRUE(measured.gemms.empty() && measured.kernels.empty());
  EXPECT_FALSE(fit_windows(measured).ok()) << "nothing is measured yet";
  for (CollectiveBenchmark& one : measured.collectives) one.ns = 1000 + static_cast<double>(one.bytes) / 100;
  ASSERT_EQ(measured.overlaps.size(), 2u);
  for (OverlapBenchmark& overlap : measured.overlaps) {
    EXPECT_EQ(overlap.kind, OpKind::reduce_scatter);
    const double slower = overlap.compute == OverlapBenchmark::Compute::gemm ? 1.1 : 1.2;
    overlap.compute_alone_ns = 4000, overlap.compute_together_ns = 4000 * slower;       // the collectives outlast what computes
    overlap.collectives_alone_ns = 5000, overlap.collectives_together_ns = 6000;
  }
  EXPECT_FALSE(fit_windows(measured).ok()) << "which are let in is not known";
  ASSERT_EQ(measured.rooms.size(), 10u) << "five matmuls, two sums";
  for (RoomBenchmark& room : measured.rooms) {
    const bool is_let_in = room.matmul.ends_with("_gelu") && room.kind == OpKind::reduce_scatter;
    room.matmul_ns = 400e3, room.collective_ns = is_let_in ? 130e3 : 450e3;
  }
  const std::string told_of = told(measured.rooms);
  EXPECT_EQ(told_of.substr(0, told_of.find(';')), "over 2 ranks linear_forward 400, all_reduce 450, reduce_scatter 450") << told_of;
  EXPECT_TRUE(told_of.ends_with("; linear_input_gradient_gelu 400, all_reduce 450, reduce_scatter 130")) << told_of;
  measured.rooms.push_back(measured.rooms.back());
  measured.rooms.back().ranks = 4;
  EXPECT_EQ(measured.rooms.back().matmul, "linear_input_gradient_gelu");
  measured.rooms.back().collective_ns = 450e3;
  EXPECT_TRUE(told(measured.rooms).ends_with("reduce_scatter 130; over 4 ranks linear_input_gradient_gelu 400, reduce_scatter 450")) << told(measured.rooms);
  const base::Result<Windows> windows = fit_windows(measured);
  ASSERT_TRUE(windows.ok()) << windows.error();
  EXPECT_EQ(windows.value().collectives.size(), 3u);
  EXPECT_EQ(at(windows.value().collectives.at(OpKind::all_gather).at(2), 1 << 21), 1000 + (1 << 21) / 100.0);
  ASSERT_EQ(windows.value().contention.size(), 1u);
  EXPECT_NEAR(windows.value().contention[0].gemm_by_collective, 1.1, 1e-9);
  EXPECT_NEAR(windows.value().contention[0].memory_by_collective, 1.2, 1e-9);
  const std::map<std::string, std::set<OpKind>> expected{{"linear_forward_gelu", {OpKind::reduce_scatter}}};
  EXPECT_EQ(windows.value().fit, expected) << "all others ended after the matmul";
}

// What ops take among others is on every matmul and kernel, and not on what the host copies.
TEST(Fit, AddsToEachOpWhatItTakesLongerAmongOthers) {
  Benchmarks measured = measured_on(Truth(), 2);
  const base::Result<Profile> before = fit(measured);
  measured.among_others_ns = 100;
  const base::Result<Profile> since = fit(measured);
  ASSERT_TRUE(before.ok() && since.ok());
  for (const auto& [name, curve] : since.value().kernels) {
    const double more = name == "copy" ? 0 : 100;
    for (std::size_t at = 0; at < curve.size(); ++at) EXPECT_NEAR(curve[at].ns, before.value().kernels.at(name)[at].ns + more, 1e-6) << name;
  }
  for (const auto& [dtype, table] : since.value().gemm) {
    for (std::size_t at = 0; at < table.points.size(); ++at) EXPECT_NEAR(table.points[at].ns, before.value().gemm.at(dtype).points[at].ns + 100, 1e-6);
  }
  EXPECT_EQ(since.value().collectives, before.value().collectives);
}

TEST(Fit, ComesBackFromItsJson) {
  const CostModel model = fitted();
  const base::Result<Profile> again = profile_from_json(to_json(model.profile()), "text");
  ASSERT_TRUE(again.ok()) << again.error();
  EXPECT_TRUE(again.value() == model.profile());
}

TEST(Fit, RefusesWhatWasNotMeasured) {
  Benchmarks benchmarks = measured_on(Truth(), 2);
  benchmarks.gemms[3].ns = 0;
  base::Result<Profile> profile = fit(benchmarks);
  ASSERT_FALSE(profile.ok());
  EXPECT_NE(profile.error().find("2048 x 2048 x 2048"), std::string::npos) << profile.error();
  benchmarks = measured_on(Truth(), 2);
  benchmarks.kernels.clear();
  profile = fit(benchmarks);
  ASSERT_FALSE(profile.ok());
  EXPECT_NE(profile.error().find("pointwise"), std::string::npos) << profile.error();
}

}  // namespace
}  // namespace shardbook::simulate
