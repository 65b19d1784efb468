#include <cmath>

#include "viewer/lanes/parts.hpp"
#include "viewer/ui/fonts.hpp"
#include "viewer/ui/theme.hpp"

namespace shardbook::lanes {

using ui::px;
using ui::theme;

void draw_minimap(ImDrawList* list, const scene::Scene& scene, PlotState& state, const Frame& frame) {
  list->AddRectFilled(frame.from, frame.to, theme().panel);
  const auto columns = static_cast<int>(std::max(1.0f, frame.width()));
  // The same in every frame: the run does not change.
  std::vector<float>& exposed = state.exposed_columns;
  if (exposed.size() != static_cast<std::size_t>(columns)) exposed = scene.minimap(columns);
  const ImU32 colour = theme().paint[static_cast<std::size_t>(scene::Paint::exposed)];
  for (int column = 0; column < columns;) {
    // Runs of equal columns are one rectangle.
    int end = column + 1;
    while (end < columns && std::abs(exposed[static_cast<std::size_t>(end)] - exposed[static_cast<std::size_t>(column)]) < 0.01f) ++end;
    const float share = exposed[static_cast<std::size_t>(column)];
    if (share > 0) {
      const float top = frame.to.y - std::max(1.0f, share * (frame.height() - 1));
      list->AddRectFilled({frame.from.x + static_cast<float>(column), top}, {frame.from.x + static_cast<float>(end), frame.to.y}, colour);
    }
    column = end;
  }

  // The window of the view, and the press that moves it.
  const metrics::Window whole = scene.whole();
  const auto length = std::max<double>(static_cast<double>(whole.length()), 1);
  const auto x_of = [&](double time) {
    return frame.from.x + std::clamp(static_cast<float>((time - static_cast<double>(whole.start)) / length), 0.0f, 1.0f) * frame.width();
  };
  const float x0 = x_of(state.view.start), x1 = std::max(x_of(state.view.end), x0 + px(3));
  const ImU32 shade = (theme().ground & ~IM_COL32_A_MASK) | IM_COL32(0, 0, 0, 150);
  list->AddRectFilled(frame.from, {x0, frame.to.y}, shade);
  list->AddRectFilled({x1, frame.from.y}, frame.to, shade);
  list->AddRect({x0, frame.from.y}, {x1, frame.to.y}, theme().accent);
  list->AddLine({frame.from.x, frame.to.y}, frame.to, theme().border);

  ImGui::SetCursorScreenPos(frame.from);
  ImGui::InvisibleButton("minimap", {frame.width(), frame.height()});
  ui::note_spot("minimap", frame.from, frame.to);
  if (ImGui::IsItemHovered() && !ImGui::IsItemActive()) ui::hint_on_hover("Exposed communication over the whole run. Press to go there.");
  if (ImGui::IsItemActive()) {
    const double time = static_cast<double>(whole.start) + (ImGui::GetIO().MousePos.x - frame.from.x) / frame.width() * length;
    look_at(state.view, time, whole);
  }
}

}  // namespace shardbook::lanes
