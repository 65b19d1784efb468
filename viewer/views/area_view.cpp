#include "viewer/ui/theme.hpp"
#include "viewer/views/figures.hpp"
#include "viewer/views/views.hpp"

namespace shardbook::views {

using metrics::duration_text;
using ui::px;

namespace {

constexpr std::size_t most_labels = 300;

void make(AreaState& state, scene::AreaFigures figures) {
  state.figures = std::move(figures);
  state.ranks.clear();
  state.labels.clear();
  const base::Nanoseconds window = state.figures.window.length();
  for (const metrics::RankRow& row : state.figures.ranks) {
    const metrics::Partition& part = row.partition;
    state.ranks.push_back({std::to_string(row.rank), exact_share_text(part.compute_ns, window), exact_share_text(part.exposed_communication_ns, window),
                           exact_share_text(part.exposed_memory_ns, window), exact_share_text(part.idle_ns, window),
                           part.overlap() ? percent_text(part.overlapped_ns, part.communication_ns) : "no communication"});
  }
  for (const scene::LabelRow& row : state.figures.labels) {
    if (state.labels.size() == most_labels) break;
    state.labels.push_back({row.label, std::to_string(row.count), duration_text(row.inside), duration_text(row.least), duration_text(row.median),
                            duration_text(row.p95), duration_text(row.most)});
  }
}

}  // namespace

Intents draw_area(AreaState& state, const Scene& scene, const PlotState& plot) {
  Intents intents;
  if (!plot.area) {
    ui::paragraph("No area is selected. Drag over the timeline, or press R for the selection's own time.");
    return intents;
  }
  if (state.of != plot.area) {
    state.of = plot.area;
    state.selected = -1;
    make(state, scene::area_figures(scene, lanes::rows_of_area(plot.rows, *plot.area), plot.area->window));
  }
  const scene::AreaFigures& figures = state.figures;
  const base::Nanoseconds window = figures.window.length();
  ui::heading(duration_text(window) + " from " + duration_text(figures.window.start - scene.whole().start));
  ui::dim_line(provenance_text(scene) + " · the four parts sum to the window, to the nanosecond");
  if (ui::small_button("Zoom", "Show this time in full width (Z)")) intents.push_back({"view.zoom_area", ""});
  ImGui::SameLine(0, px(6));
  if (ui::small_button("Keep", "Keep it as a range (Shift+M)")) intents.push_back({"range.keep", ""});
  ImGui::SameLine(0, px(6));
  if (ui::small_button("Clear", "Esc")) intents.push_back({"area.clear", ""});

  const float line = px(24);
  ui::table("area ranks", {{"rank", true, px(40)}, {"compute", true}, {"exposed communication", true}, {"exposed memory", true}, {"idle", true}, {"overlap", true, px(110)}},
            state.ranks, -1, std::min(line * static_cast<float>(state.ranks.size() + 1), px(220)));

  const int clicked = ui::table("area labels", {{"what ran"}, {"count", true, px(60)}, {"time inside", true, px(90)}, {"least", true, px(76)},
                                                {"median", true, px(76)}, {"p95", true, px(76)}, {"most", true, px(76)}},
                                state.labels, state.selected, ImGui::GetContentRegionAvail().y);
  if (clicked >= 0) {
    state.selected = clicked;
    intents.push_back({"find", figures.labels[static_cast<std::size_t>(clicked)].label});
  }
  return intents;
}

}  // namespace shardbook::views
