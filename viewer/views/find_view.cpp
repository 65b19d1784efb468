#include <algorithm>

#include "viewer/scene/roles.hpp"
#include "viewer/scene/sidecar.hpp"
#include "viewer/ui/fonts.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/views/figures.hpp"
#include "viewer/views/views.hpp"

namespace shardbook::views {

using metrics::duration_text;
using ui::px;
using ui::theme;

namespace {

// Bars of how many spans take how long; a drag over them narrows the list.
void draw_histogram(FindState& state) {
  const scene::Histogram& histogram = state.found.histogram;
  if (histogram.counts.empty() || state.found.total == 0) return;
  const ImVec2 from = ImGui::GetCursorScreenPos(), size{ImGui::GetContentRegionAvail().x, px(62)};
  if (size.x < px(40)) return;
  ImGui::InvisibleButton("histogram", size);
  ui::note_spot("histogram", from, {from.x + size.x, from.y + size.y});
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(from, {from.x + size.x, from.y + size.y}, theme().ground, px(3));
  const std::int64_t most = std::max<std::int64_t>(1, *std::max_element(histogram.counts.begin(), histogram.counts.end()));
  const float each = size.x / static_cast<float>(histogram.counts.size());
  for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
    if (histogram.counts[i] == 0) continue;
    const float height = std::max(px(2), static_cast<float>(histogram.counts[i]) / static_cast<float>(most) * (size.y - px(16)));
    const float x = from.x + each * static_cast<float>(i);
    list->AddRectFilled({x + 1, from.y + size.y - height}, {x + each - 1, from.y + size.y}, theme().accent);
  }
  ImFont* small = ui::font(page::FontKind::small);
  list->AddText(small, small->FontSize, {from.x + px(4), from.y + px(2)}, theme().dim, duration_text(histogram.least).c_str());
  const std::string longest = duration_text(histogram.most);
  const float width = small->CalcTextSizeA(small->FontSize, 1e9f, 0, longest.c_str()).x;
  list->AddText(small, small->FontSize, {from.x + size.x - width - px(4), from.y + px(2)}, theme().dim, longest.c_str());

  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left, px(3))) {
    const auto share_of = [&](float x) { return static_cast<double>((x - from.x) / size.x); };
    state.range = lengths_between(histogram, share_of(ImGui::GetIO().MouseClickedPos[0].x), share_of(ImGui::GetIO().MousePos.x));
  }
  if (state.range && state.range->first <= state.range->second) {
    const float x0 = from.x + each * static_cast<float>(histogram.bucket_of(state.range->first));
    const float x1 = from.x + each * static_cast<float>(histogram.bucket_of(state.range->second) + 1);
    list->AddRectFilled({x0, from.y}, {x1, from.y + size.y}, (theme().accent & ~IM_COL32_A_MASK) | IM_COL32(0, 0, 0, 60));
  }
}

constexpr std::size_t most_listed = 500;

// What the list and the marks are about from now on.
void show(FindState& state, const Scene& scene, scene::Found found, Intents& intents) {
  state.shown = std::move(found);
  state.place = -1;
  state.cells.clear();
  const timeline::Timeline& timeline = scene.timeline();
  for (const scene::SpanRef span : state.shown.spans) {
    if (state.cells.size() == most_listed) break;
    state.cells.push_back({scene::role_label(timeline, span), std::to_string(timeline.rank(span)), timeline.step(span) >= 0 ? std::to_string(timeline.step(span)) : "",
                           duration_text(timeline.start(span) - scene.whole().start), duration_text(timeline.end(span) - timeline.start(span))});
  }
  intents.push_back({"find.marks", ""});
}

}  // namespace

Intents draw_find(FindState& state, const Scene& scene) {
  Intents intents;
  const bool entered = ui::text_field("Find spans", &state.query, std::min(px(320), ImGui::GetContentRegionAvail().x - px(130)), state.take_focus);
  state.take_focus = false;
  ImGui::SameLine(0, px(10));
  ui::toggle("host calls", &state.host, "Look among the calls of the host, too");
  if (state.query != state.searched || state.host != state.searched_host) {
    state.searched = state.query;
    state.searched_host = state.host;
    state.found = scene::find(scene, state.query, state.host);
    state.range.reset();
    state.narrowed_to.reset();
    show(state, scene, state.found, intents);
  }
  if (state.query.empty()) {
    ui::dim_line("Words of a name, an op, a phase; \"layer 7\" for a layer. All words must fit.");
    return intents;
  }
  draw_histogram(state);
  if (state.range && state.range != state.narrowed_to) {
    state.narrowed_to = state.range;
    show(state, scene, scene::narrowed(scene, state.found, state.range->first, state.range->second), intents);
  }
  const scene::Found& shown = state.shown;
  if (shown.total == 0) {
    ui::paragraph(state.range ? "Nothing of them takes so long." : "Nothing is called so.");
    return intents;
  }
  ui::words_line(std::to_string(shown.total) + (shown.total == 1 ? " span" : " spans") + " · together " + duration_text(shown.sum) + " · least " +
                 duration_text(shown.least) + " · median " + duration_text(shown.median) + " · p95 " + duration_text(shown.p95) + " · most " + duration_text(shown.most) +
                 (shown.spans.size() > most_listed ? " · the first " + std::to_string(most_listed) + " are listed" : ""));
  if (entered) intents.push_back({ImGui::GetIO().KeyShift ? "find.previous" : "find.next", ""});

  const int clicked = ui::table("found", {{"span"}, {"rank", true, px(44)}, {"step", true, px(44)}, {"at", true, px(90)}, {"takes", true, px(90)}}, state.cells, state.place,
                                ImGui::GetContentRegionAvail().y);
  if (clicked >= 0) {
    state.place = clicked;
    intents.push_back({"select", scene::span_name(scene, shown.spans[static_cast<std::size_t>(clicked)])});
    intents.push_back({"view.center", ""});
  }
  return intents;
}

}  // namespace shardbook::views
