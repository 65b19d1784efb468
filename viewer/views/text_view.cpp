#include "viewer/ui/theme.hpp"
#include "viewer/views/views.hpp"

namespace shardbook::views {

using ui::px;

Intents draw_text(TextState& state) {
  Intents intents;
  if (ui::small_button("←", "Back (Alt+Left)")) intents.push_back({"text.back", ""});
  ImGui::SameLine(0, px(4));
  if (ui::small_button("→", "Forward (Alt+Right)")) intents.push_back({"text.forward", ""});
  ImGui::SameLine(0, px(4));
  if (ui::small_button("Contents", "Runs, labs and notes (Ctrl+O)")) intents.push_back({"library", ""});
  if (state.searching) {
    ImGui::SameLine(0, px(10));
    if (ui::text_field("Find on the page", &state.query, px(160), state.take_focus)) state.page.next_found(ImGui::GetIO().KeyShift ? -1 : 1);
    state.take_focus = false;
    state.page.find(state.query);
    ImGui::SameLine(0, px(8));
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(3));
    ui::dim_line(state.query.empty() ? "" : std::to_string(state.page.found()) + " found");
  } else {
    // Small words, as those in the buttons, and on their line.
    ImGui::SameLine(0, px(10));
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(3));
    ui::dim_line(state.title);
  }
  ImGui::BeginChild("page", {0, 0}, false, ImGuiWindowFlags_HorizontalScrollbar);
  const std::string target = state.page.draw();
  ImGui::EndChild();
  if (!target.empty()) intents.push_back({"follow", target});
  return intents;
}

}  // namespace shardbook::views
