// app/desk_act: what each command does.
//
// One table holds all commands: those of ui/keys.cpp, and those that only a click, a link or a script asks for. A
// command on the desk itself stands here; one on a run is given that run, and stands in desk_act_view.cpp (where one
// looks), desk_act_rows.cpp (which rows are shown), desk_act_select.cpp (what is selected, measured and found) or
// desk_act_marks.cpp (what the user notes about it).
#include <algorithm>
#include <vector>

#include "viewer/app/desk_act.hpp"
#include "viewer/ui/keys.hpp"

namespace shardbook::app {

void Desk::Impl::act(const ui::Intent& intent) {
  hint.clear();
  turn_to_run();
  if (show_reading && act_in_reading(intent)) return;
  if (act_on_page(intent)) return;
  if (const auto found = desk_actions().find(intent.id); found != desk_actions().end()) {
    found->second(*this, intent.argument);
    return;
  }
  for (const RunActions* actions : {&view_actions(), &row_actions(), &selection_actions(), &mark_actions()}) {
    const auto found = actions->find(intent.id);
    if (found == actions->end()) continue;
    OpenRun* one = run();
    if (one == nullptr) return fail("no run is open");
    if (actions == &row_actions()) one->looked_at = {};   // who goes to a row stays there
    found->second({*this, *one, one->plot, *one->scene, intent.argument});
    return;
  }
  fail(base::text("there is no command '", intent.id, "'"));
}

// Where text is in front, or nothing else is open, it is the page that is searched, and not the run.
bool Desk::Impl::act_on_page(const ui::Intent& intent) {
  const bool finds = intent.id == "find" || intent.id == "find.next" || intent.id == "find.previous";
  const bool in_front = !reader.title.empty() && !show_library && (layout == "read" || run() == nullptr);
  if (!finds || !in_front || !intent.argument.empty()) return false;
  if (intent.id == "find" || !reader.searching) reader.searching = reader.take_focus = true;
  else reader.page.next_found(intent.id == "find.next" ? 1 : -1);
  return true;
}

const Desk::Impl::DeskActions& Desk::Impl::desk_actions() {
  using Words = const std::string&;       // the argument
  static const DeskActions table = {
      // --- The window ---------------------------------------------------------------------------------
      {"quit", [](Impl& desk, Words) { desk.quit = true; }},
      {"theme", [](Impl& desk, Words theme) { desk.settings.dark = theme.empty() ? !desk.settings.dark : theme == "dark"; }},
      {"scale.up", [](Impl& desk, Words) { desk.settings.scale = std::min(3.0f, desk.settings.scale * 1.1f); }},
      {"scale.down", [](Impl& desk, Words) { desk.settings.scale = std::max(0.6f, desk.settings.scale / 1.1f); }},
      {"scale.reset", [](Impl& desk, Words) { desk.settings.scale = 1; }},
      {"layout.read", [](Impl& desk, Words) { desk.layout = "read"; }},
      {"layout.split", [](Impl& desk, Words) { desk.layout = "split"; }},
      {"layout.trace", [](Impl& desk, Words) { desk.layout = "trace"; }},
      {"drawer", [](Impl& desk, Words) { desk.drawer = desk.settings.drawer = !desk.drawer; }},
      {"panel", [](Impl& desk, Words name) { desk.show_panel(name); }},
      {"pane.next", [](Impl& desk, Words) { desk.turn_panel(1); }},
      {"pane.previous", [](Impl& desk, Words) { desk.turn_panel(-1); }},
      {"remember", [](Impl& desk, Words) { desk.options.remember = true; }},      // for scripts: from here on as in a window
      {"causes", [](Impl& desk, Words) { desk.take_causes(true); }},
      {"help", [](Impl& desk, Words) { desk.show_help = !desk.show_help; }},
      {"palette", [](Impl& desk, Words) { desk.open_palette(false); }},
      {"tracks", [](Impl& desk, Words) { desk.open_palette(true); }},
      {"up", [](Impl& desk, Words) { desk.up(); }},
      {"screenshot", [](Impl& desk, Words path) { desk.picture_wanted = path.empty() ? "shardbook.png" : path; }},

      // --- Runs ---------------------------------------------------------------------------------------
      {"open", [](Impl& desk, Words paths) { desk.open_all(paths); }},
      {"run.show", [](Impl& desk, Words place) {
         const auto count = static_cast<int>(desk.runs.size());
         desk.current = std::clamp(number_of(place), count > 0 ? 0 : -1, count - 1);
       }},
      {"run.close", [](Impl& desk, Words place) { desk.close(place.empty() ? desk.current : number_of(place)); }},
      {"compare", [](Impl& desk, Words) { desk.show_panel("compare"); }},
      {"library", [](Impl& desk, Words) { desk.turn_library(); }},

      // --- The lab's steps ----------------------------------------------------------------------------
      {"work", [](Impl& desk, Words) { desk.turn_work(); }},
      {"work.part", [](Impl& desk, Words place) { desk.choose_work(number_of(place)); }},
      {"work.do", [](Impl& desk, Words command) { desk.do_work(command); }},
      {"work.cancel", [](Impl& desk, Words) { desk.job.cancel(); }},

      // --- Others' files beside notes -----------------------------------------------------------------
      {"reading", [](Impl& desk, Words) { desk.turn_reading(); }},
      {"reading.files", [](Impl& desk, Words) { desk.pane.choosing = true; }},
      {"reading.file", [](Impl& desk, Words place) { desk.choose_file(number_of(place)); }},
      {"reading.note", [](Impl& desk, Words place) { desk.choose_note(number_of(place)); }},
      {"reading.cite", [](Impl& desk, Words words) { desk.show_citation(words); }},
      {"reading.finding", [](Impl& desk, Words place) { desk.show_finding(number_of(place)); }},
      {"reading.find", [](Impl& desk, Words direction) { desk.find_in_file(number_of(direction)); }},
      {"reading.longer", [](Impl& desk, Words) { desk.move_lines(1, true); }},
      {"reading.shorter", [](Impl& desk, Words) { desk.move_lines(-1, true); }},
      {"reading.copy", [](Impl& desk, Words) { desk.copy_citation(); }},
      {"reading.append", [](Impl& desk, Words) { desk.add_citation(); }},
      {"reading.check", [](Impl& desk, Words) {
         desk.seen_on_disk.clear();
         desk.hint = desk.show_reading ? "the notes are checked again" : "L opens the notes; there they are checked";
       }},

      // --- Text ---------------------------------------------------------------------------------------
      {"follow", [](Impl& desk, Words link) { desk.follow(link); }},
      {"go.source", [](Impl& desk, Words) { desk.go_source(); }},
      {"go.note", [](Impl& desk, Words) { desk.go_note(); }},
      {"text.back", [](Impl& desk, Words) { desk.turn_page(desk.page_back, desk.page_forward); }},
      {"text.forward", [](Impl& desk, Words) { desk.turn_page(desk.page_forward, desk.page_back); }},
      {"text.copy", [](Impl& desk, Words) {
         const std::string chosen = desk.reader.page.selected_text();
         if (!chosen.empty()) ImGui::SetClipboardText(chosen.c_str());
       }},
      {"text.select_all", [](Impl&, Words) {}},      // the page takes it itself, where it has the focus
  };
  return table;
}

// --- The window -----------------------------------------------------------------------------------
// One level: what is over everything, a word that is being written, the area, the selection, the drawer.
void Desk::Impl::up() {
  OpenRun* one = run();
  if (show_help) show_help = false;
  else if (palette.open) palette.open = false;
  else if (marks.writing) marks.writing = false;
  else if (reader.searching) reader.searching = false;
  else if (!shown_problem.empty()) shown_problem.clear();
  else if (!font_problem.empty()) font_problem.clear();
  else if (one != nullptr && one->plot.area) one->plot.area.reset();
  else if (one != nullptr && one->plot.temporary) one->plot.temporary.reset();
  else if (one != nullptr && !one->plot.marked.empty()) { one->plot.marked.clear(); find = {}; }
  else if (one != nullptr && one->plot.selected.valid()) one->plot.selected = {};
}

void Desk::Impl::show_panel(const std::string& name) {
  panel = name;
  drawer = true;
  // The source of what is selected; what was asked for by a link stays until another span is.
  const OpenRun* one = run();
  if (name != "source" || one == nullptr || !one->plot.selected.valid() || (one->plot.selected == source_of && !source.path.empty())) return;
  if (one->scene->timeline().detail(one->plot.selected).source.known()) go_source();
}

// The next panel of the drawer, around.
void Desk::Impl::turn_panel(int direction) {
  static const std::vector<std::string> names{"span", "source", "area", "find", "compare", "marks"};
  const auto count = static_cast<std::ptrdiff_t>(names.size());
  const auto at = std::find(names.begin(), names.end(), panel) - names.begin();
  show_panel(names[static_cast<std::size_t>((at + (direction > 0 ? 1 : count - 1)) % count)]);
}

void Desk::Impl::turn_library() {
  show_library = !show_library || layout == "trace" || reader.title.empty();
  if (layout == "trace") layout = "split";
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
      const std::string of_rank = row.kind == scene::RowKind::rank ? "" : "rank " + std::to_string(row.rank) + " · ";
      palette.choices.push_back({of_rank + row.title, row.name, {"row.show", row.name}});
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
