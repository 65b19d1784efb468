// What is drawn of a row: nothing lost, little of it, and everything can be pointed at.
#include "viewer/scene/items.hpp"

#include "tests/viewer_scene/support.hpp"

namespace shardbook::scene {
namespace {

// Nanoseconds that the items of depth 0 show, by class.
std::array<double, 4> shown(const Scene& scene, const std::vector<Item>& items, const TimeView& view) {
  std::array<double, 4> sum{};
  for (const Item& item : items) {
    if (item.depth != 0) continue;
    const double length = static_cast<double>(item.x1 - item.x0) * view.per_pixel();
    if (item.kind == Item::Kind::coverage) {
      for (std::size_t c = 0; c < 4; ++c) sum[c] += length * static_cast<double>(item.busy[c]);
    } else if (item.paint == Paint::critical) {
      sum[3] += length;
    } else {
      sum[static_cast<std::size_t>(lane_class(scene.timeline().cls(item.span)))] += length;
    }
  }
  return sum;
}

std::vector<TimeView> views(const Scene& scene, int count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<TimeView> out;
  const Window whole = scene.whole();
  for (int i = 0; i < count; ++i) {
    const double length = static_cast<double>(whole.length()) * std::exp2(-(i % 16));
    const double start = static_cast<double>(whole.start) + std::uniform_real_distribution<double>(-0.2, 1.0)(random) * static_cast<double>(whole.length());
    out.push_back({std::floor(start), std::floor(start) + std::max(std::floor(length), 100.0), 1000, 0});
  }
  return out;
}

TEST(Items, ShowAllBusyTimeOfTheRowAtEveryZoom) {
  const auto scene = scene_of(random_run(1, 2, 3000));
  RowChoices all;
  all.open = {"r0", "r1"};
  for (const Row& row : scene->rows(all)) {
    for (TimeView view : views(*scene, 64, 7)) {
      for (int most : {0, 60}) {
        view.most = most;
        std::vector<Item> items;
        scene->items(row, view, items);
        const auto exact = scene->busy(row, {static_cast<Nanoseconds>(view.start), static_cast<Nanoseconds>(view.end)});
        const auto seen = shown(*scene, items, view);
        // x is a float: each item may be off by a part of a million of the width at both ends.
        const double rounding = (view.end - view.start) * 1e-6 * static_cast<double>(items.size() + 4);
        for (std::size_t c = 0; c < 4; ++c) {
          ASSERT_NEAR(seen[c], static_cast<double>(exact[c]), rounding) << row.name << " class " << c << " view " << view.end - view.start << " ns, most " << most;
        }
      }
    }
  }
}

TEST(Items, OfAPictureAreTheSameWithoutTheirLongestSpans) {
  const auto scene = scene_of(random_run(1, 2, 3000));
  RowChoices all;
  all.open = {"r0", "r1"};
  for (const Row& row : scene->rows(all)) {
    for (const TimeView& view : views(*scene, 16, 9)) {
      std::vector<Item> with, without;
      scene->items(row, view, with);
      scene->items(row, view, without, false);
      ASSERT_EQ(with.size(), without.size()) << row.name;
      for (std::size_t i = 0; i < with.size(); ++i) {
        ASSERT_EQ(with[i].x0, without[i].x0);
        ASSERT_EQ(with[i].x1, without[i].x1);
        ASSERT_EQ(with[i].busy, without[i].busy);
        if (with[i].kind == Item::Kind::span) {
          ASSERT_EQ(with[i].span, without[i].span);
        }
      }
    }
  }
}

TEST(Items, StayWithinTheirBudgetTheViewAndTheirOrder) {
  const auto scene = scene_of(random_run(2, 1, 6000));
  RowChoices all;
  all.open = {"r0"};
  for (const Row& row : scene->rows(all)) {
    for (TimeView view : views(*scene, 48, 9)) {
      for (int most : {0, 20, 78, 200}) {
        view.most = most;
        std::vector<Item> items;
        scene->items(row, view, items);
        // Each depth of a nested row has at least one piece.
        const std::size_t budget = static_cast<std::size_t>(most == 0 ? static_cast<int>(view.width / 3) : most) + (row.depth > 1 ? 8 * row.depth : 0);
        ASSERT_LE(items.size(), budget) << row.name << " view of " << view.end - view.start << " ns";
        std::vector<float> last(static_cast<std::size_t>(row.depth), 0.0f);
        for (const Item& item : items) {
          if (row.track >= 0) {
            // What can be pointed at is there: a span that touches the item's time.
            ASSERT_TRUE(item.span.valid()) << row.name << " depth " << item.depth;
            const double a_pixel = view.per_pixel();
            ASSERT_LE(static_cast<double>(scene->timeline().start(item.span)), view.start + (static_cast<double>(item.x1) + 0.01) * a_pixel + 1);
            ASSERT_GE(static_cast<double>(scene->timeline().end(item.span)), view.start + (static_cast<double>(item.x0) - 0.01) * a_pixel - 1);
          }
          ASSERT_GE(item.x0, last[static_cast<std::size_t>(item.depth)]);
          ASSERT_LE(item.x0, item.x1);
          ASSERT_LE(item.x1, view.width);
          last[static_cast<std::size_t>(item.depth)] = item.x1;
        }
      }
    }
  }
}

TEST(Items, AreSpansWhereFewAreInView) {
  Sketch sketch;
  sketch.compute(0, 0, 1000);
  sketch.compute(0, 1000, 3000);
  sketch.compute(0, 5000, 5001);                 // narrow, and alone
  const auto scene = scene_of(sketch.done());
  std::vector<Item> items;
  scene->items(row_named(*scene, "r0.s7"), {0, 10'000, 1000}, items);
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].kind, Item::Kind::span);
  EXPECT_EQ(items[1].span, (SpanRef{0, 1}));
  EXPECT_FLOAT_EQ(items[1].x0, 100);
  EXPECT_FLOAT_EQ(items[1].x1, 300);
  EXPECT_EQ(items[2].kind, Item::Kind::span);
}

TEST(Items, ShowEvenWhatTookNoTime) {
  Sketch sketch;
  sketch.compute(0, 0, 1000);
  sketch.compute(0, 5000, 5000);
  sketch.compute(0, 9000, 9500);
  const auto scene = scene_of(sketch.done());
  std::vector<Item> items;
  scene->items(row_named(*scene, "r0.s7"), {0, 10'000, 1000}, items);
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[1].span, (SpanRef{0, 1}));
  EXPECT_FLOAT_EQ(items[1].x0, 500);
}

TEST(Items, NeverDrawABlockWhereTheStreamWasHalfIdle) {
  Sketch sketch;
  for (int i = 0; i < 20'000; ++i) sketch.compute(0, i * 100, i * 100 + 50);
  const auto scene = scene_of(sketch.done());
  std::vector<Item> items;
  scene->items(row_named(*scene, "r0.s7"), {0, 2'000'000, 500}, items);
  ASSERT_FALSE(items.empty());
  EXPECT_LE(items.size(), 8u) << "equal columns join";
  for (const Item& item : items) {
    EXPECT_EQ(item.kind, Item::Kind::coverage);
    EXPECT_NEAR(item.busy[0], 0.5, 0.03);
    EXPECT_TRUE(item.span.valid());
    EXPECT_GT(item.count, 1u);
  }
}

TEST(Items, OfCoverageNameTheLongestSpanThatTheyStandFor) {
  Sketch sketch;
  std::vector<Sketch::Span> numbers;
  for (int i = 0; i < 5000; ++i) numbers.push_back(sketch.compute(0, i * 100, i * 100 + (i == 3210 ? 90 : 20)));
  Timeline timeline = sketch.done();
  const SpanRef longest = sketch.at(numbers[3210]);
  const auto scene = scene_of(std::move(timeline));
  for (double width : {64.0, 200.0, 1000.0}) {
    std::vector<Item> items;
    scene->items(row_named(*scene, "r0.s7"), {0, 500'000, static_cast<float>(width)}, items);
    bool found = false;
    for (const Item& item : items) found = found || item.span == longest;
    EXPECT_TRUE(found) << width;
  }
}

TEST(Items, OfNestedCallsStandInTheirDepth) {
  Sketch sketch;
  const auto track = sketch.builder.track(0, TrackKind::host, 1, "thread 1");
  const auto call = [&](Nanoseconds start, Nanoseconds end) {
    sketch.builder.add(track, {.start = start, .end = end, .label = sketch.builder.intern("call"), .cls = Class::host});
  };
  call(0, 1000);
  call(100, 600);
  call(200, 300);
  call(700, 800);
  const auto scene = scene_of(sketch.done());
  const Row row = row_named(*scene, "r0.h1");
  EXPECT_EQ(row.depth, 3);
  std::vector<Item> items;
  scene->items(row, {400, 900, 500}, items);         // begins within the two outer calls
  std::vector<std::pair<int, Nanoseconds>> seen;
  for (const Item& item : items) seen.emplace_back(item.depth, scene->timeline().start(item.span));
  EXPECT_EQ(seen, (std::vector<std::pair<int, Nanoseconds>>{{0, 0}, {1, 100}, {1, 700}}));
}

TEST(Items, OfADerivedRowAreItsIntervals) {
  Sketch sketch;
  sketch.compute(0, 0, 400);
  sketch.collective(0, 300, 700, 0);
  sketch.compute(0, 800, 1000);
  const auto scene = scene_of(sketch.done());
  std::vector<Item> exposed, idle, rank;
  scene->items(row_named(*scene, "r0.exposed"), {0, 1000, 1000}, exposed);
  scene->items(row_named(*scene, "r0.idle"), {0, 1000, 1000}, idle);
  scene->items(row_named(*scene, "r0"), {0, 1000, 1000}, rank);
  ASSERT_EQ(exposed.size(), 1u);
  EXPECT_EQ(exposed[0].paint, Paint::exposed);
  EXPECT_FLOAT_EQ(exposed[0].x0, 400);
  EXPECT_FLOAT_EQ(exposed[0].x1, 700);
  EXPECT_EQ(scene->timeline().cls(exposed[0].span), Class::communication);
  ASSERT_EQ(idle.size(), 1u);
  EXPECT_FLOAT_EQ(idle[0].x0, 700);
  EXPECT_FLOAT_EQ(idle[0].x1, 800);
  ASSERT_EQ(rank.size(), 3u);
  EXPECT_FLOAT_EQ(rank[0].busy[0], 1);
  EXPECT_FLOAT_EQ(rank[1].busy[1], 1);
}

TEST(Items, OfCollectivesSayHowLongTheyWaited) {
  Sketch sketch(2);
  sketch.collective(0, 0, 1000, 0);
  sketch.collective(1, 600, 1000, 0);
  const auto scene = scene_of(sketch.done());
  std::vector<Item> items;
  scene->items(row_named(*scene, "r0.s20"), {0, 1000, 1000}, items);
  scene->items(row_named(*scene, "r1.s20"), {0, 1000, 1000}, items);
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].wait_ns, 600);
  EXPECT_EQ(items[1].wait_ns, 0);
}

}  // namespace
}  // namespace shardbook::scene
