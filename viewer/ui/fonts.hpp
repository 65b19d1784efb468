// ui/fonts: which letters are there, and how wide are they?
//
// DejaVu Sans and Sans Mono, copied beside the program, so that a picture is the same everywhere. One
// atlas holds body, bold, mono, three headings and small, with Latin, Greek, arrows, mathematical signs
// and box drawing. Italics are body and bold leaning: DejaVu's own oblique is that, and is packaged apart.
// What mono lacks comes from Sans. A sign that no font has is drawn as a box and can be asked for.
#pragma once

#include <imgui.h>

#include <string>
#include <string_view>

#include "engine/base/result.hpp"
#include "viewer/page/measure.hpp"

namespace shardbook::ui {

// Builds the atlas of the current ImGui context for this scale, between frames; the stage then makes its texture
// anew. `folder`: of the font files; "": beside the program, else of the build. Errors: a font file is missing (its
// path, the package that has it); ImGui's own font is then used, so that the sentence can be read.
base::Status build_fonts(float scale, const std::string& folder = "");
// The sentence of the last build_fonts that had to do without the files; "" where it had them.
const std::string& font_problem();
// A null pointer before build_fonts. Italics are the upright fonts: draw_text leans them.
ImFont* font(page::FontKind kind);
// In every font of the atlas.
bool has_glyph(unsigned code_point);

// One line of text, `at` being its upper left corner; leaning where `kind` is italic. Returns its width.
float draw_text(ImDrawList* list, page::FontKind kind, ImVec2 at, ImU32 colour, std::string_view utf8);

// Measures for page/ layouts; valid until the next build_fonts.
const page::Measure& measure();

}  // namespace shardbook::ui
