// app/desk_act_rows: commands that change which rows are shown.
//
// A row is named as in a link: "r0" is a rank, "r0.s20" a row of it. What is hidden is a row's name or a kind of rows.
#include <algorithm>

#include "viewer/app/desk_act.hpp"

namespace shardbook::app {

namespace {

std::string rank_of(const std::string& row) { return row.substr(0, row.find('.')); }
std::string rank_in_focus(const lanes::PlotState& plot) { return plot.focus_row.empty() ? "r0" : rank_of(plot.focus_row); }

// On or off, and the first rank opened, so that there is such a row. One that is new is brought in sight: of the rank in
// focus, else the first.
void turn_kind(lanes::PlotState& plot, const scene::Scene& scene, const std::string& kind) {
  turn(plot.choices.hidden, kind);
  plot.choices.open.insert("r" + std::to_string(scene.ranks().front().rank));
  if (plot.choices.hidden.contains(kind)) return;
  const std::string focus = rank_in_focus(plot);
  const scene::Row* shown = nullptr;
  const std::vector<scene::Row> rows = scene.rows(plot.choices);
  for (const scene::Row& row : rows) {
    if (row.pinned || name_of(row.kind) != kind) continue;
    if (shown == nullptr || (rank_of(row.name) == focus && rank_of(shown->name) != focus)) shown = &row;
  }
  if (shown == nullptr) return;
  plot.focus_row = shown->name;
  plot.reveal = true;
}

// Whatever hides it gives way.
void show_row(lanes::PlotState& plot, const std::string& name) {
  plot.choices.open.insert(rank_of(name));
  for (const char* kind : {"host", "marks", "memory", "exposed", "idle", "critical"}) plot.choices.hidden.erase(kind);
  plot.choices.hidden.erase(name);
  plot.choices.fold_alike = false;
  plot.focus_row = name;
  plot.reveal = true;
}

// A rank that is folded into another comes out.
void show_rank(lanes::PlotState& plot, base::Rank rank) {
  const bool folded = std::any_of(plot.rows.begin(), plot.rows.end(), [&](const scene::Row& row) {
    return std::find(row.alike.begin(), row.alike.end(), rank) != row.alike.end();
  });
  if (folded) plot.choices.fold_alike = false;
  plot.focus_row = "r" + std::to_string(rank);
  plot.choices.open.insert(plot.focus_row);
  plot.reveal = true;
}

}  // namespace

const Desk::Impl::RunActions& Desk::Impl::row_actions() {
  static const RunActions table = {
      // --- Kinds of rows ------------------------------------------------------------------------------
      {"show.critical", [](const OnRun& on) { on.plot.show_critical = !on.plot.show_critical; }},
      {"show.idle_causes", [](const OnRun& on) { on.plot.show_idle_causes = !on.plot.show_idle_causes; }},
      {"show.exposed", [](const OnRun& on) { turn(on.plot.choices.hidden, "exposed"); }},
      {"show.memory", [](const OnRun& on) { turn_kind(on.plot, on.scene, "memory"); }},
      {"show.host", [](const OnRun& on) { turn_kind(on.plot, on.scene, "host"); }},
      {"show.row", [](const OnRun& on) { turn(on.plot.choices.hidden, on.argument); }},
      {"show.kind", [](const OnRun& on) { turn(on.plot.choices.hidden, on.argument); }},

      // --- One row ------------------------------------------------------------------------------------
      {"row.focus", [](const OnRun& on) { on.plot.focus_row = on.argument; }},
      {"row.toggle", [](const OnRun& on) { turn(on.plot.choices.open, on.argument); }},
      {"row.show", [](const OnRun& on) { show_row(on.plot, on.argument); }},
      {"pin", [](const OnRun& on) {
         const std::string name = on.argument.empty() ? on.plot.focus_row : on.argument;
         if (name.empty()) on.desk.hint = "select a row first, then P pins it";
         else turn(on.plot.choices.pinned, name);
       }},

      // --- A rank -------------------------------------------------------------------------------------
      {"rank.show", [](const OnRun& on) { show_rank(on.plot, number_of(on.argument)); }},
      {"rank.open", [](const OnRun& on) {
         on.plot.focus_row = rank_in_focus(on.plot);
         on.plot.choices.open.insert(on.plot.focus_row);
       }},
      {"rank.fold", [](const OnRun& on) {
         on.plot.focus_row = rank_in_focus(on.plot);
         on.plot.choices.open.erase(on.plot.focus_row);
       }},
      {"rank.alike", [](const OnRun& on) { on.plot.choices.fold_alike = !on.plot.choices.fold_alike; }},
  };
  return table;
}

}  // namespace shardbook::app
