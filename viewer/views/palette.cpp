#include <algorithm>
#include <cctype>
#include <sstream>

#include "viewer/ui/imgui_version.hpp"
#include "viewer/ui/keys.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/views/views.hpp"

namespace shardbook::views {

using ui::px;
using ui::theme;

namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Every word of the query stands somewhere in the choice.
bool fits(const Palette::Choice& choice, const std::string& query) {
  std::istringstream words(lower(query));
  const std::string text = lower(choice.words);
  for (std::string word; words >> word;) {
    if (text.find(word) == std::string::npos) return false;
  }
  return true;
}

bool pressed(const char* key) { return ui::is_key_pressed(ui::key_code(key)); }

}  // namespace

Intents draw_palette(Palette& palette, ImVec2 size) {
  Intents intents;
  const ImVec2 box{std::min(size.x - px(40), px(560)), std::min(size.y - px(80), px(440))};
  ImGui::SetCursorPos({(size.x - box.x) / 2, px(60)});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, theme().raised);
  ui::begin_pane("palette", box, true, palette.title);
  const std::string before = palette.query;
  const bool entered = ui::text_field(palette.title, &palette.query, ImGui::GetContentRegionAvail().x, palette.take_focus);
  palette.take_focus = false;
  if (palette.query != before) palette.selected = 0;

  std::vector<const Palette::Choice*> shown;
  for (const Palette::Choice& choice : palette.choices) {
    if (fits(choice, palette.query)) shown.push_back(&choice);
  }
  if (pressed("Down")) ++palette.selected;
  if (pressed("Up")) --palette.selected;
  palette.selected = std::clamp(palette.selected, 0, std::max(0, static_cast<int>(shown.size()) - 1));
  if (entered && !shown.empty()) intents.push_back(shown[static_cast<std::size_t>(palette.selected)]->intent);

  ImGui::BeginChild("choices");
  for (std::size_t i = 0; i < shown.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    const bool selected = static_cast<int>(i) == palette.selected;
    if (ui::row(shown[i]->words, selected, shown[i]->keys)) intents.push_back(shown[i]->intent);
    if (selected && palette.query != before) ImGui::SetScrollHereY();
    ImGui::PopID();
  }
  if (shown.empty()) ui::dim_line("Nothing is called so.");
  ImGui::EndChild();
  ui::end_pane();
  ImGui::PopStyleColor();
  if (!intents.empty()) palette.open = false;
  return intents;
}

}  // namespace shardbook::views
