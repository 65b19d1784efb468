// What scripts and tests may ask the desk, by name.
#include "viewer/app/desk_state.hpp"
#include "viewer/scene/navigate.hpp"
#include "viewer/scene/sidecar.hpp"
#include "viewer/ui/widgets.hpp"

namespace shardbook::app {

namespace {

using Value = std::optional<std::string>;

Value of_area(const scene::AreaFigures& figures, const std::string& name) {
  if (figures.ranks.empty()) return std::nullopt;
  const metrics::Partition& part = figures.ranks.front().partition;
  if (name == "area.window_ns") return std::to_string(part.window.length());
  if (name == "area.compute_ns") return std::to_string(part.compute_ns);
  if (name == "area.exposed_ns") return std::to_string(part.exposed_communication_ns);
  if (name == "area.memory_ns") return std::to_string(part.exposed_memory_ns);
  if (name == "area.idle_ns") return std::to_string(part.idle_ns);
  if (name == "area.ranks") return std::to_string(figures.ranks.size());
  return std::nullopt;
}

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text;
}

Value of_run(const OpenRun& run, const std::string& name) {
  const scene::Scene& scene = *run.scene;
  const lanes::PlotState& plot = run.plot;
  if (name == "run") return run.title;
  if (name == "selected") return plot.selected.valid() ? scene::span_name(scene, plot.selected) : "";
  if (name == "selected.label") return plot.selected.valid() ? std::string(scene.timeline().label(plot.selected)) : "";
  // Among the exposed spans of the step in view, in N's order.
  if (name == "selected.exposed_place") {
    return std::to_string(plot.selected.valid() ? scene::place_in(scene::exposed_in(scene, views::step_in_view(scene, plot)), plot.selected) : -1);
  }
  if (name == "selected.step") return std::to_string(plot.selected.valid() ? scene.timeline().step(plot.selected) : -1);
  if (name == "exposures.of_step") return std::to_string(scene::exposed_in(scene, views::step_in_view(scene, plot)).size());
  if (name == "focus") return plot.focus_row;
  if (name == "view.start") return std::to_string(static_cast<long long>(plot.view.start) - scene.whole().start);
  if (name == "view.end") return std::to_string(static_cast<long long>(plot.view.end) - scene.whole().start);
  if (name == "view.length") return std::to_string(static_cast<long long>(plot.view.end - plot.view.start));
  if (name == "view.step") return std::to_string(views::step_in_view(scene, plot).number);
  if (name == "whole.length") return std::to_string(scene.whole().length());
  if (name == "rows") return std::to_string(plot.rows.size());
  if (name == "rows.percent") return std::to_string(static_cast<int>(100 * plot.body_height / std::max(1.0f, ImGui::GetIO().DisplaySize.y)));
  if (name == "cause") return run.overview.cause;
  if (name == "header") return run.overview.unfolded ? "unfolded" : "folded";
  if (name == "items") return std::to_string(plot.items);
  if (name == "pinned") return joined(plot.choices.pinned);
  if (name == "open") return joined(plot.choices.open);
  if (name == "hidden") return joined(plot.choices.hidden);
  if (name == "fold_alike") return plot.choices.fold_alike ? "yes" : "no";
  if (name == "area") return plot.area ? "yes" : "no";
  if (name == "ranges") return std::to_string(plot.ranges.size());
  if (name == "temporary") return plot.temporary ? "yes" : "no";
  if (name == "annotations") return std::to_string(plot.annotations.size());
  if (name == "marked") return std::to_string(plot.marked.size());
  if (name == "exposures") return std::to_string(scene.exposures().size());
  if (name == "spans") return std::to_string(scene.timeline().spans());
  if (name == "ranks") return std::to_string(scene.ranks().size());
  if (name == "straggler") return scene.straggler() ? std::to_string(*scene.straggler()) : "";
  if (name == "critical") return plot.show_critical ? "yes" : "no";
  if (name == "idle_causes") return plot.show_idle_causes ? "yes" : "no";
  if (name == "scroll") return std::to_string(static_cast<int>(plot.scroll));
  if (name == "history") return std::to_string(run.back.size());
  return std::nullopt;
}

}  // namespace

std::optional<std::string> Desk::value(const std::string& name) const {
  const Impl& desk = *impl_;
  if (name == "runs") return std::to_string(desk.runs.size());
  if (name == "layout") return desk.layout;
  if (name == "panel") return desk.panel;
  if (name == "drawer") return desk.drawer ? "yes" : "no";
  if (name == "theme") return desk.settings.dark ? "dark" : "light";
  if (name == "scale") return std::to_string(static_cast<int>(100 * desk.settings.scale + 0.5f));
  if (name == "help") return desk.show_help ? "yes" : "no";
  if (name == "palette") return desk.palette.open ? desk.palette.title : "";
  if (name == "work") return desk.show_work && !desk.work.parts.empty() ? "yes" : "no";
  if (name == "work.part") return desk.work.parts.empty() ? "" : desk.work.parts[static_cast<std::size_t>(desk.work.current)].id;
  if (name == "work.asks") return std::to_string(desk.work.asks.size());
  if (name == "work.output") return desk.work.output;
  if (name == "work.ended") return desk.work.ended;
  if (name == "reading") return desk.show_reading ? "yes" : "no";
  if (name == "reading.file") return desk.pane.shown < 0 ? "" : desk.pane.files[static_cast<std::size_t>(desk.pane.shown)].path;
  if (name == "reading.citation") return desk.pane.citation;
  if (name == "reading.note") return desk.pane.notes.empty() ? "" : desk.pane.notes[static_cast<std::size_t>(desk.pane.note)];
  if (name == "reading.lines") return std::to_string(desk.pane.lines.size());
  if (name == "reading.marked") return std::to_string(desk.pane.marked);
  if (name == "reading.found") return std::to_string(desk.pane.findings.size());
  if (name == "reading.verdict") return desk.pane.verdict;
  if (name == "library") return desk.show_library ? "yes" : "no";
  if (name == "page") return desk.page.path;
  if (name == "page.anchor") return desk.page.anchor;
  if (name == "page.scrolled") return std::to_string(static_cast<int>(desk.reader.page.scrolled()));
  if (name == "page.title") return desk.reader.title;
  if (name == "page.found") return std::to_string(desk.reader.page.found());
  if (name == "searching") return desk.reader.searching ? "yes" : "no";
  if (name == "page.selected") return desk.reader.page.selected_text();
  if (name == "source") return desk.source.path.empty() ? "" : desk.source.path + ":" + std::to_string(desk.source.line);
  if (name == "source.changed") return desk.source.changed ? "yes" : "no";
  if (name == "source.span") return desk.source.span;
  if (name == "problem") return desk.said_problem();
  if (name == "hint") return desk.hint;
  if (name == "writing") return desk.marks.writing ? "yes" : "no";
  if (name == "quit") return desk.quit ? "yes" : "no";
  if (name == "clipboard") return ImGui::GetClipboardText() != nullptr ? ImGui::GetClipboardText() : "";
  if (name == "picture") return desk.picture_wanted;
  if (name == "found") return std::to_string(desk.find.shown.total);
  if (name == "compared.config" && desk.compare.made) return std::to_string(desk.compare.made->config.size());
  if (name == "compared.ops" && desk.compare.made) return std::to_string(desk.compare.made->ops.size());
  if (name == "compared.equal" && desk.compare.told) return desk.compare.told->equal ? "yes" : "no";
  if (name == "compared.sentence" && desk.compare.told) return desk.compare.told->sentence;
  if (name == "compared.aligned" && desk.compare.made) return std::to_string(desk.compare.aligned.size());
  if (name == "compared.step_ns" && desk.compare.made) return std::to_string(desk.compare.made->window_b.length() - desk.compare.made->window_a.length());
  if (name.starts_with("area.")) return of_area(desk.area.figures, name);
  const OpenRun* one = desk.run();
  return one == nullptr ? std::nullopt : of_run(*one, name);
}

}  // namespace shardbook::app
