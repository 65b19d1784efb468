// app/look: see look.hpp.
#include "viewer/app/look.hpp"

#include <iostream>
#include <utility>

#include "viewer/ui/fonts.hpp"
#include "viewer/ui/imgui_version.hpp"
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
  ui::prepare_keys();
}

}  // namespace shardbook::app
