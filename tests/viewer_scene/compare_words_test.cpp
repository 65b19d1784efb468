// Where in the step a change acted: by phase, and where the same layer begins. The sentence is engine/cause's (tests/cause).
#include "viewer/scene/compare_words.hpp"

#include "tests/viewer_scene/support.hpp"

namespace shardbook::scene {
namespace {

// A step of `layers` layers; each awaits its gather for `exposed`, then computes `compute`. Backward alike.
Timeline steps_of(Nanoseconds exposed, Nanoseconds compute, int layers = 3, timeline::Clock clock = timeline::Clock::modelled) {
  Sketch sketch(2, 0, clock);
  for (Rank rank : {0, 1}) {
    Nanoseconds now = 0;
    std::int64_t seq = 0;
    for (const char* phase : {"forward", "backward"}) {
      for (int layer = 0; layer < layers; ++layer) {
        if (exposed > 0) sketch.collective(rank, now, now + exposed, seq++, sketch.detail("all_gather", layer, phase));
        now += exposed;
        sketch.compute(rank, now, now + compute, sketch.detail("gemm", layer, phase));
        now += compute;
      }
    }
    sketch.builder.add_step({rank, 1, 0, now, 0, now});
  }
  return sketch.done();
}

std::string phases(const Timeline& a, const Timeline& b) {
  const auto of_a = scene_of(a), of_b = scene_of(b);
  return by_phase(*of_a, *of_b, compare(*of_a, *of_b, 1, 1));
}

TEST(ComparisonWords, SumTheDifferenceOverThePhases) {
  // 6 gathers of 100 us that were not there before; compute beside nothing is 10 us faster a layer: +540 us.
  EXPECT_EQ(phases(steps_of(0, 400'000), steps_of(100'000, 390'000)), "By phase, on rank 0: forward +270 µs, backward +270 µs");
  EXPECT_EQ(phases(steps_of(100'000, 400'000), steps_of(0, 400'000)), "By phase, on rank 0: forward −300 µs, backward −300 µs");
}

TEST(ComparisonWords, OfTwoClocksSubtractNothing) {
  EXPECT_EQ(phases(steps_of(0, 400'000), steps_of(0, 800'000, 3, timeline::Clock::measured)), "");
}

TEST(Alignments, PairTheSameLayersAndKnowWhereAPhaseBegins) {
  const auto a = scene_of(steps_of(0, 400'000)), b = scene_of(steps_of(100'000, 400'000, 4));
  const std::vector<Alignment> aligned = alignment(*a, *b, compare(*a, *b, 1, 1));
  ASSERT_EQ(aligned.size(), 6u) << "layer 3 is in one of them only";
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(aligned[i].a, static_cast<Nanoseconds>(i) * 400'000);
    EXPECT_EQ(aligned[i].b, static_cast<Nanoseconds>(i) * 500'000 + 100'000);
    EXPECT_EQ(aligned[i].phase, i == 0);
  }
  EXPECT_EQ(aligned[3].a, 1'200'000);
  EXPECT_EQ(aligned[3].b, 2'100'000);
  EXPECT_TRUE(aligned[3].phase);
}

}  // namespace
}  // namespace shardbook::scene
