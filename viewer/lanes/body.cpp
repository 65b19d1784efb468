#include <algorithm>
#include <cmath>
#include <cstdio>

#include "viewer/lanes/parts.hpp"
#include "viewer/lanes/sight.hpp"
#include "viewer/scene/navigate.hpp"
#include "viewer/scene/roles.hpp"
#include "viewer/ui/fonts.hpp"
#include "viewer/ui/theme.hpp"

namespace shardbook::lanes {

using scene::Item;
using scene::Row;
using scene::RowKind;
using scene::SpanRef;
using ui::px;
using ui::theme;

namespace {

// The view's part of the run; of no length outside of it. Where one step nearly fills it, the step: what stands beside a row then is
// what is said of the step elsewhere.
base::Interval seen_of(const scene::Scene& scene, const scene::TimeView& view) {
  const base::Interval whole = scene.whole(), step = scene::step_at(scene, (view.start + view.end) / 2).window;
  const base::Interval seen{static_cast<base::Nanoseconds>(view.start), static_cast<base::Nanoseconds>(view.end)};
  if (step.start >= seen.start && step.end <= seen.end && 10 * step.length() >= 9 * seen.length()) return step;
  return {std::max(whole.start, seen.start), std::min(whole.end, seen.end)};
}

// Of the view, or the step that nearly fills it, what stands at the right of a name: "12.3 % exposed here" of a rank, "host 3.1 ms, wait 0.2 ms" of its idle
// time. "" outside of the run.
std::string sum_text(const scene::Scene& scene, const Row& row, const scene::TimeView& view) {
  const scene::RankScene* rank = scene.rank(row.rank);
  const base::Interval seen = seen_of(scene, view);
  if (rank == nullptr || seen.length() <= 0) return "";
  if (row.kind == RowKind::idle) {
    const scene::IdleCauses* causes = scene.idle_causes(row.rank);
    return causes == nullptr ? "" : scene::words_of(causes->within(seen));
  }
  char words[32];
  std::snprintf(words, sizeof words, "%.1f %% exposed here", 100.0 * static_cast<double>(rank->exposed.busy(seen)) / static_cast<double>(seen.length()));
  return words;
}

// A triangle that points right when closed, down when open.
void draw_triangle(ImDrawList* list, ImVec2 center, bool open, ImU32 colour) {
  const float r = px(4);
  if (open) {
    list->AddTriangleFilled({center.x - r, center.y - r * 0.6f}, {center.x + r, center.y - r * 0.6f}, {center.x, center.y + r * 0.8f}, colour);
  } else {
    list->AddTriangleFilled({center.x - r * 0.6f, center.y - r}, {center.x + r * 0.8f, center.y}, {center.x - r * 0.6f, center.y + r}, colour);
  }
}

ui::Intents draw_name(ImDrawList* list, const scene::Scene& scene, const PlotState& state, const Row& row, ImVec2 from, ImVec2 to, bool clickable) {
  ui::Intents intents;
  const bool focused = row.name == state.focus_row;
  const bool is_rank = row.kind == RowKind::rank;
  if (is_rank) list->AddRectFilled(from, to, theme().raised);
  if (focused) list->AddRectFilled(from, {from.x + px(3), to.y}, theme().accent);

  const float middle = (from.y + to.y) / 2;
  float x = from.x + px(8 + 14 * static_cast<float>(row.level));
  if (row.can_open) draw_triangle(list, {x + px(4), middle}, row.is_open, theme().dim);
  x += px(14);
  ImFont* font = ui::font(is_rank ? page::FontKind::bold : page::FontKind::small);
  const std::string& title = row.title;
  ImVec4 clip{from.x, from.y, to.x - px(4), to.y};
  list->AddText(font, font->FontSize, {std::floor(x), std::floor(middle - font->FontSize / 2)}, is_rank || focused ? theme().text : theme().dim,
                title.c_str(), nullptr, 0, &clip);
  if (is_rank || row.kind == RowKind::idle) {
    ImFont* small = ui::font(page::FontKind::small);
    std::string words = sum_text(scene, row, state.view);
    const float room = to.x - px(16) - (x + font->CalcTextSizeA(font->FontSize, 1e9f, 0, title.c_str()).x);
    // Of several causes, those that there is room for.
    while (ui::measure().width(words, page::FontKind::small) > room && words.find(", ") != std::string::npos) words.erase(words.rfind(", "));
    if (!words.empty()) ui::note_words(words);
    const float width = small->CalcTextSizeA(small->FontSize, 1e9f, 0, words.c_str()).x;
    const float title_end = x + font->CalcTextSizeA(font->FontSize, 1e9f, 0, title.c_str()).x;
    if (to.x - px(8) - width > title_end + px(8)) {
      list->AddText(small, small->FontSize, {std::floor(to.x - px(8) - width), std::floor(middle - small->FontSize / 2)}, theme().dim, words.c_str());
    }
  } else if (row.pinned) {
    list->AddCircleFilled({to.x - px(10), middle}, px(3), theme().accent);
  }
  if (!clickable) return intents;

  ImGui::SetCursorScreenPos(from);
  ImGui::PushID(row.name.c_str());
  if (ImGui::InvisibleButton("name", {to.x - from.x, to.y - from.y})) {
    intents.push_back({"row.focus", row.name});
    if (row.can_open) intents.push_back({"row.toggle", row.name});
  }
  if (ImGui::IsItemHovered()) {
    list->AddRect(from, {to.x - 1, to.y}, theme().border);
    const std::string number = row.track >= 0 ? "\n" + scene.timeline().tracks[static_cast<std::size_t>(row.track)].name : "";
    ui::hint_on_hover(row.title + (number.substr(0, number.find_last_not_of(' ') + 1) == "\n" + row.title ? "" : number) + (row.can_open ? (row.is_open ? "\nClick to close" : "\nClick to open") : "") + "\nP pins it to the top");
  }
  ImGui::PopID();
  ui::note_spot(row.name, from, to);
  ui::note_words(row.title);
  return intents;
}

void draw_memory(ImDrawList* list, const scene::Scene& scene, const Row& row, const scene::TimeView& view, const RowRect& rect) {
  const std::vector<const timeline::Counter*> counters = scene.counters_of(row.rank);
  std::int64_t most = 1;
  const auto columns = static_cast<int>(view.width / px(2));
  if (columns < 1) return;
  // The value that holds at the middle of each column; a column is two pixels wide.
  std::vector<std::int64_t> sums(static_cast<std::size_t>(columns), 0);
  std::vector<std::vector<std::int64_t>> values(counters.size(), std::vector<std::int64_t>(static_cast<std::size_t>(columns), 0));
  for (std::size_t c = 0; c < counters.size(); ++c) {
    const timeline::Counter& counter = *counters[c];
    for (int column = 0; column < columns; ++column) {
      const base::Nanoseconds time = view.time_at((static_cast<float>(column) + 0.5f) * px(2));
      const auto after = std::upper_bound(counter.time.begin(), counter.time.end(), time);
      if (after == counter.time.begin()) continue;
      const std::int64_t value = counter.value[static_cast<std::size_t>(after - counter.time.begin() - 1)];
      values[c][static_cast<std::size_t>(column)] = value;
      sums[static_cast<std::size_t>(column)] += value;
    }
    for (const std::int64_t value : sums) most = std::max(most, value);
  }
  // Stacked from the bottom; equal neighbours are one rectangle.
  std::vector<float> bottom(static_cast<std::size_t>(columns), rect.bottom);
  for (std::size_t c = 0; c < counters.size(); ++c) {
    const ImU32 colour = theme().series[c % theme().series.size()];
    for (int column = 0; column < columns;) {
      const auto at = static_cast<std::size_t>(column);
      int end = column + 1;
      while (end < columns && values[c][static_cast<std::size_t>(end)] == values[c][at] && bottom[static_cast<std::size_t>(end)] == bottom[at]) ++end;
      const float height = static_cast<float>(static_cast<double>(values[c][at]) / static_cast<double>(most)) * rect.height();
      if (height > 0) {
        list->AddRectFilled({rect.left + static_cast<float>(column) * px(2), bottom[at] - height}, {rect.left + static_cast<float>(end) * px(2), bottom[at]}, colour);
      }
      for (int filled = column; filled < end; ++filled) bottom[static_cast<std::size_t>(filled)] -= height;
      column = end;
    }
  }
}

void draw_idle_causes(ImDrawList* list, const scene::Scene& scene, PlotState& state, const Row& row, const RowRect& rect) {
  auto found = state.idle_gaps.find(row.rank);
  if (found == state.idle_gaps.end()) {
    found = state.idle_gaps.emplace(row.rank, metrics::idle_gaps(scene.timeline(), row.rank, scene.whole())).first;
  }
  struct ByStream {
    bool operator()(const metrics::IdleGap& gap, std::int64_t stream) const { return gap.stream < stream; }
    bool operator()(std::int64_t stream, const metrics::IdleGap& gap) const { return stream < gap.stream; }
  };
  const std::int64_t stream = scene.timeline().tracks[static_cast<std::size_t>(row.track)].id;
  const auto [first, last] = std::equal_range(found->second.begin(), found->second.end(), stream, ByStream{});
  each_in_sight(first, last, state.view, [](const metrics::IdleGap& gap) { return gap.gap; }, [&](const metrics::IdleGap& gap, float x0, float x1) {
    x0 = std::max(0.0f, x0);
    x1 = std::min(state.view.width, x1);
    if (x1 - x0 >= px(26)) draw_label(list, metrics::name_of(gap.cause), rect.left + x0, rect.left + x1, rect, theme().dim);
    return 1.0f;
  });
}

// Behind its wait for ranks, and before its transfer.
void draw_queued_part(ImDrawList* list, const scene::Scene& scene, const PlotState& state, const Item& item, const RowRect& rect, const RowRect& part, Hatch& hatch) {
  const base::Nanoseconds start = scene.timeline().start(item.span) + item.wait_ns;
  const float x0 = rect.left + std::max(item.x0, state.view.x_of(start));
  const float x1 = rect.left + std::min(item.x1, state.view.x_of(start + item.queued_ns));
  if (x1 - x0 < 2) return;
  draw_queued(list, x0, x1, part, hatch);
  draw_label(list, "queued", x0 + px(3), x1, part, theme().text, theme().panel);
}

// The words go on the fill of a span, so they take that fill's own colour.
void draw_items(ImDrawList* list, const scene::Scene& scene, PlotState& state, const Row& row, const RowRect& rect, Hatch& hatch,
                std::vector<Item>& items) {
  items.clear();
  scene.items(row, state.view, items, false);
  state.items += static_cast<int>(items.size());
  for (const Item& item : items) {
    const RowRect part = level_of(row, rect, item.depth);
    draw_item(list, item, part, hatch);
    // The waiting part of a collective stands before its transfer.
    if (item.kind == Item::Kind::span && item.wait_ns > 0 && item.span.valid()) {
      const base::Nanoseconds start = scene.timeline().start(item.span);
      const float x0 = rect.left + std::max(item.x0, state.view.x_of(start));
      const float x1 = rect.left + std::min(item.x1, state.view.x_of(start + item.wait_ns));
      if (x1 - x0 >= 2) {
        list->AddRectFilled({x0, part.top}, {x1, part.bottom}, theme().panel);
        Item wait = item;
        wait.paint = scene::Paint::wait;
        wait.x0 = x0 - rect.left;
        wait.x1 = x1 - rect.left;
        draw_item(list, wait, part, hatch);
        draw_label(list, "wait", x0, x1, part, theme().text);
      }
    }
    if (row.kind == RowKind::stream && item.kind == Item::Kind::span && item.queued_ns > 0) draw_queued_part(list, scene, state, item, rect, part, hatch);
    if (item.kind != Item::Kind::span || !item.span.valid() || item.x1 - item.x0 < px(30)) continue;
    if (row.kind != RowKind::stream && row.kind != RowKind::host && row.kind != RowKind::marks) continue;
    const base::Nanoseconds before = item.wait_ns + item.queued_ns;
    const float words_from = rect.left + std::max(item.x0, before > 0 ? state.view.x_of(scene.timeline().start(item.span) + before) : item.x0);
    const float room = rect.left + item.x1 - words_from - px(8);
    const auto fits = [&](std::string_view form) { return ui::measure().width(form, page::FontKind::small) <= room; };
    const std::string words = scene::fitted_label(scene::role_label(scene.timeline(), item.span), fits);
    if (ui::measure().width(words.substr(0, 5), page::FontKind::small) > room) continue;
    draw_label(list, words, words_from, rect.left + item.x1, part, theme().paint_text[static_cast<std::size_t>(item.paint)], plate_of(item.paint));
  }
}

// In the air above the row, so that no span's name is hidden; a line leads from each to its time.
void draw_annotations(ImDrawList* list, const PlotState& state, const Row& row, const RowRect& rect) {
  if (state.annotations.empty()) return;
  std::vector<std::pair<float, const std::string*>> remarks;
  for (const scene::Annotation& annotation : state.annotations) {
    const float x = state.view.x_of(annotation.time);
    if (annotation.row == row.name && x >= 0 && x <= state.view.width) remarks.emplace_back(x, &annotation.text);
  }
  std::sort(remarks.begin(), remarks.end());
  ImFont* font = ui::font(page::FontKind::small);
  std::vector<Label> wanted;
  for (const auto& [x, text] : remarks) wanted.push_back({x, std::ceil(ui::measure().width(*text, page::FontKind::small)) + px(9)});
  const std::vector<Label> labels = place_labels(wanted, state.view.width);
  const float top = rect.top - px(2) - remark_height(), bottom = top + font->FontSize + px(2);
  for (std::size_t i = 0; i < remarks.size(); ++i) {
    const float x = rect.left + remarks[i].first, left = rect.left + labels[i].x, right = left + labels[i].width;
    list->AddLine({x, top}, {x, rect.bottom}, theme().warning, px(1.5f));
    list->AddRectFilled({left, top}, {right, bottom}, theme().raised, px(2));
    list->AddRect({left, top}, {right, bottom}, theme().warning, px(2));
    draw_label(list, *remarks[i].second, left, right, {rect.left, top, bottom}, theme().text);
  }
}

// Ticks over what find has found; two of one pixel are one.
void draw_marked(ImDrawList* list, const scene::Scene& scene, const PlotState& state, const Row& row, const RowRect& rect) {
  const std::vector<std::uint32_t>& places = state.marked.on(row.track);
  if (places.empty()) return;
  const timeline::Track& track = scene.timeline().tracks[static_cast<std::size_t>(row.track)];
  const auto start_of = [&](std::uint32_t place) { return base::Interval{track.start[place], track.start[place]}; };
  each_in_sight(places.begin(), places.end(), state.view, start_of, [&](std::uint32_t, float start, float) {
    const float x = rect.left + start;
    list->AddTriangleFilled({x - px(4), rect.top - px(2)}, {x + px(4), rect.top - px(2)}, {x, rect.top + px(5)}, theme().warning);
    return 2.0f;
  });
}

void draw_selection(ImDrawList* list, const scene::Scene& scene, const PlotState& state, const Row& row, const RowRect& rect) {
  const auto frame = [&](SpanRef span, bool selected) {
    if (!span.valid() || static_cast<std::int32_t>(span.track) != row.track) return;
    const float x0 = near_x(state.view, scene.timeline().start(span)), x1 = near_x(state.view, scene.timeline().end(span));
    if (x1 < 0 || x0 > state.view.width) return;
    draw_frame(list, rect.left + std::max(x0, -px(8)), rect.left + std::min(x1, state.view.width + px(8)), rect, selected);
  };
  if (state.selected.valid()) {
    if (const metrics::MatchedCollective* match = scene.collective_of(state.selected)) {
      for (const SpanRef other : match->spans) frame(other, false);
    }
  }
  frame(state.hovered, false);
  frame(state.selected, true);
}

}  // namespace

ui::Intents draw_rows(ImDrawList* list, const scene::Scene& scene, PlotState& state, const std::vector<Placed>& placed,
                      const Frame& names, const Frame& body) {
  ui::Intents intents;
  Hatch hatch(px(6));
  static std::vector<Item> items;      // kept between frames, so that a frame allocates nothing for it
  state.items = 0;
  for (std::size_t i = 0; i < state.rows.size(); ++i) {
    const Row& row = state.rows[i];
    const float top = body.from.y + placed[i].top - state.scroll, bottom = top + placed[i].height;
    // Its remarks stand above it.
    if (bottom <= body.from.y || top - remark_height() >= body.to.y) continue;
    // What the lower edge would cut is not begun, but for a row that is higher than half of the pane.
    if (bottom > body.to.y + 1 && placed[i].height < body.height() / 2) continue;
    const RowRect rect = rect_of(placed[i], body.from.x, body.from.y - state.scroll);

    list->PushClipRect(body.from, body.to, true);
    if (row.kind == RowKind::rank) list->AddRectFilled({body.from.x, top}, {body.to.x, bottom}, theme().raised);
    if (row.kind == RowKind::memory) {
      draw_memory(list, scene, row, state.view, rect);
    } else {
      draw_items(list, scene, state, row, rect, hatch, items);
    }
    if (state.show_idle_causes && row.kind == RowKind::stream) draw_idle_causes(list, scene, state, row, rect);
    draw_marked(list, scene, state, row, rect);
    draw_annotations(list, state, row, rect);
    draw_selection(list, scene, state, row, rect);
    list->AddLine({body.from.x, bottom}, {body.to.x, bottom}, theme().faint);
    list->PopClipRect();

    list->PushClipRect(names.from, names.to, true);
    const ImVec2 from{names.from.x, std::max(top, names.from.y)}, to{names.to.x, std::min(bottom, names.to.y)};
    const bool whole_in_sight = to.y - from.y > px(6);
    for (ui::Intent& intent : draw_name(list, scene, state, row, {names.from.x, top}, {names.to.x, bottom}, whole_in_sight)) intents.push_back(std::move(intent));
    list->AddLine({names.from.x, bottom}, {names.to.x, bottom}, theme().faint);
    list->PopClipRect();
  }
  return intents;
}

}  // namespace shardbook::lanes
