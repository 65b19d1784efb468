#include "engine/metrics/exposure.hpp"
#include "viewer/lanes/parts.hpp"
#include "viewer/scene/navigate.hpp"
#include "viewer/scene/roles.hpp"
#include "viewer/ui/theme.hpp"

namespace shardbook::lanes {

using metrics::duration_text;
using scene::RowKind;

namespace {

const char* meaning_of(RowKind kind) {
  switch (kind) {
    case RowKind::rank: return "All streams of the rank: how much of each slice was compute, and exposed communication";
    case RowKind::exposed: return "Communication that no compute of this rank covers";
    case RowKind::idle: return "Nothing runs on this device";
    case RowKind::critical: return "What the step waited for, across all ranks";
    case RowKind::memory: return "Bytes in use, by kind";
    default: return "";
  }
}

}  // namespace

void draw_tooltip(const scene::Scene& scene, const PlotState& state, const scene::Row& row, base::Nanoseconds time) {
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(ImGui::GetFontSize() * 32);
  if (row.kind == RowKind::memory) {
    ImGui::TextUnformatted(meaning_of(row.kind));
    std::size_t kind = 0;
    for (const timeline::Counter* counter : scene.counters_of(row.rank)) {
      const auto after = std::upper_bound(counter->time.begin(), counter->time.end(), time);
      const std::int64_t bytes = after == counter->time.begin() ? 0 : counter->value[static_cast<std::size_t>(after - counter->time.begin() - 1)];
      const ImVec2 at = ImGui::GetCursorScreenPos();
      const float side = ImGui::GetFontSize() * 0.7f;
      ImGui::GetWindowDrawList()->AddRectFilled({at.x, at.y + side * 0.3f}, {at.x + side, at.y + side * 1.3f}, ui::theme().series[kind % ui::theme().series.size()]);
      ImGui::SetCursorScreenPos({at.x + side * 1.7f, at.y});
      ImGui::Text("%s: %.1f MiB", counter->name.c_str(), static_cast<double>(bytes) / (1024.0 * 1024));
      ++kind;
    }
  } else if (state.hovered.valid()) {
    const timeline::Timeline& timeline = scene.timeline();
    const scene::SpanRef span = state.hovered;
    ImGui::TextUnformatted(scene::role_label(timeline, span).c_str());
    std::string line = duration_text(timeline.end(span) - timeline.start(span));
    const timeline::Detail& detail = timeline.detail(span);
    if (detail.phase != 0) line += " · " + std::string(timeline.strings[detail.phase]);
    if (const metrics::Exposure* exposure = scene.exposure_of(span)) {
      line += " · " + std::to_string(static_cast<int>(100 * exposure->exposed_share() + 0.5)) + " % exposed";
    }
    if (const std::string queued = scene::queued_words(scene, span); !queued.empty()) {
      ImGui::TextUnformatted(("queued " + queued).c_str());
      ui::note_words("queued " + queued);
    }
    ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().dim);
    ImGui::TextUnformatted(line.c_str());
    if (detail.source.known()) ImGui::TextUnformatted(timeline::line_text(timeline, detail.source).c_str());
    if (detail.planned.known()) ImGui::TextUnformatted(("planned at " + timeline::line_text(timeline, detail.planned)).c_str());
    ImGui::PopStyleColor();
  } else {
    ImGui::TextUnformatted(row.title.c_str());
    const scene::IdleCauses* causes = row.kind == RowKind::idle ? scene.idle_causes(row.rank) : nullptr;
    const scene::IdlePiece* piece = causes != nullptr ? causes->at(time) : nullptr;
    if (piece != nullptr) {
      const std::string words = duration_text(piece->time.length()) + ": " + scene::words_of(scene, *piece);
      ImGui::TextUnformatted(words.c_str());
      ui::note_words(words);
    } else if (*meaning_of(row.kind)) {
      ImGui::TextUnformatted(meaning_of(row.kind));
    }
    ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().dim);
    ImGui::Text("at %s", duration_text(time - scene.whole().start).c_str());
    ImGui::PopStyleColor();
  }
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

}  // namespace shardbook::lanes
