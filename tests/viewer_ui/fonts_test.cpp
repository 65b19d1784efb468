// Are the letters there that the texts of this project need?
#include "viewer/ui/fonts.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "tests/viewer_ui/screen.hpp"

namespace shardbook::ui {
namespace {

namespace fs = std::filesystem;
using page::FontKind;

// Code points of a text -> where each first stands.
void collect(const fs::path& path, std::map<unsigned, std::string>& found) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  for (std::size_t at = 0; at < text.size();) {
    const unsigned char lead = static_cast<unsigned char>(text[at]);
    const int length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    unsigned code = length == 1 ? lead : lead & (0x7F >> length);
    for (int i = 1; i < length && at + i < text.size(); ++i) code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3F);
    if (code >= 0x20) found.emplace(code, path.string());
    at += length;
  }
}

TEST(Fonts, every_character_of_notes_labs_and_sources_has_a_letter_in_every_font) {
  Screen screen;
  ASSERT_TRUE(screen.has_fonts());
  std::map<unsigned, std::string> found;
  int files = 0;
  for (const char* folder : {"notes", "labs", "engine", "viewer"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(SHARDBOOK_SOURCE_DIR) / folder, fs::directory_options::follow_directory_symlink)) {
      const std::string kind = entry.path().extension().string();
      if (kind != ".md" && kind != ".cpp" && kind != ".hpp" && kind != ".cu" && kind != ".cuh") continue;
      collect(entry.path(), found);
      ++files;
    }
  }
  ASSERT_GT(files, 20);
  for (const auto& [code, where] : found) {
    EXPECT_TRUE(has_glyph(code)) << "U+" << std::hex << code << " in " << where;
  }
}

TEST(Fonts, a_sign_without_a_letter_is_a_box_as_wide_as_it_is_measured) {
  Screen screen;
  EXPECT_FALSE(has_glyph(0x4E00));   // a Chinese one
  EXPECT_FALSE(has_glyph(0x1F600));  // beyond 16 bits
  EXPECT_EQ(measure().width("\u4e00", FontKind::body), measure().width("\u25a1", FontKind::body));
  EXPECT_EQ(measure().width("\U0001F600", FontKind::body), measure().width("\u25a1", FontKind::body));
}

TEST(Fonts, widths_are_those_that_imgui_draws) {
  Screen screen;
  for (FontKind kind : {FontKind::body, FontKind::bold, FontKind::mono, FontKind::heading1, FontKind::small}) {
    for (const std::string text : {"Comunicación expuesta: 62 %", "α + n/β ≤ ⊕", "", "a\tb"}) {
      ImFont* face = font(kind);
      const float drawn = face->CalcTextSizeA(face->FontSize, 1e9F, 0, text.c_str()).x;
      EXPECT_NEAR(measure().width(text, kind), drawn, 0.01) << text;
    }
  }
}

TEST(Fonts, letters_of_mono_are_all_as_wide) {
  Screen screen;
  const float one = measure().width("i", FontKind::mono);
  for (const char* text : {"m", "é", "─", "→", "0"}) EXPECT_NEAR(measure().width(text, FontKind::mono), one, 1e-3) << text;
}

TEST(Fonts, sizes_follow_the_scale) {
  Screen small(800, 600, 1);
  const float at_one = measure().line_height(FontKind::heading1);
  ASSERT_TRUE(build_fonts(2).ok());
  EXPECT_NEAR(measure().line_height(FontKind::heading1), 2 * at_one, 2);
}

TEST(Fonts, where_the_files_are_missing_a_sentence_says_so_and_letters_are_there_all_the_same) {
  Screen screen;
  const base::Status status = build_fonts(1, "/nowhere/fonts");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().find("/nowhere/fonts/DejaVuSans.ttf"), std::string::npos) << status.error();
  EXPECT_NE(status.error().find("fonts-dejavu-core"), std::string::npos);
  ASSERT_NE(font(FontKind::heading1), nullptr);
  EXPECT_GT(measure().width("words", FontKind::body), 0);
  EXPECT_TRUE(has_glyph(0x2026)) << "what is cut off does not end in a question mark";
  EXPECT_EQ(font_problem(), status.error()) << "whoever draws can say it, too";
  ASSERT_TRUE(build_fonts(1).ok());
  EXPECT_EQ(font_problem(), "");
}

TEST(Fonts, a_file_that_is_no_font_is_refused_too) {
  Screen screen;
  const fs::path folder = fs::temp_directory_path() / (std::to_string(::getpid()) + "-shardbook-no-fonts");
  fs::create_directories(folder);
  for (const char* name : {"DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSansMono.ttf"}) std::ofstream(folder / name) << "no font at all";
  EXPECT_FALSE(build_fonts(1, folder.string()).ok());
  fs::remove_all(folder);
}

TEST(Fonts, italics_lean_and_upright_letters_do_not) {
  Screen screen;
  const auto lean = [&](FontKind kind) {
    float difference = -1;
    screen.frame([&] {
      ImDrawList* list = ImGui::GetWindowDrawList();
      const int before = list->VtxBuffer.Size;
      draw_text(list, kind, {50, 50}, IM_COL32_WHITE, "l");
      difference = list->VtxBuffer[before].pos.x - list->VtxBuffer[before + 3].pos.x;   // upper left, lower left
    });
    return difference;
  };
  EXPECT_GT(lean(FontKind::italic), 1.5F);
  EXPECT_EQ(lean(FontKind::body), 0);
}

}  // namespace
}  // namespace shardbook::ui
