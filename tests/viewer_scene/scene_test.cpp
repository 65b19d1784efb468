// What is derived of a run, against plain references and against what the command line computes.
#include "viewer/scene/scene.hpp"

#include <nlohmann/json.hpp>

#include "engine/metrics/table.hpp"
#include "tests/viewer_scene/support.hpp"
#include "viewer/scene/area.hpp"
#include "viewer/scene/path_window.hpp"

namespace shardbook::scene {
namespace {

TEST(Scene, PartitionsAnyWindowAsThePlainReferenceAndTheCommandLineDo) {
  std::mt19937 random(11);
  for (int turn = 0; turn < 60; ++turn) {
    // Overlapping spans on several lanes, of small integers: nested, touching and empty ones.
    const Timeline timeline = turn < 50 ? metrics::random_timeline(random, 2) : random_run(static_cast<unsigned>(turn), 2, 200);
    const auto scene = scene_of(timeline);
    const Window whole = scene->whole();
    for (int window_turn = 0; window_turn < 20; ++window_turn) {
      std::uniform_int_distribution<Nanoseconds> at(whole.start - 20, whole.end + 20);
      const Nanoseconds a = at(random), b = at(random);
      const Window window{std::min(a, b), std::max(a, b)};
      for (const RankScene& rank : scene->ranks()) {
        const metrics::Partition parts = rank.partition(window);
        const Nanoseconds k = union_length(device_spans(timeline, rank.rank, {Class::compute}), window);
        const Nanoseconds c = union_length(device_spans(timeline, rank.rank, {Class::communication}), window);
        const Nanoseconds kc = union_length(device_spans(timeline, rank.rank, {Class::compute, Class::communication}), window);
        const Nanoseconds kcm = union_length(device_spans(timeline, rank.rank, {Class::compute, Class::communication, Class::memory}), window);
        ASSERT_EQ(parts.compute_ns, k);
        ASSERT_EQ(parts.communication_ns, c);
        ASSERT_EQ(parts.overlapped_ns, k + c - kc);
        ASSERT_EQ(parts.exposed_communication_ns, kc - k);
        ASSERT_EQ(parts.exposed_memory_ns, kcm - kc);
        ASSERT_EQ(parts.idle_ns, window.length() - kcm);
        const metrics::Partition told = metrics::partition(timeline, rank.rank, window);
        ASSERT_EQ(parts.exposed_communication_ns, told.exposed_communication_ns);
        ASSERT_EQ(parts.idle_ns, told.idle_ns);
      }
    }
  }
}

TEST(Scene, RowsAreAsBusyAsThePlainReference) {
  std::mt19937 random(12);
  for (int turn = 0; turn < 40; ++turn) {
    const Timeline timeline = metrics::random_timeline(random, 1);
    const auto scene = scene_of(timeline);
    RowChoices choices;
    choices.open = {"r0"};
    for (const Row& row : scene->rows(choices)) {
      if (row.kind != RowKind::stream) continue;
      const Track& track = timeline.tracks[static_cast<std::size_t>(row.track)];
      std::vector<Interval> spans, compute;
      for (std::size_t i = 0; i < track.size(); ++i) {
        spans.push_back({track.start[i], track.end[i]});
        if (track.cls[i] == Class::compute) compute.push_back(spans.back());
      }
      for (Nanoseconds start = -5; start < 130; start += 7) {
        const Window window{start, start + 23};
        const auto busy = scene->busy(row, window);
        ASSERT_EQ(busy[0] + busy[1] + busy[2] + busy[3], union_length(spans, window));
        ASSERT_EQ(busy[0], union_length(compute, window));
      }
    }
  }
}

TEST(Area, SaysWhatTheCommandLineSaysOfTheWindow) {
  const Timeline timeline = random_run(13, 3, 400);
  const auto scene = scene_of(timeline);
  std::mt19937 random(13);
  RowChoices choices;
  const std::vector<Row> rows = scene->rows(choices);
  for (int turn = 0; turn < 30; ++turn) {
    std::uniform_int_distribution<Nanoseconds> at(scene->whole().start, scene->whole().end);
    const Nanoseconds a = at(random), b = at(random);
    const Window window{std::min(a, b), std::max(a, b) + 1};
    const AreaFigures figures = area_figures(*scene, rows, window);
    EXPECT_EQ(metrics::table_json(timeline, figures.ranks), metrics::table_json(timeline, metrics::rank_rows(timeline, window)));
  }
}

TEST(Area, CountsEachSpanThatTouchesItOnce) {
  std::mt19937 random(14);
  for (int turn = 0; turn < 30; ++turn) {
    const Timeline timeline = random_run(static_cast<unsigned>(turn), 1, 60);
    const auto scene = scene_of(timeline);
    for (const char* name : {"r0.s7", "r0.h909"}) {
      const Row row = row_named(*scene, name);
      const Track& track = timeline.tracks[static_cast<std::size_t>(row.track)];
      std::uniform_int_distribution<Nanoseconds> at(-100, track.end.back() + 100);
      const Nanoseconds a = at(random), b = at(random);
      const Window window{std::min(a, b), std::max(a, b) + 1};
      std::map<std::string, std::pair<std::int64_t, Nanoseconds>> expected;
      for (std::uint32_t i = 0; i < track.size(); ++i) {
        const bool starts_inside = track.start[i] >= window.start && track.start[i] < window.end;
        if (!starts_inside && (track.start[i] >= window.start || track.end[i] <= window.start)) continue;
        auto& entry = expected[std::string(timeline.strings[track.label[i]]) + name_of(track.cls[i])];
        ++entry.first;
        entry.second += track.end[i] - track.start[i];
      }
      std::map<std::string, std::pair<std::int64_t, Nanoseconds>> told;
      for (const LabelRow& label : area_figures(*scene, {row}, window).labels) told[label.label + name_of(label.cls)] = {label.count, label.sum};
      ASSERT_EQ(told, expected) << name;
    }
  }
}

TEST(Area, GivesTheQuantilesOfALabel) {
  Sketch sketch;
  for (int i = 1; i <= 100; ++i) sketch.compute(0, i * 1000, i * 1000 + i);
  const auto scene = scene_of(sketch.done());
  const AreaFigures figures = area_figures(*scene, {row_named(*scene, "r0.s7")}, {0, 200'000});
  ASSERT_EQ(figures.labels.size(), 1u);
  EXPECT_EQ(figures.labels[0].count, 100);
  EXPECT_EQ(figures.labels[0].least, 1);
  EXPECT_EQ(figures.labels[0].median, 50);
  EXPECT_EQ(figures.labels[0].p95, 95);
  EXPECT_EQ(figures.labels[0].most, 100);
  EXPECT_EQ(figures.row_busy, 5050);
}

TEST(Scene, HasTheExposuresOfTheCommandLineInTheirOrder) {
  const Timeline timeline = random_run(15, 2, 200, false);
  const auto scene = scene_of(timeline);
  const auto expected = metrics::exposures(timeline, metrics::critical_path(timeline, metrics::common_window(timeline)));
  ASSERT_EQ(scene->exposures().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(scene->exposures()[i].span, expected[i].span);
    EXPECT_EQ(scene->exposure_place(expected[i].span), static_cast<int>(i));
  }
  EXPECT_EQ(scene->exposure_of({0, 0}), nullptr);
}

TEST(Scene, FindsTheCollectiveOfEachSpan) {
  const Timeline timeline = random_run(16, 3, 100);
  const auto scene = scene_of(timeline);
  std::size_t found = 0;
  for (const auto& collective : scene->collectives()) {
    for (SpanRef span : collective.spans) {
      ASSERT_EQ(scene->collective_of(span), &collective);
      ++found;
    }
  }
  EXPECT_EQ(found, 300u);
  EXPECT_EQ(scene->collective_of({0, 0}), nullptr) << "a span of compute";
}

TEST(PathWindow, CutOutAloneGivesTheSamePathAndReasons) {
  // Steps of a run with launches, waits and edges; the part holds the first two.
  Sketch sketch(2);
  for (int step = 0; step < 6; ++step) {
    const Nanoseconds at = step * 1000;
    for (Rank rank : {0, 1}) {
      const auto first = sketch.compute(rank, at + 20, at + 300 + 40 * rank);
      sketch.launched_at(rank, at + 5, at + 8);
      const auto gather = sketch.collective(rank, at + 300 + 40 * rank, at + 600, step);
      sketch.launched_at(rank, at + 8, at + 9);
      sketch.builder.add_edge(first, gather, timeline::EdgeKind::event);
      const auto second = sketch.compute(rank, at + 600, at + 900);
      sketch.launched_at(rank, at + 9, at + 10);
      sketch.builder.add_edge(gather, second, timeline::EdgeKind::event);
      sketch.builder.add_step({rank, step, at + 20, at + 900, at, at + 950});
    }
  }
  const Timeline timeline = sketch.done();
  const auto whole = metrics::match_collectives(timeline);
  const Window window{20, 1900};
  const Part part = cut(timeline, whole, window);
  EXPECT_LT(part.timeline.spans(), timeline.spans());
  const metrics::CriticalPath expected = metrics::critical_path(timeline, window), told = metrics::critical_path(part.timeline, window);
  ASSERT_EQ(told.pieces.size(), expected.pieces.size());
  for (std::size_t i = 0; i < told.pieces.size(); ++i) {
    EXPECT_EQ(part.whole(told.pieces[i].span), expected.pieces[i].span);
    EXPECT_EQ(told.pieces[i].time, expected.pieces[i].time);
  }
  const auto reasons = metrics::exposures(timeline, expected), told_reasons = metrics::exposures(part.timeline, told);
  ASSERT_EQ(told_reasons.size(), reasons.size());
  for (std::size_t i = 0; i < reasons.size(); ++i) {
    EXPECT_EQ(metrics::sentence(part.timeline, told_reasons[i]), metrics::sentence(timeline, reasons[i]));
    EXPECT_EQ(part.whole(told_reasons[i].awaited), reasons[i].awaited);
  }
}

TEST(PathWindow, IsWholeStepsAsManyAsFit) {
  Sketch sketch;
  std::vector<Scene::StepWindow> steps;
  for (int step = 0; step < 10; ++step) {
    for (int i = 0; i < 10; ++i) sketch.compute(0, step * 1000 + i * 100, step * 1000 + i * 100 + 90);
    steps.push_back({step, {step * 1000, step * 1000 + 990}});
  }
  const Timeline timeline = sketch.done();
  EXPECT_FALSE(choose_path_window(timeline, {0, 9990}, steps, 1000).partial);
  const PathWindow part = choose_path_window(timeline, {0, 9990}, steps, 35);
  EXPECT_TRUE(part.partial);
  EXPECT_EQ(part.window, (Window{0, 2990}));
  // Not even one step fits, or there are none: as long as does.
  EXPECT_EQ(choose_path_window(timeline, {0, 9990}, {}, 3).window, (Window{0, 300}));
}

TEST(Rows, OpenPinHideAndFold) {
  Timeline timeline = random_run(17, 3, 30);
  const auto scene = scene_of(std::move(timeline));
  const auto names = [&](const RowChoices& choices) {
    std::vector<std::string> out;
    for (const Row& row : scene->rows(choices)) out.push_back(row.name);
    return out;
  };
  RowChoices choices;
  choices.fold_alike = false;
  EXPECT_EQ(names(choices), (std::vector<std::string>{"r0", "r1", "r2"}));
  choices.open = {"r1"};
  choices.hidden = {"host", "r1.idle"};
  choices.pinned = {"r2.s20", "r7.s1"};
  EXPECT_EQ(names(choices), (std::vector<std::string>{"r2.s20", "r0", "r1", "r1.exposed", "r1.critical", "r1.s7", "r1.s20", "r2"}));
  EXPECT_TRUE(scene->rows(choices).front().pinned);
  EXPECT_FALSE(scene->row_of("r0.s99").has_value());
  EXPECT_FALSE(scene->row_of("nonsense").has_value());
}

TEST(Rows, FoldRanksThatBehaveAlikeButNotRankZeroOrTheStraggler) {
  // Ranks 0 to 4 alike, rank 3 comes last to each collective (by 1 %), rank 5 has more spans.
  Sketch sketch(6);
  for (Rank rank = 0; rank < 6; ++rank) {
    const Nanoseconds late = rank == 3 ? 100 : 0;
    sketch.compute(rank, 0, 6000 + late);
    sketch.collective(rank, 6000 + late, 10'000, 0);
    if (rank == 5) sketch.compute(rank, 9000, 9001);
  }
  const auto scene = scene_of(sketch.done());
  ASSERT_EQ(scene->straggler(), std::optional<Rank>(3));
  std::vector<std::pair<Rank, std::vector<Rank>>> told;
  for (const Row& row : scene->rows({})) told.emplace_back(row.rank, row.alike);
  EXPECT_EQ(told, (std::vector<std::pair<Rank, std::vector<Rank>>>{{0, {1, 2, 4}}, {3, {}}, {5, {}}}));
}

TEST(Scene, MinimapShowsTheShareOfExposedCommunication) {
  Sketch sketch(2);
  sketch.compute(0, 0, 1000);
  sketch.collective(0, 500, 1000, 0);
  sketch.compute(1, 0, 500);
  sketch.collective(1, 500, 1000, 0);
  const auto map = scene_of(sketch.done())->minimap(2);
  EXPECT_FLOAT_EQ(map[0], 0);
  EXPECT_FLOAT_EQ(map[1], 0.5f);
}

}  // namespace
}  // namespace shardbook::scene
