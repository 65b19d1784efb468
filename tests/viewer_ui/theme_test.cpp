// Can every word be read, and can every paint be told from the others, by all eyes?
#include "viewer/ui/theme.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace shardbook::ui {
namespace {

using scene::Paint;

class Themes : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { set_theme(GetParam(), 1); }
  void TearDown() override { set_theme(false, 1); }
};
INSTANTIATE_TEST_SUITE_P(Both, Themes, testing::Values(false, true), [](const auto& info) { return info.param ? "dark" : "light"; });

using Named = std::vector<std::pair<std::string, ImU32>>;

TEST_P(Themes, words_meet_aa_contrast_on_every_ground_they_stand_on) {
  const Theme& t = theme();
  const Named grounds = {{"ground", t.ground}, {"panel", t.panel}, {"raised", t.raised}, {"hover", t.hover}};
  const Named roles = {{"text", t.text}, {"dim", t.dim}, {"link", t.link}, {"good", t.good}, {"warning", t.warning}, {"bad", t.bad}};
  for (const auto& [ground_name, ground] : grounds) {
    for (const auto& [role_name, role] : roles) EXPECT_GE(contrast(role, ground), 4.5) << role_name << " on " << ground_name;
  }
  EXPECT_GE(contrast(t.text, t.selection), 4.5);
  EXPECT_GE(contrast(t.link, t.selection), 4.5);
  EXPECT_GE(contrast(t.dim, t.selection), 4.5);
  EXPECT_GE(contrast(t.accent_text, t.accent), 4.5);
}

TEST_P(Themes, code_meets_aa_contrast_plain_marked_and_selected) {
  const Theme& t = theme();
  for (std::size_t token = 0; token < t.code.size(); ++token) {
    EXPECT_GE(contrast(t.code[token], t.code_ground), 4.5) << "token " << token;
    EXPECT_GE(contrast(t.code[token], t.hover), 4.5) << "token " << token << " on the marked line";
    EXPECT_GE(contrast(t.code[token], t.selection), 4.5) << "token " << token << " selected";
  }
}

TEST_P(Themes, words_on_a_paint_meet_aa_contrast) {
  const Theme& t = theme();
  for (std::size_t i = 0; i < t.paint.size(); ++i) EXPECT_GE(contrast(t.paint_text[i], t.paint[i]), 4.5) << "paint " << i;
}

TEST_P(Themes, marks_that_have_no_outline_stand_out_from_the_panel) {
  const Theme& t = theme();
  for (Paint paint : {Paint::compute, Paint::communication, Paint::memory, Paint::sync, Paint::host, Paint::annotation, Paint::exposed,
                      Paint::critical}) {
    EXPECT_GE(contrast(t.paint[static_cast<std::size_t>(paint)], t.panel), 3) << "paint " << static_cast<int>(paint);
  }
  for (std::size_t i = 0; i < t.series.size(); ++i) EXPECT_GE(contrast(t.series[i], t.panel), 3) << "series " << i;
  EXPECT_GE(contrast(t.dim, t.panel), 3) << "outlines of idle and wait";
  EXPECT_GE(contrast(t.accent, t.raised), 3) << "focus and chosen tab";
}

// --- Colour-blind eyes ----------------------------------------------------------------------------
// Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
using Matrix = std::array<std::array<double, 3>, 3>;
const std::map<std::string, Matrix> eyes = {
    {"all cones", {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}},
    {"deuteranopia", {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}}},
    {"protanopia", {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}}},
};

std::array<double, 3> lab(ImU32 colour, const Matrix& eye) {
  const auto linear = [](ImU32 byte) {
    const double v = (byte & 255) / 255.0;
    return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  };
  const std::array<double, 3> rgb = {linear(colour >> IM_COL32_R_SHIFT), linear(colour >> IM_COL32_G_SHIFT), linear(colour >> IM_COL32_B_SHIFT)};
  std::array<double, 3> seen{};
  for (int i = 0; i < 3; ++i) seen[i] = std::min(1.0, std::max(0.0, eye[i][0] * rgb[0] + eye[i][1] * rgb[1] + eye[i][2] * rgb[2]));
  const auto f = [](double t) { return t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116; };
  const double x = f((0.4124 * seen[0] + 0.3576 * seen[1] + 0.1805 * seen[2]) / 0.9505);
  const double y = f(0.2126 * seen[0] + 0.7152 * seen[1] + 0.0722 * seen[2]);
  const double z = f((0.0193 * seen[0] + 0.1192 * seen[1] + 0.9505 * seen[2]) / 1.089);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

// CIE 1976 distance; about 2 is the least that is noticed side by side, 20 is plain at a glance.
double distance(ImU32 a, ImU32 b, const Matrix& eye) {
  const auto p = lab(a, eye), q = lab(b, eye);
  return std::hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
}

TEST_P(Themes, the_paints_of_a_rank_differ_by_20_for_all_eyes) {
  const Theme& t = theme();
  const std::vector<std::pair<std::string, Paint>> paints = {{"compute", Paint::compute}, {"communication", Paint::communication},
                                                             {"memory", Paint::memory}, {"idle", Paint::idle}, {"exposed", Paint::exposed}};
  for (const auto& [eye_name, eye] : eyes) {
    for (std::size_t i = 0; i < paints.size(); ++i) {
      for (std::size_t j = i + 1; j < paints.size(); ++j) {
        const double apart = distance(t.paint[static_cast<std::size_t>(paints[i].second)], t.paint[static_cast<std::size_t>(paints[j].second)], eye);
        EXPECT_GE(apart, 20) << paints[i].first << " and " << paints[j].first << ", " << eye_name;
      }
    }
  }
}

TEST(Contrast, black_on_white_is_21_and_a_colour_on_itself_is_1) {
  EXPECT_NEAR(contrast(IM_COL32(0, 0, 0, 255), IM_COL32(255, 255, 255, 255)), 21, 1e-9);
  EXPECT_NEAR(contrast(IM_COL32(9, 99, 199, 255), IM_COL32(9, 99, 199, 255)), 1, 1e-9);
  // #767676 on white is the known edge of AA.
  EXPECT_NEAR(contrast(IM_COL32(0x76, 0x76, 0x76, 255), IM_COL32(255, 255, 255, 255)), 4.54, 0.01);
}

}  // namespace
}  // namespace shardbook::ui
