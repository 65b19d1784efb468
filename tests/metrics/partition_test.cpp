// The partition, against a reference that looks at each nanosecond by itself.
#include "engine/metrics/partition.hpp"

#include "tests/metrics/scene.hpp"

namespace shardbook::metrics {
namespace {

TEST(Partition, SumsToTheWindowToTheNanosecond) {
  std::mt19937 random(2);
  for (int turn = 0; turn < 500; ++turn) {
    const Timeline timeline = random_timeline(random);
    std::uniform_int_distribution<Nanoseconds> at(0, 70);
    const Window window{at(random), 75 + at(random)};
    const Partition parts = partition(timeline, 0, window);

    // The owner of each nanosecond, by looking at every span.
    Nanoseconds compute = 0, exposed = 0, memory = 0, idle = 0, communication = 0, overlapped = 0;
    for (Nanoseconds t = window.start; t < window.end; ++t) {
      bool k = false, c = false, m = false;
      timeline::for_each_device_span(timeline, 0, [&](SpanRef span) {
        if (t < timeline.start(span) || t >= timeline.end(span)) return;
        k = k || timeline.cls(span) == Class::compute;
        c = c || timeline.cls(span) == Class::communication;
        m = m || timeline.cls(span) == Class::memory;
      });
      if (k) ++compute;
      else if (c) ++exposed;
      else if (m) ++memory;
      else ++idle;
      communication += c;
      overlapped += c && k;
    }
    EXPECT_EQ(parts.compute_ns, compute);
    EXPECT_EQ(parts.exposed_communication_ns, exposed);
    EXPECT_EQ(parts.exposed_memory_ns, memory);
    EXPECT_EQ(parts.idle_ns, idle);
    EXPECT_EQ(parts.communication_ns, communication);
    EXPECT_EQ(parts.overlapped_ns, overlapped);
    EXPECT_EQ(parts.compute_ns + parts.exposed_communication_ns + parts.exposed_memory_ns + parts.idle_ns, window.length());
  }
}

// One step in microseconds: gemm [20, 120), all-gather [60, 160), gemm [165, 365), copy [400, 420).
TEST(Partition, OfAStepThatEndsWithTheCpusOwnWorkReachesToItsEnd) {
  Scene scene;
  scene.compute(0, 100, 300);
  scene.cpu(0, 350, 900);
  const Timeline timeline = scene.done();
  EXPECT_EQ(device_window(timeline, 0), (Window{100, 900}));
  const Partition parts = partition(timeline, 0, device_window(timeline, 0));
  EXPECT_EQ(parts.compute_ns, 200);
  EXPECT_EQ(parts.idle_ns, 600) << "of the device";
}

TEST(Partition, OfTheWorkedExampleIsWhatTheNotesSay) {
  Scene scene;
  scene.compute(0, 20'000, 120'000);
  const auto gather = scene.collective(0, 60'000, 160'000, 0);
  scene.compute(0, 165'000, 365'000);
  scene.memory(0, 400'000, 420'000);
  const Timeline timeline = scene.done();
  const Window window = device_window(timeline, 0);
  EXPECT_EQ(window, (Window{20'000, 420'000}));
  const Partition parts = partition(timeline, 0, window);
  EXPECT_EQ(parts.communication_ns, 100'000);
  EXPECT_EQ(parts.overlapped_ns, 60'000);
  EXPECT_DOUBLE_EQ(*parts.overlap(), 0.6);
  EXPECT_DOUBLE_EQ(*parts.attainable(), 0.6);
  EXPECT_EQ(parts.exposed_communication_ns, 40'000);
  EXPECT_EQ(parts.compute_ns, 300'000);
  EXPECT_EQ(parts.exposed_memory_ns, 20'000);
  EXPECT_EQ(parts.idle_ns, 40'000);
  EXPECT_EQ(window.length() - parts.idle_ns, 360'000);
  const DeviceSets sets = device_sets(timeline, 0);
  EXPECT_EQ(exposed_ns(timeline, sets, scene.at(gather)), 40'000);
  EXPECT_EQ(exposed_communication(sets), (Intervals{{120'000, 160'000}}));
  EXPECT_EQ(idle(sets, window), (Intervals{{160'000, 165'000}, {365'000, 400'000}}));
}

TEST(Partition, WithoutCommunicationHasNoOverlap) {
  Scene scene;
  scene.compute(0, 0, 10);
  EXPECT_FALSE(partition(scene.done(), 0, {0, 10}).overlap());
}

TEST(StreamBusy, IsTheUnionOfAStreamsLanes) {
  Scene scene;
  scene.compute(0, 0, 50);
  scene.compute(0, 30, 80);          // overlaps, so it is on a second lane
  scene.collective(0, 60, 100, 0);
  const Timeline timeline = scene.done();
  const auto busy = stream_busy(timeline, 0, {10, 90});
  ASSERT_EQ(busy.size(), 2u);
  EXPECT_EQ(busy[0].stream, 7);
  EXPECT_EQ(busy[0].busy_ns, 70);
  EXPECT_EQ(busy[1].busy_ns, 30);
}

TEST(Windows, OfStepsSpanFromTheFirstToTheLast) {
  Scene scene;
  scene.compute(0, 5, 50);
  scene.builder.add_step({.rank = 0, .number = 1, .start = 60, .end = 90});
  scene.builder.add_step({.rank = 0, .number = 0, .start = 2, .end = 60});
  const Timeline timeline = scene.done();
  EXPECT_EQ(steps_window(timeline, 0), (Window{2, 90}));
  EXPECT_EQ(*step_window(timeline, 0, 1), (Window{60, 90}));
  EXPECT_FALSE(step_window(timeline, 0, 2));
}

}  // namespace
}  // namespace shardbook::metrics
