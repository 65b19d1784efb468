#include "viewer/ui/theme.hpp"
#include "viewer/views/views.hpp"

namespace shardbook::views {

using ui::px;

Intents draw_source(SourceState& state) {
  Intents intents;
  if (state.path.empty()) {
    ui::paragraph("Select a span and press G: the line of the engine that launched it stands here.");
    return intents;
  }
  ui::heading(state.path + (state.line > 0 ? ":" + std::to_string(state.line) : ""));
  if (!state.standing.empty()) ui::paragraph(state.standing, state.changed ? ui::theme().warning : ui::theme().dim);
  if (!state.span.empty()) ui::paragraph("In the book: " + state.span_title + " (" + state.span + ")");
  for (std::size_t i = 0; i < state.notes.size(); ++i) {
    if (i > 0) ImGui::SameLine(0, px(14));
    ImGui::PushID(static_cast<int>(i));
    if (ui::link(state.notes[i].title, "A note that speaks of this")) intents.push_back({"follow", state.notes[i].link});
    ImGui::PopID();
  }
  ui::draw_code(state.code, ImGui::GetContentRegionAvail());
  return intents;
}

}  // namespace shardbook::views
