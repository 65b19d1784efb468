#include "viewer/app/desk.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "viewer/app/desk_state.hpp"
#include "viewer/scene/navigate.hpp"
#include "viewer/ui/fonts.hpp"
#include "viewer/ui/keys.hpp"
#include "viewer/ui/theme.hpp"

namespace shardbook::app {

using ui::px;

namespace {

constexpr float top_units = 36, status_units = 24, gap_units = 5;
// Six panels stand in the drawer; each has a word and a name that scripts use.
constexpr std::pair<const char*, const char*> panels[] = {{"Span", "span"}, {"Source", "source"}, {"Area", "area"},
                                                          {"Find", "find"}, {"Compare", "compare"}, {"Marks", "marks"}};

// The look of everything is set up again only when theme or scale have changed.
void dress(bool dark, float scale) {
  static bool dressed = false, was_dark = false;
  static float was_scale = 0;
  if (dressed && was_dark == dark && was_scale == scale) return;
  ui::set_theme(dark, scale);
  dressed = true;
  was_dark = dark;
  was_scale = scale;
}

}  // namespace

Desk::Impl::Impl(DeskOptions given) : options(std::move(given)) {
  if (options.remember) settings = read_settings();
  if (options.dark) settings.dark = true;
  layout = !options.layout.empty() ? options.layout : !settings.layout.empty() ? settings.layout : "";
  pane.notes_share = settings.notes_share;
  pane.findings_share = settings.findings_share;
  drawer = false;                            // opens with the first selection, unless the user has closed it before
  show_library = true;

  std::string lines;
  for (const std::string& words : options.open) lines += words + "\n";
  open_all(lines);
  if (!options.view.empty()) act({"follow", options.view});
  if (layout.empty()) layout = options.open.empty() || !page.path.empty() ? "split" : "trace";
}

Desk::Impl::~Impl() {
  for (const auto& one : runs) remember(*one);
  if (!options.remember) return;
  settings.layout = layout;
  settings.notes_share = pane.notes_share;
  settings.findings_share = pane.findings_share;
  write_settings(settings);
}

void Desk::Impl::fail(const std::string& sentence) {
  shown_problem = sentence;
  if (unasked_problem.empty()) unasked_problem = sentence;
}

void Desk::Impl::collect(ui::Intents intents) {
  for (ui::Intent& intent : intents) queue.push_back(std::move(intent));
}

views::StatusBar Desk::Impl::status() const {
  views::StatusBar bar;
  if (!said_problem().empty()) bar.problem = said_problem() + " · Esc";
  bar.hint = !hint.empty() ? hint : run() != nullptr ? "N next exposed · F1 all keys" : "F1 all keys";
  if (const OpenRun* one = run()) {
    bar.provenance = views::provenance_text(*one->scene);
    bar.banners = one->scene->timeline().banners;
    for (const timeline::Provenance& rank : one->scene->timeline().ranks) bar.modelled |= rank.clock == timeline::Clock::modelled;
    if (!one->scene->disagreement().empty()) bar.banners.push_back(one->scene->disagreement());
  }
  return bar;
}

// Another run is in front: the query stays, what it found does not.
void Desk::Impl::turn_to_run() {
  const OpenRun* one = run();
  if (one == nullptr || panels_of.lock() == one->scene) return;
  panels_of = one->scene;
  area = {};
  marks = {};
  std::string query = find.query;
  find = {};
  find.query = std::move(query);
}

void Desk::Impl::draw() {
  ++frames;
  take_loaded();
  take_work();
  look_at_reading();
  take_causes(false);
  take_difference(false);
  turn_to_run();
  dress(settings.dark, settings.scale * screen_scale);
  if (!asked_for_fonts) {
    asked_for_fonts = true;
    font_problem = ui::font_problem();
  }
  ui::begin_frame_spots();
  for (const ui::Pressed& pressed : ui::pressed_commands()) queue.push_back({pressed.command->id, pressed.digit > 0 ? std::to_string(pressed.digit) : ""});

  const ImVec2 whole = ImGui::GetIO().DisplaySize;
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(whole);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 0);
  ImGui::Begin("desk", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoBringToFrontOnFocus |
                                    ImGuiWindowFlags_NoScrollWithMouse | ImGuiWindowFlags_NoNavInputs);
  ImGui::PopStyleVar(3);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {px(gap_units), 0});

  // Top bar, text beside the trace, status bar.
  views::TopBar bar;
  for (const auto& one : runs) bar.runs.push_back(one->title);
  bar.current = current;
  bar.layout = show_reading ? "" : layout;
  bar.dark = settings.dark;
  if (loader) {
    bar.loading = loader->progress().fraction.load();
    bar.stage = loader->progress().stage.load();
  }
  collect(views::draw_top_bar(bar));
  const float height = whole.y - px(top_units + status_units);
  ImGui::SetCursorPos({0, px(top_units)});
  if (show_reading) {
    collect(views::draw_reading(pane, {whole.x, height}));
  } else if (!draw_page_side(whole, height)) {
    const float left = ImGui::GetCursorPosX();
    ImGui::SetCursorPos({left, px(top_units)});
    draw_trace({whole.x - left, height});
  }
  ImGui::SetCursorPos({0, whole.y - px(status_units)});
  collect(views::draw_status_bar(status()));
  draw_overlays(whole);
  ImGui::PopStyleVar();
  ImGui::End();

  // What was wanted is done between frames, so that no view sees the desk change under it.
  std::vector<ui::Intent> wanted;
  wanted.swap(queue);
  for (const ui::Intent& intent : wanted) act(intent);
  quiet_frames = wanted.empty() && !loader && waiting.empty() ? quiet_frames + 1 : 0;
  if (quiet_frames == 120) {
    for (const auto& one : runs) remember(*one);
  }
}

// Text beside the trace. True: it takes all there is.
bool Desk::Impl::draw_page_side(ImVec2 whole, float height) {
  if (layout == "trace") return false;
  const bool of_library = show_library || reader.title.empty();
  const float least_trace = run() != nullptr ? px(360) : px(200);
  float width = std::clamp(whole.x * (layout == "read" ? 0.58f : settings.text_share), px(260), std::max(px(261), whole.x - least_trace));
  // Where no run is open and a page is read, nothing would stand beside it.
  const bool alone = layout == "read" && run() == nullptr && !loader && !of_library;
  if (alone) width = whole.x;
  const bool of_work = show_work && !of_library && !work.parts.empty();
  const float page_height = of_work ? std::max(px(160), height * (1 - settings.work_share)) : height;
  ImGui::BeginChild("page side", {width, height}, false, ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  ui::begin_pane("text", {width, page_height}, false);
  if (of_library) {
    collect(views::draw_library(library()));
  } else {
    reader.can_go_back = !page_back.empty();
    reader.can_go_forward = !page_forward.empty();
    collect(views::draw_text(reader));
  }
  ui::end_pane();
  if (of_work) draw_steps({width, height}, page_height);
  ImGui::EndChild();
  if (alone) return true;
  ImGui::SameLine(0, 0);
  float dragged = width;
  if (ui::splitter("text | trace", true, &dragged, px(260), px(360), whole.x) && layout == "split") settings.text_share = dragged / whole.x;
  ImGui::SameLine(0, 0);
  return false;
}

// Under the page, `page_height` down.
void Desk::Impl::draw_steps(ImVec2 side, float page_height) {
  float upper = page_height;
  ImGui::SetCursorPos({0, page_height});
  if (ui::splitter("text / steps", false, &upper, px(160), px(200), side.y)) settings.work_share = (side.y - upper) / side.y;
  ImGui::SetCursorPos({0, page_height + px(gap_units)});
  ui::begin_pane("steps", {side.x, side.y - page_height - px(gap_units)}, false);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {px(6), px(5)});
  collect(views::draw_work(work));
  ImGui::PopStyleVar();
  ui::end_pane();
}

void Desk::Impl::draw_welcome(ImVec2 size) {
  ui::begin_pane("welcome", size, false);
  ImGui::SetCursorPos({px(28), px(28)});
  ImGui::BeginGroup();
  ImGui::PushTextWrapPos(std::min(size.x - px(28), px(560)));
  ui::heading(loader ? "Opening …" : "No run is open");
  if (loader) {
    ui::paragraph(std::string(loader->progress().stage.load()) + ": " + loader->paths().front());
    ImGui::ProgressBar(loader->progress().fraction.load(), {std::min(size.x - px(60), px(420)), px(18)});
  } else {
    const auto gap = [](float units) { ImGui::Dummy({0, px(units)}); };
    gap(8);
    ui::paragraph("A run is a training step that left its timeline: which rank computed when, what it sent, and what it waited for.");
    gap(8);
    ui::paragraph("Choose one on the left, or make one in a terminal:");
    gap(6);
    ImGui::PushFont(ui::font(page::FontKind::mono));
    ImGui::TextUnformatted("./shardbook run 02");
    ImGui::PopFont();
    gap(6);
    ui::paragraph("It needs no GPU. Traces of torch.profiler open here, too.");
    gap(16);
    draw_first_steps();
    if (layout == "trace" && ui::button("Open", "Runs, labs and notes")) queue.push_back({"library", ""});
  }
  ImGui::PopTextWrapPos();
  ImGui::EndGroup();
  ui::end_pane();
}

// Where a newcomer may begin: the first of each kind, and the page that says how to look.
void Desk::Impl::draw_first_steps() {
  const views::Library& all = library();
  if (all.labs.empty() && all.runs.empty()) return;
  ui::heading("Or begin here");
  ImGui::Dummy({0, px(6)});
  const auto step = [&](const std::string& words, const std::string& label, const ui::Intent& intent) {
    ui::dim_line(words);
    if (ui::link(label)) queue.push_back(intent);
    ImGui::Dummy({0, px(8)});
  };
  const auto viewer = std::find_if(all.notes.begin(), all.notes.end(), [](const auto& note) { return note.target == "note:viewer"; });
  if (!all.runs.empty()) step("A run that is there already:", all.runs.front().title, {"open", all.runs.front().target});
  if (viewer != all.notes.end()) step("What the screen shows, from top to bottom:", viewer->title, {"follow", viewer->target});
  if (!all.labs.empty()) step("The first lab:", all.labs.front().title, {"follow", all.labs.front().target});
}

void Desk::Impl::draw_trace(ImVec2 size) {
  OpenRun* one = run();
  if (one == nullptr) {
    draw_welcome(size);
    return;
  }
  const ImVec2 at = ImGui::GetCursorPos();
  const float wanted = views::overview_height(*one->scene, one->overview, one->plot, size.x);
  // Tables of figures want more room than facts, and Source some lines around the one that matters, where no bar is
  // lost for it.
  const float of_rows = px(190), of_panel = panel == "compare" ? size.y * 0.7f : panel == "area" ? size.y * 0.46f : panel == "source" ? px(320) : 0;
  const float most = std::max(px(151), size.y - px(260)), least = std::min(most, std::max(px(150), std::min(of_panel, size.y - wanted - of_rows)));
  const float drawer_height = drawer ? std::clamp(size.y * settings.drawer_share, least, most) : 0;
  // The bars give way where the window is low.
  const float overview = std::min(wanted, std::max(px(110), size.y - drawer_height - of_rows));
  ImGui::BeginChild("overview and plot", {size.x, size.y - drawer_height}, false, ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  collect(views::draw_overview(*one->scene, one->overview, one->plot, overview));
  // The rows got less or more room: what the user has selected stays in sight. Before that it is the first rank that does.
  const float rows_height = size.y - drawer_height - overview - px(2);
  if (std::abs(rows_height - one->rows_height) > 1 && one->chosen && one->plot.selected.valid()) one->plot.reveal = true;
  one->rows_height = rows_height;
  collect(lanes::draw_plot(*one->scene, one->plot, {size.x, rows_height}));
  ImGui::EndChild();
  if (!drawer) return;
  ImGui::SetCursorPos({at.x, at.y + size.y - drawer_height});
  float upper = size.y - drawer_height;
  ImGui::PushID("drawer");
  if (ui::splitter("trace / drawer", false, &upper, px(240), px(150), size.y)) settings.drawer_share = (size.y - upper) / size.y;
  ImGui::PopID();
  ImGui::SetCursorPos({at.x, at.y + size.y - drawer_height + px(gap_units)});
  draw_drawer({size.x, drawer_height - px(gap_units)});
}

void Desk::Impl::draw_drawer(ImVec2 size) {
  OpenRun& one = *run();
  ui::begin_pane("drawer", size, false);
  ImGui::SetCursorPos({px(8), px(4)});
  for (const auto& [words, name] : panels) {
    if (ui::tab(words, panel == name)) queue.push_back({"panel", name});
    ImGui::SameLine(0, px(3));
  }
  ImGui::NewLine();
  ImGui::SetCursorPosX(px(10));
  ImGui::BeginChild(panel.c_str(), {size.x - px(20), ImGui::GetContentRegionAvail().y - px(4)});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {px(6), px(4)});
  if (panel == "span") collect(views::draw_details(*one.scene, one.plot));
  if (panel == "source") collect(views::draw_source(source));
  if (panel == "area") collect(views::draw_area(area, *one.scene, one.plot));
  if (panel == "find") collect(views::draw_find(find, *one.scene));
  if (panel == "marks") collect(views::draw_marks(marks, *one.scene, one.plot));
  if (panel == "compare") {
    std::vector<views::Compared> compared;
    for (const auto& each : runs) compared.push_back({each->scene, each->title, views::step_in_view(*each->scene, each->plot).number});
    collect(views::draw_compare(compare, compared));
  }
  ImGui::PopStyleVar();
  ImGui::EndChild();
  ui::end_pane();
}

void Desk::Impl::draw_overlays(ImVec2 size) {
  if (!show_help && !palette.open) return;
  // A window of its own, so that what is below gets no clicks.
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleColor(ImGuiCol_WindowBg, IM_COL32(0, 0, 0, 110));
  ImGui::Begin("over", nullptr, ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoNavInputs);
  // Keys that went below come back; taken in every frame, they would never reach the field.
  if (!ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows)) ImGui::SetWindowFocus();
  if (show_help) collect(views::draw_help(size));
  if (palette.open) collect(views::draw_palette(palette, size));
  ImGui::End();
  ImGui::PopStyleColor();
}

Desk::Desk(DeskOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Desk::~Desk() = default;
void Desk::draw() { impl_->draw(); }
void Desk::act(const ui::Intent& intent) { impl_->act(intent); }
bool Desk::at_work() const { return impl_->job.running() || impl_->loader || !impl_->waiting.empty() || impl_->difference.valid(); }
bool Desk::idle() const { return !at_work() && impl_->queue.empty() && impl_->quiet_frames >= 2; }
void Desk::find_causes() { impl_->take_causes(true); }
bool Desk::wants_to_quit() const { return impl_->quit; }
bool Desk::dark() const { return impl_->settings.dark; }
float Desk::scale() const { return impl_->settings.scale * impl_->screen_scale; }
void Desk::set_screen_scale(float scale) { impl_->screen_scale = scale; }

std::string Desk::problem() {
  std::string sentence;
  sentence.swap(impl_->unasked_problem);
  return sentence;
}

std::string Desk::picture_wanted() {
  std::string path;
  path.swap(impl_->picture_wanted);
  return path;
}

std::string Desk::title() const {
  const OpenRun* one = impl_->run();
  return one == nullptr ? "Shardbook" : one->title + " · Shardbook";
}

}  // namespace shardbook::app
