// The picture: what is narrow is drawn as what it is, never as a block.
#include "engine/report/svg.hpp"

#include <gtest/gtest.h>

#include <regex>

#include "engine/report/html.hpp"
#include "tests/report/pages.hpp"

namespace shardbook::report {
namespace {

using metrics::Scene;

// The area under all outlines of a path of "Mx yHx...Lx y...z" pieces, by the shoelace formula.
double area_of(const std::string& path) {
  double area = 0;
  static const std::regex step(R"(([MLHz])(-?[0-9.]*) ?(-?[0-9.]*))");
  std::vector<std::pair<double, double>> points;
  for (std::sregex_iterator at(path.begin(), path.end(), step), end; at != end; ++at) {
    const std::string kind = (*at)[1];
    if (kind == "z") {
      double twice = 0;
      for (std::size_t i = 0; i < points.size(); ++i) {
        const auto& [x0, y0] = points[i];
        const auto& [x1, y1] = points[(i + 1) % points.size()];
        twice += x0 * y1 - x1 * y0;
      }
      area += std::abs(twice) / 2;
      points.clear();
    } else if (kind == "H") {
      points.push_back({std::stod((*at)[2]), points.back().second});
    } else {
      points.push_back({std::stod((*at)[2]), std::stod((*at)[3])});
    }
  }
  return area;
}

std::string path_of(const std::string& svg, const std::string& style) {
  const std::size_t at = svg.find("<path class=\"" + style + "\" d=\"");
  return at == std::string::npos ? "" : svg.substr(at, svg.find("\">", at) - at).substr(19);
}

TEST(Row, OfNarrowSpansIsAsHighAsTheyAreBusy) {
  // A span of 1 in every 4 ns, on 100 columns of 40 ns: a quarter of the row.
  Scene scene(1);
  for (int i = 0; i < 1000; ++i) scene.compute(0, 4 * i, 4 * i + 1);
  const Timeline timeline = scene.done();
  std::vector<Item> items;
  for (std::uint32_t i = 0; i < 1000; ++i) items.push_back({{4 * i, 4 * i + 1}, Look::compute, {0, i}});
  const std::string row = row_svg(timeline, items, {{0, 4000}, 0, 200}, 20);
  EXPECT_EQ(row.find("<rect"), std::string::npos);
  EXPECT_EQ(count_of(row, "<path"), 1u);
  EXPECT_NEAR(area_of(path_of(row, "k")), 200 * 20 / 4.0, 1e-6) << row;
  EXPECT_NE(row.find("1000 narrow pieces, compute, 1 µs in all"), std::string::npos) << row;
}

TEST(Row, StacksClassesThatShareAColumn) {
  Scene scene(1);
  scene.compute(0, 0, 10);
  const Timeline timeline = scene.done();
  std::vector<Item> items;
  for (Nanoseconds at = 0; at < 4000; at += 4) {
    items.push_back({{at, at + 2}, Look::compute, {}});
    items.push_back({{at + 2, at + 3}, Look::communication, {}});
  }
  const std::string row = row_svg(timeline, items, {{0, 4000}, 0, 200}, 20);
  EXPECT_NEAR(area_of(path_of(row, "k")), 2000, 1e-6);
  EXPECT_NEAR(area_of(path_of(row, "c")), 1000, 1e-6);
  EXPECT_NE(path_of(row, "c").find("M0 5H2"), std::string::npos) << "communication lies over compute, not before it";
}

TEST(Row, GivesAWideSpanItsOwnShapeNameAndTooltip) {
  Scene scene(1);
  timeline::Detail detail = scene.detail("gemm_qkv", 7);
  detail.source = scene.line("engine/model/block.cpp", 12);
  scene.compute(0, 0, 1'500'000, detail);
  scene.compute(0, 1'500'000, 1'520'000, detail);
  const Timeline timeline = scene.done();
  const std::vector<Item> items{{{0, 1'500'000}, Look::compute, {0, 0}}, {{1'500'000, 1'520'000}, Look::compute, {0, 1}}};
  const std::string row = row_svg(timeline, items, {{0, 2'000'000}, 0, 200}, 18);
  EXPECT_EQ(count_of(row, "<rect class=\"k\" x=\"0\" y=\"0\" width=\"150\""), 1u) << row;
  EXPECT_NE(row.find(">gemm L7</text>"), std::string::npos) << row;
  EXPECT_NE(row.find("<title>gemm · rank 0, layer 7, forward · 1.5 ms · engine/model/block.cpp:12</title>"), std::string::npos) << row;
  EXPECT_EQ(count_of(row, "<path"), 1u) << "2 units are too narrow for a rectangle";
}

TEST(Row, LabelsNeverLeaveTheirSpan) {
  Scene scene(1);
  scene.compute(0, 0, 100, scene.detail("gemm", 123456));
  const Timeline timeline = scene.done();
  for (int width = 4; width < 200; width += 2) {
    const std::string row = row_svg(timeline, {{{0, 100}, Look::compute, {0, 0}}}, {{0, 100}, 0, width}, 18);
    const std::size_t at = row.find("<text");
    if (at == std::string::npos) continue;
    const std::string label = row.substr(row.find('>', at) + 1, row.find("</text>") - row.find('>', at) - 1);
    EXPECT_LE(static_cast<double>(characters(label)) * 5.7 + 6, width) << label;
  }
}

TEST(Bar, IsAsLongAsItsWindowAgainstTheLongest) {
  metrics::Partition parts;
  parts.window = {0, 100};
  parts.compute_ns = 50;
  parts.exposed_communication_ns = 30;
  parts.idle_ns = 20;
  const std::string bar = bar_svg(parts, 200);
  EXPECT_NE(bar.find("<rect class=\"k\" x=\"1\" y=\"1\" width=\"294.5\""), std::string::npos) << bar;
  EXPECT_NE(bar.find("<rect class=\"e\" x=\"295.5\" y=\"1\" width=\"176.7\""), std::string::npos) << bar;
  EXPECT_NE(bar.find("<rect class=\"i\" x=\"472.2\" y=\"1\" width=\"117.8\""), std::string::npos) << bar;
  EXPECT_EQ(bar.find("class=\"m\""), std::string::npos);
}

TEST(Picture, HasARowAStreamAndRowsOfExposedAndIdleForEachRank) {
  Scene scene(2);
  for (Rank rank : {0, 1}) {
    scene.compute(rank, 0, 500);
    scene.collective(rank, 400, 1000, 1);
    scene.collective(rank, 2000, 2100, 2);
  }
  const Timeline timeline = scene.done();
  const std::string svg = timeline_svg(timeline, {{0, 2100}, {0, 1}, {1, 0}, "of <both>"});
  EXPECT_EQ(count_of(svg, "<text class=\"row\""), 8u);
  EXPECT_EQ(count_of(svg, ">exposed</text>"), 2u);
  EXPECT_EQ(count_of(svg, ">idle</text>"), 2u);
  EXPECT_EQ(count_of(svg, ">28.6 %</text>"), 2u) << "exposed: 600 of 2100";
  EXPECT_EQ(count_of(svg, ">47.6 %</text>"), 2u) << "idle: 1000 of 2100";
  EXPECT_EQ(count_of(svg, "class=\"sign\""), 1u);
  EXPECT_NE(svg.find("of &lt;both&gt;"), std::string::npos);
  EXPECT_EQ(timeline_svg(timeline, {{5, 5}, {0}, {}, ""}), "");
}

}  // namespace
}  // namespace shardbook::report
