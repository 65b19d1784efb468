// app/look: see look.hpp.
#include "viewer/app/look.hpp"

#include <iostream>
#include <utility>

#include "viewer/ui/fonts.hpp"
#include "viewer/ui/keys.hpp"
#include "viewer/ui/theme.hpp"

namespace shardbook::app {

bool Look::follow(bool dark, float scale) {
  const bool other_scale = first_ || scale != scale_;
  if (!other_scale && dark == dark_) return false;
  first_ = false;
  dark_ = dark;
  scale_ = scale;
  ui::set_theme(dark, scale);
  if (!other_scale) return false;
  const base::Status status = ui::build_fonts(ui::scale());
  if (!status && !std::exchange(said_, true)) std::cerr << "shardbook-viewer: " << status.error() << "\n";
  return true;
}

void prepare_imgui() {
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.LogFilename = nullptr;
  io.ConfigInputTextCursorBlink = false;
  io.ConfigWindowsMoveFromTitleBarOnly = true;
  constexpr std::pair<ImGuiKey_, const char*> keys[] = {
      {ImGuiKey_Tab, "Tab"}, {ImGuiKey_LeftArrow, "Left"}, {ImGuiKey_RightArrow, "Right"}, {ImGuiKey_UpArrow, "Up"},
      {ImGuiKey_DownArrow, "Down"}, {ImGuiKey_PageUp, "PageUp"}, {ImGuiKey_PageDown, "PageDown"}, {ImGuiKey_Home, "Home"},
      {ImGuiKey_End, "End"}, {ImGuiKey_Insert, "Insert"}, {ImGuiKey_Delete, "Delete"}, {ImGuiKey_Backspace, "Backspace"},
      {ImGuiKey_Space, "Space"}, {ImGuiKey_Enter, "Enter"}, {ImGuiKey_Escape, "Escape"}, {ImGuiKey_A, "A"}, {ImGuiKey_C, "C"},
      {ImGuiKey_V, "V"}, {ImGuiKey_X, "X"}, {ImGuiKey_Y, "Y"}, {ImGuiKey_Z, "Z"}};
  for (const auto& [key, name] : keys) io.KeyMap[key] = ui::key_code(name);
}

}  // namespace shardbook::app
