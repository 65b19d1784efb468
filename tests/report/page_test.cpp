// The page: well-formed whatever a trace says, its figures those of metrics, its colours readable.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>

#include "engine/report/page_parts.hpp"
#include "engine/report/style.hpp"
#include "engine/timeline/run_info.hpp"
#include "tests/report/pages.hpp"

namespace shardbook::report {
namespace {

using metrics::Scene;

// Ranks with two steps: a gather that is half covered, a copy, a hole.
Timeline two_steps(int ranks, timeline::Clock clock = timeline::Clock::modelled) {
  Scene scene(ranks, 40, clock);
  for (Rank rank = 0; rank < ranks; ++rank) {
    for (int step : {0, 1}) {
      const Nanoseconds at = step * 10'000'000 + 1'000 * rank;
      scene.compute(rank, at, at + 4'000'007, scene.detail("gemm", 3));
      timeline::Detail gather = scene.detail("all_gather", 4);
      gather.source = scene.line("engine/fsdp/schedule.cpp", 3);
      scene.collective(rank, at + 3'000'000, at + 6'000'001, step, gather);
      scene.memory(rank, at + 6'000'001, at + 6'500'000);
      scene.compute(rank, at + 7'000'000, at + 9'000'000, scene.detail("gemm", 4));
      scene.builder.add_step({.rank = rank, .number = step, .start = at, .end = at + 9'000'000});
    }
  }
  return scene.done();
}

timeline::RunInfo small_run() {
  timeline::RunInfo run;
  run.command = "shardbook train --tp 2";
  run.made_at = "2026-11-21T00:58:23Z";
  run.config = {{"model", "gpt-1.3b"}, {"tp", 2}, {"fsdp", 4}};
  run.versions = {{"NCCL", "2.28.3"}};
  run.hardware = {{"device", "NVIDIA H200"}};
  run.clock = "modelled";
  run.profile = "h200x8";
  run.sources.push_back({"engine/fsdp/schedule.cpp", "0", "first();\n//@ fsdp.gather: Gather < all.\nif (a < b && c) gather();\n//@end\nlast();\n"});
  return run;
}

TEST(Page, IsWellFormedAndLoadsNothing) {
  const timeline::RunInfo run = small_run();
  const std::string page = page_of(two_steps(2), {}, &run);
  EXPECT_EQ(problem_of(page), "");
  for (const char* part : {"http:", "https:", "<script", "<img", "<link", "@import", "src=", "href="}) EXPECT_EQ(page.find(part), std::string::npos) << part;
  EXPECT_NE(page.find("content=\"default-src 'none'; style-src 'unsafe-inline'\""), std::string::npos);
  // Every picture that a fill names is there.
  for (const char* id : {"hatch", "cross", "dots"}) {
    EXPECT_NE(page.find(std::string("url(#") + id + ")"), std::string::npos) << id;
    EXPECT_EQ(count_of(page, std::string(" id=\"") + id + "\""), 1u) << id;
  }
}

TEST(Page, TellsWhereItComesFrom) {
  const timeline::RunInfo run = small_run();
  const std::string page = page_of(two_steps(2), {}, &run);
  const std::string_view head = std::string_view(page).substr(0, page.find("</header>"));
  for (const char* part : {"MODELLED by the profile h200x8", "agree to 40 ns", "shardbook train --tp 2", "NCCL 2.28.3", "NVIDIA H200", "2026-11-21"}) {
    EXPECT_NE(head.find(part), std::string_view::npos) << part;
  }
  EXPECT_NE(section_of(page, "What repeats this run").find("fsdp = 4"), std::string_view::npos);
  // Each picture of times names the clock again.
  EXPECT_EQ(count_of(page, "<text class=\"clock\""), count_of(page, "<svg class=\"timeline\""));
  EXPECT_EQ(count_of(page, ">MODELLED h200x8 · "), count_of(page, "<svg class=\"timeline\"") + 2) << "pictures, bars and table";
}

TEST(Page, ShowsTheSentenceWithTheLinesOfSourceThatTheRunStored) {
  const timeline::RunInfo run = small_run();
  const Timeline timeline = two_steps(2);
  const std::string page = page_of(timeline, {}, &run);
  std::string sentence = metrics::exposure_sentence(timeline, metrics::common_window(timeline));
  sentence[0] = 'R';
  EXPECT_NE(page.find("<p class=\"sentence\">" + sentence + ".</p>"), std::string::npos) << sentence;
  EXPECT_NE(page.find("<span class=\"named\"><i>3</i>if (a &lt; b &amp;&amp; c) gather();</span>"), std::string::npos);
  EXPECT_NE(page.find("in fsdp.gather: Gather &lt; all."), std::string::npos);
  // Without a copy the line is named alone.
  EXPECT_NE(page_of(timeline).find("no copy of this file is stored"), std::string::npos);
}

TEST(Page, StatesTheFiguresOfMetricsToTheNanosecond) {
  const Timeline timeline = two_steps(3);
  for (const std::optional<int>& step : {std::optional<int>(), std::optional<int>(1)}) {
    const std::string page = page_of(timeline, step);
    std::vector<std::int64_t> expected, in_bars;
    const Figures figures = figures_of(timeline, step);
    const nlohmann::json tables = metrics::table_json(timeline, figures.rows);
    for (const nlohmann::json& rank : tables[0]["ranks"]) {
      for (const char* key : {"compute_ns", "exposed_communication_ns", "exposed_memory_ns", "idle_ns", "window_ns", "communication_ns", "overlapped_ns"}) {
        expected.push_back(rank[key]);
      }
      for (const char* key : {"window_ns", "compute_ns", "exposed_communication_ns", "exposed_memory_ns", "idle_ns"}) in_bars.push_back(rank[key]);
    }
    EXPECT_EQ(expected.size(), 21u);
    EXPECT_EQ(expected[4], step ? 9'000'000 : 19'000'000);
    EXPECT_EQ(data_of(section_of(page, "The figures of each rank")), expected);
    EXPECT_EQ(data_of(section_of(page, "Where the time of each rank went")), in_bars);
  }
}

TEST(Page, PartsOfABarSumToItsWindow) {
  std::mt19937 random(7);
  for (int turn = 0; turn < 40; ++turn) {
    const Timeline timeline = metrics::random_timeline(random, 2);
    const std::string page = page_of(timeline);
    EXPECT_EQ(problem_of(page), "");
    const std::vector<std::int64_t> values = data_of(section_of(page, "Where the time of each rank went"));
    ASSERT_EQ(values.size(), 10u);
    for (std::size_t rank : {0, 5}) EXPECT_EQ(values[rank], values[rank + 1] + values[rank + 2] + values[rank + 3] + values[rank + 4]);
  }
}

TEST(Page, OpsCountEachSpanOnce) {
  const Timeline timeline = two_steps(2);
  const Figures figures = figures_of(timeline, {});
  const auto gemm = std::find_if(figures.ops.begin(), figures.ops.end(), [](const OpRow& op) { return op.name == "gemm"; });
  ASSERT_NE(gemm, figures.ops.end());
  EXPECT_EQ(gemm->count, 8);
  EXPECT_EQ(gemm->sum_ns, 4 * (4'000'007 + 2'000'000));
  EXPECT_EQ(gemm->median_ns, (4'000'007 + 2'000'000) / 2);
  EXPECT_EQ(figures_of(timeline, 1).ops.size(), 3u);
  // What has no row of its own is in the last one.
  Scene scene(1);
  for (int i = 0; i < 60; ++i) scene.compute(0, 10 * i, 10 * i + 5, scene.detail(("op" + std::to_string(i)).c_str(), 0));
  const std::string page = page_of(scene.done());
  std::int64_t sum = 0;
  const std::vector<std::int64_t> values = data_of(section_of(page, "The ops"));
  for (std::size_t i = 1; i < values.size(); i += 2) sum += values[i];
  EXPECT_EQ(sum + values.back() * static_cast<std::int64_t>(values.size() % 2), 300);
  EXPECT_NE(page.find("20 ops more"), std::string::npos);
}

TEST(Page, HostileNamesStayText) {
  const std::string evil = "</title></style><script>alert(1)</script>\"' onload='x' &amp; ]]> \xff \u202E <!--";
  timeline::TimelineBuilder builder;
  timeline::Provenance provenance{.rank = 0, .world_size = 1, .clock = timeline::Clock::modelled, .profile = evil, .device = evil, .path = "/" + evil};
  builder.add_rank(provenance);
  builder.add_banner(evil + " is cut off at byte 7");
  const auto stream = builder.track(0, timeline::TrackKind::stream, 7, evil), other = builder.track(0, timeline::TrackKind::stream, 8, "stream " + evil);
  timeline::Detail detail;
  detail.op = detail.part = detail.phase = builder.intern(evil);
  detail.layer = 1;
  detail.source = {builder.intern(evil), 1};
  const auto group = builder.group(evil, {0});
  const auto collective = builder.collective({.group = group, .seq = 1, .op = timeline::CollectiveOp::other});
  builder.add(stream, {.start = 0, .end = 1000, .label = builder.intern(evil), .detail = builder.detail(detail)});
  builder.add(other, {.start = 500, .end = 3000, .label = builder.intern(evil), .cls = timeline::Class::communication,
                      .detail = builder.detail(detail), .collective = collective});
  builder.add(other, {.start = 3000, .end = 3001, .label = builder.intern(evil), .cls = timeline::Class::memory});
  const Timeline timeline = builder.finish();

  timeline::RunInfo run;
  run.lab = run.command = run.made_at = run.clock = run.profile = evil;
  run.config = {{evil, evil}, {"model", evil}, {"tp", {evil, {{evil, 1}}}}, {"fsdp", nullptr}};
  run.switches = run.hardware = run.versions = {{evil, evil}};
  run.results = {{"step_ns", 1e300}, {"tokens_per_second", "x"}, {"mfu", nlohmann::json::array()}};
  run.sources.push_back({evil, "", evil + "\n" + evil});
  const Figures figures = figures_of(timeline, {});
  const std::string whole = page({timeline, figures, &run, evil, evil});
  EXPECT_EQ(problem_of(whole), "");
  EXPECT_EQ(whole.find("<script"), std::string::npos);
  EXPECT_EQ(count_of(whole, "<style"), 1u);
  EXPECT_EQ(whole.find('\xff'), std::string::npos);
  EXPECT_NE(whole.find("Figures count only what is there"), std::string::npos);
  // A config that is no object is one that says nothing.
  run.config = run.hardware = run.results = nlohmann::json::array({1});
  EXPECT_EQ(problem_of(page({timeline, figures, &run, evil, evil})), "");
}

TEST(Page, NeverPutsTwoClocksInOneTable) {
  Scene scene(2);
  scene.compute(0, 0, 100);
  scene.compute(1, 0, 100);
  Timeline timeline = scene.done();
  timeline.ranks[1].clock = timeline::Clock::measured;
  timeline.ranks[1].device = "NVIDIA H200";
  const std::string page = page_of(timeline);
  EXPECT_EQ(problem_of(page), "");
  EXPECT_EQ(count_of(section_of(page, "The figures of each rank"), "<table>"), 2u);
  EXPECT_NE(section_of(page, "The timeline").find(">rank 1 · measured"), std::string_view::npos);
}

TEST(Page, OfManyRanksNamesThoseThatAreNotDrawn) {
  const std::string page = page_of(two_steps(40));
  EXPECT_EQ(problem_of(page), "");
  EXPECT_EQ(count_of(section_of(page, "The timeline"), "<text class=\"rank\""), most_drawn_ranks);
  EXPECT_NE(page.find("Not drawn: ranks 8 to 39. "), std::string::npos);
  EXPECT_EQ(count_of(page, "<svg class=\"bar\""), most_bars);
  EXPECT_NE(page.find("8 ranks more, in the table"), std::string::npos);
  EXPECT_EQ(data_of(section_of(page, "The figures of each rank")).size(), 40u * 7);
}

TEST(Page, OfNothingSaysSo) {
  const std::string page = page_of(Scene(1).done());
  EXPECT_EQ(problem_of(page), "");
  EXPECT_NE(page.find("Nothing ran on a device"), std::string::npos);
  EXPECT_NE(page.find("No communication ran."), std::string::npos);
  EXPECT_EQ(problem_of(page_of(timeline::TimelineBuilder().finish())), "") << "no rank at all";
}

// Contrast of WCAG 2.1 of two "#rrggbb".
double contrast(const std::string& one, const std::string& other) {
  const auto luminance = [](const std::string& colour) {
    double sum = 0;
    const double weights[] = {0.2126, 0.7152, 0.0722};
    for (std::size_t i = 0; i < 3; ++i) {
      const double part = std::stoi(colour.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
      sum += weights[i] * (part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4));
    }
    return sum;
  };
  const double a = luminance(one) + 0.05, b = luminance(other) + 0.05;
  return std::max(a, b) / std::min(a, b);
}

TEST(Style, CanBeReadInLightAndDark) {
  const std::string all(style());
  const std::size_t dark_from = all.find("prefers-color-scheme: dark"), dark_to = all.find("* {");
  ASSERT_LT(dark_from, dark_to);
  for (const std::string& part : {all.substr(0, dark_from), all.substr(dark_from, dark_to - dark_from)}) {
    std::map<std::string, std::string> colours;
    static const std::regex variable(R"(--([a-z-]+): (#[0-9a-f]{6});)");
    for (std::sregex_iterator at(part.begin(), part.end(), variable), end; at != end; ++at) colours[(*at)[1]] = (*at)[2];
    ASSERT_EQ(colours.size(), 25u);
    const auto of = [&](const char* a, const char* b) { return contrast(colours.at(a), colours.at(b)); };
    for (const char* ground : {"ground", "code", "head", "lane", "named"}) EXPECT_GE(of("text", ground), 4.5) << ground;
    for (const char* ground : {"ground", "code"}) EXPECT_GE(of("dim", ground), 4.5) << ground;
    EXPECT_GE(of("warn-text", "warn"), 4.5);
    for (const char* fill : {"compute", "comm", "memory", "cpu"}) EXPECT_GE(of((std::string(fill) + "-text").c_str(), fill), 4.5) << fill;
    for (const char* fill : {"compute", "comm-line", "memory", "exposed", "idle", "cpu", "mark"}) {
      EXPECT_GE(of(fill, "ground"), 3) << fill;
      EXPECT_GE(of(fill, "lane"), 3) << fill;
    }
  }
}

}  // namespace
}  // namespace shardbook::report
