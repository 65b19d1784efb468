// What is printed: the table, the drawing, and the keys that move it; and what checks may ask.
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/metrics/exposure.hpp"
#include "engine/metrics/predicates.hpp"
#include "engine/metrics/table.hpp"
#include "engine/metrics/terminal.hpp"
#include "tests/metrics/scene.hpp"

namespace shardbook::metrics {
namespace {

// Two ranks, 1000 ns: compute to 500, a gather from 400 to 800, a copy from 900.
Timeline two_ranks() {
  Scene scene(2, 12);
  for (Rank rank : {0, 1}) {
    auto gemm = scene.detail("gemm", 3);
    gemm.flops = 1000;
    const auto first = scene.compute(rank, 0, 500, gemm);
    const auto gather = scene.collective(rank, 400, 800, 0, scene.detail("all_gather", 3), CollectiveOp::all_gather, 4096);
    const auto copy = scene.memory(rank, 900, 1000);
    scene.builder.add_edge(gather, copy, EdgeKind::event);
    (void)first;
  }
  return scene.done();
}

int columns(const std::string& line) {
  int count = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      while (i < line.size() && line[i] != 'm') ++i;
      continue;
    }
    count += (static_cast<unsigned char>(line[i]) & 0xc0) != 0x80;
  }
  return count;
}

TEST(Table, HasARowARankAndNamesItsClock) {
  const Timeline timeline = two_ranks();
  EXPECT_EQ(table_text(timeline, rank_rows(timeline)),
            "clock: MODELLED h200x8 · ranks' clocks agree to 12 ns · times in ms\n"
            "rank        compute   exposed comm exposed memory           idle =window overlap\n"
            " 0-1 0.000500 50.0% 0.000300 30.0% 0.000100 10.0% 0.000100 10.0% 0.001000  25.0%\n");
}

TEST(Table, OfALongWindowFitsATerminalAndStillSums) {
  const Timeline timeline = two_ranks();
  std::vector<RankRow> rows = rank_rows(timeline);
  // 0.4 us at each border: rounded one by one, the parts would sum to 1234.566 ms
  for (RankRow& row : rows) {
    row.partition.compute_ns = 1000'000'400;
    row.partition.exposed_communication_ns = 200'000'400 + row.rank * 1'000'000;
    row.partition.exposed_memory_ns = 30'000'400;
    row.partition.idle_ns = 4'565'800 - row.rank * 1'000'000;
    row.partition.window = {0, 1234'567'000};
  }
  const std::string table = table_text(timeline, rows);
  EXPECT_NE(table.find("\n   0 1000.000 81.0%  200.001 16.2%   30.000  2.4%    4.566  0.4% 1234.567  25.0%\n   1 1000.000"), std::string::npos) << table;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns(line), 80) << line;
}

TEST(Table, NeverMixesClocks) {
  timeline::TimelineBuilder builder;
  for (Rank rank : {0, 1}) {
    timeline::Provenance provenance;
    provenance.rank = rank;
    provenance.clock = rank == 0 ? timeline::Clock::measured : timeline::Clock::wall;
    builder.add_rank(provenance);
  }
  const Timeline timeline = builder.finish();
  const auto json = table_json(timeline, rank_rows(timeline));
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["clock"], "measured");
  EXPECT_EQ(json[1]["clock"], "wall");
  EXPECT_EQ(json[1]["ranks"].size(), 1u);
}

TEST(Table, AsJsonHoldsIntegersThatSumToTheWindow) {
  const Timeline timeline = two_ranks();
  const nlohmann::json tables = table_json(timeline, rank_rows(timeline));
  ASSERT_EQ(tables[0]["ranks"].size(), 2u);
  for (const auto& rank : tables[0]["ranks"]) {
    EXPECT_EQ(rank["compute_ns"].get<Nanoseconds>() + rank["exposed_communication_ns"].get<Nanoseconds>() +
                  rank["exposed_memory_ns"].get<Nanoseconds>() + rank["idle_ns"].get<Nanoseconds>(),
              rank["window_ns"].get<Nanoseconds>());
  }
}

TEST(Drawing, ShowsARowAStreamAndTheExposedAndIdleRows) {
  DrawOptions options;
  options.width = 48;                                  // 20 columns of bars: 50 ns each
  options.ranks = {0};
  const auto lines = draw(two_ranks(), {}, options);
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_EQ(lines[0], "MODELLED h200x8 · 1 of 2 ranks · 1 µs shown from");
  EXPECT_EQ(lines[1], "                    |0 ns     |500 ns");
  EXPECT_EQ(lines[2], "r0 7                ██████████        ==  60.0 %");
  EXPECT_EQ(lines[3], "r0 20                       ▓▓▓▓▓▓▓▓      40.0 %");
  EXPECT_EQ(lines[4], "r0 exposed                    ▓▓▓▓▓▓      30.0 %");
  EXPECT_EQ(lines[5], "r0 idle                             ••    10.0 %");
  EXPECT_EQ(lines[6], "▁█ compute  ░▓ comm  -= copy  ·• idle");
}

// Two ranks; three sums alone, 100 us each, and a fourth that is ready when a matmul has begun and has no room before its end.
TEST(Drawing, TellsWhatQueuesBeforeAFullDeviceFromWhatCrosses) {
  Scene scene(2, 0, timeline::Clock::measured);
  for (Rank rank : {0, 1}) {
    auto gemm = scene.detail("gemm", 3);
    gemm.bytes = 1000;
    gemm.flops = 500'000;
    for (int i = 0; i < 3; ++i) scene.collective(rank, 200'000 * i, 200'000 * i + 100'000, i, {}, CollectiveOp::all_reduce, 1 << 20);
    scene.compute(rank, 600'000, 700'000, gemm);
    scene.collective(rank, 600'000, 800'000, 3, {}, CollectiveOp::all_reduce, 1 << 20);
  }
  const Timeline timeline = scene.done();
  const ViewState state{.window = {600'000, 800'000}};
  const auto lines = draw(timeline, state, {.width = 48, .ranks = {0}});
  EXPECT_EQ(lines[3], "r0 20               ╌╌╌╌╌╌╌╌╌╌▓▓▓▓▓▓▓▓▓▓ 100.0 %");
  EXPECT_EQ(lines.back(), "▁█ compute  ░▓ comm  ╌ queued  -= copy  ·• idle");
  const auto plain = draw(timeline, state, {.width = 60, .ascii = true, .ranks = {0}});
  EXPECT_EQ(plain[3].substr(20, 32), std::string(16, '_') + std::string(16, '%'));
  EXPECT_EQ(plain.back(), ".# compute  '% comm  _ queued  -= copy  .o idle");
}

TEST(Drawing, NamesAStreamByItsWordWhereNoOtherHasIt) {
  const auto labels = [](const std::vector<std::string>& names) {
    Scene scene;
    std::int64_t id = 7;
    for (const std::string& name : names) {
      const auto track = scene.builder.track(0, timeline::TrackKind::stream, id, name);
      scene.builder.add(track, {.start = 0, .end = 100, .cls = Class::compute});
      id += 13;
    }
    const Timeline timeline = scene.done();
    std::string all;
    const auto lines = draw(timeline, {}, {.width = 48});
    for (std::size_t row = 2; row < 2 + names.size(); ++row) all += lines[row].substr(0, lines[row].find("  ")) + ";";
    return all;
  };
  EXPECT_EQ(labels({"stream 7 compute", "stream 20 tp"}), "r0 compute;r0 tp;");
  EXPECT_EQ(labels({"stream 7 nccl", "stream 20 nccl"}), "r0 7 nccl;r0 20 nccl;");
  EXPECT_EQ(labels({"stream 7", "stream 20 fsdp"}), "r0 7;r0 fsdp;");
}

TEST(Drawing, CountsTimesFromTheFirstDeviceWorkThoughAStepBeginsBeforeIt) {
  Scene scene;
  scene.compute(0, 1'000, 2'000);
  scene.builder.add_step({0, 0, 400, 2'000, 400, 2'000});
  const Timeline timeline = scene.done();
  EXPECT_NE(draw(timeline, {.window = {1'000, 2'000}}, {})[0].find("1 µs shown from 0 ns"), std::string::npos);
  EXPECT_NE(draw(timeline, {}, {})[0].find("1.6 µs shown from -600 ns"), std::string::npos);
  EXPECT_EQ(draw(timeline, {}, {})[1].find("|0 ns"), draw(timeline, {}, {})[2].find("█")) << "0 is where the first kernel begins";
}

TEST(Drawing, TellsHowMuchOfAColumnWasBusy) {
  Scene scene;
  for (int i = 0; i < 20; ++i) scene.compute(0, 100 * i, 100 * i + 5 * (i + 1));     // 5 %, 10 % ... 100 % of a column
  const Timeline timeline = scene.done();
  DrawOptions options;
  options.width = 48;
  EXPECT_EQ(draw(timeline, {.window = {0, 2000}}, options)[2], "r0 7                ▁▁▂▂▃▃▃▄▄▅▅▅▆▆▇▇▇███  52.5 %");
  options.ascii = true;
  EXPECT_EQ(draw(timeline, {.window = {0, 2000}}, options)[2], "r0 7                ....oooooOOOOO######  52.5 %");
}

TEST(Drawing, IsNeverWiderThanAsked) {
  std::mt19937 random(4);
  for (int width : {40, 41, 80, 133}) {
    for (bool color : {false, true}) {
      const Timeline timeline = random_timeline(random, 3);
      for (const std::string& line : draw(timeline, {.window = {10, 90}}, {.width = width, .color = color})) {
        EXPECT_LE(columns(line), width) << line;
      }
    }
  }
}

TEST(Keys, PanAndZoomWithinTheTimeline) {
  const Timeline timeline = two_ranks();
  ViewState state;
  state = step(timeline, state, key_of("w"));
  EXPECT_EQ(state.window, (Window{250, 750}));
  state = step(timeline, state, key_of("d"));
  EXPECT_EQ(state.window, (Window{375, 875}));
  state = step(timeline, state, key_of("\x1b[C"));
  EXPECT_EQ(state.window, (Window{500, 1000}));
  state = step(timeline, state, key_of("d"));
  EXPECT_EQ(state.window, (Window{500, 1000}));
  for (int i = 0; i < 20; ++i) state = step(timeline, state, key_of("w"));
  EXPECT_EQ(state.window.length(), 100);
  state = step(timeline, state, key_of("a"));
  EXPECT_EQ(state.window.length(), 100);
  for (int i = 0; i < 20; ++i) state = step(timeline, state, key_of("s"));
  EXPECT_EQ(state.window, (Window{0, 1000}));
  EXPECT_FALSE(state.quit);
  EXPECT_TRUE(step(timeline, state, key_of("q")).quit);
  EXPECT_EQ(key_of("?"), ViewKey::none);
}

TEST(Keys, GoThroughTheExposedSpansInTheOrderOfExposures) {
  const Timeline timeline = two_ranks();
  const auto list = exposures(timeline, critical_path(timeline, common_window(timeline)));
  ASSERT_EQ(list.size(), 2u);
  ViewState state = step(timeline, {}, key_of("n"));
  EXPECT_EQ(state.selected, list[0].span);
  EXPECT_EQ(state.window, (Window{0, 1000}));
  state = step(timeline, state, key_of("n"));
  EXPECT_EQ(state.selected, list[1].span);
  state = step(timeline, state, key_of("n"));
  EXPECT_EQ(state.selected, list[0].span);
  state = step(timeline, state, key_of("N"));
  EXPECT_EQ(state.selected, list[1].span);
  const auto lines = draw(timeline, state, {.width = 48, .ranks = {timeline.rank(*state.selected)}});
  EXPECT_EQ(lines[6], "                            ^^^^^^^^");
}

TEST(Keys, GoThroughTheExposedSpansOfTheRanksThatAreDrawn) {
  const Timeline timeline = two_ranks();
  for (const Rank drawn : {0, 1}) {
    const auto list = exposures_of(timeline, common_window(timeline), {drawn});
    ASSERT_EQ(list.size(), 1u);
    EXPECT_EQ(timeline.rank(list[0].span), drawn);
    ViewState state = step(timeline, {}, key_of("n"), {drawn});
    for (int turn = 0; turn < 3; ++turn, state = step(timeline, state, key_of("n"), {drawn})) EXPECT_EQ(state.selected, list[0].span);
  }
  EXPECT_EQ(exposures_of(timeline, common_window(timeline), {}).size(), 2u);
}

TEST(Predicates, CountAndAddWhatAFilterNames) {
  const Timeline timeline = two_ranks();
  EXPECT_EQ(count(timeline, {.op = "all_gather"}), 2);
  EXPECT_EQ(count(timeline, {.rank = 1, .op = "all_gather", .layer = 3, .phase = "forward"}), 1);
  EXPECT_EQ(count(timeline, {.op = "all_gather", .layer = 4}), 0);
  EXPECT_EQ(count(timeline, {.cls = Class::memory}), 2);
  EXPECT_EQ(count(timeline, {.group = "dp_shard"}), 2);
  EXPECT_EQ(bytes(timeline, {.op = "all_gather"}), 8192);
  EXPECT_EQ(flops(timeline, {.op = "gemm"}), 2000);
  EXPECT_EQ(exposed(timeline, {.op = "all_gather"}), 600);
  EXPECT_DOUBLE_EQ(*overlap(timeline, {.op = "all_gather"}), 0.25);
  EXPECT_FALSE(overlap(timeline, {.op = "none"}));
}

TEST(Predicates, CompareStartsAndEnds) {
  const Timeline timeline = two_ranks();
  const Filter gemm{.op = "gemm"}, gather{.op = "all_gather"}, copy{.cls = Class::memory};
  EXPECT_TRUE(starts_before_start(timeline, gemm, gather));
  EXPECT_FALSE(ends_before_start(timeline, gemm, gather));
  EXPECT_TRUE(ends_before_start(timeline, gather, copy));
  EXPECT_FALSE(starts_before_start(timeline, copy, gather));
}

}  // namespace
}  // namespace shardbook::metrics
