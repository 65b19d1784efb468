// ui/theme: which colour stands for what?
//
// Colours by role, in a light and a dark set; nothing outside this room names a colour. Text meets AA
// contrast (4.5:1) on the ground it stands on, large marks 3:1; a test computes it. The paints of the
// timeline differ in lightness as well as hue (Okabe and Ito's set as the start), and in shape: see
// lanes/, communication is hatched, idle is outlined.
#pragma once

#include <imgui.h>

#include <array>

#include "viewer/scene/items.hpp"

namespace shardbook::ui {

struct Theme {
  bool dark = false;
  ImU32 ground, panel, raised;               // window, pane, popup and header
  ImU32 text, dim, faint;                    // faint is for lines, never for words
  ImU32 accent, accent_text;                 // buttons; the words on them
  ImU32 link, selection, hover, border;
  ImU32 good, warning, bad;                  // words of state; each stands on ground and panel
  ImU32 code_ground;
  std::array<ImU32, 7> code;                 // by page::TokenKind
  std::array<ImU32, scene::paint_count> paint;        // fill
  std::array<ImU32, scene::paint_count> paint_text;   // words on the fill
  std::array<ImU32, 8> series;               // memory kinds, diagram classes
};

// The current one; set_theme also sets ImGui's style, scaled.
const Theme& theme();
void set_theme(bool dark, float scale);
float scale();
// Pixels of `units` at the current scale.
inline float px(float units) { return units * scale(); }

// WCAG 2.1 relative contrast, 1 to 21.
double contrast(ImU32 a, ImU32 b);

}  // namespace shardbook::ui
