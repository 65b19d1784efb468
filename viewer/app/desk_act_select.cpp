// app/desk_act_select: commands that select spans, measure an area, and go through what was found.
//
// Whatever is selected is brought in sight: its rank is opened, its kind of rows shown, and the view moved to it
// where it is outside or too narrow to be seen.
#include <algorithm>
#include <cstdio>

#include "viewer/app/desk_act.hpp"
#include "viewer/lanes/camera.hpp"
#include "viewer/scene/navigate.hpp"

namespace shardbook::app {

using scene::SpanRef;

const Desk::Impl::RunActions& Desk::Impl::selection_actions() {
  static const RunActions table = {
      // --- Spans --------------------------------------------------------------------------------------
      {"select", [](const OnRun& on) {
         const bool first_exposed = on.argument == "next-exposed" && !on.scene.exposures().empty();
         on.desk.select(first_exposed ? on.scene.exposures().front().span : scene::span_of_name(on.scene, on.argument), false);
       }},
      {"select.next", [](const OnRun& on) { on.desk.select(on.selected() ? scene::next_on_track(on.scene, on.plot.selected) : SpanRef{}, true); }},
      {"select.previous", [](const OnRun& on) { on.desk.select(on.selected() ? scene::previous_on_track(on.scene, on.plot.selected) : SpanRef{}, true); }},
      {"select.up", [](const OnRun& on) { on.desk.select_on_next_row(on, -1); }},
      {"select.down", [](const OnRun& on) { on.desk.select_on_next_row(on, 1); }},
      {"exposed.next", [](const OnRun& on) { on.desk.select_exposed(1); }},
      {"exposed.previous", [](const OnRun& on) { on.desk.select_exposed(-1); }},
      {"follow.in", [](const OnRun& on) { on.desk.follow_edge(true); }},
      {"follow.out", [](const OnRun& on) { on.desk.follow_edge(false); }},
      {"follow.cycle", [](const OnRun& on) { ++on.run.edge; }},

      // --- An area ------------------------------------------------------------------------------------
      {"area.done", [](const OnRun& on) { on.desk.show_panel("area"); }},
      {"area.clear", [](const OnRun& on) { on.plot.area.reset(); }},
      {"area.set", [](const OnRun& on) { on.desk.set_area(on); }},
      {"area.of_selection", [](const OnRun& on) {
         if (!on.selected()) return;
         on.plot.area = lanes::Area{on.selection(), on.plot.focus_row, on.plot.focus_row};
         on.desk.show_panel("area");
       }},

      // --- What was found -----------------------------------------------------------------------------
      {"find", [](const OnRun& on) {
         on.desk.show_panel("find");
         on.desk.find.take_focus = on.argument.empty();
         if (!on.argument.empty()) on.desk.find.query = on.argument;
       }},
      {"find.marks", [](const OnRun& on) { on.plot.marked = on.desk.find.shown.spans; }},
      {"find.next", [](const OnRun& on) { on.desk.select_found(1); }},
      {"find.previous", [](const OnRun& on) { on.desk.select_found(-1); }},
  };
  return table;
}

void Desk::Impl::open_row_of(OpenRun& one, SpanRef span) {
  const std::string name = scene::span_name(*one.scene, span);
  one.plot.focus_row = name.substr(0, name.find('/'));
  const std::string rank = name.substr(0, name.find('.'));
  one.plot.choices.open.insert(rank);
  // A rank that is folded into another comes out; a kind of row that is hidden is shown.
  const std::vector<scene::Row> rows = one.scene->rows(one.plot.choices);
  if (std::none_of(rows.begin(), rows.end(), [&](const scene::Row& row) { return row.name == rank; })) one.plot.choices.fold_alike = false;
  const timeline::Track& track = one.scene->timeline().tracks[span.track];
  if (track.kind == timeline::TrackKind::host) one.plot.choices.hidden.erase("host");
  if (track.kind == timeline::TrackKind::marks) one.plot.choices.hidden.erase("marks");
}

void Desk::Impl::select(SpanRef span, bool look) {
  OpenRun* one = run();
  one->plot.selected = span;
  one->edge = 0;
  if (!span.valid()) return;
  one->chosen = true;
  open_row_of(*one, span);
  one->plot.reveal = true;
  if (panel != "span" && panel != "find" && panel != "source") show_panel("span");
  if (!drawer && settings.drawer) drawer = true;
  if (!look) return;
  // In sight, and wide enough to be seen.
  const scene::Timeline& timeline = one->scene->timeline();
  const metrics::Window window{timeline.start(span), timeline.end(span)};
  const double share = static_cast<double>(window.length()) / (one->plot.view.end - one->plot.view.start);
  const bool outside = static_cast<double>(window.start) < one->plot.view.start || static_cast<double>(window.end) > one->plot.view.end;
  if (share < 0.02 || share > 0.9) {
    keep_view();
    // Three lengths on each side, but no time before or after the run.
    const metrics::Window whole = one->scene->whole();
    const base::Nanoseconds air = 3 * window.length();
    lanes::show(one->plot.view, {std::max(whole.start, window.start - air), std::min(whole.end, window.end + air)}, whole);
  } else if (outside) {
    keep_view();
    lanes::center(one->plot.view, window, one->scene->whole());
  }
}

void Desk::Impl::select_exposed(int direction) {
  OpenRun* one = run();
  // Of the step in view alone: the longest of another step would take the user there unasked.
  const scene::Scene::StepWindow step = views::step_in_view(*one->scene, one->plot);
  const std::vector<SpanRef> exposed = scene::exposed_in(*one->scene, step);
  const std::string where = step.number < 0 ? "this run" : base::text("step ", step.number);
  if (exposed.empty()) {
    hint = "no communication is exposed in " + where;
    return;
  }
  const int now = one->plot.selected.valid() ? scene::place_in(exposed, one->plot.selected) : -1;
  const int next = scene::exposed_after(exposed, now, direction);
  select(exposed[static_cast<std::size_t>(next)], true);
  show_panel("span");
  hint = base::text(next + 1, " of ", exposed.size(), " exposed in ", where);
  const bool around = now >= 0 && (direction > 0 ? next <= now : next >= now);
  if (around) hint += direction > 0 ? ": all were seen, the longest again" : ": the longest was seen, the shortest now";
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

// The next row in this direction that holds spans: the one nearest in time to the selection.
void Desk::Impl::select_on_next_row(const OnRun& on, int direction) {
  const std::vector<scene::Row>& rows = on.plot.rows;
  const auto at = std::find_if(rows.begin(), rows.end(), [&](const scene::Row& row) { return row.name == on.plot.focus_row; });
  const auto count = static_cast<int>(rows.size());
  for (int place = (at == rows.end() ? 0 : static_cast<int>(at - rows.begin())) + direction; place >= 0 && place < count; place += direction) {
    const scene::Row& row = rows[static_cast<std::size_t>(place)];
    if (row.track < 0) continue;
    select(scene::nearest_on(on.scene, row, on.time()), false);
    on.plot.focus_row = row.name;
    on.plot.reveal = true;
    return;
  }
}

// "FROM_NS TO_NS [FIRST_ROW LAST_ROW]", for scripts and links.
void Desk::Impl::set_area(const OnRun& on) {
  char first[128] = "", last[128] = "";
  long long from = 0, to = 0;
  const int read = std::sscanf(on.argument.c_str(), "%lld %lld %127s %127s", &from, &to, first, last);
  if (read < 2 || to <= from) fail("area.set needs FROM_NS TO_NS [FIRST_ROW LAST_ROW]");
  else on.plot.area = lanes::Area{{from, to}, first, read >= 4 ? last : first};
  if (on.plot.area) show_panel("area");
}

void Desk::Impl::select_found(int direction) {
  if (find.shown.spans.empty()) return;
  const auto count = static_cast<int>(find.shown.spans.size());
  find.place = (find.place + direction + count) % count;
  select(find.shown.spans[static_cast<std::size_t>(find.place)], true);
}

}  // namespace shardbook::app
