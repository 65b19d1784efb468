#include <cstring>

#include "viewer/lanes/paint.hpp"
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
    ImGui::SetCursorScreenPos({at.x + px(126), at.y});
    ImGui::PushTextWrapPos(0);
    ImGui::TextUnformatted(command.what);
    ImGui::PopTextWrapPos();
    ui::note_words(std::string(command.keys) + " " + command.what);
  }
  ImGui::Spacing();
}

// All of it has room in a window of 1280 by 720.
void small_paragraph(const char* words) {
  ImGui::PushFont(ui::font(page::FontKind::small));
  ImGui::PushTextWrapPos(0);
  ImGui::TextUnformatted(words);
  ImGui::PopTextWrapPos();
  ImGui::PopFont();
  ui::note_words(words);
  ImGui::Dummy({0, px(3)});
}

// What each look means: a sample, and words.
void draw_legend() {
  ui::heading("How to read the picture");
  const std::pair<scene::Paint, const char*> samples[] = {{scene::Paint::compute, "compute"}, {scene::Paint::communication, "communication"},
                                                          {scene::Paint::wait, "waiting for a rank"}, {scene::Paint::exposed, "exposed"},
                                                          {scene::Paint::memory, "copies"}, {scene::Paint::idle, "idle"},
                                                          {scene::Paint::critical, "critical path"}};
  constexpr const char* queued = "queued for room";
  lanes::Hatch hatch(px(6));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float line = px(20), column = ImGui::GetContentRegionAvail().x * 0.47f;
  for (std::size_t i = 0; i < std::size(samples); ++i) {
    const float x = at.x + (i % 2 ? column : 0), y = at.y + static_cast<float>(i / 2) * line;
    scene::Item item;
    item.paint = samples[i].first;
    item.x1 = px(44);
    lanes::draw_item(ImGui::GetWindowDrawList(), item, {x, y + px(2), y + px(16)}, hatch);
    ImGui::SetCursorScreenPos({x + px(52), y});
    ImGui::TextUnformatted(samples[i].second);
  }
  const float x = at.x + column, y = at.y + static_cast<float>(std::size(samples) / 2) * line;
  lanes::draw_queued(ImGui::GetWindowDrawList(), x, x + px(44), {x, y + px(2), y + px(16)}, hatch);
  ImGui::SetCursorScreenPos({x + px(52), y});
  ImGui::TextUnformatted(queued);
  ui::note_words(queued);
  ImGui::SetCursorScreenPos({at.x, at.y + static_cast<float>((std::size(samples) + 1) / 2) * line + px(4)});
  small_paragraph("A rank's row is all its streams in one: compute, and what is exposed in red. A row below is a stream. Plain blocks compute, "
                "hatched ones communicate; the pale first part of a collective waits for its slowest rank, and a thin lead stands before a device that a matmul fills. Where blocks would be too small, a column is as high as the share of its time that was busy.");
  small_paragraph("Exposed: communication that no compute of its rank covers. Blocking: exposed, and its transfer lies on the critical path, the chain of work that "
                "decided how long the step is; time spent waiting for a late rank belongs to what that rank did. The straggler is the rank that waits least "
                "in collectives: the others wait for it. FSDP's root unit holds the parameters outside the layers.");
  small_paragraph("Wheel zooms, right-drag moves, drag measures an area, a click selects, two show it in full width.");
}

}  // namespace

Intents draw_help(ImVec2 size) {
  Intents intents;
  const ImVec2 box{std::min(size.x - px(60), px(1200)), std::min(size.y - px(28), px(760))};
  ImGui::SetCursorPos({(size.x - box.x) / 2, (size.y - box.y) / 2});
  ImGui::PushStyleColor(ImGuiCol_ChildBg, theme().raised);
  ui::begin_pane("help", box, true);
  if (ui::small_button("Close", "Esc")) intents.push_back({"up", ""});
  ImGui::SameLine(0, px(12));
  ui::dim_line("Every action is here, and in the palette (Ctrl+Shift+P).");
  // Three columns of about one height.
  const float gap = px(20), column = (ImGui::GetContentRegionAvail().x - 2 * gap) / 3;
  ImGui::PushStyleColor(ImGuiCol_ChildBg, IM_COL32_BLACK_TRANS);
  ImGui::BeginChild("left", {column, 0});
  draw_legend();
  draw_group("Text");
  draw_group("Lab 03's sources");
  ImGui::EndChild();
  ImGui::SameLine(0, gap);
  ImGui::BeginChild("middle", {column, 0});
  draw_group("Move");
  draw_group("Show");
  ImGui::EndChild();
  ImGui::SameLine(0, gap);
  ImGui::BeginChild("right", {column, 0});
  draw_group("Select");
  draw_group("Window");
  ImGui::EndChild();
  ImGui::PopStyleColor();
  ui::end_pane();
  ImGui::PopStyleColor();
  return intents;
}

}  // namespace shardbook::views
