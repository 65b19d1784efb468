// ui/theme: the two sets of colours and the style made of them; see theme.hpp.
#include "viewer/ui/theme.hpp"

#include <algorithm>
#include <cmath>

namespace shardbook::ui {

namespace {

using scene::Paint;

constexpr ImU32 rgb(unsigned hex) { return IM_COL32((hex >> 16) & 255, (hex >> 8) & 255, hex & 255, 255); }

// Order of scene::Paint: compute, communication, memory, sync, host, annotation, exposed, idle, wait, critical.
Theme make_light() {
  Theme theme;
  theme.dark = false;
  theme.ground = rgb(0xEDEFF2);
  theme.panel = rgb(0xFFFFFF);
  theme.raised = rgb(0xF5F6F8);
  theme.text = rgb(0x1D2127);
  theme.dim = rgb(0x555E68);
  theme.faint = rgb(0xDDE1E6);
  theme.accent = rgb(0x1F66B0);
  theme.accent_text = rgb(0xFFFFFF);
  theme.link = rgb(0x0F5AA8);
  theme.selection = rgb(0xCFE2FA);
  theme.hover = rgb(0xE6ECF4);
  theme.border = rgb(0xCDD3DA);
  theme.good = rgb(0x176B34);
  theme.warning = rgb(0x855000);
  theme.bad = rgb(0xAB2318);
  theme.code_ground = rgb(0xF4F5F7);
  theme.code = {rgb(0x1D2127), rgb(0x7A318F), rgb(0x0B5694), rgb(0x17603A), rgb(0x8A4200), rgb(0x525D68), rgb(0x8C2A5C)};
  theme.paint = {rgb(0x2271B3), rgb(0xB97D10), rgb(0x18947A), rgb(0x868A92), rgb(0x5B6B8C),
                 rgb(0xA8588C), rgb(0xA62B17), rgb(0xA8B1BC), rgb(0xF0D9A8), rgb(0x1D2127)};
  theme.series = {rgb(0x2271B3), rgb(0xB97D10), rgb(0x18947A), rgb(0xA8588C), rgb(0x8A5F3C), rgb(0x5B6B8C), rgb(0x6F7F1E),
                  rgb(0xA62B17)};
  return theme;
}

Theme make_dark() {
  Theme theme;
  theme.dark = true;
  theme.ground = rgb(0x14171B);
  theme.panel = rgb(0x1B1F25);
  theme.raised = rgb(0x242930);
  theme.text = rgb(0xDEE3E9);
  theme.dim = rgb(0xA3ADB8);
  theme.faint = rgb(0x323942);
  theme.accent = rgb(0x5BA3E8);
  theme.accent_text = rgb(0x0B1420);
  theme.link = rgb(0x7DBBF5);
  theme.selection = rgb(0x243E5C);
  theme.hover = rgb(0x2B323B);
  theme.border = rgb(0x3B434D);
  theme.good = rgb(0x6CCB8A);
  theme.warning = rgb(0xE6B45C);
  theme.bad = rgb(0xFF9085);
  theme.code_ground = rgb(0x16191E);
  theme.code = {rgb(0xDEE3E9), rgb(0xCFA1EE), rgb(0x86C1F2), rgb(0xA3D18D), rgb(0xE8B77C), rgb(0xA0ABB7), rgb(0xE895BD)};
  theme.paint = {rgb(0x4E9BDB), rgb(0xEFC468), rgb(0x2FB08E), rgb(0x7C838D), rgb(0x7F90B5),
                 rgb(0xD08CB8), rgb(0xE2553A), rgb(0x5C6672), rgb(0x6B582F), rgb(0xF2F4F7)};
  theme.series = {rgb(0x4E9BDB), rgb(0xEFC468), rgb(0x2FB08E), rgb(0xD08CB8), rgb(0xC79A6B), rgb(0x8FA0C4), rgb(0xA9BD5A),
                  rgb(0xE2553A)};
  return theme;
}

// Words on a fill are white or nearly black, whichever is read more easily.
Theme with_words(Theme theme) {
  for (std::size_t i = 0; i < theme.paint.size(); ++i) {
    const ImU32 light = rgb(0xFFFFFF), dark = rgb(0x0C1015);
    theme.paint_text[i] = contrast(light, theme.paint[i]) >= contrast(dark, theme.paint[i]) ? light : dark;
  }
  return theme;
}

const Theme& theme_of(bool dark) {
  static const Theme light_theme = with_words(make_light());
  static const Theme dark_theme = with_words(make_dark());
  return dark ? dark_theme : light_theme;
}

struct Current {
  const Theme* theme = &theme_of(false);
  float scale = 1;
};
Current& current() {
  static Current one;
  return one;
}

ImVec4 vec(ImU32 colour, float alpha = 1) {
  ImVec4 value = ImGui::ColorConvertU32ToFloat4(colour);
  value.w *= alpha;
  return value;
}

// ImGui's sizes at scale 1: flat, thin borders, room to breathe.
void set_sizes(ImGuiStyle& style) {
  style.WindowPadding = {12, 10};
  style.FramePadding = {10, 5};
  style.ItemSpacing = {8, 6};
  style.ItemInnerSpacing = {6, 4};
  style.CellPadding = {8, 3};
  style.IndentSpacing = 18;
  style.ScrollbarSize = 11;
  style.GrabMinSize = 24;
  style.WindowRounding = 4;
  style.ChildRounding = 4;
  style.FrameRounding = 4;
  style.PopupRounding = 6;
  style.ScrollbarRounding = 6;
  style.GrabRounding = 4;
  style.TabRounding = 4;
  style.WindowBorderSize = 0;
  style.ChildBorderSize = 1;
  style.PopupBorderSize = 1;
  style.FrameBorderSize = 1;
  style.DisplaySafeAreaPadding = {0, 0};
}

void set_colours(ImGuiStyle& style, const Theme& theme) {
  const auto set = [&](ImGuiCol which, ImU32 colour, float alpha = 1) { style.Colors[which] = vec(colour, alpha); };
  for (ImGuiCol which = 0; which < ImGuiCol_COUNT; ++which) set(which, theme.panel);
  set(ImGuiCol_Text, theme.text);
  set(ImGuiCol_TextDisabled, theme.dim);
  set(ImGuiCol_TextSelectedBg, theme.selection);
  set(ImGuiCol_WindowBg, theme.ground);
  set(ImGuiCol_ChildBg, theme.panel);
  set(ImGuiCol_PopupBg, theme.raised);
  set(ImGuiCol_Border, theme.border);
  set(ImGuiCol_BorderShadow, theme.border, 0);
  set(ImGuiCol_FrameBg, theme.dark ? theme.ground : theme.panel);
  set(ImGuiCol_FrameBgHovered, theme.hover);
  set(ImGuiCol_FrameBgActive, theme.hover);
  set(ImGuiCol_TitleBg, theme.raised);
  set(ImGuiCol_TitleBgActive, theme.raised);
  set(ImGuiCol_TitleBgCollapsed, theme.raised);
  set(ImGuiCol_MenuBarBg, theme.raised);
  set(ImGuiCol_ScrollbarBg, theme.panel, 0);
  set(ImGuiCol_ScrollbarGrab, theme.border);
  set(ImGuiCol_ScrollbarGrabHovered, theme.dim, 0.7F);
  set(ImGuiCol_ScrollbarGrabActive, theme.dim);
  for (ImGuiCol which : {ImGuiCol_CheckMark, ImGuiCol_SliderGrab, ImGuiCol_SliderGrabActive, ImGuiCol_NavHighlight,
                         ImGuiCol_PlotLines, ImGuiCol_PlotHistogram, ImGuiCol_DragDropTarget}) {
    set(which, theme.accent);
  }
  set(ImGuiCol_Button, theme.raised);
  set(ImGuiCol_ButtonHovered, theme.hover);
  set(ImGuiCol_ButtonActive, theme.selection);
  set(ImGuiCol_Header, theme.selection);
  set(ImGuiCol_HeaderHovered, theme.hover);
  set(ImGuiCol_HeaderActive, theme.selection);
  set(ImGuiCol_Separator, theme.faint);
  set(ImGuiCol_SeparatorHovered, theme.accent);
  set(ImGuiCol_SeparatorActive, theme.accent);
  set(ImGuiCol_TableHeaderBg, theme.raised);
  set(ImGuiCol_TableBorderStrong, theme.border);
  set(ImGuiCol_TableBorderLight, theme.faint);
  set(ImGuiCol_TableRowBg, theme.panel, 0);
  set(ImGuiCol_TableRowBgAlt, theme.raised, 0.6F);
  set(ImGuiCol_ModalWindowDimBg, theme.ground, 0.6F);
  set(ImGuiCol_NavWindowingDimBg, theme.ground, 0);
}

}  // namespace

const Theme& theme() { return *current().theme; }

void set_theme(bool dark, float scale) {
  current() = {&theme_of(dark), std::clamp(scale, 0.5F, 4.0F)};
  if (ImGui::GetCurrentContext() == nullptr) return;
  // Scaled from the sizes at scale 1 each time: scaling what is scaled would add up its roundings.
  ImGuiStyle style;
  set_sizes(style);
  style.ScaleAllSizes(current().scale);
  set_colours(style, theme());
  ImGui::GetStyle() = style;
}

float scale() { return current().scale; }

double contrast(ImU32 a, ImU32 b) {
  // Relative luminance of sRGB, as WCAG 2.1 defines it.
  const auto luminance = [](ImU32 colour) {
    const auto linear = [](ImU32 byte) {
      const double value = (byte & 255) / 255.0;
      return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
    };
    return 0.2126 * linear(colour >> IM_COL32_R_SHIFT) + 0.7152 * linear(colour >> IM_COL32_G_SHIFT) +
           0.0722 * linear(colour >> IM_COL32_B_SHIFT);
  };
  const double one = luminance(a), other = luminance(b);
  return (std::max(one, other) + 0.05) / (std::min(one, other) + 0.05);
}

}  // namespace shardbook::ui
