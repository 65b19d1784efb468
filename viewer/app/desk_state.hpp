// app/desk_state: what the desk holds. Private to desk*.cpp.
#pragma once

#include <deque>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/book/excerpts.hpp"
#include "engine/reading/sources.hpp"
#include "viewer/app/desk.hpp"
#include "viewer/app/job.hpp"
#include "viewer/scene/link.hpp"
#include "viewer/scene/loader.hpp"
#include "viewer/scene/sidecar.hpp"
#include "viewer/views/views.hpp"

namespace shardbook::timeline {
struct SourceExcerpt;
}

namespace shardbook::app {

// The sentence of `shardbook why` of a step, and the lines and phases of what it names first. "" of a run that cannot be explained.
struct StepCause {
  std::string sentence;
  std::vector<std::string> lines, phases;
};

// A run that is open, and how it is looked at.
struct OpenRun {
  std::vector<std::string> paths;
  std::string title;
  std::shared_ptr<const scene::Scene> scene;
  lanes::PlotState plot;
  views::Overview overview;
  // Why a step takes what it takes, by step; of modelled runs, whose steps are all one, of `any_step`.
  static constexpr int any_step = -1;
  std::map<int, StepCause> causes;
  int explained = any_step;                  // the step that `cause` is being found for
  std::future<StepCause> cause;
  float rows_height = 0;                     // in the frame before
  bool chosen = false;                       // the selection is the user's, not the first look's
  scene::SpanRef looked_at;                        // selected by the first look, until what the step's sentence names is known
  std::vector<scene::TimeView> back, forward;
  std::size_t edge = 0;                      // of the selection's edges, which one is followed next
  std::string sidecar_path;
  std::string saved;                         // what the sidecar held when it was last written, as text
  bool cannot_save = false;                  // said once
};

// A page's place in the way that was taken.
struct PagePlace {
  std::string path;                          // from the root
  std::string anchor;
};

// What the user likes, kept in their own folder.
struct Settings {
  bool dark = false;
  float scale = 1;
  std::string layout;
  float text_share = 0.36f, drawer_share = 0.34f, work_share = 0.45f, notes_share = 0.42f, findings_share = 0.3f;
  bool drawer = true;                        // a selection opens it
};
Settings read_settings();
void write_settings(const Settings& settings);

// Which pages name a span of the engine, or a file of it.
struct PageIndex {
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> by_span, by_file;   // link, title
};
PageIndex index_pages(const std::string& root);
// Pages of the project, from the root: labs' texts, notes, rooms; in the order of reading.
std::vector<std::string> page_paths(const std::string& root);
// "lab:02_tensor_parallel", "note:03_tensor_parallel", "room:fsdp": how links name this page.
std::string link_of_page(const std::string& path);

struct Desk::Impl {
  explicit Impl(DeskOptions given);
  ~Impl();

  // --- desk.cpp: the frame ---------------------------------------------------------------------------
  void draw();
  bool draw_page_side(ImVec2 whole, float height);
  void draw_steps(ImVec2 side, float page_height);
  void draw_trace(ImVec2 size);
  void draw_drawer(ImVec2 size);
  void draw_welcome(ImVec2 size);
  void draw_first_steps();
  void draw_overlays(ImVec2 size);
  views::StatusBar status() const;
  void collect(ui::Intents intents);
  void turn_to_run();                        // what the panels have found belongs to one run

  // --- desk_open.cpp: runs come and go ------------------------------------------------------------------
  void open_all(const std::string& lines);    // a path, lab or link a line
  void open(const std::string& words, bool text_alone = false);   // text_alone: of a lab no run
  void open_together(std::vector<std::string> paths);
  void take_loaded();
  void first_look(OpenRun& run);
  // --- desk_causes.cpp: what engine/cause says, found beside the frames ---------------------------------
  void look_again(OpenRun& run);             // at what the sentence names
  void take_causes(bool wait);               // why the step in view takes what it takes, once that is known
  void take_difference(bool wait);           // what the change did between the two that are compared
  void remember(OpenRun& run);               // writes the sidecar if it has changed
  void close(int place);
  const views::Library& library();            // read anew once a second

  // --- desk_act*.cpp: what commands do ------------------------------------------------------------------
  // Each command by its id: one on the desk with its argument, one on a run with that run.
  struct OnRun;
  using DeskActions = std::map<std::string_view, void (*)(Impl& desk, const std::string& argument)>;
  using RunActions = std::map<std::string_view, void (*)(const OnRun& on)>;
  static const DeskActions& desk_actions();
  static const RunActions& view_actions();
  static const RunActions& row_actions();
  static const RunActions& selection_actions();
  static const RunActions& mark_actions();
  void act(const ui::Intent& intent);
  bool act_on_page(const ui::Intent& intent);      // false: it is no search, or not for the page
  void up();
  void show_panel(const std::string& name);
  void turn_panel(int direction);
  void turn_library();
  void open_palette(bool of_rows);
  void keep_view();                          // in the history, before a jump
  void jump(OpenRun& run, metrics::Window window, double air = 0.02);   // air: of the window's length, on each side
  void center(const OnRun& on);
  void zoom_selected(const OnRun& on);
  void show_step(OpenRun& run, int place);
  void select(scene::SpanRef span, bool look);     // look: and bring it in sight
  void select_exposed(int direction);
  void select_on_next_row(const OnRun& on, int direction);
  void select_found(int direction);
  void follow_edge(bool in);
  void open_row_of(OpenRun& run, scene::SpanRef span);
  void set_area(const OnRun& on);
  void begin_remark();
  void keep_remark(const OnRun& on);
  void delete_mark(lanes::PlotState& plot);
  void show_mark(const OnRun& on, int place);

  // --- desk_work.cpp: the lab's steps beside its text ----------------------------------------------------
  void read_work();
  void take_work();
  void do_work(const std::string& command);   // "./shardbook check 02a"
  void choose_work(int place);
  void turn_work();

  // --- desk_reading.cpp: others' files beside the notes about them --------------------------------------
  void turn_reading();
  void look_at_reading();                    // in each frame: what has changed on the disk is read again
  void read_files();
  void read_note();
  void check_note();
  bool act_in_reading(const ui::Intent& intent);   // false: it is not for the pane that is in front
  void choose_file(int place);
  void choose_note(int place);
  void show_citation(const std::string& words);    // "12 a/b.py:L3-L9": the note's line, and what it cites there
  void show_finding(int place);
  void next_citation(int direction);
  void next_finding(int direction);
  void next_pane(int direction);
  void move_lines(int by, bool longer);
  void find_in_file(int direction);
  void copy_citation();
  void add_citation();

  // --- desk_pages.cpp: text and source --------------------------------------------------------------------
  void follow(const std::string& link);
  void show_page(const std::string& path, const std::string& anchor, bool into_history);
  void turn_page(std::vector<PagePlace>& from, std::vector<PagePlace>& to);   // between the two sides of the way taken
  void show_source(const std::string& path, int line);
  void show_source(const std::string& path, int line, const timeline::SourceExcerpt* kept);   // kept: the run's copy; nullptr: today's file
  const timeline::SourceExcerpt* kept_source(const std::string& path) const;                // nullptr: the run that is open has none
  void show_span(const std::string& name);
  void go_source();
  void go_note();
  const std::vector<book::Excerpt>& excerpts();
  const PageIndex& pages();
  std::string link_to_view() const;
  void apply(const scene::Link& link, OpenRun& run);

  OpenRun* run() { return current >= 0 ? runs[static_cast<std::size_t>(current)].get() : nullptr; }
  const OpenRun* run() const { return current >= 0 ? runs[static_cast<std::size_t>(current)].get() : nullptr; }
  void fail(const std::string& sentence);    // shown, and kept for problem()
  const std::string& said_problem() const { return shown_problem.empty() ? font_problem : shown_problem; }

  DeskOptions options;
  Settings settings;
  float screen_scale = 1;

  std::vector<std::unique_ptr<OpenRun>> runs;
  int current = -1;
  std::deque<std::vector<std::string>> waiting;      // to be opened, in order
  std::unique_ptr<scene::Loader> loader;
  std::optional<scene::Link> pending_link;           // to be applied to the run that is being opened

  std::string layout = "trace", panel = "span";
  bool drawer = true, show_library = false, show_help = false;
  bool quit = false;
  int frames = 0, quiet_frames = 0;

  std::weak_ptr<const scene::Scene> panels_of;       // the run that area, find and marks are about
  views::SourceState source;
  scene::SpanRef source_of;                          // the selection when it was shown
  views::AreaState area;
  views::FindState find;
  views::CompareState compare;
  struct Difference {
    const scene::Scene *a = nullptr, *b = nullptr;
    int step_a = 0, step_b = 0;
    views::CompareState::Told told;
  };
  std::future<Difference> difference;
  views::TextState reader;
  views::MarksState marks;
  views::Work work;
  Job job;
  bool show_work = false, work_chosen = false;       // chosen: the part is the user's, not the first that is open
  std::string work_lab;
  std::string work_asks_of;                  // the part whose predictions are being typed
  int work_read_at = -1000;                  // a frame
  views::Reading pane;
  bool show_reading = false;
  std::unique_ptr<reading::Sources> sources;
  std::map<std::string, std::string> commits;   // that the notes name, else the lab's own, by repository
  std::string seen_on_disk;                  // of the notes and the files, when they were read
  views::Palette palette;
  views::Library library_;
  int library_read_at = -1000;               // a frame
  PagePlace page;
  std::vector<PagePlace> page_back, page_forward;
  std::optional<std::vector<book::Excerpt>> excerpts_;
  std::optional<PageIndex> pages_;

  std::string shown_problem, unasked_problem, hint;
  // Letters that are plain spoil nothing that was asked for, so no picture or script fails of it: it is said until it
  // is dismissed, whatever is opened, and once.
  std::string font_problem;
  bool asked_for_fonts = false;
  std::string picture_wanted;
  std::vector<ui::Intent> queue;
};

}  // namespace shardbook::app
