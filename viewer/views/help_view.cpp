#include <cstring>

#include "viewer/ui/fonts.hpp"
#include "viewer/ui/keys.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/views/views.hpp"

namespace shardbook::views {

using ui::px;
using ui::theme;

namespace {

void draw_group(const char* group) {
  ui::heading(group);
  for (const ui::Command& command : ui::commands()) {
    if (std::strcmp(command.group, group) != 0) continue;
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::PushFont(ui::font(page::FontKind::mono));
    ImGui::PushStyleColor(ImGuiCol_Text, theme().accent);
    ImGui::TextUnformatted(*command.keys ? command.keys : "palette");
    ImGui::PopStyleColor();
    ImGui::PopFont();
    ImGui::SetCursorScreenPos({at.x + px(150), at.y});
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted(command.what);
    ImGui::PopTextWrapPos();
    ui::note_words(std::string(command.keys) + " " + command.what);
  }
  ImGui::Spacing();
}

// What each look means, in words.
void draw_legend() {
  ui::heading("How to read the picture");
  ui::paragraph("A row is a stream of a rank. Plain blocks compute, hatched ones communicate; the pale first part of a collective waits for its slowest rank. "
                "Where blocks would be too small, a column is as high as the share of its time that was busy.");
  ui::paragraph("Exposed: communication that no compute covers (cross-hatched row). Blocking: exposed, and the step waited for it. Idle: nothing runs. "
                "The straggler is the rank that waits least: the others wait for it.");
  ui::paragraph("Wheel zooms, right-drag moves, drag measures an area, a click selects, two show it in full width.");
}

}  // namespace

Intents draw_help(ImVec2 size) {
  Intents intents;
  const ImVec2 box{std::min(size.x - px(60), px(1120)), std::min(size.y - px(60), px(760))};
  ImGui::SetCursorPos({(size.x - box.x) / 2, (size.y - box.y) / 2});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, theme().raised);
  ui::begin_pane("help", box, true);
  if (ui::small_button("Close", "Esc")) intents.push_back({"up", ""});
  ImGui::SameLine(0, px(12));
  ui::dim_line("Every action is here, and in the palette (Ctrl+Shift+P).");
  const float column = (ImGui::GetContentRegionAvail().x - px(24)) / 2;
  ImGui::PushStyleColor(ImGuiCol_ChildBg, IM_COL32_BLACK_TRANS);
  ImGui::BeginChild("left", {column, 0});
  draw_legend();
  draw_group("Move");
  draw_group("Show");
  ImGui::EndChild();
  ImGui::SameLine(0, px(24));
  ImGui::BeginChild("right", {column, 0});
  draw_group("Select");
  draw_group("Text");
  draw_group("Window");
  ImGui::EndChild();
  ImGui::PopStyleColor();
  ui::end_pane();
  ImGui::PopStyleColor();
  return intents;
}

}  // namespace shardbook::views
