#include <algorithm>
#include <cmath>
#include <cstdio>

#include "engine/metrics/exposed_kinds.hpp"
#include "viewer/lanes/paint.hpp"
#include "viewer/scene/navigate.hpp"
#include "viewer/scene/sidecar.hpp"
#include "viewer/ui/fonts.hpp"
#include "viewer/ui/theme.hpp"
#include "viewer/views/figures.hpp"
#include "viewer/views/views.hpp"

namespace shardbook::views {

using scene::Paint;
using ui::px;
using ui::theme;

namespace {

constexpr std::size_t most_bars = 8, most_bars_folded = 4;      // so that two thirds of a window of 800 are rows
constexpr float left_units = 10, title_units = 24, name_units = 76, figures_units = 168, fold_units = 64;
// Many bars are thinner, so that the timeline keeps its room.
float bar_units(const Overview& overview) { return overview.bars.size() > 4 ? 14 : 17; }

std::size_t bars_wanted(const Overview& overview) { return std::min(overview.bars.size(), overview.unfolded ? most_bars : most_bars_folded); }

// Above the bars.
float head_units(const Overview& overview) { return overview.unfolded ? title_units : 4; }

void draw_bar(const metrics::Partition& partition, base::Nanoseconds waiting, ImVec2 from, ImVec2 to) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  lanes::Hatch hatch(px(6));
  for (const BarPart& part : bar_parts(partition, waiting, from.x, to.x)) {
    if (part.length <= 0) continue;
    scene::Item item;
    item.paint = part.paint;
    item.x0 = part.x0;
    item.x1 = part.x1;
    lanes::draw_item(list, item, {0, from.y, to.y}, hatch);
    // Words that there is no room for are not begun: the share alone, or nothing.
    const std::string share = percent_text(part.length, partition.window.length());
    std::string words = part.name + (" " + share);
    if (ui::measure().width(words, page::FontKind::small) > part.x1 - part.x0 - px(9)) words = share;
    if (ui::measure().width(words, page::FontKind::small) > part.x1 - part.x0 - px(9)) continue;
    const bool pale = part.paint == Paint::idle || part.paint == Paint::wait;
    lanes::draw_label(list, words, part.x0, part.x1, {0, from.y, to.y}, pale ? theme().text : theme().paint_text[static_cast<std::size_t>(part.paint)],
                      lanes::plate_of(part.paint));
  }
}

// The one sentence: on the selection if it is exposed in this step, else on the step's longest.
std::string headline(const Scene& scene, const Overview& overview, const PlotState& plot) {
  if (scene.exposures().empty()) return "No communication is exposed: compute covers all of it.";
  const std::string where = overview.step < 0 ? "" : " of step " + std::to_string(overview.step);
  if (overview.exposed.empty()) return "No communication" + where + " is exposed.";
  const int found = plot.selected.valid() ? scene::place_in(overview.exposed, plot.selected) : -1, place = std::max(found, 0);
  const metrics::Exposure* exposure = scene.exposure_of(overview.exposed[static_cast<std::size_t>(place)]);
  return (place == 0 ? "The longest blocking exposure" + where + ": "
                     : std::to_string(place + 1) + " of " + std::to_string(overview.exposed.size()) + " exposed" + where + ": ") +
         metrics::sentence(scene.timeline(), *exposure) + ".";
}

// What the exposed time of the window is made of: a single long exposure may be the least of it. Of a trace too long for
// a path over all of it, nothing: all its spans would be looked at between two frames.
std::vector<Overview::Kind> kinds_of(const Scene& scene, metrics::Window window) {
  if (scene.path_is_partial()) return {};
  const timeline::Timeline& timeline = scene.timeline();
  const std::vector<metrics::ExposedKind> all =
      metrics::exposed_kinds(timeline, window, [&](scene::SpanRef span) { return scene.collective_of(span); });
  base::Nanoseconds sum = 0;
  for (const metrics::ExposedKind& kind : all) sum += kind.exposed_ns;
  std::vector<Overview::Kind> kinds;
  for (const metrics::ExposedKind& kind : all) {
    // Less than a hundredth explains nothing.
    if (kinds.size() == 4 || kind.exposed_ns * 100 < sum) break;
    const std::string line = timeline::line_text(timeline, kind.line), brief = kind.name + " " + percent_text(kind.exposed_ns, sum);
    std::string more = "Of the exposed time of all ranks in the step: " + metrics::duration_text(kind.exposed_ns) + " in " + std::to_string(kind.spans) +
                       (kind.spans == 1 ? " span" : " spans") + ", " + percent_text(kind.waiting_ns, kind.exposed_ns) + " of it waiting for a rank";
    if (!line.empty()) more += ", issued at " + line;
    kinds.push_back({scene::span_name(scene, kind.longest), line.empty() ? brief : brief + ", " + line.substr(line.rfind('/') + 1), brief, more + ". Selects the longest."});
  }
  return kinds;
}

// Before the kinds: folded, also which step it is, and who is late.
std::string kinds_title(const Scene& scene, const Overview& overview, const PlotState& plot) {
  if (overview.unfolded) return "Exposed time of all ranks is:";
  const scene::Scene::StepWindow step = step_in_view(scene, plot);
  std::string words = (step.number < 0 ? std::string("whole run") : "step " + std::to_string(step.number)) + " · " + metrics::duration_text(step.window.length());
  if (!overview.straggler.empty()) words += " · " + overview.straggler.substr(0, overview.straggler.find('.'));
  return overview.kinds.empty() ? words : words + " · exposed on all ranks:";
}
float kinds_gap() { return px(16); }

// Those that one line of this width has room for; what does not fit is left to N. In brief where not even one fits else.
std::vector<std::pair<const Overview::Kind*, std::string>> kinds_in(const Overview& overview, const std::string& title, float width) {
  std::vector<std::pair<const Overview::Kind*, std::string>> shown;
  for (const auto words : {&Overview::Kind::words, &Overview::Kind::brief}) {
    float x = ui::measure().width(title, page::FontKind::small);
    for (const Overview::Kind& kind : overview.kinds) {
      x += kinds_gap() + ui::measure().width(kind.*words, page::FontKind::body);
      if (x > width) break;
      shown.emplace_back(&kind, kind.*words);
    }
    if (!shown.empty()) break;
  }
  return shown;
}

Intents draw_kinds(const Overview& overview, const std::string& title, float width) {
  Intents intents;
  const auto shown = kinds_in(overview, title, width);
  // On the height of the links beside it.
  const float y = ImGui::GetCursorPosY();
  ImGui::SetCursorPosY(y + std::floor((ui::font(page::FontKind::body)->FontSize - ui::font(page::FontKind::small)->FontSize) / 2));
  ui::dim_line(title);
  for (const auto& [kind, words] : shown) {
    ImGui::SameLine(0, kinds_gap());
    ImGui::SetCursorPosY(y);
    if (ui::link(words, kind->more)) {
      intents.push_back({"select", kind->name});
      intents.push_back({"view.center", ""});
    }
  }
  return intents;
}

// Who is late, how late, and what that rank did meanwhile.
std::string straggler_words(const Scene& scene) {
  const std::vector<metrics::RankWait> waits = metrics::rank_waits(scene.timeline(), scene.collectives());
  if (waits.size() < 2) return "";
  const auto [least, most] = std::minmax_element(waits.begin(), waits.end(), [](const auto& a, const auto& b) { return a.wait_ns < b.wait_ns; });
  const base::Nanoseconds whole = scene.whole().length();
  const std::optional<base::Rank> straggler = scene.straggler();
  const std::string over = scene.steps().size() > 1 ? "Over the " + std::to_string(scene.steps().size()) + " recorded steps (" + metrics::duration_text(whole) + ")"
                                                    : "Over " + metrics::duration_text(whole);
  // Below three hundredths of the time nobody waits for anybody, and there is nothing to say.
  if (!straggler || (most->wait_ns - least->wait_ns) * 100 < 3 * whole) return "";
  base::Nanoseconds second = most->wait_ns, own_compute = 0, others_compute = 0, others = 0;
  for (const metrics::RankWait& wait : waits) {
    if (wait.rank != least->rank) second = std::min(second, wait.wait_ns);
  }
  for (const scene::RankScene& rank : scene.ranks()) {
    const base::Nanoseconds compute = rank.compute.busy(scene.whole());
    if (rank.rank == least->rank) own_compute = compute;
    else others_compute += compute, ++others;
  }
  // Below a tenth of the time it explains little, and may be another rank the next time.
  const bool clearly = (most->wait_ns - least->wait_ns) * 10 >= whole;
  std::string words = "Rank " + std::to_string(least->rank) + (clearly ? " is the straggler. " : " is slightly late. ") + over + " the others waited " + metrics::duration_text(second) +
          (second == most->wait_ns ? "" : " to " + metrics::duration_text(most->wait_ns)) + " in collectives, under compute or not; it waited " +
          metrics::duration_text(least->wait_ns) + ".";
  if (others > 0 && others_compute > 0) {
    char ratio[96];
    std::snprintf(ratio, sizeof ratio, " Its compute took %.2f times as long as theirs.", static_cast<double>(own_compute * others) / static_cast<double>(others_compute));
    words += ratio;
  }
  return words;
}

// As many as ui::paragraph makes of it: lines break at blanks, and within a word that is longer than a line.
int lines_of(const std::string& words, float width) {
  const auto wide = [](std::string_view part) { return ui::measure().width(part, page::FontKind::body); };
  const float blank = wide(" ");
  int lines = words.empty() ? 0 : 1;
  float x = 0;
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    const float word = wide(std::string_view(words).substr(at, end - at));
    if (x > 0 && x + blank + word > width) {
      ++lines;
      x = 0;
    }
    x += (x > 0 ? blank : 0) + word;
    for (; x > width; x -= width) ++lines;
    at = end + 1;
  }
  return lines;
}

// The cause may take two lines where the window is all the trace's, and four beside a page: what to change stands at its end.
int most_lines_of_cause(float width) { return width > px(1000) ? 2 : 4; }
float width_of_headline(float pane) { return std::max(pane - px(2 * left_units) - 1, px(40)); }
// Folded, the way to all the rest stands beside it.
float width_of_cause(float pane) { return std::max(width_of_headline(pane) - px(fold_units), px(40)); }

// As much of the cause as that, by whole words, with "…" where some is left out. Made where the cause, its room or its letters
// are others than before, and not in each frame: every word is measured.
void fold_cause(Overview& overview, float pane) {
  const float width = width_of_cause(pane), letters = ui::font(page::FontKind::body)->FontSize;
  Overview::FoldedCause& folded = overview.folded_cause;
  if (folded.of == overview.cause && folded.width == width && folded.letters == letters) return;
  folded = {overview.cause, width, letters, overview.cause, lines_of(overview.cause, width)};
  const int most = most_lines_of_cause(width);
  for (std::size_t last; folded.lines > most && (last = folded.words.rfind(' ')) != std::string::npos;) {
    folded.words = folded.words.substr(0, last) + "…";
    folded.lines = lines_of(folded.words, width);
  }
  folded.lines = std::min(folded.lines, most);
}

// The exposed time before the last rank came, or while a full device had no room for it: nothing is transferred then. Skews
// below the clocks' error are not claimed.
std::map<base::Rank, base::Intervals> exposed_waiting(const Scene& scene) {
  const timeline::Timeline& timeline = scene.timeline();
  std::map<base::Rank, std::vector<base::Interval>> waits;
  for (const metrics::MatchedCollective& match : scene.collectives()) {
    if (!match.complete) continue;
    for (const scene::SpanRef span : match.spans) {
      const metrics::WaitSplit parts = metrics::split(timeline, match, span);
      const base::Nanoseconds end = timeline.start(span) + parts.wait_ns + parts.queued_ns;
      if (timeline.start(span) < end) waits[timeline.rank(span)].push_back({timeline.start(span), end});
    }
  }
  std::map<base::Rank, base::Intervals> exposed;
  for (auto& [rank, intervals] : waits) {
    const base::Intervals all = base::union_of(std::move(intervals));
    const scene::RankScene* of = scene.rank(rank);
    if (of != nullptr) exposed[rank] = base::subtract(all, of->compute.within({all.front().start, all.back().end}));
  }
  return exposed;
}

// Unfolded each rank has its own; so has always one that the others clearly wait for.
std::vector<RankBar> bars_of(const Scene& scene, const Overview& overview, metrics::Window window) {
  std::vector<RankBar> bars;
  for (const scene::RankScene& rank : scene.ranks()) {
    const auto waits = overview.waiting.find(rank.rank);
    const base::Nanoseconds waiting = waits == overview.waiting.end() ? 0 : base::length_within(waits->second, window);
    bars.push_back({{rank.rank}, rank.partition(window), waiting, !overview.straggler.empty() && scene.straggler() == rank.rank});
  }
  return overview.unfolded ? bars : folded(bars);
}

// Made once a run, or once a step that comes into view: all look at every collective.
void make(Overview& overview, const Scene& scene, const scene::Scene::StepWindow& step) {
  if (overview.kinds_of != step.window) {
    overview.kinds_of = step.window;
    overview.kinds = kinds_of(scene, step.window);
    overview.step = step.number;
    overview.exposed = scene::exposed_in(scene, step);
  }
  if (!overview.made) {
    overview.made = true;
    overview.waiting = exposed_waiting(scene);
    overview.straggler = straggler_words(scene);
  }
  if (overview.bars_of == std::pair(step.window, overview.unfolded)) return;
  overview.bars_of = {step.window, overview.unfolded};
  overview.bars = bars_of(scene, overview, step.window);
}

// A sentence, a line of the kinds, a sentence and a line of links, in a pane of this width: what draw_headline takes.
float headline_height(const Scene& scene, const Overview& overview, const PlotState& plot, float pane) {
  const float width = width_of_headline(pane), body = ui::font(page::FontKind::body)->FontSize;
  const float line = std::round(body * 1.32f), link = body + px(2), between = ImGui::GetStyle().ItemSpacing.y;
  float height = px(3) + link + px(4);
  if (!overview.unfolded && !overview.cause.empty()) return px(3) + static_cast<float>(overview.folded_cause.lines) * line + px(3);
  if (!overview.unfolded) return height;
  if (!overview.cause.empty()) height += static_cast<float>(lines_of(overview.cause, width)) * line + between;
  for (const std::string& words : {overview.straggler, headline(scene, overview, plot)}) {
    if (!words.empty()) height += static_cast<float>(lines_of(words, width)) * line + between;
  }
  return kinds_in(overview, kinds_title(scene, overview, plot), width).empty() ? height : height + link + between;
}

// What to look at, why, and the one key to press.
Intents draw_headline(const Scene& scene, const Overview& overview, const PlotState& plot) {
  Intents intents;
  const metrics::Exposure* exposure = plot.selected.valid() ? scene.exposure_of(plot.selected) : nullptr;
  const std::string title = kinds_title(scene, overview, plot);
  if (!overview.cause.empty()) ui::paragraph(overview.cause);
  if (!overview.straggler.empty()) ui::paragraph(overview.straggler);
  if (!kinds_in(overview, title, ImGui::GetContentRegionAvail().x).empty()) intents = draw_kinds(overview, title, ImGui::GetContentRegionAvail().x);
  ui::paragraph(headline(scene, overview, plot));
  if (!scene.exposures().empty()) {
    if (ui::link("N: next exposed span", "Of this step: longest blocking first, then longest exposed")) intents.push_back({"exposed.next", ""});
    ImGui::SameLine(0, px(18));
  }
  if (exposure != nullptr && exposure->line.known()) {
    if (ui::link("G: its source line")) intents.push_back({"go.source", ""});
    ImGui::SameLine(0, px(18));
  }
  if (ui::link("C: critical path")) intents.push_back({"show.critical", ""});
  ImGui::SameLine(0, px(18));
  if (ui::link("less", "The bars and one line (U)")) intents.push_back({"show.header", ""});
  return intents;
}

// One line: which step, what its exposed time is made of, and at the right the way to all the rest.
Intents draw_folded(const Scene& scene, const Overview& overview, const PlotState& plot, std::size_t hidden_bars) {
  const float y = ImGui::GetCursorPosY(), width = ImGui::GetContentRegionAvail().x - px(fold_units);
  const std::string title = kinds_title(scene, overview, plot);
  Intents intents;
  if (!overview.cause.empty()) {
    const float line = std::round(ui::font(page::FontKind::body)->FontSize * 1.32f);
    ImGui::BeginChild("cause", {overview.folded_cause.width, line * static_cast<float>(overview.folded_cause.lines)}, false,
                      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
    ui::paragraph(overview.folded_cause.words);
    ImGui::EndChild();
  } else if (!overview.kinds.empty() || scene.exposures().empty()) {
    intents = draw_kinds(overview, title, width);
    if (scene.exposures().empty()) {
      ImGui::SameLine(0, kinds_gap());
      ImGui::SetCursorPosY(y);
      ui::words_line(headline(scene, overview, plot));
    }
  } else {
    ImGui::BeginChild("line", {width, ui::font(page::FontKind::body)->FontSize + px(4)}, false, ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
    ui::words_line(title + " · " + headline(scene, overview, plot));
    ImGui::EndChild();
  }
  ImGui::SetCursorPos({ImGui::GetWindowWidth() - px(fold_units), y});
  const std::string more = hidden_bars == 0 ? "more" : "+" + std::to_string(hidden_bars) + (hidden_bars == 1 ? " bar" : " bars");
  if (ui::link(more, hidden_bars == 0 ? "All figures of the step, and who waited for whom (U)" : "The bars of the other ranks, and all figures of the step (U)")) {
    intents.push_back({"show.header", ""});
  }
  return intents;
}

// Of which window the bars are, and of which ranks.
std::string title_words(const Scene& scene, const scene::Scene::StepWindow& step, std::size_t bars) {
  const std::size_t steps = scene.steps().size(), ranks = scene.ranks().size();
  std::string words = "Where the time of each rank went, " + (step.number < 0 ? std::string("whole run") : "step " + std::to_string(step.number));
  words += " · " + metrics::duration_text(step.window.length()) + " · exposed = transfer + waiting for ranks or room";
  if (ranks > bars) words += " · of " + std::to_string(ranks) + " ranks the " + std::to_string(bars) + " with the most exposed time";
  if (steps > 1) {
    words += " · " + std::to_string(steps) + " steps, keys 1 " + (steps == 2 ? "and" : "to") + " " + std::to_string(std::min<std::size_t>(9, steps)) +
             " choose one";
  }
  return words;
}

// One line: the name of the rank or of those that are alike, the bar, and the exposed share in words, for which a small part
// has no room.
void draw_rank(const Scene& scene, const RankBar& bar, const Overview& overview, metrics::Window window, float name_width, Intents& intents) {
  const float left = ImGui::GetWindowPos().x + px(left_units), right = ImGui::GetWindowPos().x + ImGui::GetWindowWidth() - px(10);
  const float y = ImGui::GetCursorScreenPos().y, height = px(bar_units(overview));
  ImGui::SetCursorScreenPos({left, y + px(1)});
  const base::Rank first = bar.ranks.front();
  const std::string name = name_of(bar), number = std::to_string(first);
  if (bar.ranks.size() > 1) {
    if (ui::link(name, "Alike within a hundredth of the step; the bar is rank " + number + "'s. Click for a bar each (U)")) intents.push_back({"show.header", ""});
  } else if (ui::link(name, scene.straggler() == first ? "The straggler: others wait for it. Click to open it" : "Open this rank")) {
    intents.push_back({"rank.show", number});
  }
  draw_bar(bar.partition, bar.waiting, {left + name_width, y + px(1)}, {right - px(figures_units), y + height - px(2)});

  const auto percent = [&](base::Nanoseconds part) { return percent_text(part, window.length()); };
  ImFont* small = ui::font(page::FontKind::small);
  const std::string figures = percent(bar.partition.exposed_communication_ns) + " exposed, " + metrics::duration_text(bar.partition.exposed_communication_ns);
  const float wide = small->CalcTextSizeA(small->FontSize, 1e9f, 0, figures.c_str()).x;
  const ImVec2 at{right - wide, std::floor(y + (height - px(1) - small->FontSize) / 2)};
  ImGui::GetWindowDrawList()->AddText(small, small->FontSize, at, theme().text, figures.c_str());
  ui::note_words("rank " + number + " compute " + percent(bar.partition.compute_ns) + " exposed " + percent(bar.partition.exposed_communication_ns) + " idle " +
                 percent(bar.partition.idle_ns));
  ImGui::SetCursorScreenPos({left, y + height});
}

}  // namespace

scene::Scene::StepWindow step_in_view(const Scene& scene, const PlotState& plot) {
  const bool sees_all = plot.view.start <= static_cast<double>(scene.whole().start) && plot.view.end >= static_cast<double>(scene.whole().end);
  return sees_all ? scene::Scene::StepWindow{-1, scene.whole()} : scene::step_at(scene, (plot.view.start + plot.view.end) / 2);
}

float overview_height(const Scene& scene, Overview& overview, const PlotState& plot, float width) {
  make(overview, scene, step_in_view(scene, plot));
  fold_cause(overview, width);
  return px(bar_units(overview) * static_cast<float>(bars_wanted(overview)) + head_units(overview)) + headline_height(scene, overview, plot, width);
}

Intents draw_overview(const Scene& scene, Overview& overview, const PlotState& plot, float height) {
  const scene::Scene::StepWindow step = step_in_view(scene, plot);
  make(overview, scene, step);
  Intents intents;
  // A scrollbar that comes for a moment would make lines shorter, so that more of them need it.
  ui::begin_pane("overview", {0, height}, false, "", false);
  fold_cause(overview, ImGui::GetWindowWidth());
  // Where there is not room for all bars, there are fewer; the sentence is never cut.
  const float room = height - headline_height(scene, overview, plot, ImGui::GetWindowWidth()) - px(head_units(overview));
  const std::size_t most = std::clamp<std::size_t>(static_cast<std::size_t>(std::max(0.0f, room) / px(bar_units(overview)) + 0.01f), 1, overview.unfolded ? most_bars : most_bars_folded);
  ImGui::SetCursorPos({px(left_units), px(overview.unfolded ? 5 : 4)});
  if (overview.unfolded) ui::dim_line(title_words(scene, step, most));
  const std::vector<RankBar> bars = most_exposed(overview.bars, most, !overview.unfolded);
  float name_width = px(name_units);
  for (const RankBar& bar : bars) name_width = std::max(name_width, ui::measure().width(name_of(bar), page::FontKind::body) + px(12));
  for (const RankBar& bar : bars) draw_rank(scene, bar, overview, step.window, name_width, intents);
  ImGui::SetCursorPos({px(left_units), ImGui::GetCursorPosY() + px(3)});
  ImGui::BeginGroup();
  for (ui::Intent& intent : overview.unfolded ? draw_headline(scene, overview, plot) : draw_folded(scene, overview, plot, overview.bars.size() - bars.size())) intents.push_back(std::move(intent));
  ImGui::EndGroup();
  ui::end_pane();
  return intents;
}

}  // namespace shardbook::views
