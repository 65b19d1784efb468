#include "viewer/ui/theme.hpp"
#include "viewer/views/views.hpp"

namespace shardbook::views {

using metrics::duration_text;
using ui::px;

Intents draw_marks(MarksState& state, const Scene& scene, const PlotState& plot) {
  Intents intents;
  if (state.writing) {
    ui::paragraph("A remark at the selection; Enter keeps it, Esc leaves it.");
    if (ui::text_field("Remark", &state.draft, std::min(px(420), ImGui::GetContentRegionAvail().x), state.take_focus) && !state.draft.empty()) {
      intents.push_back({"annotation.keep", state.draft});
    }
    state.take_focus = false;
  } else if (ui::small_button("Write a remark", "At the selection (Shift+A)")) {
    intents.push_back({"annotate", ""});
  }
  const base::Nanoseconds zero = scene.whole().start;
  int place = 0;
  ui::heading("Ranges");
  if (plot.ranges.empty()) ui::dim_line("None. Select an area and press Shift+M.");
  for (const scene::Range& range : plot.ranges) {
    ImGui::PushID(place);
    if (ui::row(range.note.empty() ? "range " + std::to_string(place + 1) : range.note, place == state.selected,
                duration_text(range.window.length()) + " from " + duration_text(range.window.start - zero))) {
      intents.push_back({"mark.show", std::to_string(place)});
    }
    ImGui::PopID();
    ++place;
  }
  ui::heading("Remarks");
  if (plot.annotations.empty()) ui::dim_line("None. Select a span and press Shift+A.");
  for (const scene::Annotation& annotation : plot.annotations) {
    ImGui::PushID(place);
    if (ui::row(annotation.text, place == state.selected, annotation.row + " at " + duration_text(annotation.time - zero))) {
      intents.push_back({"mark.show", std::to_string(place)});
    }
    ImGui::PopID();
    ++place;
  }
  ui::dim_line("Delete removes the one that is chosen. All are kept in notes.json beside the run.");
  return intents;
}

}  // namespace shardbook::views
