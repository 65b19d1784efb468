// The critical path over ranks, what blocks, why a stream stood still, and the one sentence.
#include "engine/metrics/exposure.hpp"

#include "engine/metrics/idle.hpp"
#include "tests/metrics/scene.hpp"

namespace shardbook::metrics {
namespace {

std::vector<Interval> times_of(const CriticalPath& path, PathKind kind, Rank rank) {
  std::vector<Interval> times;
  for (const PathPiece& piece : path.pieces) {
    if (piece.kind == kind && piece.rank == rank) times.push_back(piece.time);
  }
  return times;
}

Nanoseconds total(const CriticalPath& path) {
  Nanoseconds sum = 0;
  for (const PathPiece& piece : path.pieces) sum += piece.time.length();
  return sum;
}

TEST(CriticalPath, GoesThroughTheRankThatCameLast) {
  // Rank 1 computes longer, so rank 0 waits in the collective; both compute after it.
  Scene scene(2);
  for (Rank rank : {0, 1}) {
    const Nanoseconds computed = rank == 0 ? 100 : 300;
    scene.compute(rank, 0, computed);
    const auto gather = scene.collective(rank, computed, 400, 0);
    const auto after = scene.compute(rank, 400, rank == 0 ? 520 : 500);
    scene.builder.add_edge(gather, after, EdgeKind::event);
    scene.builder.add_edge(gather - 1, gather, EdgeKind::event);
  }
  const Timeline timeline = scene.done();
  const CriticalPath path = critical_path(timeline, {0, 520});
  EXPECT_EQ(total(path), 520);
  EXPECT_EQ(times_of(path, PathKind::span, 0), (std::vector<Interval>{{300, 400}, {400, 520}}));
  EXPECT_EQ(times_of(path, PathKind::span, 1), (std::vector<Interval>{{0, 300}}));
  EXPECT_FALSE(path.inferred);
}

TEST(CriticalPath, LeavesOutWhatNothingWaitedFor) {
  // The collective is exposed in the hole before the second matmul, which waited for the host instead.
  Scene scene;
  scene.compute(0, 0, 100);
  const auto gather = scene.collective(0, 100, 150, 0);
  scene.builder.add_edge(gather - 1, gather, EdgeKind::event);
  scene.compute(0, 300, 400);
  scene.launched_at(0, 290, 295);
  const Timeline timeline = scene.done();
  const CriticalPath path = critical_path(timeline, {0, 400});
  EXPECT_EQ(total(path), 400);
  EXPECT_EQ(times_of(path, PathKind::launch, 0), (std::vector<Interval>{{290, 300}}));
  EXPECT_EQ(times_of(path, PathKind::host, 0), (std::vector<Interval>{{0, 290}}));
  const auto list = exposures(timeline, path);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].exposed_ns, 50);
  EXPECT_EQ(list[0].blocking_ns, 0);
}

TEST(CriticalPath, FollowsTheHostToTheDeviceThatItWaitedFor) {
  Scene scene;
  const auto first = scene.compute(0, 10, 100);
  const auto wait = scene.host_wait(0, 20, 105);
  scene.builder.add_edge(first, wait, EdgeKind::host);
  scene.compute(0, 160, 200);
  scene.launched_at(0, 150, 155);
  const Timeline timeline = scene.done();
  const CriticalPath path = critical_path(timeline, {10, 200});
  EXPECT_EQ(times_of(path, PathKind::span, 0), (std::vector<Interval>{{10, 100}, {160, 200}}));
  EXPECT_EQ(times_of(path, PathKind::host, 0), (std::vector<Interval>{{100, 150}}));
  EXPECT_EQ(times_of(path, PathKind::launch, 0), (std::vector<Interval>{{150, 160}}));
}

TEST(CriticalPath, CoversAnyWindowWithoutGapOrOverlap) {
  std::mt19937 random(3);
  for (int turn = 0; turn < 300; ++turn) {
    const Timeline timeline = random_timeline(random, 3);
    const Window window{20, 110};
    const CriticalPath path = critical_path(timeline, window);
    Nanoseconds at = window.start;
    for (const PathPiece& piece : path.pieces) {
      EXPECT_EQ(piece.time.start, at);
      EXPECT_GT(piece.time.length(), 0);
      at = piece.time.end;
    }
    EXPECT_EQ(at, window.end);
    // Blocking is never more than exposed, exposed never more than the span.
    for (const Exposure& exposure : exposures(timeline, path)) {
      EXPECT_LE(exposure.blocking_ns, exposure.exposed_ns);
      EXPECT_LE(exposure.exposed_ns, exposure.span_ns);
    }
  }
}

TEST(CriticalPath, OfATraceWithoutEdgesIsInferredAndSaysSo) {
  Scene scene;
  scene.compute(0, 0, 100);
  scene.launched_at(0, 0, 1);
  scene.collective(0, 100, 200, 0);
  scene.launched_at(0, 1, 2);
  scene.compute(0, 200, 300);
  scene.launched_at(0, 2, 3);
  const Timeline timeline = scene.done();
  const CriticalPath path = critical_path(timeline, {0, 300});
  EXPECT_TRUE(path.inferred);
  EXPECT_EQ(times_of(path, PathKind::span, 0), (std::vector<Interval>{{0, 100}, {100, 200}, {200, 300}}));
}

TEST(Sentence, NamesRankLayerShareTimeAndTheLineOfTheEvent) {
  Scene scene;
  auto detail = scene.detail("all_gather", 7);
  detail.source = scene.line("engine/fsdp/schedule.cpp", 96);
  detail.awaits = scene.line("engine/fsdp/schedule.cpp", 118);
  const auto before = scene.compute(0, 0, 1'000'000);
  const auto meanwhile = scene.compute(0, 1'000'000, 1'735'000);
  const auto gather = scene.collective(0, 1'000'000, 2'935'000, 0, detail);
  const auto after = scene.compute(0, 2'935'000, 3'500'000);
  scene.builder.add_edge(before, gather, EdgeKind::event);
  scene.builder.add_edge(gather, after, EdgeKind::event);
  (void)meanwhile;
  const Timeline timeline = scene.done();
  EXPECT_EQ(exposure_sentence(timeline, {0, 3'500'000}),
            "rank 0, layer 7, forward: the all-gather was 62 % exposed and blocked the step for 1.2 ms, because it waited "
            "for the event recorded at engine/fsdp/schedule.cpp:118");
}

TEST(Sentence, TellsTheOtherCauses) {
  const auto said = [](Scene& scene, Nanoseconds end) { return exposure_sentence(scene.done(), {0, end}); };
  {
    Scene scene;                                       // launched late
    scene.compute(0, 0, 100);
    auto detail = scene.detail("all_reduce", 1);
    detail.source = scene.line("engine/tensor_parallel/row.cpp", 50);
    const auto reduce = scene.collective(0, 150, 200, 0, detail, CollectiveOp::all_reduce);
    scene.launched_at(0, 140, 145);
    const auto after = scene.compute(0, 200, 300);
    scene.builder.add_edge(reduce, after, EdgeKind::event);
    EXPECT_EQ(said(scene, 300), "rank 0, layer 1, forward: the all-reduce was 100 % exposed and blocked the step for 50 ns, "
                                "because the host launched it late, at engine/tensor_parallel/row.cpp:50");
  }
  {
    Scene scene;                                       // behind another on its stream
    const auto first = scene.collective(0, 0, 100, 0, scene.detail("reduce_scatter", 4, "backward"), CollectiveOp::reduce_scatter);
    scene.compute(0, 0, 100);
    const auto second = scene.collective(0, 100, 180, 1, scene.detail("all_gather", 3, "backward"));
    const auto after = scene.compute(0, 180, 300);
    scene.builder.add_edge(second, after, EdgeKind::event);
    (void)first;
    EXPECT_EQ(said(scene, 300), "rank 0, layer 3, backward: the all-gather was 100 % exposed and blocked the step for 80 ns, "
                                "because it queued behind the reduce-scatter of layer 4 on its stream");
  }
  {
    Scene scene(2);                                    // another rank came late
    scene.compute(0, 0, 100);
    scene.compute(1, 0, 900);
    auto detail = scene.detail("all_reduce", 0);
    detail.source = scene.line("engine/tensor_parallel/row.cpp", 50);
    scene.collective(0, 100, 1000, 0, detail, CollectiveOp::all_reduce);
    scene.collective(1, 900, 1000, 0, detail, CollectiveOp::all_reduce);
    const Timeline timeline = scene.done();
    const auto list = exposures(timeline, critical_path(timeline, {0, 1000}));
    ASSERT_EQ(list.size(), 2u);
    EXPECT_EQ(sentence(timeline, list[0]), "rank 0, layer 0, forward: the all-reduce was 100 % exposed and blocked the step "
                                           "for 100 ns, because rank 1 came 800 ns later; it was issued at "
                                           "engine/tensor_parallel/row.cpp:50");
  }
  {
    Scene scene;                                       // exposed but not blocking
    scene.compute(0, 0, 100);
    scene.collective(0, 100, 150, 0, scene.detail("all_gather", 2));
    scene.builder.add_edge(0, 1, EdgeKind::limiter);
    scene.compute(0, 300, 400);
    scene.launched_at(0, 290, 295);
    EXPECT_EQ(said(scene, 400), "rank 0, layer 2, forward: the all-gather was 100 % exposed (50 ns), without blocking the "
                                "step, because the limiter made it wait for gemm");
  }
  {
    Scene scene;
    scene.compute(0, 0, 100);
    EXPECT_EQ(said(scene, 100), "no communication ran");
  }
  {
    Scene scene;
    scene.compute(0, 0, 100);
    scene.collective(0, 10, 90, 0);
    EXPECT_EQ(said(scene, 100), "no communication was exposed: compute covered all of it");
  }
}

TEST(Sentence, OfATraceWithoutEdgesSaysThatItGuesses) {
  Scene scene;
  scene.compute(0, 0, 100);
  scene.launched_at(0, 0, 1);
  scene.collective(0, 100, 200, 0);
  scene.launched_at(0, 1, 2);
  const Timeline timeline = scene.done();
  EXPECT_EQ(exposure_sentence(timeline, {0, 200}),
            "rank 0: the all-gather was 100 % exposed and blocked the step for 100 ns, because it seems to have waited for gemm "
            "(the trace records no waits)");
}

TEST(DurationText, HasThreeDigitsAtMost) {
  EXPECT_EQ(duration_text(999), "999 ns");
  EXPECT_EQ(duration_text(1'200'000), "1.2 ms");
  EXPECT_EQ(duration_text(1'234'567), "1.23 ms");
  EXPECT_EQ(duration_text(62'340), "62.3 µs");
  EXPECT_EQ(duration_text(620'000), "620 µs");
  EXPECT_EQ(duration_text(100'000'000'000), "100 s");
  EXPECT_EQ(duration_text(0), "0 ns");
}

TEST(IdleGaps, HaveTheirCauses) {
  Scene scene;
  scene.compute(0, 0, 100);                            // launched in time
  scene.launched_at(0, -10, -5);
  scene.compute(0, 110, 200);                          // a short gap, launched before: what a launch costs
  scene.launched_at(0, -5, 0);
  const auto gather = scene.collective(0, 150, 300, 0);
  const auto waiting = scene.compute(0, 310, 400);     // awaited the gather
  scene.launched_at(0, 0, 5);
  scene.builder.add_edge(gather, waiting, EdgeKind::event);
  scene.compute(0, 500, 600);                          // launched late
  scene.launched_at(0, 450, 460);
  scene.compute(0, 100'000, 100'100);                  // nothing explains it
  scene.launched_at(0, 460, 470);
  const Timeline timeline = scene.done();
  const auto gaps = idle_gaps(timeline, 0, {0, 100'100});
  ASSERT_EQ(gaps.size(), 4u);
  EXPECT_EQ(gaps[0].cause, IdleCause::launch);
  EXPECT_EQ(gaps[0].gap, (Interval{100, 110}));
  EXPECT_EQ(gaps[1].cause, IdleCause::wait);
  EXPECT_EQ(gaps[1].awaited, scene.at(gather));
  EXPECT_EQ(gaps[2].cause, IdleCause::host);
  EXPECT_EQ(gaps[3].cause, IdleCause::other);
}

}  // namespace
}  // namespace shardbook::metrics
