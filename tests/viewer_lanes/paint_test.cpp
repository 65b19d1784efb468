// Can words be read on every fill?
#include "viewer/lanes/paint.hpp"

#include <gtest/gtest.h>

#include "tests/viewer_ui/screen.hpp"

namespace shardbook::lanes {
namespace {

using scene::Paint;

TEST(Plates, lie_under_words_where_a_pattern_would_cross_them_and_nowhere_else) {
  ui::Screen screen(800, 600);
  screen.frame([&] {
    ImDrawList* list = ImGui::GetForegroundDrawList();
    const auto vertices_of = [&](Paint paint) {
      scene::Item item;
      item.paint = paint;
      item.x0 = 0;
      item.x1 = 200;
      Hatch hatch(6);
      const int before = list->VtxBuffer.Size;
      draw_item(list, item, {0, 0, 20}, hatch);
      return list->VtxBuffer.Size - before;
    };
    const int plain = vertices_of(Paint::compute);
    for (const Paint paint : {Paint::compute, Paint::sync, Paint::host, Paint::annotation, Paint::critical}) {
      EXPECT_EQ(vertices_of(paint), plain) << static_cast<int>(paint);
      EXPECT_EQ(plate_of(paint), 0U) << static_cast<int>(paint);
    }
    for (const Paint paint : {Paint::communication, Paint::exposed, Paint::memory}) {
      EXPECT_GT(vertices_of(paint), plain) << static_cast<int>(paint);
      EXPECT_EQ(plate_of(paint), ui::theme().paint[static_cast<std::size_t>(paint)]) << static_cast<int>(paint);
    }
  });
}

}  // namespace
}  // namespace shardbook::lanes
