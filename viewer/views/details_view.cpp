#include <cmath>

#include "viewer/lanes/plot.hpp"
#include "viewer/scene/navigate.hpp"
#include "viewer/scene/roles.hpp"
#include "viewer/scene/sidecar.hpp"
#include "viewer/ui/fonts.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/views/views.hpp"

namespace shardbook::views {

using metrics::duration_text;
using scene::SpanRef;
using ui::px;

namespace {

std::string span_words(const Scene& scene, SpanRef span) {
  return "rank " + std::to_string(scene.timeline().rank(span)) + " · " + scene::role_label(scene.timeline(), span);
}

// The greatest height up to this one that cuts no line of facts.
float whole_facts(float height) {
  const float between = ImGui::GetStyle().ItemSpacing.y, each = std::ceil(ui::font(page::FontKind::body)->FontSize + px(4)) + between;
  return std::max(each, std::floor((height + between) / each) * each - between + 1);
}

Intents draw_edges(const Scene& scene, SpanRef span) {
  Intents intents;
  const scene::Arrows arrows = scene::arrows_of(scene, span);
  const auto list = [&](const char* title, const std::vector<scene::Arrow>& edges, bool in) {
    if (edges.empty()) return;
    ui::heading(title);
    int shown = 0;
    for (const scene::Arrow& arrow : edges) {
      if (arrow.kind == timeline::EdgeKind::collective) continue;
      if (++shown > 6) {
        ui::dim_line("… and more");
        break;
      }
      const SpanRef other = in ? arrow.from : arrow.to;
      ImGui::PushID(shown + (in ? 0 : 100));
      if (ui::link(scene::role_label(scene.timeline(), other) + " (" + name_of(arrow.kind) + ")", arrow.words)) {
        intents.push_back({"select", scene::span_name(scene, other)});
      }
      ImGui::PopID();
    }
    if (shown == 0) ui::dim_line("nothing but its collective");
  };
  list("It waited for · key [", arrows.in, true);
  list("What waited for it · key ]", arrows.out, false);
  return intents;
}

Intents draw_collective(const Scene& scene, SpanRef span) {
  Intents intents;
  const metrics::MatchedCollective* match = scene.collective_of(span);
  if (match == nullptr || match->spans.size() < 2) return intents;
  const timeline::Group& group = scene.timeline().groups[match->group];
  ui::heading("On the ranks of its group" + (group.name != 0 ? ", " + std::string(scene.timeline().strings[group.name]) : ""));
  std::vector<std::vector<std::string>> cells;
  int selected = -1;
  const bool queued = match->queued_until > match->last_start;
  std::vector<ui::Column> columns{{"rank", true, px(44)}, {"came", true}, {"wait", true}, {"transfer", true}};
  if (queued) columns = {{"rank", true, px(36)}, {"came", true, px(68)}, {"wait", true, px(66)}, {"queued", true, px(66)}, {"transfer", true, px(68)}};
  for (const SpanRef other : match->spans) {
    const metrics::WaitSplit split = metrics::split(scene.timeline(), *match, other);
    if (other == span) selected = static_cast<int>(cells.size());
    cells.push_back({std::to_string(scene.timeline().rank(other)),
                     "+" + duration_text(scene.timeline().start(other) - (match->last_start - match->skew_ns)), duration_text(split.wait_ns),
                     duration_text(split.transfer_ns)});
    if (queued) cells.back().insert(cells.back().begin() + 3, duration_text(split.queued_ns));
  }
  ui::dim_line(match->skew_is_significant() ? "rank " + std::to_string(match->last_rank) + " came last, " + duration_text(match->skew_ns) + " after the first"
                                            : "the ranks came together (skew " + duration_text(match->skew_ns) + ", clock error " + duration_text(match->clock_error_ns) + ")");
  const int clicked = ui::table("ranks", columns, cells, selected,
                                std::min(px(24) * static_cast<float>(cells.size() + 1), px(240)));
  if (clicked >= 0) intents.push_back({"select", scene::span_name(scene, match->spans[static_cast<std::size_t>(clicked)])});
  return intents;
}

}  // namespace

Intents draw_details(const Scene& scene, const PlotState& plot) {
  Intents intents;
  if (!plot.selected.valid()) {
    ui::paragraph("Nothing is selected. Click a span, or press N for the next exposed one.");
    return intents;
  }
  const SpanRef span = plot.selected;
  ui::heading(span_words(scene, span));
  if (ui::small_button("Source", "The line that launched it (G)")) intents.push_back({"go.source", ""});
  ImGui::SameLine(0, px(6));
  if (ui::small_button("Note", "What the notes say about it (T)")) intents.push_back({"go.note", ""});
  ImGui::SameLine(0, px(6));
  if (ui::small_button("Zoom", "Show it in full width (Z)")) intents.push_back({"view.zoom_selected", ""});
  ImGui::SameLine(0, px(6));
  if (ui::small_button("Remark", "Write a remark at it (Shift+A)")) intents.push_back({"annotate", ""});
  ImGui::Spacing();

  // Facts and edges side by side where there is room, else below each other.
  const bool wide = ImGui::GetContentRegionAvail().x > px(560);
  if (wide) ImGui::BeginChild("facts", {ImGui::GetContentRegionAvail().x * 0.46f, whole_facts(ImGui::GetContentRegionAvail().y)});
  for (const scene::Fact& fact : scene::facts_of(scene, span)) ui::fact(fact.name, fact.value, px(118));
  if (wide) {
    ImGui::EndChild();
    ImGui::SameLine(0, px(12));
    ImGui::BeginChild("edges");
  }
  for (ui::Intent& intent : draw_collective(scene, span)) intents.push_back(std::move(intent));
  for (ui::Intent& intent : draw_edges(scene, span)) intents.push_back(std::move(intent));
  if (wide) ImGui::EndChild();
  return intents;
}

}  // namespace shardbook::views
