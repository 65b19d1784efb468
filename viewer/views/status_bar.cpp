#include <set>

#include "viewer/ui/theme.hpp"
#include "viewer/views/views.hpp"

namespace shardbook::views {

using ui::px;
using ui::theme;

std::string provenance_text(const Scene& scene) {
  // One phrase for ranks of one clock and device; each differing one is named.
  std::map<std::string, int> kinds;
  base::Nanoseconds error = 0;
  for (const timeline::Provenance& rank : scene.timeline().ranks) {
    std::string words = timeline::clock_text(rank);
    if (rank.clock == timeline::Clock::measured && !rank.device.empty() && words.find(rank.device) == std::string::npos) words += " on " + rank.device;
    if (rank.foreign) words += ", a trace of another program";
    ++kinds[words];
    error = std::max(error, rank.clock_error_ns);
  }
  std::string text;
  for (const auto& [words, count] : kinds) text += (text.empty() ? "" : " · ") + words + ", " + std::to_string(count) + (count == 1 ? " rank" : " ranks");
  if (error > 0) text += " · clocks agree to ±" + metrics::duration_text(error);
  return text;
}

Intents draw_status_bar(const StatusBar& state) {
  Intents intents;
  ui::begin_pane("status", {0, px(24)}, false);
  ImGui::SetCursorPos({px(10), px(3)});
  ImGui::PushStyleColor(ImGuiCol_Text, state.modelled ? theme().warning : theme().dim);
  if (!state.provenance.empty()) {
    ImGui::TextUnformatted(state.provenance.c_str());
    ui::note_words(state.provenance);
    ImGui::SameLine(0, px(18));
  }
  ImGui::PopStyleColor();
  std::string words;
  ImU32 colour = theme().dim;
  if (!state.problem.empty()) {
    words = state.problem;
    colour = theme().bad;
  } else if (!state.banners.empty()) {
    words = state.banners.front() + (state.banners.size() > 1 ? " (and " + std::to_string(state.banners.size() - 1) + " more)" : "");
    colour = theme().warning;
  } else {
    words = state.hint;
  }
  ImGui::PushStyleColor(ImGuiCol_Text, colour);
  ui::words_line(words);
  ImGui::PopStyleColor();
  if (ImGui::IsItemHovered() && state.problem.empty()) {
    std::string all;
    for (const std::string& banner : state.banners) all += (all.empty() ? "" : "\n") + banner;
    if (!all.empty()) ui::hint_on_hover(all);
  }
  ui::end_pane();
  return intents;
}

}  // namespace shardbook::views
