// Runs come and go: what the command line, the library, a link or a dropped file names.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/base/json.hpp"
#include "engine/book/project.hpp"
#include "viewer/app/desk_state.hpp"
#include "viewer/lanes/camera.hpp"
#include "viewer/lanes/placing.hpp"
#include "viewer/scene/navigate.hpp"

namespace shardbook::app {

namespace fs = std::filesystem;
using base::text;

namespace {

std::string title_of(const std::vector<std::string>& paths) {
  fs::path path = fs::path(paths.front()).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::string title = path.filename().string();
  for (const char* end : {".tar.gz", ".tar", ".json.gz", ".json", ".tlb"}) {
    if (title.size() > std::string(end).size() && title.ends_with(end)) title.erase(title.size() - std::string(end).size());
  }
  return paths.size() > 1 ? title + " and " + std::to_string(paths.size() - 1) + " more" : title;
}

bool is_run_folder(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "run.json", ignored) || fs::exists(folder / "rank0.json", ignored) || fs::exists(folder / "rank0.json.gz", ignored);
}

bool is_pack(const fs::path& path) { return path.string().ends_with(".tar.gz") || path.string().ends_with(".tar"); }

// Runs of the project, newest first; captured ones, which have a measured clock, before all others.
std::vector<fs::path> known_runs(const std::string& root) {
  std::vector<fs::path> captured, own;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(root) / "experiments" / "captured", ignored)) {
    if (is_pack(entry.path()) || (entry.is_directory() && is_run_folder(entry.path()))) captured.push_back(entry.path());
  }
  for (const fs::directory_entry& lab : fs::directory_iterator(fs::path(root) / "experiments", ignored)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(lab.path() / "runs", ignored)) {
      if (entry.is_directory() && is_run_folder(entry.path())) own.push_back(entry.path());
    }
  }
  std::sort(captured.begin(), captured.end());
  std::sort(own.begin(), own.end(), [](const fs::path& left, const fs::path& right) { return left.filename() > right.filename(); });
  if (own.size() > 40) own.resize(40);
  captured.insert(captured.end(), own.begin(), own.end());
  return captured;
}

fs::path settings_path() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  if (config != nullptr && *config != '\0') return fs::path(config) / "shardbook" / "viewer.json";
  return fs::path(home != nullptr ? home : ".") / ".config" / "shardbook" / "viewer.json";
}

}  // namespace

Settings read_settings() {
  Settings settings;
  std::ifstream file(settings_path());
  const nlohmann::json json = base::try_parse_json(std::string(std::istreambuf_iterator<char>(file), {}));
  if (!json.is_object()) return settings;      // none yet, or not ours: start anew
  const auto number = [&](const char* name, float least, float most, float otherwise) {
    const auto found = json.find(name);
    return found != json.end() && found->is_number() ? std::clamp(found->get<float>(), least, most) : otherwise;
  };
  settings.dark = json.contains("dark") && json["dark"].is_boolean() && json["dark"].get<bool>();
  settings.scale = number("scale", 0.6f, 3, 1);
  settings.text_share = number("text_share", 0.2f, 0.7f, settings.text_share);
  settings.drawer_share = number("drawer_share", 0.15f, 0.7f, settings.drawer_share);
  settings.work_share = number("work_share", 0.2f, 0.8f, settings.work_share);
  settings.notes_share = number("notes_share", 0.2f, 0.7f, settings.notes_share);
  settings.findings_share = number("findings_share", 0.15f, 0.7f, settings.findings_share);
  if (json.contains("drawer") && json["drawer"].is_boolean()) settings.drawer = json["drawer"].get<bool>();
  return settings;
}

void write_settings(const Settings& settings) {
  std::error_code ignored;
  const fs::path path = settings_path();
  fs::create_directories(path.parent_path(), ignored);
  const fs::path beside = path.string() + ".new";
  {
    std::ofstream file(beside);
    const nlohmann::json all{{"dark", settings.dark}, {"scale", settings.scale}, {"text_share", settings.text_share},
                             {"drawer_share", settings.drawer_share}, {"work_share", settings.work_share}, {"drawer", settings.drawer},
                             {"notes_share", settings.notes_share}, {"findings_share", settings.findings_share}};
    file << base::json_text(all, 2) << "\n";
    if (!file) return;                         // a home that cannot be written to keeps no settings; nothing else is lost
  }
  fs::rename(beside, path, ignored);
}

// Plain files that are named together are the ranks of one run; folders and packs are runs of their own.
void Desk::Impl::open_all(const std::string& lines) {
  std::vector<std::string> together;
  // A run that is named beside a lab is the one to look at; the lab brings its text alone.
  std::size_t named = 0;
  std::istringstream first(lines);
  for (std::string words; std::getline(first, words);) {
    std::error_code ignored;
    named += !words.empty() && fs::exists(words, ignored);
  }
  std::istringstream in(lines);
  for (std::string words; std::getline(in, words);) {
    if (words.empty()) continue;
    std::error_code ignored;
    const bool is_file = (words.ends_with(".json") || words.ends_with(".json.gz")) && fs::exists(words, ignored);
    if (is_file) together.push_back(words);
    if (!is_file) open(words, named > 0);
  }
  if (!together.empty()) open_together(together);
}

void Desk::Impl::open(const std::string& words, bool text_alone) {
  // A lab: its text, and the newest run of it.
  if (words.starts_with("lab:") || words.starts_with("note:") || words.starts_with("trace:") || words.starts_with("span:")) {
    follow(words);
    return;
  }
  std::error_code ignored;
  if (!fs::exists(words, ignored)) {
    const base::Result<book::Lab> lab = book::find_lab(options.root, words);
    const fs::path from_root = fs::path(options.root) / words;
    if (lab) {
      follow("lab:" + words);
      for (const fs::path& run : known_runs(options.root)) {
        if (text_alone || run.string().find("/" + lab.value().name + "/") == std::string::npos) continue;
        open_together({run.string()});
        break;
      }
    } else if (!options.root.empty() && fs::exists(from_root, ignored)) {
      open_together({from_root.string()});
    } else {
      fail(text("there is no file, folder or lab called ", words));
    }
    return;
  }
  open_together({words});
}

void Desk::Impl::open_together(std::vector<std::string> paths) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::error_code differs;
    const bool same_file = runs[i]->paths.size() == 1 && paths.size() == 1 && fs::equivalent(runs[i]->paths.front(), paths.front(), differs);
    if (runs[i]->paths == paths || same_file) {
      current = static_cast<int>(i);
      return;
    }
  }
  // Named twice, it is opened once.
  const auto same = [&](const std::vector<std::string>& others) {
    std::error_code differs;
    return others == paths || (others.size() == 1 && paths.size() == 1 && fs::equivalent(others.front(), paths.front(), differs));
  };
  if ((loader && same(loader->paths())) || std::any_of(waiting.begin(), waiting.end(), same)) return;
  waiting.push_back(std::move(paths));
  quiet_frames = 0;
}

void Desk::Impl::take_loaded() {
  if (!loader && !waiting.empty()) {
    loader = std::make_unique<scene::Loader>(waiting.front());
    waiting.pop_front();
  }
  if (!loader || !loader->done()) return;
  base::Result<std::shared_ptr<const scene::Scene>> loaded = loader->take();
  const std::vector<std::string> paths = loader->paths();
  loader.reset();
  quiet_frames = 0;
  if (!loaded) {
    fail(loaded.error());
    pending_link.reset();
    return;
  }
  auto one = std::make_unique<OpenRun>();
  one->paths = paths;
  one->title = title_of(paths);
  one->scene = std::move(loaded.value());
  shown_problem.clear();
  // A pack brings the notes that its run was read with, for a reader who has no project.
  if (options.root.empty() && one->scene->unpacked()) options.root = one->scene->unpacked()->root;
  runs.push_back(std::move(one));
  current = static_cast<int>(runs.size()) - 1;
  first_look(*runs.back());
  if (pending_link) {
    apply(*pending_link, *runs.back());
    pending_link.reset();
  }
  if (layout == "read") layout = "split";
}

namespace {

constexpr float share_of_rows = 0.69f;      // of the window's height, at first

// Further ranks are open where there is room for all of them together. REQUIRES: a frame has been begun.
void open_what_fits(const scene::Scene& scene, scene::RowChoices& choices) {
  if (scene.ranks().size() > 8) return;
  for (const scene::RankScene& rank : scene.ranks()) {
    scene::RowChoices more = choices;
    more.open.insert(scene::row_name(scene::RowKind::rank, rank.rank));
    if (lanes::whole_height(lanes::place_rows(scene.rows(more))) > share_of_rows * ImGui::GetIO().DisplaySize.y) return;
    choices = more;
  }
}

// The step that `shardbook why` speaks of where none is asked for: the one in the middle by length, of a trace of others not
// the first, which a profiler's start has made wait. None: the run has no steps.
std::optional<scene::Scene::StepWindow> step_in_the_middle(const scene::Scene& scene) {
  std::vector<scene::Scene::StepWindow> steps = scene.steps();
  if (steps.size() > 1 && scene.timeline().ranks.front().foreign) steps.erase(steps.begin());
  if (steps.empty()) return std::nullopt;
  std::stable_sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.window.length() < b.window.length(); });
  return steps[(steps.size() - 1) / 2];
}

}  // namespace

// As it was left; else the step that is explained, rank 0 open, its longest blocking exposure selected.
void Desk::Impl::first_look(OpenRun& one) {
  const scene::Scene& scene = *one.scene;
  one.plot.choices = scene.first_choices();
  open_what_fits(scene, one.plot.choices);
  one.plot.view.width = 1000;
  lanes::show(one.plot.view, scene.whole(), scene.whole());
  one.sidecar_path = scene::sidecar_path(one.paths.front());
  base::Result<scene::Sidecar> sidecar = scene::Sidecar{};
  if (options.remember && one.paths.size() == 1) sidecar = scene::read_sidecar(one.sidecar_path);
  if (!sidecar) fail(sidecar.error());
  if (sidecar && sidecar.value().view_end > sidecar.value().view_start) {
    const scene::Sidecar& kept = sidecar.value();
    one.plot.view.start = kept.view_start;
    one.plot.view.end = kept.view_end;
    one.plot.choices = kept.choices;
    one.plot.ranges = kept.ranges;
    one.plot.annotations = kept.annotations;
    one.plot.selected = scene::span_of_name(scene, kept.selected);
  } else if (const std::optional<scene::Scene::StepWindow> step = step_in_the_middle(scene)) {
    lanes::show(one.plot.view, step->window, scene.whole(), 0.01);
    if (const std::vector<scene::SpanRef> exposed = scene::exposed_in(scene, *step); !exposed.empty()) one.plot.selected = exposed.front();
  } else if (!scene.exposures().empty()) {
    one.plot.selected = scene.exposures().front().span;
  }
  if (!sidecar || sidecar.value().view_end <= sidecar.value().view_start) one.looked_at = one.plot.selected;
  // The first rank stays in sight: the way to the selection is N's.
  if (one.plot.selected.valid()) open_row_of(one, one.plot.selected);
}

void Desk::Impl::remember(OpenRun& one) {
  if (!options.remember || one.cannot_save || one.paths.size() != 1) return;
  scene::Sidecar sidecar;
  sidecar.view_start = one.plot.view.start;
  sidecar.view_end = one.plot.view.end;
  sidecar.choices = one.plot.choices;
  sidecar.ranges = one.plot.ranges;
  sidecar.annotations = one.plot.annotations;
  if (one.plot.selected.valid()) sidecar.selected = scene::span_name(*one.scene, one.plot.selected);
  std::string now = text(sidecar.view_start, " ", sidecar.view_end, " ", sidecar.selected, " ", sidecar.choices.fold_alike);
  for (const std::set<std::string>* names : {&sidecar.choices.open, &sidecar.choices.pinned, &sidecar.choices.hidden}) {
    for (const std::string& name : *names) now += "," + name;
    now += ";";
  }
  for (const scene::Range& range : sidecar.ranges) now += text(range.window.start, "-", range.window.end, range.note, ";");
  for (const scene::Annotation& annotation : sidecar.annotations) now += text(annotation.row, annotation.time, annotation.text, ";");
  if (now == one.saved) return;
  if (base::Status written = scene::write_sidecar(sidecar, one.sidecar_path); !written.ok()) {
    one.cannot_save = true;
    fail(written.error() + "; what you mark is kept until the viewer is closed");
    return;
  }
  one.saved = now;
}

void Desk::Impl::close(int place) {
  if (place < 0 || place >= static_cast<int>(runs.size())) return;
  remember(*runs[static_cast<std::size_t>(place)]);
  runs.erase(runs.begin() + place);
  if (current >= place) current = std::max(current - 1, runs.empty() ? -1 : 0);
  compare = {};       // what is being found for it is dropped when it comes
  find = {};
  area = {};
}

const views::Library& Desk::Impl::library() {
  // The folder may be far away.
  if (options.root.empty() || frames - library_read_at < 60) return library_;
  library_read_at = frames;
  views::Library library;
  for (const std::string& name : book::lab_names(options.root)) {
    const base::Result<book::Lab> lab = book::find_lab(options.root, name);
    const std::string number = name.substr(0, name.find('_'));
    library.labs.push_back({number + "  " + (lab ? lab.value().title : name), "lab:" + number, ""});
  }
  for (const std::string& path : page_paths(options.root)) {
    if (!path.starts_with("notes/")) continue;
    const base::Result<std::string> content = book::read_text((fs::path(options.root) / path).string());
    if (!content) continue;
    const std::string first = content.value().substr(0, content.value().find('\n'));
    (path.starts_with("notes/rooms/") ? library.rooms : library.notes).push_back({first.starts_with("# ") ? first.substr(2) : path, link_of_page(path), ""});
  }
  for (const fs::path& run : known_runs(options.root)) {
    const bool captured = run.parent_path().filename() == "captured";
    const std::string of = captured ? "captured" : run.parent_path().parent_path().filename().string();
    library.runs.push_back({run.filename().string(), run.string(), of});
  }
  library_ = std::move(library);
  return library_;
}

}  // namespace shardbook::app
