// The sentence over a comparison, and whether its figures add up.
#include "viewer/scene/compare_words.hpp"

#include "tests/viewer_scene/support.hpp"

namespace shardbook::scene {
namespace {

bool holds(const std::string& words, const std::string& part) { return words.find(part) != std::string::npos; }

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

timeline::RunInfo info_with(int prefetch) {
  timeline::RunInfo info;
  info.config = {{"fsdp", {{"prefetch", prefetch}}}};
  return info;
}

ComparisonWords words(const Timeline& a, const Timeline& b, int prefetch_b = 0) {
  const auto of_a = scene_of(a, info_with(1)), of_b = scene_of(b, info_with(prefetch_b));
  return words_of(*of_a, *of_b, compare(*of_a, *of_b, 1, 1));
}

TEST(ComparisonWords, SayWhatWasChangedWhatItCostAndWhere) {
  // 6 gathers of 100 us that were not there before; compute beside nothing is 10 us faster a layer.
  const ComparisonWords said = words(steps_of(0, 400'000), steps_of(100'000, 390'000));
  EXPECT_FALSE(said.equal);
  EXPECT_TRUE(holds(said.sentence, "B is slower: +540 µs a step (2.4 ms → 2.94 ms, +22.5 %) with fsdp.prefetch 1 → 0")) << said.sentence;
  EXPECT_TRUE(holds(said.sentence, "mostly all-gathers: ")) << said.sentence;
  EXPECT_TRUE(holds(said.sentence, "+600 µs exposed on each rank, 6 of them that were hidden before")) << said.sentence;
  ASSERT_EQ(said.sums.size(), 2u);
  // +600 exposed, −60 compute: 540.
  EXPECT_EQ(said.sums[0].substr(0, said.sums[0].find(':')), "A rank's step +540 µs = exposed +600 µs, compute −60 µs, idle ±0");
  EXPECT_EQ(said.sums[1], "By phase, on rank 0: forward +270 µs, backward +270 µs");
}

TEST(ComparisonWords, OfAGainNameWhatIsHiddenNow) {
  const ComparisonWords said = words(steps_of(100'000, 400'000), steps_of(0, 400'000));
  EXPECT_TRUE(holds(said.sentence, "B is faster: −600 µs a step")) << said.sentence;
  EXPECT_TRUE(holds(said.sentence, "6 of them that are hidden now")) << said.sentence;
}

TEST(ComparisonWords, EqualRunsAreCalledEqual) {
  ComparisonWords said = words(steps_of(100'000, 400'000), steps_of(100'000, 400'000), 1);
  EXPECT_TRUE(said.equal);
  EXPECT_EQ(said.sentence, "Equal: both steps took 3 ms.");
  EXPECT_TRUE(said.sums.empty());
  // Four thousandths are noise; six are not.
  EXPECT_TRUE(words(steps_of(100'000, 400'000), steps_of(100'000, 402'000)).equal);
  EXPECT_FALSE(words(steps_of(100'000, 400'000), steps_of(100'000, 403'000)).equal);
}

TEST(ComparisonWords, OfTwoClocksSubtractNothing) {
  const ComparisonWords said = words(steps_of(0, 400'000), steps_of(0, 800'000, 3, timeline::Clock::measured));
  EXPECT_FALSE(said.equal);
  EXPECT_TRUE(holds(said.sentence, "two kinds of clock")) << said.sentence;
  EXPECT_TRUE(said.sums.empty());
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
