// Are phases and layers readable at every zoom?
#include "viewer/lanes/band.hpp"

#include <gtest/gtest.h>

#include "tests/viewer_scene/support.hpp"
#include "tests/viewer_ui/screen.hpp"
#include "viewer/lanes/camera.hpp"
#include "viewer/lanes/plot.hpp"

namespace shardbook::lanes {
namespace {

std::vector<BandBox> boxes(const std::vector<std::pair<float, int>>& widths_and_around) {
  std::vector<BandBox> out;
  float x = 0;
  for (const auto& [width, around] : widths_and_around) {
    const std::string name = std::to_string(out.size());
    out.push_back({x, x + width, "layer " + name, "L" + name, around, "", ""});
    x += width;
  }
  return out;
}

std::vector<std::string> words_of_all(const std::vector<BandBox>& all) {
  std::vector<std::string> words;
  for (const BandBox& box : all) words.push_back(words_of(box));
  return words;
}

TEST(Bands, narrow_neighbours_stand_together_and_name_the_first_and_the_last) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words_of_all(joined(boxes({{50, 0}, {60, 0}}), 40, 40)), (Words{"layer 0", "layer 1"}));
  EXPECT_EQ(words_of_all(joined(boxes({{15, 0}, {15, 0}, {15, 0}, {15, 0}}), 40, 40)), (Words{"L0–3"})) << "the last one, alone, joins those before it";
  EXPECT_EQ(words_of_all(joined(boxes({{15, 0}, {15, 0}, {15, 0}, {15, 0}, {15, 0}, {15, 0}}), 40, 40)), (Words{"L0–2", "L3–5"}));
  EXPECT_EQ(words_of_all(joined(boxes({{30, 0}, {30, 1}}), 40, 40)), (Words{"layer 0", "layer 1"})) << "never over the end of what is around them";
  EXPECT_EQ(words_of_all(joined(boxes({{5, 0}, {200, 0}, {5, 0}, {5, 0}}), 40, 40)), (Words{"layer 0", "layer 1", "L2–3"})) << "a wide one stands alone";
}

TEST(Bands, a_box_that_has_room_for_its_own_name_is_not_joined_though_a_range_would_not_fit) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words_of_all(joined(boxes({{30, 0}, {30, 0}, {30, 0}}), 25, 50)), (Words{"layer 0", "layer 1", "layer 2"}));
  EXPECT_EQ(words_of_all(joined(boxes({{20, 0}, {20, 0}, {20, 0}, {20, 0}, {20, 0}, {20, 0}}), 25, 50)), (Words{"L0–2", "L3–5"}));
}

TEST(Bands, joined_boxes_cover_the_same_pixels) {
  std::mt19937 random(7);
  for (int run = 0; run < 50; ++run) {
    std::vector<std::pair<float, int>> widths;
    int around = 0;
    for (int i = 0; i < 60; ++i) widths.emplace_back(static_cast<float>(random() % 90), around += random() % 9 == 0);
    const std::vector<BandBox> before = boxes(widths), after = joined(before, 30, 50);
    ASSERT_FALSE(after.empty());
    EXPECT_EQ(after.front().x0, before.front().x0);
    EXPECT_EQ(after.back().x1, before.back().x1);
    for (std::size_t i = 1; i < after.size(); ++i) EXPECT_EQ(after[i - 1].x1, after[i].x0);
  }
}

// 24 layers forward and back in each of two steps.
std::shared_ptr<const scene::Scene> deep_run() {
  scene::Sketch sketch(1);
  base::Nanoseconds now = 0;
  for (int step = 0; step < 2; ++step) {
    const base::Nanoseconds begin = now;
    for (const char* phase : {"forward", "backward"}) {
      for (int i = 0; i < 24; ++i) {
        const int layer = *phase == 'f' ? i : 23 - i;
        for (const char* part : {"qkv", "up"}) {
          timeline::Detail detail = sketch.detail("linear_forward", layer, phase);
          detail.part = sketch.builder.intern(part);
          sketch.compute(0, now, now + 10'000, detail);
          now += 10'000;
        }
      }
    }
    sketch.builder.add_step({0, step, begin, now, begin, now});
  }
  return scene::scene_of(sketch.done());
}

bool is_said(const std::string& words) { return std::find(ui::words().begin(), ui::words().end(), words) != ui::words().end(); }

// Of all words like "L3–7" and "L7–3" the layers from the first to the last.
std::vector<int> layers_said() {
  std::vector<int> layers;
  for (const std::string& words : ui::words()) {
    int first = 0, last = 0;
    if (std::sscanf(words.c_str(), "L%d–%d", &first, &last) != 2) continue;
    for (int layer = first; layer != last; layer += first < last ? 1 : -1) layers.push_back(layer);
    layers.push_back(last);
  }
  return layers;
}

std::vector<int> forward_and_back(int steps) {
  std::vector<int> layers;
  for (int step = 0; step < steps; ++step) {
    for (int i = 0; i < 48; ++i) layers.push_back(i < 24 ? i : 47 - i);
  }
  return layers;
}

TEST(Bands, say_at_every_zoom_where_one_is) {
  const auto scene = deep_run();
  ui::Screen screen(1280, 600);
  PlotState state;
  state.choices = scene->first_choices();
  const auto look = [&](double start, double end) {
    state.view.start = start;
    state.view.end = end;
    for (int i = 0; i < 2; ++i) screen.frame([&] { draw_plot(*scene, state, ImGui::GetContentRegionAvail()); });
  };
  look(0, 1'920'000);
  EXPECT_TRUE(is_said("forward") && is_said("backward"));
  EXPECT_EQ(layers_said(), forward_and_back(2)) << "ranges of layers";
  EXPECT_FALSE(is_said("L12"));
  look(0, 480'000);
  EXPECT_TRUE(is_said("forward"));
  for (int layer = 0; layer < 24; ++layer) EXPECT_TRUE(is_said("L" + std::to_string(layer))) << "each layer";
  look(200'000, 300'000);
  EXPECT_TRUE((is_said("L12 attn") || is_said("layer 12 · attention")) && is_said("layer 12 · mlp"));
  look(220'000, 280'000);
  EXPECT_TRUE(is_said("layer 12 · attention") && is_said("layer 12 · mlp"));
  // Within one span: what it belongs to is still there.
  look(241'000, 242'000);
  EXPECT_TRUE(is_said("forward") && is_said("layer 12 · attention"));
  ASSERT_NE(screen.spot("phases"), nullptr);
  EXPECT_GT(state.body_height, 400);
}

}  // namespace
}  // namespace shardbook::lanes
