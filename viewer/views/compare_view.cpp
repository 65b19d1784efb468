#include <algorithm>
#include <cmath>

#include "viewer/ui/fonts.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/views/figures.hpp"
#include "viewer/views/views.hpp"

namespace shardbook::views {

using metrics::duration_text;
using scene::Comparison;
using ui::px;
using ui::theme;

namespace {

Intents choose(CompareState& state, const std::vector<std::shared_ptr<const Scene>>& runs, const std::vector<std::string>& titles) {
  Intents intents;
  const auto side = [&](const char* name, int* run, int* step) {
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted(name);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      ImGui::SameLine(0, px(6));
      ImGui::PushID(name);
      ImGui::PushID(static_cast<int>(i));
      if (ui::tab(titles[i], static_cast<int>(i) == *run)) *run = static_cast<int>(i);
      ImGui::PopID();
      ImGui::PopID();
    }
    const auto& steps = runs[static_cast<std::size_t>(*run)]->steps();
    if (steps.size() > 1) {
      ImGui::SameLine(0, px(18));
      ImGui::PushID(name);
      if (ui::small_button("step " + std::to_string(*step), "Click for the next recorded step")) {
        auto at = std::find_if(steps.begin(), steps.end(), [&](const auto& one) { return one.number == *step; });
        *step = at == steps.end() || at + 1 == steps.end() ? steps.front().number : (at + 1)->number;
      }
      ImGui::PopID();
    }
  };
  side("A", &state.a, &state.step_a);
  side("B", &state.b, &state.step_b);
  return intents;
}

// Above the line: B exposes more; below: less.
void draw_difference(CompareState& state, const Scene& a, const Scene& b) {
  const ImVec2 from = ImGui::GetCursorScreenPos(), size{ImGui::GetContentRegionAvail().x, px(56)};
  ImGui::Dummy(size);
  ui::note_spot("exposed difference", from, {from.x + size.x, from.y + size.y});
  const int columns = std::max(1, static_cast<int>(size.x / 2));
  std::vector<base::Nanoseconds>& difference = state.difference;
  if (difference.size() != static_cast<std::size_t>(columns)) difference = scene::exposed_difference(a, b, *state.made, columns);
  base::Nanoseconds most = 1;
  for (const base::Nanoseconds value : difference) most = std::max(most, std::abs(value));
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(from, {from.x + size.x, from.y + size.y}, theme().ground, px(3));
  const float middle = from.y + size.y / 2;
  for (int column = 0; column < columns; ++column) {
    const base::Nanoseconds value = difference[static_cast<std::size_t>(column)];
    if (value == 0) continue;
    const float height = static_cast<float>(static_cast<double>(value) / static_cast<double>(most)) * (size.y / 2 - 2);
    const float x = from.x + static_cast<float>(column) * 2;
    list->AddRectFilled({x, std::min(middle, middle - height)}, {x + 2, std::max(middle, middle - height)}, value > 0 ? theme().bad : theme().good);
  }
  list->AddLine({from.x, middle}, {from.x + size.x, middle}, theme().border);
  ImFont* small = ui::font(page::FontKind::small);
  list->AddText(small, small->FontSize, {from.x + px(4), from.y + px(1)}, theme().dim, "B exposes more");
  list->AddText(small, small->FontSize, {from.x + px(4), from.y + size.y - small->FontSize - px(1)}, theme().dim, "B exposes less");
}

constexpr std::size_t most_ops = 200;

void make(CompareState& state, Comparison made) {
  state.made = std::move(made);
  state.ranks.clear();
  state.ops.clear();
  state.difference.clear();
  const auto difference = [&](base::Nanoseconds a, base::Nanoseconds b) { return difference_text(a, b, state.made->clocks_differ); };
  for (const Comparison::RankDelta& rank : state.made->ranks) {
    const metrics::Partition &a = rank.a, &b = rank.b;
    state.ranks.push_back({std::to_string(rank.rank), share_text(a.exposed_communication_ns, a.window.length()), share_text(b.exposed_communication_ns, b.window.length()),
                           difference(a.exposed_communication_ns, b.exposed_communication_ns), share_text(a.idle_ns, a.window.length()),
                           share_text(b.idle_ns, b.window.length()), difference(a.window.length(), b.window.length())});
  }
  for (const scene::OpDelta& op : state.made->ops) {
    if (state.ops.size() == most_ops) break;
    state.ops.push_back({op.label, std::to_string(op.count_a) + " / " + std::to_string(op.count_b), duration_text(op.median_a), duration_text(op.median_b),
                         difference(op.median_a, op.median_b), difference(op.sum_a, op.sum_b), difference(op.exposed_a, op.exposed_b)});
  }
}

// Returns the op that was clicked, or -1.
int draw_tables(const CompareState& state) {
  ui::table("compared ranks", {{"rank", true, px(40)}, {"exposed, A", true}, {"exposed, B", true}, {"B − A", true, px(86)}, {"idle, A", true}, {"idle, B", true}, {"step, B − A", true, px(90)}},
            state.ranks, -1, std::min(px(24) * static_cast<float>(state.ranks.size() + 1), px(150)));
  return ui::table("compared ops", {{"op"}, {"count A / B", true, px(96)}, {"median A", true, px(84)}, {"median B", true, px(84)}, {"B − A", true, px(84)},
                                    {"sum, B − A", true, px(92)}, {"exposed, B − A", true, px(112)}},
                   state.ops, -1, std::max(px(120), ImGui::GetContentRegionAvail().y));
}

}  // namespace

Intents draw_compare(CompareState& state, const std::vector<std::shared_ptr<const Scene>>& runs, const std::vector<std::string>& titles) {
  Intents intents;
  if (runs.size() < 2) {
    ui::paragraph("A comparison needs two runs. Open another one beside this.");
    if (ui::small_button("Open a run", "Ctrl+O")) intents.push_back({"library", ""});
    return intents;
  }
  const int last = static_cast<int>(runs.size()) - 1;
  if (state.a < 0 || state.a > last) state.a = std::max(0, last - 1);
  if (state.b < 0 || state.b > last) state.b = last;
  const auto known_step = [](const Scene& scene, int step) {
    for (const auto& one : scene.steps()) {
      if (one.number == step) return step;
    }
    return scene.steps().empty() ? 0 : scene.steps().front().number;
  };
  intents = choose(state, runs, titles);
  const Scene& a = *runs[static_cast<std::size_t>(state.a)];
  const Scene& b = *runs[static_cast<std::size_t>(state.b)];
  state.step_a = known_step(a, state.step_a);
  state.step_b = known_step(b, state.step_b);
  if (!state.made || state.made_a != &a || state.made_b != &b || state.made->step_a != state.step_a || state.made->step_b != state.step_b) {
    make(state, scene::compare(a, b, state.step_a, state.step_b));
    state.made_a = &a;
    state.made_b = &b;
  }
  const Comparison& comparison = *state.made;

  // What differs comes before any figure.
  for (const std::string& remark : comparison.remarks) ui::paragraph(remark, theme().warning);
  std::string differs = comparison.config.empty() ? "Both were asked for the same." : "Asked for differently: ";
  for (std::size_t i = 0; i < comparison.config.size() && i < 12; ++i) {
    const scene::Difference& one = comparison.config[i];
    differs += (i > 0 ? " · " : "") + one.key + " " + one.a + " → " + one.b;
  }
  ui::paragraph(differs);
  ui::dim_line("A: " + provenance_text(a) + " · B: " + provenance_text(b));
  ui::words_line("step " + duration_text(comparison.window_a.length()) + " → " + duration_text(comparison.window_b.length()) + " (" +
                 difference_text(comparison.window_a.length(), comparison.window_b.length(), comparison.clocks_differ) + ")");
  if (!comparison.clocks_differ) draw_difference(state, a, b);
  const int clicked = draw_tables(state);
  if (clicked >= 0) intents.push_back({"find", comparison.ops[static_cast<std::size_t>(clicked)].label});
  return intents;
}

}  // namespace shardbook::views
