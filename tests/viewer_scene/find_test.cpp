// Find and its histogram, neighbours, arrows, facts.
#include "viewer/scene/find.hpp"

#include "tests/viewer_scene/support.hpp"
#include "viewer/scene/navigate.hpp"
#include "viewer/scene/sidecar.hpp"

namespace shardbook::scene {
namespace {

Timeline layers() {
  Sketch sketch;
  for (int layer = 0; layer < 20; ++layer) {
    sketch.compute(0, layer * 100, layer * 100 + 10 + layer, sketch.detail("gemm_qkv", layer));
    sketch.launched_at(0, layer * 100 - 50, layer * 100 - 40);
    sketch.collective(0, layer * 100 + 50, layer * 100 + 60, layer, sketch.detail("all_gather", layer, "backward"));
  }
  return sketch.done();
}

TEST(Find, MatchesEveryWordInAnyName) {
  const auto scene = scene_of(layers());
  EXPECT_EQ(find(*scene, "GEMM", false).total, 20);
  EXPECT_EQ(find(*scene, "backward all_", false).total, 20);
  EXPECT_EQ(find(*scene, "backward gemm", false).total, 0);
  EXPECT_EQ(find(*scene, "", true).total, 0);
  EXPECT_EQ(find(*scene, "   ", true).total, 0);
  EXPECT_EQ(find(*scene, "cudalaunch", false).total, 0) << "host rows only on request";
  EXPECT_EQ(find(*scene, "cudalaunch", true).total, 20);
}

TEST(Find, TakesALayerForThatLayerAlone) {
  const auto scene = scene_of(layers());
  EXPECT_EQ(find(*scene, "layer 1", false).total, 2);
  EXPECT_EQ(find(*scene, "qkv layer 17", false).total, 1);
  EXPECT_EQ(find(*scene, "layer", false).total, 40);
}

TEST(Find, GivesSpansByStartAndTheFiguresOfAll) {
  const auto scene = scene_of(layers());
  const Found found = find(*scene, "gemm", false, 5, 8);
  ASSERT_EQ(found.spans.size(), 5u);
  EXPECT_EQ(found.total, 20);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(scene->timeline().start(found.spans[i]), static_cast<Nanoseconds>(i) * 100);
  EXPECT_EQ(found.least, 10);
  EXPECT_EQ(found.most, 29);
  EXPECT_EQ(found.median, 19);
  EXPECT_EQ(found.sum, 20 * 10 + 190);
  EXPECT_EQ(std::accumulate(found.histogram.counts.begin(), found.histogram.counts.end(), std::int64_t{0}), 20);
  const Found wide = narrowed(*scene, find(*scene, "gemm", false), 25, 29);
  EXPECT_EQ(wide.total, 5);
}

TEST(Find, PutsEveryLengthIntoTheBucketWhoseEdgesHoldIt) {
  Histogram histogram{3, 100'000, std::vector<std::int64_t>(40)};
  for (Nanoseconds length = 3; length <= 100'000; length += length / 7 + 1) {
    const std::size_t bucket = histogram.bucket_of(length);
    ASSERT_LE(histogram.edge(bucket), length);
    if (bucket + 1 < histogram.counts.size()) {
      ASSERT_GT(histogram.edge(bucket + 1), length);
    }
  }
  EXPECT_EQ(histogram.bucket_of(100'000), 39u);
}

TEST(Navigate, FindsTheSpanUnderAPointDeepestFirst) {
  const auto scene = scene_of(random_run(21, 1, 300));
  std::mt19937 random(21);
  for (const char* name : {"r0.s7", "r0.h909"}) {
    const Row row = row_named(*scene, name);
    const auto t = static_cast<std::uint32_t>(row.track);
    const Track& track = scene->timeline().tracks[t];
    for (int turn = 0; turn < 500; ++turn) {
      const Nanoseconds time = std::uniform_int_distribution<Nanoseconds>(-10, track.end.back() + 10)(random);
      // The shortest that covers the time is the deepest.
      SpanRef expected;
      for (std::uint32_t i = 0; i < track.size(); ++i) {
        if (track.start[i] <= time && time < track.end[i]) expected = {t, i};
      }
      ASSERT_EQ(span_at(*scene, row, time, -1, 0), expected) << name << " at " << time;
    }
  }
}

TEST(Navigate, TakesTheNearestWithinTheTolerance) {
  Sketch sketch;
  sketch.compute(0, 100, 200);
  sketch.compute(0, 300, 400);
  const auto scene = scene_of(sketch.done());
  const Row row = row_named(*scene, "r0.s7");
  EXPECT_EQ(span_at(*scene, row, 220, -1, 30), (SpanRef{0, 0}));
  EXPECT_EQ(span_at(*scene, row, 290, -1, 30), (SpanRef{0, 1}));
  EXPECT_FALSE(span_at(*scene, row, 250, -1, 30).valid());
  EXPECT_EQ(nearest_on(*scene, row, 5000), (SpanRef{0, 1}));
  EXPECT_EQ(next_on_track(*scene, {0, 0}), (SpanRef{0, 1}));
  EXPECT_FALSE(next_on_track(*scene, {0, 1}).valid());
  EXPECT_FALSE(previous_on_track(*scene, {0, 0}).valid());
}

TEST(Navigate, GoesAroundTheExposedSpans) {
  const auto scene = scene_of(layers());
  const auto count = static_cast<int>(scene->exposures().size());
  ASSERT_EQ(count, 20);
  const std::vector<SpanRef> all = exposed_in(*scene, {-1, scene->whole()});
  ASSERT_EQ(all.size(), 20u);
  EXPECT_EQ(exposed_after(all, -1, 1), 0);
  EXPECT_EQ(exposed_after(all, -1, -1), 19);
  EXPECT_EQ(exposed_after(all, 19, 1), 0);
  EXPECT_EQ(exposed_after(all, 0, -1), 19);
  EXPECT_EQ(exposed_after({}, -1, 1), -1);
  EXPECT_EQ(place_in(all, scene->exposures()[7].span), 7);
}

TEST(Navigate, ExposedSpansOfAStepAreItsOwnInTheOrderOfAll) {
  Sketch sketch;
  sketch.builder.add_step({0, 3, 0, 1000, 0, 1000});
  sketch.builder.add_step({0, 4, 1000, 1500, 1000, 1500});
  sketch.compute(0, 0, 100);
  const auto longest = sketch.collective(0, 100, 900, 0), short_one = sketch.collective(0, 900, 1000, 1);
  sketch.compute(0, 1000, 1100);
  const auto middle = sketch.collective(0, 1100, 1500, 2);
  Timeline timeline = sketch.done();
  const auto scene = scene_of(std::move(timeline));
  ASSERT_EQ(scene->steps().size(), 2u);
  EXPECT_EQ(exposed_in(*scene, scene->steps()[0]), (std::vector<SpanRef>{sketch.at(longest), sketch.at(short_one)}));
  EXPECT_EQ(exposed_in(*scene, scene->steps()[1]), (std::vector<SpanRef>{sketch.at(middle)}));
  EXPECT_EQ(exposed_in(*scene, {-1, scene->whole()}).size(), 3u);
  EXPECT_EQ(step_at(*scene, 999).number, 3);
  EXPECT_EQ(step_at(*scene, 1000).number, 4);
  EXPECT_EQ(step_at(*scene, 5000).number, -1);
}

TEST(Navigate, ShowsArrowsOfLaunchEventAndTheOtherRanks) {
  Sketch sketch(2);
  const auto first = sketch.compute(0, 10, 100);
  const auto call = sketch.launched_at(0, 0, 5);
  const auto gather = sketch.collective(0, 100, 400, 0);
  sketch.builder.add_edge(first, gather, timeline::EdgeKind::event);
  const auto other = sketch.collective(1, 300, 400, 0);
  Timeline timeline = sketch.done();
  const auto scene = scene_of(std::move(timeline));
  const Arrows of_first = arrows_of(*scene, sketch.at(first));
  ASSERT_EQ(of_first.in.size(), 1u);
  EXPECT_EQ(of_first.in[0].from, sketch.at(call));
  ASSERT_EQ(of_first.out.size(), 1u);
  EXPECT_EQ(of_first.out[0].to, sketch.at(gather));
  const Arrows of_gather = arrows_of(*scene, sketch.at(gather));
  ASSERT_EQ(of_gather.in.size(), 2u);
  EXPECT_EQ(of_gather.in[1].from, sketch.at(other));
  EXPECT_NE(of_gather.in[1].words.find("rank 1, which came last, 200 ns later"), std::string::npos) << of_gather.in[1].words;
  const Arrows of_call = arrows_of(*scene, sketch.at(call));
  ASSERT_EQ(of_call.out.size(), 1u);
  EXPECT_EQ(of_call.out[0].to, sketch.at(first));
}

TEST(Facts, SayWhatIsKnownWithUnits) {
  Sketch sketch(2);
  timeline::Detail detail = sketch.detail("all_gather", 7);
  detail.source = sketch.line("engine/fsdp/schedule.cpp", 118);
  const auto compute = sketch.compute(0, 0, 1'000'000);
  const auto gather = sketch.collective(0, 400'000, 2'400'000, 3, detail, timeline::CollectiveOp::all_gather, 64 << 20);
  sketch.collective(1, 1'400'000, 2'400'000, 3, detail, timeline::CollectiveOp::all_gather, 64 << 20);
  const auto scene = scene_of(sketch.done());
  std::map<std::string, std::string> facts;
  for (const Fact& fact : facts_of(*scene, sketch.at(gather))) facts[fact.name] = fact.value;
  EXPECT_EQ(facts["class"], "communication");
  EXPECT_EQ(facts["duration"], "2 ms (2 000 000 ns)");
  EXPECT_EQ(facts["layer"], "7");
  EXPECT_EQ(facts["sequence"], "3");
  EXPECT_EQ(facts["exposed"], "1.4 ms (1 400 000 ns) (70.0 %)");
  EXPECT_EQ(facts["wait"], "1 ms (1 000 000 ns) (50.0 %), for rank 1");
  EXPECT_EQ(facts["transfer"], "1 ms (1 000 000 ns) (50.0 %)");
  EXPECT_EQ(facts["bus bandwidth"], "33.6 GB/s");
  EXPECT_EQ(facts["source"], "engine/fsdp/schedule.cpp:118");
  EXPECT_EQ(facts["clock"], "MODELLED h200x8");
  EXPECT_TRUE(facts["why"].starts_with("rank 0, layer 7")) << facts["why"];
  for (const Fact& fact : facts_of(*scene, sketch.at(compute))) EXPECT_FALSE(fact.value.empty()) << fact.name;
  EXPECT_TRUE(facts_of(*scene, {}).empty());
}

TEST(SpanNames, LeadBackToTheirSpans) {
  const auto scene = scene_of(random_run(22, 2, 40));
  for (std::uint32_t t = 0; t < scene->timeline().tracks.size(); ++t) {
    const SpanRef span{t, 3};
    EXPECT_EQ(span_of_name(*scene, span_name(*scene, span)), span) << span_name(*scene, span);
  }
  for (const char* name : {"", "r0", "r0.s7/", "r0.s7/999999", "r9.s7/1", "r0.s7/1x", "r0.exposed/1", "/3"}) {
    EXPECT_FALSE(span_of_name(*scene, name).valid()) << name;
  }
}

}  // namespace
}  // namespace shardbook::scene
