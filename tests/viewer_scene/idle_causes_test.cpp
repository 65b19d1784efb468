// Why the device stood still: each piece of idle time has one cause, and they sum to the idle time.
#include "viewer/scene/idle_causes.hpp"

#include "tests/viewer_scene/support.hpp"

namespace shardbook::scene {
namespace {

using metrics::IdleCause;

TEST(IdleCauses, NameTheLateCallTheAwaitedSpanAndTheLaunch) {
  Sketch sketch(1);
  sketch.compute(0, 0, 1000, sketch.detail("first", -1));
  sketch.launched_at(0, -500, -400);
  // The call comes 4 us after the device had run dry.
  sketch.compute(0, 6000, 7000, sketch.detail("second", 3));
  sketch.launched_at(0, 5000, 5900);
  // Launched long before, and nothing held it.
  sketch.compute(0, 7500, 8000, sketch.detail("third", -1));
  sketch.launched_at(0, 6100, 6200);
  const auto scene = scene_of(sketch.done());
  const IdleCauses* causes = scene->idle_causes(0);
  ASSERT_NE(causes, nullptr);
  ASSERT_EQ(causes->pieces().size(), 2u);
  EXPECT_EQ(causes->pieces()[0].time, (Interval{1000, 6000}));
  EXPECT_EQ(causes->pieces()[0].reason.cause, IdleCause::host);
  EXPECT_EQ(words_of(*scene, causes->pieces()[0]), "the host was late: cudaLaunchKernel of second · L3 began 4 µs after the device had run dry");
  EXPECT_EQ(causes->pieces()[1].reason.cause, IdleCause::launch);
  EXPECT_EQ(causes->at(1000), &causes->pieces()[0]);
  EXPECT_EQ(causes->at(5999), &causes->pieces()[0]);
  EXPECT_EQ(causes->at(6000), nullptr);
  EXPECT_EQ(causes->at(999), nullptr);
  EXPECT_EQ(scene->idle_causes(3), nullptr) << "there is no rank 3";
}

TEST(IdleCauses, AreOfTheWholeDeviceAndNotOfOneStream) {
  Sketch sketch(1);
  const auto gather = sketch.collective(0, 0, 5000, 0, sketch.detail("all_gather", 2));
  sketch.compute(0, 0, 1000);
  // 1000 to 5000 the gather runs, so the device is not idle; 5000 to 5100 it is.
  const auto next = sketch.compute(0, 5100, 6000, sketch.detail("gemm", 2));
  sketch.builder.add_edge(gather, next, timeline::EdgeKind::event);
  const auto scene = scene_of(sketch.done());
  const IdleCauses* causes = scene->idle_causes(0);
  ASSERT_EQ(causes->pieces().size(), 1u);
  EXPECT_EQ(causes->pieces()[0].time, (Interval{5000, 5100}));
}

// An update in host memory, after the last kernel and before the next step's first.
TEST(IdleCauses, NameTheCpusOwnWorkBetweenStepsAndAtTheEnd) {
  Sketch sketch(1);
  sketch.compute(0, 0, 1000, sketch.detail("gemm", 3, "backward"));
  const auto update = sketch.cpu(0, 1000, 5000, sketch.detail("adam_w_on_host", -1, "optimizer"));
  const auto next = sketch.compute(0, 5200, 6000, sketch.detail("gemm", 0));
  sketch.builder.add_edge(update, next, timeline::EdgeKind::event);
  sketch.cpu(0, 6100, 9000, sketch.detail("adam_w_on_host", -1, "optimizer"));
  const auto scene = scene_of(sketch.done());
  EXPECT_EQ(scene->whole(), (Interval{0, 9000})) << "the step ends with the CPU's update";
  const metrics::Partition parts = scene->rank(0)->partition(scene->whole());
  EXPECT_EQ(parts.compute_ns, 1800);
  EXPECT_EQ(parts.idle_ns, 7200);
  const IdleCauses* causes = scene->idle_causes(0);
  ASSERT_EQ(causes->pieces().size(), 2u);
  EXPECT_EQ(causes->pieces()[0].time, (Interval{1000, 5200}));
  EXPECT_EQ(causes->pieces()[1].time, (Interval{6000, 9000}));
  for (const IdlePiece& piece : causes->pieces()) EXPECT_EQ(piece.reason.cause, IdleCause::cpu);
  EXPECT_EQ(words_of(causes->within(scene->whole())), "CPU 7.2 µs");
  EXPECT_EQ(words_of(*scene, causes->pieces()[0]), "gemm · L0 waited for the CPU's own work: adam_w_on_host");
  EXPECT_EQ(words_of(*scene, causes->pieces()[1]), "the device has nothing to do beside the CPU's own work: adam_w_on_host");
  // Its phase stands over it.
  std::vector<std::string> phases;
  for (const BandPiece& piece : scene->bands(0).phases) phases.emplace_back(scene->timeline().strings[piece.phase]);
  EXPECT_EQ(phases, (std::vector<std::string>{"backward", "optimizer", "forward", "optimizer"}));
}

TEST(IdleCauses, SumInEveryWindowToTheIdleTimeWithinIt) {
  for (unsigned seed = 1; seed < 12; ++seed) {
    const auto scene = scene_of(random_run(seed, 2, 200));
    std::mt19937 random(seed);
    for (const RankScene& rank : scene->ranks()) {
      const Interval extent = rank.extent();
      for (int i = 0; i < 50; ++i) {
        // Within the rank's own work: before and after it nothing is awaited.
        const auto any = [&] { return extent.start + static_cast<Nanoseconds>(random() % static_cast<std::uint64_t>(extent.length() + 1)); };
        const auto [start, end] = std::minmax({any(), any()});
        const IdleCauses::Sums sums = scene->idle_causes(rank.rank)->within({start, end});
        EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), Nanoseconds{0}), rank.partition({start, end}).idle_ns);
      }
    }
  }
}

TEST(IdleCauses, InWordsTheLargestComesFirstAndTheLeastIsLeftOut) {
  IdleCauses::Sums sums{};
  EXPECT_EQ(words_of(sums), "");
  sums[static_cast<std::size_t>(IdleCause::launch)] = 2'000'000;
  sums[static_cast<std::size_t>(IdleCause::host)] = 5'000'000;
  sums[static_cast<std::size_t>(IdleCause::other)] = 100;
  EXPECT_EQ(words_of(sums), "host 5 ms, launch 2 ms");
}

}  // namespace
}  // namespace shardbook::scene
