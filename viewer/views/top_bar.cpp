#include <algorithm>
#include <cmath>

#include "viewer/ui/theme.hpp"
#include "viewer/views/views.hpp"

namespace shardbook::views {

using ui::px;
using ui::theme;

Intents draw_top_bar(const TopBar& state) {
  Intents intents;
  ui::begin_pane("top", {0, px(36)}, false, "", false);
  // All stand on one line, whatever their own height is.
  const auto level = [](float height_units) { ImGui::SetCursorPosY(px((36 - height_units) / 2) - 1); };
  ImGui::SetCursorPosX(px(12));
  level(16);
  ImGui::PushStyleColor(ImGuiCol_Text, theme().accent);
  ImGui::TextUnformatted("Shardbook");
  ImGui::PopStyleColor();
  ImGui::SameLine(0, px(14));
  level(28);
  if (ui::tab("Open", false)) intents.push_back({"library", ""});

  // A tab a run; what does not fit is reached by the library.
  const float right = ImGui::GetWindowWidth() - px(346);
  for (std::size_t i = 0; i < state.runs.size(); ++i) {
    ImGui::SameLine(0, px(6));
    if (ImGui::GetCursorPosX() + ImGui::CalcTextSize(state.runs[i].c_str()).x + px(40) > right) {
      ImGui::TextUnformatted("…");
      break;
    }
    ImGui::PushID(static_cast<int>(i));
    level(28);
    if (ui::tab(state.runs[i], static_cast<int>(i) == state.current)) intents.push_back({"run.show", std::to_string(i)});
    if (static_cast<int>(i) == state.current && state.runs.size() > 1) {
      ImGui::SameLine(0, px(2));
      level(28);
      if (ui::tab("×", false)) intents.push_back({"run.close", std::to_string(i)});
    }
    ImGui::PopID();
  }
  if (state.loading >= 0) {
    ImGui::SameLine(0, px(12));
    level(16);
    const std::string words = state.stage + " " + std::to_string(static_cast<int>(std::lround(100 * state.loading))) + " %";
    ImGui::TextUnformatted(words.c_str());
    ui::note_words(words);
  }

  ImGui::SameLine(std::max(ImGui::GetCursorPosX(), ImGui::GetWindowWidth() - px(334)));
  for (const auto& [label, layout] : {std::pair{"Read", "read"}, std::pair{"Split", "split"}, std::pair{"Trace", "trace"}}) {
    level(28);
    if (ui::tab(label, state.layout == layout)) intents.push_back({std::string("layout.") + layout, ""});
    ImGui::SameLine(0, px(2));
  }
  ImGui::SetCursorPos({ImGui::GetWindowWidth() - px(150), px(3)});
  if (ui::tab(state.dark ? "Light" : "Dark", false)) intents.push_back({"theme", ""});
  ImGui::SetCursorPos({ImGui::GetWindowWidth() - px(84), px(3)});
  if (ui::tab("Help ?", false)) intents.push_back({"help", ""});
  ui::end_pane();
  return intents;
}

}  // namespace shardbook::views
