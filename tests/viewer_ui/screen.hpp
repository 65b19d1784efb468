// An ImGui without window or GPU: frames whose draw lists and spots can be looked at.
#pragma once

#include <imgui.h>

#include <functional>
#include <string>

#include "viewer/ui/fonts.hpp"
#include "viewer/ui/imgui_version.hpp"
#include "viewer/ui/keys.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/ui/widgets.hpp"

namespace shardbook::ui {

class Screen {
 public:
  explicit Screen(float width = 800, float height = 600, float scale = 1) {
    context_ = ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.DisplaySize = {width, height};
    io.DeltaTime = 1.0F / 60;
    // As the window does it.
    prepare_keys();
    set_theme(false, scale);
    fonts_ = build_fonts(scale).ok();
  }
  ~Screen() { ImGui::DestroyContext(context_); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  bool has_fonts() const { return fonts_; }

  // A frame with this in one pane over the whole screen.
  void frame(const std::function<void()>& draw) {
    ImGui::NewFrame();
    begin_frame_spots();
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(ImGui::GetIO().DisplaySize);
    ImGui::Begin("root", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoNavFocus);
    begin_pane("pane", ImVec2(0, 0));
    draw();
    end_pane();
    ImGui::End();
    ImGui::Render();
    ImGui::GetIO().InputQueueCharacters.clear();
  }

  void hold(const Chord& chord, bool down) {
    feed_held(down && chord.ctrl, down && chord.shift, down && chord.alt);
    feed_key(chord.key, down);
  }

  const Spot* spot(const std::string& label) const {
    for (const Spot& one : spots()) {
      if (one.label == label) return &one;
    }
    return nullptr;
  }
  // Presses and releases in the middle of what has this label, a frame each.
  bool click(const std::string& label, const std::function<void()>& draw) {
    const Spot* at = spot(label);
    if (at == nullptr) return false;
    ImGuiIO& io = ImGui::GetIO();
    io.MousePos = {(at->from.x + at->to.x) / 2, (at->from.y + at->to.y) / 2};
    frame(draw);
    io.MouseDown[0] = true;
    frame(draw);
    io.MouseDown[0] = false;
    frame(draw);
    return true;
  }

 private:
  ImGuiContext* context_;
  bool fonts_ = false;
};

}  // namespace shardbook::ui
