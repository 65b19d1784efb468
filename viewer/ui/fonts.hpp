// ui/fonts: which letters are there, and how wide are they?
//
// DejaVu Sans and Sans Mono, copied beside the program, so that a picture is the same everywhere. One
// atlas holds body, bold, italic, bold italic, mono, three headings and small, with Latin, arrows,
// mathematical signs and box drawing. A sign that no font has is drawn as a box and can be asked for.
#pragma once

#include <imgui.h>

#include <string>

#include "engine/base/result.hpp"
#include "viewer/page/flow.hpp"

namespace shardbook::ui {

// Builds the atlas of the current ImGui context for this scale. Errors: a font file is missing (its
// path, the package that has it); ImGui's own font is then used, so that the sentence can be read.
base::Status build_fonts(float scale);
ImFont* font(page::FontKind kind);
bool has_glyph(unsigned code_point);

// Measures for page/ layouts; valid until the next build_fonts.
const page::Measure& measure();

}  // namespace shardbook::ui
