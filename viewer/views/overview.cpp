#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "viewer/lanes/paint.hpp"
#include "viewer/scene/navigate.hpp"
#include "viewer/ui/fonts.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/views/views.hpp"

namespace shardbook::views {

using scene::Paint;
using ui::px;
using ui::theme;

namespace {

constexpr std::size_t most_bars = 8;
constexpr float words_units = 62;
// Many bars are thinner, so that the timeline keeps its room.
float bar_units(const Scene& scene) { return scene.ranks().size() > 4 ? 16 : 20; }

std::string percent(base::Nanoseconds part, base::Nanoseconds whole) {
  char words[24];
  std::snprintf(words, sizeof words, "%.1f %%", whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
  return words;
}

// The ranks that have a bar: all, or those with the most exposed time.
std::vector<const scene::RankScene*> ranks_with_bars(const Scene& scene, metrics::Window window) {
  std::vector<const scene::RankScene*> ranks;
  for (const scene::RankScene& rank : scene.ranks()) ranks.push_back(&rank);
  if (ranks.size() > most_bars) {
    std::stable_sort(ranks.begin(), ranks.end(), [&](const auto* left, const auto* right) { return left->exposed.busy(window) > right->exposed.busy(window); });
    ranks.resize(most_bars);
    std::sort(ranks.begin(), ranks.end(), [](const auto* left, const auto* right) { return left->rank < right->rank; });
  }
  return ranks;
}

void draw_bar(const scene::RankScene& rank, const Shares& shares, metrics::Window window, ImVec2 from, ImVec2 to) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  lanes::Hatch hatch(px(6));
  const std::array<std::pair<Paint, base::Nanoseconds>, 4> parts{
      {{Paint::compute, shares.compute}, {Paint::exposed, shares.exposed}, {Paint::memory, shares.memory}, {Paint::idle, shares.idle}}};
  const char* names[] = {"compute", "exposed", "copies", "idle"};
  float x = from.x;
  const auto whole = static_cast<float>(std::max<base::Nanoseconds>(window.length(), 1));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const float width = static_cast<float>(parts[i].second) / whole * (to.x - from.x);
    if (width > 0) {
      scene::Item item;
      item.paint = parts[i].first;
      item.x0 = x;
      item.x1 = x + width;
      lanes::draw_item(list, item, {0, from.y, to.y}, hatch);
      const bool pale = parts[i].first == Paint::idle;
      lanes::draw_label(list, std::string(names[i]) + " " + percent(parts[i].second, window.length()), x, x + width, {0, from.y, to.y},
                        pale ? theme().text : theme().paint_text[static_cast<std::size_t>(parts[i].first)],
                        parts[i].first == Paint::exposed ? theme().paint[static_cast<std::size_t>(Paint::exposed)] : 0);
    }
    x += width;
  }
  ui::note_words("rank " + std::to_string(rank.rank) + " compute " + percent(shares.compute, window.length()) + " exposed " +
                 percent(shares.exposed, window.length()) + " idle " + percent(shares.idle, window.length()));
}

// What to look at, why, and the one key to press.
Intents draw_headline(const Scene& scene, const PlotState& plot) {
  Intents intents;
  const metrics::Exposure* exposure = plot.selected.valid() ? scene.exposure_of(plot.selected) : nullptr;
  std::string words;
  if (exposure != nullptr) {
    const int place = scene::place_of(scene, plot.selected);
    words = (place == 0 ? "The longest blocking exposure: " : std::to_string(place + 1) + " of " + std::to_string(scene.exposures().size()) + " exposed: ") +
            metrics::sentence(scene.timeline(), *exposure) + ".";
  } else if (scene.exposures().empty()) {
    words = "No communication is exposed: compute covers all of it.";
  } else {
    words = metrics::exposure_sentence(scene.timeline(), scene.path().window) + ".";
  }
  ui::paragraph(words);
  if (!scene.exposures().empty()) {
    if (ui::link("N: next exposed span", "Longest blocking first, then longest exposed")) intents.push_back({"exposed.next", ""});
    ImGui::SameLine(0, px(18));
  }
  if (exposure != nullptr && exposure->line.known()) {
    if (ui::link("G: its source line")) intents.push_back({"go.source", ""});
    ImGui::SameLine(0, px(18));
  }
  if (ui::link("C: critical path")) intents.push_back({"show.critical", ""});
  if (const std::optional<base::Rank> straggler = scene.straggler()) {
    ImGui::SameLine(0, px(18));
    if (ui::link("Straggler: rank " + std::to_string(*straggler), "The rank that waits least in collectives: the others wait for it")) {
      intents.push_back({"rank.show", std::to_string(*straggler)});
    }
  }
  return intents;
}

}  // namespace

scene::Scene::StepWindow step_in_view(const Scene& scene, const PlotState& plot) {
  const double middle = (plot.view.start + plot.view.end) / 2;
  const bool sees_all = plot.view.start <= static_cast<double>(scene.whole().start) && plot.view.end >= static_cast<double>(scene.whole().end);
  for (const scene::Scene::StepWindow& step : scene.steps()) {
    if (!sees_all && middle >= static_cast<double>(step.window.start) && middle < static_cast<double>(step.window.end)) return step;
  }
  return {-1, scene.whole()};
}

// K, C \ K, M \ (K u C) and the rest: the same partition as metrics/partition, from the coverage of each set.
Shares shares_of(const scene::RankScene& rank, metrics::Window window) {
  Shares shares;
  shares.compute = rank.compute.busy(window);
  shares.exposed = rank.exposed.busy(window);
  shares.memory = rank.busy(window) - shares.compute - shares.exposed;
  shares.idle = window.length() - rank.busy(window);
  return shares;
}

float overview_height(const Scene& scene) {
  return px(bar_units(scene) * static_cast<float>(std::min(scene.ranks().size(), most_bars)) + words_units + 22);
}

Intents draw_overview(const Scene& scene, const PlotState& plot, float height) {
  Intents intents;
  ui::begin_pane("overview", {0, height}, false);
  const scene::Scene::StepWindow step = step_in_view(scene, plot);
  ImGui::SetCursorPos({px(10), px(5)});
  ui::dim_line("Where the time of each rank went, " + (step.number < 0 ? std::string("whole run") : "step " + std::to_string(step.number)) + " · " +
               metrics::duration_text(step.window.length()) +
               (scene.ranks().size() > most_bars ? " · the " + std::to_string(most_bars) + " ranks with the most exposed time" : ""));

  // Bars.
  const float name_width = px(76), right = ImGui::GetWindowWidth() - px(10);
  for (const scene::RankScene* rank : ranks_with_bars(scene, step.window)) {
    const ImVec2 window = ImGui::GetWindowPos();
    const float y = ImGui::GetCursorScreenPos().y;
    ImGui::SetCursorScreenPos({window.x + px(10), y});
    const bool late = scene.straggler() == rank->rank;
    if (ui::link("rank " + std::to_string(rank->rank), late ? "The straggler: others wait for it. Click to open it" : "Open this rank")) {
      intents.push_back({"rank.show", std::to_string(rank->rank)});
    }
    draw_bar(*rank, shares_of(*rank, step.window), step.window, {window.x + px(10) + name_width, y + px(1)}, {window.x + right, y + px(bar_units(scene) - 2)});
    ImGui::SetCursorScreenPos({window.x + px(10), y + px(bar_units(scene))});
  }
  ImGui::SetCursorPos({px(10), ImGui::GetCursorPosY() + px(3)});
  ImGui::BeginGroup();
  for (ui::Intent& intent : draw_headline(scene, plot)) intents.push_back(std::move(intent));
  ImGui::EndGroup();
  ui::end_pane();
  return intents;
}

}  // namespace shardbook::views
