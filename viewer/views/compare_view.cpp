#include <algorithm>
#include <cmath>

#include "viewer/lanes/paint.hpp"
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

// The step that is compared: the one chosen, else the one in view, else the first. 0: the run has no steps.
int step_of(const Scene& scene, std::optional<int> chosen, int in_view) {
  for (const int wanted : {chosen.value_or(-1), in_view}) {
    for (const auto& one : scene.steps()) {
      if (one.number == wanted) return wanted;
    }
  }
  return scene.steps().empty() ? 0 : scene.steps().front().number;
}

// A line each for A and B: which run, which step.
void choose(CompareState& state, const std::vector<Compared>& runs) {
  const auto side = [&](const char* name, float left, int* run, std::optional<int>* step) {
    // The letter stands on the line of the names, and these in columns.
    const float y = ImGui::GetCursorPosY();
    ImGui::SetCursorPos({left, y + px(6)});
    ImGui::TextUnformatted(name);
    ImGui::SameLine(left + px(16), 0);
    ImGui::SetCursorPosY(y);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (i > 0) ImGui::SameLine(0, px(6));
      ImGui::PushID(name);
      ImGui::PushID(static_cast<int>(i));
      if (ui::tab(runs[i].title, static_cast<int>(i) == *run)) *run = static_cast<int>(i);
      ImGui::PopID();
      ImGui::PopID();
    }
    const Compared& chosen = runs[static_cast<std::size_t>(*run)];
    const auto& steps = chosen.scene->steps();
    if (steps.size() > 1) {
      ImGui::SameLine(0, px(18));
      ImGui::PushID(name);
      const int now = step_of(*chosen.scene, *step, chosen.step_in_view);
      if (ui::small_button("step " + std::to_string(now), "Click for the next recorded step")) {
        const auto at = std::find_if(steps.begin(), steps.end(), [&](const auto& one) { return one.number == now; });
        *step = at == steps.end() || at + 1 == steps.end() ? steps.front().number : (at + 1)->number;
      }
      ImGui::PopID();
    }
  };
  const float top = ImGui::GetCursorPosY();
  side("A", 0, &state.a, &state.step_a);
  // Beside each other where both have room.
  float wide = px(120);
  for (const Compared& run : runs) wide += ui::measure().width(run.title, page::FontKind::bold) + px(26);
  const float half = std::floor(ImGui::GetContentRegionAvail().x / 2);
  if (wide <= half) ImGui::SetCursorPosY(top);
  side("B", wide <= half ? half : 0, &state.b, &state.step_b);
}

// Above the line: B exposes more; below: less.
void draw_difference(CompareState& state, const Scene& a, const Scene& b) {
  // The words stand beside the bars, which reach to both edges.
  constexpr const char *more = "B exposes more", *less = "B exposes less";
  const ImVec2 at = ImGui::GetCursorScreenPos(), whole{ImGui::GetContentRegionAvail().x, px(40)};
  const float words = std::ceil(std::max(ui::measure().width(more, page::FontKind::small), ui::measure().width(less, page::FontKind::small))) + px(10);
  ImGui::Dummy(whole);
  const ImVec2 from{at.x + words, at.y}, size{std::max(whole.x - words, 1.0f), whole.y};
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
  for (const auto& [text, middle_of_words] : {std::pair{more, from.y + size.y / 4}, std::pair{less, from.y + size.y * 3 / 4}}) {
    list->AddText(small, small->FontSize, {at.x, std::floor(middle_of_words - small->FontSize / 2)}, theme().dim, text);
    ui::note_words(text);
  }
}

// One step of one rank as a line: its phases, and what it did.
void draw_step(ImDrawList* list, const Scene& scene, metrics::Window window, base::Rank rank, double longer, ImVec2 from, ImVec2 to, float phases, bool phases_above) {
  scene::TimeView view{static_cast<double>(window.start), static_cast<double>(window.start) + longer, to.x - from.x, 0};
  const float row_top = phases_above ? from.y + phases : from.y, row_bottom = phases_above ? to.y : to.y - phases;
  const float end = from.x + static_cast<float>(static_cast<double>(window.length()) / view.per_pixel());
  list->PushClipRect(from, {std::min(to.x, end + 1), to.y}, true);
  if (const std::optional<scene::Row> row = scene.row_of(scene::row_name(scene::RowKind::rank, rank))) {
    std::vector<scene::Item> items;
    scene.items(*row, view, items, false);
    lanes::Hatch hatch(px(6));
    list->AddRectFilled({from.x, row_top}, {end, row_bottom}, theme().raised);
    for (const scene::Item& item : items) lanes::draw_item(list, item, {from.x, row_top, row_bottom}, hatch);
  }
  const float top = phases_above ? from.y : row_bottom;
  for (const scene::BandPiece& piece : scene.bands(rank).phases) {
    if (piece.time.end <= window.start || piece.time.start >= window.end) continue;
    const float x0 = from.x + view.x_of(piece.time.start), x1 = from.x + view.x_of(std::min(piece.time.end, window.end));
    list->AddRectFilled({x0, top + 1}, {x1, top + phases - 1}, theme().hover);
    list->AddRect({x0, top + 1}, {x1, top + phases - 1}, theme().border);
    lanes::draw_label(list, std::string(scene.timeline().strings[piece.name]), x0, x1, {0, top, top + phases}, theme().text);
  }
  list->PopClipRect();
  list->AddRect({from.x, row_top}, {end, row_bottom}, theme().border);
}

// Both steps on one axis of time, and lines between where the same layer begins: the steeper, the later is B.
void draw_stacked(const CompareState& state, const Scene& a, const Scene& b) {
  if (state.made->ranks.empty()) return;
  const base::Rank rank = state.made->ranks.front().rank;
  const float phases = px(16), row = px(22), between = px(26), names = px(64);
  const ImVec2 at = ImGui::GetCursorScreenPos(), size{ImGui::GetContentRegionAvail().x, 2 * (phases + row) + between};
  ImGui::Dummy(size);
  ui::note_spot("two steps", at, {at.x + size.x, at.y + size.y});
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float left = at.x + names, right = at.x + size.x;
  const auto longer = static_cast<double>(std::max<base::Nanoseconds>({state.made->window_a.length(), state.made->window_b.length(), 1}));
  const float low = at.y + phases + row, high = low + between;
  draw_step(list, a, state.made->window_a, rank, longer, {left, at.y}, {right, low}, phases, true);
  draw_step(list, b, state.made->window_b, rank, longer, {left, high}, {right, at.y + size.y}, phases, false);
  ImFont* small = ui::font(page::FontKind::small);
  for (const auto& [words, y] : {std::pair{"A, rank ", at.y + phases + row / 2}, std::pair{"B, rank ", high + row / 2}}) {
    list->AddText(small, small->FontSize, {at.x, std::floor(y - small->FontSize / 2)}, theme().dim, (words + std::to_string(rank)).c_str());
  }
  // No two on one pixel; those where a phase begins stand out.
  float drawn = left - px(4);
  for (const bool of_phase : {true, false}) {
    for (const scene::Alignment& one : state.aligned) {
      if (one.phase != of_phase) continue;
      const auto x_of = [&](base::Nanoseconds time) { return left + static_cast<float>(static_cast<double>(time) / longer) * (right - left); };
      if (!of_phase && x_of(one.a) < drawn) continue;
      if (!of_phase) drawn = x_of(one.a) + px(6);
      list->AddLine({x_of(one.a), low}, {x_of(one.b), high}, of_phase ? theme().text : theme().border, of_phase ? px(1.5f) : px(1));
    }
  }
}

// The sentence of `shardbook diff`, and what adds up to it.
void draw_told(const CompareState& state) {
  const Comparison& comparison = *state.made;
  ui::paragraph(state.told ? state.told->sentence : "What the change did is being found ...");
  if (!state.told) return;
  for (const std::string& sum : state.told->sums) ui::paragraph(sum, theme().dim);
  if (comparison.clocks_differ || state.told->equal) return;
  if (!state.by_phase.empty()) ui::dim_line(state.by_phase);
  const auto differ = [](base::Nanoseconds told, metrics::Window drawn) { return told > 0 && told != drawn.length(); };
  if (differ(state.told->step_a, comparison.window_a) || differ(state.told->step_b, comparison.window_b)) {
    ui::dim_line("Drawn and listed below are traced steps of " + duration_text(comparison.window_a.length()) + " and " + duration_text(comparison.window_b.length()) +
                 "; the sentence speaks of steps without tracing.");
  }
}

constexpr std::size_t most_ops = 200;

void make(CompareState& state, const Scene& a, const Scene& b, Comparison made) {
  state.made = std::move(made);
  state.told.reset();
  state.by_phase = scene::by_phase(a, b, *state.made);
  state.aligned = scene::alignment(a, b, *state.made);
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
    // What a run does not have took no time in all, but not 0 ns each.
    const auto median = [](std::optional<base::Nanoseconds> one) { return one ? duration_text(*one) : std::string(); };
    state.ops.push_back({op.label, std::to_string(op.count_a) + " / " + std::to_string(op.count_b), median(op.median_a), median(op.median_b),
                         op.median_a && op.median_b ? difference(*op.median_a, *op.median_b) : std::string(), difference(op.sum_a, op.sum_b),
                         difference(op.exposed_a, op.exposed_b)});
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

Intents draw_compare(CompareState& state, const std::vector<Compared>& runs) {
  Intents intents;
  if (runs.size() < 2) {
    ui::paragraph("A comparison needs two runs. Open another one beside this.");
    if (ui::small_button("Open a run", "Ctrl+O")) intents.push_back({"library", ""});
    return intents;
  }
  const int last = static_cast<int>(runs.size()) - 1;
  if (state.a < 0 || state.a > last) state.a = std::max(0, last - 1);
  if (state.b < 0 || state.b > last) state.b = last;
  choose(state, runs);
  const Compared &of_a = runs[static_cast<std::size_t>(state.a)], &of_b = runs[static_cast<std::size_t>(state.b)];
  const Scene &a = *of_a.scene, &b = *of_b.scene;
  const int step_a = step_of(a, state.step_a, of_a.step_in_view), step_b = step_of(b, state.step_b, of_b.step_in_view);
  if (!state.made || state.made_a != &a || state.made_b != &b || state.made->step_a != step_a || state.made->step_b != step_b) {
    make(state, a, b, scene::compare(a, b, step_a, step_b));
    state.made_a = &a;
    state.made_b = &b;
  }
  const Comparison& comparison = *state.made;

  // The sentence, what adds up to it, the two steps; then what there is to know about the figures.
  draw_told(state);
  if (!comparison.clocks_differ) draw_stacked(state, a, b);
  for (const std::string& remark : comparison.remarks) ui::paragraph(remark, theme().warning);
  std::string differs = comparison.config.empty() ? "Both were asked for the same." : "Asked for differently: ";
  for (std::size_t i = 0; i < comparison.config.size() && i < 12; ++i) {
    const scene::Difference& one = comparison.config[i];
    differs += (i > 0 ? " · " : "") + one.key + " " + one.a + " → " + one.b;
  }
  const auto took = [](const Scene& scene, int step, base::Nanoseconds length) {
    return (scene.steps().empty() ? std::string("whole run") : "step " + std::to_string(step)) + " took " + duration_text(length);
  };
  ui::dim_line(differs + " · A: " + took(a, step_a, comparison.window_a.length()) + " → B: " + took(b, step_b, comparison.window_b.length()) + " (" +
               difference_text(comparison.window_a.length(), comparison.window_b.length(), comparison.clocks_differ) + ")");
  ui::dim_line("A: " + provenance_text(a) + " · B: " + provenance_text(b));
  if (!comparison.clocks_differ) draw_difference(state, a, b);
  const int clicked = draw_tables(state);
  if (clicked >= 0) intents.push_back({"find", comparison.ops[static_cast<std::size_t>(clicked)].label});
  return intents;
}

}  // namespace shardbook::views
