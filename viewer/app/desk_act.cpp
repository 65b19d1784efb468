// What commands do. Each part takes the intents of its own group; one that none takes is a mistake that is said.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "viewer/app/desk_state.hpp"
#include "viewer/lanes/camera.hpp"
#include "viewer/scene/navigate.hpp"
#include "viewer/ui/keys.hpp"

namespace shardbook::app {

using base::text;
using scene::SpanRef;

namespace {

constexpr double zoom_a_frame = 1.07;        // while a key is held
constexpr double pan_a_frame = 0.03;
constexpr std::size_t most_history = 100;

int number_of(const std::string& words) { return std::atoi(words.c_str()); }

}  // namespace

void Desk::Impl::act(const ui::Intent& intent) {
  hint.clear();
  turn_to_run();
  if (act_on_window(intent) || act_on_runs(intent) || act_on_text(intent) || act_on_view(intent) || act_on_selection(intent) || act_on_marks(intent)) return;
  fail(text("there is no command '", intent.id, "'"));
}

bool Desk::Impl::act_on_window(const ui::Intent& intent) {
  const std::string& id = intent.id;
  if (id == "quit") quit = true;
  else if (id == "theme") settings.dark = intent.argument.empty() ? !settings.dark : intent.argument == "dark";
  else if (id == "scale.up") settings.scale = std::min(3.0f, settings.scale * 1.1f);
  else if (id == "scale.down") settings.scale = std::max(0.6f, settings.scale / 1.1f);
  else if (id == "scale.reset") settings.scale = 1;
  else if (id == "layout.read" || id == "layout.split" || id == "layout.trace") layout = id.substr(7);
  else if (id == "drawer") drawer = !drawer;
  else if (id == "panel") show_panel(intent.argument);
  else if (id == "help") show_help = !show_help;
  else if (id == "palette") open_palette(false);
  else if (id == "tracks") open_palette(true);
  else if (id == "up") up();
  else if (id == "screenshot") picture_wanted = intent.argument.empty() ? "shardbook.png" : intent.argument;
  else if (id == "pane.next" || id == "pane.previous") {
    // Around the panels of the drawer.
    static const std::vector<std::string> names{"span", "source", "area", "find", "compare", "marks"};
    const auto at = std::find(names.begin(), names.end(), panel) - names.begin();
    const auto count = static_cast<std::ptrdiff_t>(names.size());
    show_panel(names[static_cast<std::size_t>((at + (id == "pane.next" ? 1 : count - 1)) % count)]);
  } else {
    return false;
  }
  return true;
}

bool Desk::Impl::act_on_runs(const ui::Intent& intent) {
  const std::string& id = intent.id;
  if (id == "open") open_all(intent.argument);
  else if (id == "run.show") current = std::clamp(number_of(intent.argument), runs.empty() ? -1 : 0, static_cast<int>(runs.size()) - 1);
  else if (id == "run.close") close(intent.argument.empty() ? current : number_of(intent.argument));
  else if (id == "compare") show_panel("compare");
  else if (id == "library") {
    show_library = !show_library || layout == "trace" || reader.title.empty();
    if (layout == "trace") layout = "split";
  } else {
    return false;
  }
  return true;
}

// A command on a run where none is open does nothing but say so.
bool Desk::Impl::act_on_view(const ui::Intent& intent) {
  const std::string& id = intent.id;
  const bool mine = id.starts_with("view.") || id.starts_with("step") || id.starts_with("scroll.") || id.starts_with("show.") || id.starts_with("row.") ||
                    id.starts_with("rank.") || id == "pin" || id == "link.copy";
  if (!mine) return false;
  OpenRun* one = run();
  if (one == nullptr) {
    fail("no run is open");
    return true;
  }
  lanes::PlotState& plot = one->plot;
  const scene::Scene& scene = *one->scene;
  const metrics::Window whole = scene.whole();
  const float at = plot.pointer_x >= 0 ? plot.pointer_x : plot.view.width / 2;
  const std::string& focus = plot.focus_row;
  if (id == "view.zoom_in") lanes::zoom(plot.view, 1 / zoom_a_frame, at, whole);
  else if (id == "view.zoom_out") lanes::zoom(plot.view, zoom_a_frame, at, whole);
  else if (id == "view.pan_left") lanes::pan(plot.view, -pan_a_frame, whole);
  else if (id == "view.pan_right") lanes::pan(plot.view, pan_a_frame, whole);
  else if (id == "scroll.up" || id == "scroll.down") plot.scroll += id == "scroll.up" ? -24 : 24;
  else if (id == "scroll.page_up" || id == "scroll.page_down") plot.scroll += id == "scroll.page_up" ? -300 : 300;
  else if (id == "view.fit") { keep_view(); lanes::show(plot.view, whole, whole); }
  else if (id == "view.center" && plot.selected.valid()) {
    // F again, where the selection is in the middle already, shows the whole run.
    const scene::TimeView before = plot.view;
    keep_view();
    lanes::center(plot.view, {scene.timeline().start(plot.selected), scene.timeline().end(plot.selected)}, whole);
    if (std::abs(plot.view.start - before.start) < 1 && std::abs(plot.view.end - before.end) < 1) lanes::show(plot.view, whole, whole);
    plot.reveal = true;
  }
  else if (id == "view.center") { keep_view(); lanes::show(plot.view, whole, whole); }
  else if (id == "view.zoom_area" && plot.area) { keep_view(); lanes::show(plot.view, plot.area->window, whole); }
  else if ((id == "view.zoom_area" || id == "view.zoom_selected") && plot.selected.valid()) {
    keep_view();
    lanes::show(plot.view, {scene.timeline().start(plot.selected), scene.timeline().end(plot.selected)}, whole, 0.5);
    plot.reveal = true;
  }
  else if (id == "view.back" && !one->back.empty()) { one->forward.push_back(plot.view); plot.view = one->back.back(); one->back.pop_back(); }
  else if (id == "view.forward" && !one->forward.empty()) { one->back.push_back(plot.view); plot.view = one->forward.back(); one->forward.pop_back(); }
  else if (id == "step" || id == "step.next" || id == "step.previous") {
    const auto& steps = scene.steps();
    const int now = views::step_in_view(scene, plot).number;
    auto found = std::find_if(steps.begin(), steps.end(), [&](const auto& step) { return step.number == now; });
    int place = found == steps.end() ? (id == "step.previous" ? static_cast<int>(steps.size()) : -1) : static_cast<int>(found - steps.begin());
    place = id == "step" ? number_of(intent.argument) - 1 : id == "step.next" ? place + 1 : place - 1;
    if (place < 0 || place >= static_cast<int>(steps.size())) {
      hint = base::text("this run has ", steps.size(), " recorded steps");
    } else {
      keep_view();
      lanes::show(plot.view, steps[static_cast<std::size_t>(place)].window, whole, 0.01);
    }
  }
  else if (id == "show.critical") plot.show_critical = !plot.show_critical;
  else if (id == "show.idle_causes") plot.show_idle_causes = !plot.show_idle_causes;
  else if (id == "show.exposed") { if (!plot.choices.hidden.erase("exposed")) plot.choices.hidden.insert("exposed"); }
  else if (id == "show.memory" || id == "show.host") {
    const std::string kind = id.substr(5);
    if (!plot.choices.hidden.erase(kind)) plot.choices.hidden.insert(kind);
    plot.choices.open.insert("r" + std::to_string(scene.ranks().front().rank));
  }
  else if (id == "show.row" || id == "show.kind") { if (!plot.choices.hidden.erase(intent.argument)) plot.choices.hidden.insert(intent.argument); }
  else if (id == "row.focus") plot.focus_row = intent.argument;
  else if (id == "row.show") {
    plot.choices.open.insert(intent.argument.substr(0, intent.argument.find('.')));
    for (const char* kind : {"host", "marks", "memory", "exposed", "idle", "critical"}) plot.choices.hidden.erase(kind);
    plot.choices.hidden.erase(intent.argument);
    plot.choices.fold_alike = false;
    plot.focus_row = intent.argument;
    plot.reveal = true;
  }
  else if (id == "row.toggle") { if (!plot.choices.open.erase(intent.argument)) plot.choices.open.insert(intent.argument); }
  else if (id == "rank.show") {
    const std::string name = "r" + std::to_string(number_of(intent.argument));
    plot.choices.open.insert(name);
    const auto folded = std::any_of(plot.rows.begin(), plot.rows.end(), [&](const scene::Row& row) {
      return std::find(row.alike.begin(), row.alike.end(), number_of(intent.argument)) != row.alike.end();
    });
    if (folded) plot.choices.fold_alike = false;
    plot.focus_row = name;
    plot.reveal = true;
  }
  else if (id == "rank.open" || id == "rank.fold") {
    const std::string name = focus.empty() ? "r0" : focus.substr(0, focus.find('.'));
    if (id == "rank.open") plot.choices.open.insert(name);
    if (id == "rank.fold") plot.choices.open.erase(name);
    plot.focus_row = name;
  }
  else if (id == "rank.alike") plot.choices.fold_alike = !plot.choices.fold_alike;
  else if (id == "pin") {
    const std::string name = intent.argument.empty() ? focus : intent.argument;
    if (name.empty()) hint = "select a row first, then P pins it";
    else if (!plot.choices.pinned.erase(name)) plot.choices.pinned.insert(name);
  }
  else if (id == "link.copy") {
    ImGui::SetClipboardText(link_to_view().c_str());
    hint = "copied: " + link_to_view();
  }
  else if (id != "view.zoom_area" && id != "view.zoom_selected" && id != "view.back" && id != "view.forward") return false;
  return true;
}

bool Desk::Impl::act_on_selection(const ui::Intent& intent) {
  const std::string& id = intent.id;
  const bool mine = id.starts_with("select") || id.starts_with("exposed.") || id.starts_with("follow.") || id.starts_with("area.") || id == "find" || id.starts_with("find.");
  if (!mine) return false;
  OpenRun* one = run();
  if (one == nullptr) {
    fail("no run is open");
    return true;
  }
  lanes::PlotState& plot = one->plot;
  const scene::Scene& scene = *one->scene;
  if (id == "select") select(intent.argument == "next-exposed" && !scene.exposures().empty() ? scene.exposures().front().span : scene::span_of_name(scene, intent.argument), false);
  else if (id == "exposed.next") select_exposed(1);
  else if (id == "exposed.previous") select_exposed(-1);
  else if (id == "select.next") select(plot.selected.valid() ? scene::next_on_track(scene, plot.selected) : SpanRef{}, true);
  else if (id == "select.previous") select(plot.selected.valid() ? scene::previous_on_track(scene, plot.selected) : SpanRef{}, true);
  else if (id == "select.up" || id == "select.down") {
    // The next row in this direction that holds spans.
    auto at = std::find_if(plot.rows.begin(), plot.rows.end(), [&](const scene::Row& row) { return row.name == plot.focus_row; });
    auto place = at == plot.rows.end() ? 0 : static_cast<int>(at - plot.rows.begin());
    const int step = id == "select.up" ? -1 : 1;
    for (place += step; place >= 0 && place < static_cast<int>(plot.rows.size()); place += step) {
      const scene::Row& row = plot.rows[static_cast<std::size_t>(place)];
      if (row.track < 0) continue;
      const base::Nanoseconds time = plot.selected.valid() ? scene.timeline().start(plot.selected) : plot.view.time_at(plot.view.width / 2);
      select(scene::nearest_on(scene, row, time), false);
      plot.focus_row = row.name;
      plot.reveal = true;
      break;
    }
  }
  else if (id == "follow.in") follow_edge(true);
  else if (id == "follow.out") follow_edge(false);
  else if (id == "follow.cycle") ++one->edge;
  else if (id == "area.done") show_panel("area");
  else if (id == "area.clear") plot.area.reset();
  else if (id == "area.set") {
    // "FROM_NS TO_NS [FIRST_ROW LAST_ROW]", for scripts and links.
    char first[128] = "", last[128] = "";
    long long from = 0, to = 0;
    const int read = std::sscanf(intent.argument.c_str(), "%lld %lld %127s %127s", &from, &to, first, last);
    if (read < 2 || to <= from) fail("area.set needs FROM_NS TO_NS [FIRST_ROW LAST_ROW]");
    else plot.area = lanes::Area{{from, to}, first, read >= 4 ? last : first};
    if (plot.area) show_panel("area");
  }
  else if (id == "area.of_selection" && plot.selected.valid()) {
    plot.area = lanes::Area{{scene.timeline().start(plot.selected), scene.timeline().end(plot.selected)}, plot.focus_row, plot.focus_row};
    show_panel("area");
  }
  else if (id == "find") {
    show_panel("find");
    find.take_focus = intent.argument.empty();
    if (!intent.argument.empty()) find.query = intent.argument;
  }
  else if (id == "find.marks") plot.marked = find.shown.spans;
  else if (id == "find.next" || id == "find.previous") {
    if (!find.shown.spans.empty()) {
      const int count = static_cast<int>(find.shown.spans.size());
      find.place = (find.place + (id == "find.next" ? 1 : count - 1) + count) % count;
      select(find.shown.spans[static_cast<std::size_t>(find.place)], true);
    }
  }
  else if (id != "area.of_selection") return false;
  return true;
}

bool Desk::Impl::act_on_marks(const ui::Intent& intent) {
  const std::string& id = intent.id;
  if (id != "range.temporary" && id != "range.keep" && id != "annotate" && id != "annotation.keep" && id != "delete" && id != "mark.show") return false;
  OpenRun* one = run();
  if (one == nullptr) {
    fail("no run is open");
    return true;
  }
  lanes::PlotState& plot = one->plot;
  const scene::Scene& scene = *one->scene;
  std::optional<metrics::Window> window;
  if (plot.area) window = plot.area->window;
  else if (plot.selected.valid()) window = metrics::Window{scene.timeline().start(plot.selected), scene.timeline().end(plot.selected)};
  if (id == "range.temporary") plot.temporary = window;
  else if (id == "range.keep" && window) {
    plot.ranges.push_back({*window, intent.argument});
    show_panel("marks");
  }
  else if (id == "annotate") {
    if (!intent.argument.empty()) return act_on_marks({"annotation.keep", intent.argument});
    show_panel("marks");
    marks.writing = marks.take_focus = true;
    marks.draft.clear();
  }
  else if (id == "annotation.keep") {
    const base::Nanoseconds time = plot.selected.valid() ? scene.timeline().start(plot.selected) : plot.view.time_at(plot.view.width / 2);
    plot.annotations.push_back({plot.focus_row, time, intent.argument});
    marks.writing = false;
    show_panel("marks");
    remember(*one);
  }
  else if (id == "delete") {
    const auto ranges = static_cast<int>(plot.ranges.size()), all = ranges + static_cast<int>(plot.annotations.size());
    const int chosen = marks.selected >= 0 ? marks.selected : all - 1;
    if (chosen >= 0 && chosen < ranges) plot.ranges.erase(plot.ranges.begin() + chosen);
    else if (chosen < all && chosen >= 0) plot.annotations.erase(plot.annotations.begin() + (chosen - ranges));
    marks.selected = -1;
    plot.temporary.reset();
  }
  else if (id == "mark.show") {
    const int chosen = number_of(intent.argument), ranges = static_cast<int>(plot.ranges.size());
    marks.selected = chosen;
    keep_view();
    if (chosen >= 0 && chosen < ranges) lanes::show(plot.view, plot.ranges[static_cast<std::size_t>(chosen)].window, scene.whole(), 0.3);
    else if (chosen - ranges < static_cast<int>(plot.annotations.size()) && chosen >= ranges) {
      const scene::Annotation& annotation = plot.annotations[static_cast<std::size_t>(chosen - ranges)];
      lanes::center(plot.view, {annotation.time, annotation.time + 1}, scene.whole());
      plot.focus_row = annotation.row;
      plot.reveal = true;
    }
  }
  return true;
}

// One level: what is over everything, a word that is being written, the area, the selection, the drawer.
void Desk::Impl::up() {
  OpenRun* one = run();
  if (show_help) show_help = false;
  else if (palette.open) palette.open = false;
  else if (marks.writing) marks.writing = false;
  else if (reader.searching) reader.searching = false;
  else if (!shown_problem.empty()) shown_problem.clear();
  else if (one != nullptr && one->plot.area) one->plot.area.reset();
  else if (one != nullptr && one->plot.temporary) one->plot.temporary.reset();
  else if (one != nullptr && !one->plot.marked.empty()) { one->plot.marked.clear(); find = {}; }
  else if (one != nullptr && one->plot.selected.valid()) one->plot.selected = {};
}

void Desk::Impl::open_row_of(SpanRef span) {
  OpenRun* one = run();
  const std::string name = scene::span_name(*one->scene, span);
  one->plot.focus_row = name.substr(0, name.find('/'));
  const std::string rank = name.substr(0, name.find('.'));
  one->plot.choices.open.insert(rank);
  // A rank that is folded into another comes out; a kind of row that is hidden is shown.
  const std::vector<scene::Row> rows = one->scene->rows(one->plot.choices);
  if (std::none_of(rows.begin(), rows.end(), [&](const scene::Row& row) { return row.name == rank; })) one->plot.choices.fold_alike = false;
  const timeline::Track& track = one->scene->timeline().tracks[span.track];
  if (track.kind == timeline::TrackKind::host) one->plot.choices.hidden.erase("host");
  if (track.kind == timeline::TrackKind::marks) one->plot.choices.hidden.erase("marks");
}

void Desk::Impl::select(SpanRef span, bool look) {
  OpenRun* one = run();
  one->plot.selected = span;
  one->edge = 0;
  if (!span.valid()) return;
  open_row_of(span);
  one->plot.reveal = true;
  if (panel != "span" && panel != "find" && panel != "source") show_panel("span");
  if (!look) return;
  // In sight, and wide enough to be seen.
  const scene::Timeline& timeline = one->scene->timeline();
  const metrics::Window window{timeline.start(span), timeline.end(span)};
  const double share = static_cast<double>(window.length()) / (one->plot.view.end - one->plot.view.start);
  const bool outside = static_cast<double>(window.start) < one->plot.view.start || static_cast<double>(window.end) > one->plot.view.end;
  if (share < 0.02 || share > 0.9) {
    keep_view();
    lanes::show(one->plot.view, window, one->scene->whole(), 3);
  } else if (outside) {
    keep_view();
    lanes::center(one->plot.view, window, one->scene->whole());
  }
}

void Desk::Impl::select_exposed(int direction) {
  OpenRun* one = run();
  const auto& exposures = one->scene->exposures();
  if (exposures.empty()) {
    hint = "no communication is exposed in this run";
    return;
  }
  const int count = static_cast<int>(exposures.size());
  const int now = one->plot.selected.valid() ? scene::place_of(*one->scene, one->plot.selected) : -1;
  const int next = now < 0 ? (direction > 0 ? 0 : count - 1) : (now + direction + count) % count;
  select(exposures[static_cast<std::size_t>(next)].span, true);
  show_panel("span");
}

void Desk::Impl::follow_edge(bool in) {
  OpenRun* one = run();
  if (!one->plot.selected.valid()) return;
  const scene::Arrows arrows = scene::arrows_of(*one->scene, one->plot.selected);
  const std::vector<scene::Arrow>& edges = in ? arrows.in : arrows.out;
  if (edges.empty()) {
    hint = in ? "nothing is recorded that this span waited for" : "nothing is recorded that waited for this span";
    return;
  }
  const scene::Arrow& arrow = edges[one->edge % edges.size()];
  select(in ? arrow.from : arrow.to, true);
  hint = arrow.words;
}

void Desk::Impl::keep_view() {
  OpenRun* one = run();
  one->back.push_back(one->plot.view);
  one->forward.clear();
  if (one->back.size() > most_history) one->back.erase(one->back.begin());
}

void Desk::Impl::show_panel(const std::string& name) {
  panel = name;
  drawer = true;
}

void Desk::Impl::open_palette(bool of_rows) {
  palette = {};
  palette.open = palette.take_focus = true;
  palette.title = of_rows ? "Rows" : "Commands";
  if (of_rows && run() != nullptr) {
    scene::RowChoices all = run()->plot.choices;
    all.fold_alike = false;
    all.hidden.clear();
    for (const scene::RankScene& rank : run()->scene->ranks()) all.open.insert("r" + std::to_string(rank.rank));
    for (const scene::Row& row : run()->scene->rows(all)) {
      if (row.pinned) continue;
      palette.choices.push_back({"rank " + std::to_string(row.rank) + " · " + row.title, row.name, {"row.show", row.name}});
    }
    return;
  }
  for (const ui::Command& command : ui::commands()) palette.choices.push_back({command.what, command.keys, {command.id, ""}});
  for (const char* kind : {"marks", "idle", "critical"}) {
    palette.choices.push_back({std::string("Show or hide the rows of kind: ") + kind, "", {"show.kind", kind}});
  }
  palette.choices.push_back({"Fold ranks that behave alike, or unfold them", "", {"rank.alike", ""}});
}

}  // namespace shardbook::app
