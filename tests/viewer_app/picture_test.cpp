// Is a picture drawn without any display, the same each time, and written whole or not at all?
#include <gtest/gtest.h>
#include <unistd.h>
#include <imgui.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "viewer/app/stage.hpp"
#include "viewer/ui/theme.hpp"

namespace shardbook::app {
namespace {

namespace fs = std::filesystem;

class Pictures : public testing::Test {
 protected:
  // With no window system to fall back on.
  static void SetUpTestSuite() {
    unsetenv("DISPLAY");
    unsetenv("WAYLAND_DISPLAY");
  }
  std::unique_ptr<Picture> picture(int width = 320, int height = 200, float scale = 1) {
    base::Result<std::unique_ptr<Picture>> made = Picture::make(width, height, scale);
    EXPECT_TRUE(made.ok()) << (made ? "" : made.error());
    return made ? std::move(made).value() : nullptr;
  }
  static void words() {
    ImGui::SetNextWindowPos({0, 0});
    ImGui::Begin("w");
    ImGui::TextUnformatted("overlap: 62 %");
    ImGui::End();
  }
};

unsigned pixel(const Pixels& all, int x, int y) {
  const std::size_t at = std::size_t{3} * (static_cast<std::size_t>(y) * all.width + x);
  return static_cast<unsigned>(all.rgb[at]) << 16 | static_cast<unsigned>(all.rgb[at + 1]) << 8 | all.rgb[at + 2];
}

TEST_F(Pictures, are_drawn_without_a_display_with_rows_from_the_top) {
  auto stage = picture();
  ASSERT_NE(stage, nullptr);
  stage->frame_of(false, 1, [] {
    ImGui::GetForegroundDrawList()->AddRectFilled({0, 0}, {320, 10}, IM_COL32(255, 0, 0, 255));
    ImGui::GetForegroundDrawList()->AddRectFilled({0, 10}, {10, 200}, IM_COL32(0, 0, 255, 255));
  });
  const Pixels all = stage->pixels();
  ASSERT_EQ(all.width, 320);
  ASSERT_EQ(all.height, 200);
  EXPECT_EQ(pixel(all, 100, 5), 0xFF0000U);
  EXPECT_EQ(pixel(all, 5, 150), 0x0000FFU);
}

TEST_F(Pictures, of_the_same_are_the_same_to_the_last_pixel) {
  std::vector<std::uint8_t> first;
  for (int i = 0; i < 2; ++i) {
    auto stage = picture();
    for (int frame = 0; frame < 3; ++frame) stage->frame_of(true, 1, words);
    if (i == 0) first = stage->pixels().rgb;
    if (i == 1) {
      EXPECT_EQ(first, stage->pixels().rgb);
    }
  }
}

TEST_F(Pictures, follow_theme_scale_and_size) {
  auto stage = picture();
  stage->frame_of(false, 1, words);
  const Pixels light = stage->pixels();
  const float height = ImGui::GetFontSize();
  stage->frame_of(true, 2, words);
  EXPECT_NE(light.rgb, stage->pixels().rgb);
  EXPECT_NEAR(ImGui::GetFontSize(), 2 * height, 1);
  stage->resize(500, 333, 1);
  stage->frame_of(true, 1, words);
  EXPECT_EQ(stage->pixels().width, 500);
  EXPECT_EQ(stage->pixels().height, 333);
}

TEST_F(Pictures, two_at_once_do_not_mix) {
  auto one = picture(100, 100);
  auto other = picture(200, 150);
  one->frame_of(false, 1, [] { ImGui::GetForegroundDrawList()->AddRectFilled({0, 0}, {100, 100}, IM_COL32(255, 0, 0, 255)); });
  other->frame_of(true, 1, [] { ImGui::GetForegroundDrawList()->AddRectFilled({0, 0}, {200, 150}, IM_COL32(0, 255, 0, 255)); });
  EXPECT_EQ(pixel(one->pixels(), 50, 50), 0xFF0000U);
  EXPECT_EQ(pixel(other->pixels(), 50, 50), 0x00FF00U);
}

TEST_F(Pictures, are_written_as_png_whole_or_not_at_all) {
  Pixels small;
  small.width = 2;
  small.height = 1;
  small.rgb = {1, 2, 3, 4, 5, 6};
  const fs::path path = fs::temp_directory_path() / (std::to_string(::getpid()) + "-shardbook-picture-test.png");
  ASSERT_TRUE(write_png(small, path.string()).ok());
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(bytes.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_FALSE(fs::exists(path.string() + ".tmp"));
  fs::remove(path);

  const base::Status nowhere = write_png(small, "/nowhere/at/all/x.png");
  ASSERT_FALSE(nowhere.ok());
  EXPECT_NE(nowhere.error().find("/nowhere/at/all/x.png"), std::string::npos) << nowhere.error();
  EXPECT_NE(nowhere.error().find("No such file"), std::string::npos) << nowhere.error();
}

TEST_F(Pictures, over_a_folder_are_refused_and_leave_nothing) {
  Pixels small;
  small.width = small.height = 1;
  small.rgb = {0, 0, 0};
  const fs::path folder = fs::temp_directory_path() / (std::to_string(::getpid()) + "-shardbook-picture-folder");
  fs::create_directories(folder / "inside");
  EXPECT_FALSE(write_png(small, folder.string()).ok());
  EXPECT_FALSE(fs::exists(folder.string() + ".tmp"));
  fs::remove_all(folder);
}

TEST(Window, without_a_display_says_what_to_do_instead) {
  unsetenv("DISPLAY");
  unsetenv("WAYLAND_DISPLAY");
  DeskOptions options;
  options.remember = false;
  Desk desk(options);
  const base::Status status = run_window(desk);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().find("no display"), std::string::npos) << status.error();
  EXPECT_NE(status.error().find("--screenshot"), std::string::npos);
}

}  // namespace
}  // namespace shardbook::app
