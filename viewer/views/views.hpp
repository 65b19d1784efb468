// views/views: what stands in each panel?
//
// One file a panel. A view draws what it is given, keeps only what belongs to its own picture (a query, a
// scroll, a cache of figures), and returns what the user wants as intents. No view knows another, and
// none opens, loads or moves anything: that is the desk's (app/desk.hpp).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "viewer/lanes/plot.hpp"
#include "viewer/scene/area.hpp"
#include "viewer/scene/compare_words.hpp"
#include "viewer/scene/find.hpp"
#include "viewer/scene/scene.hpp"
#include "viewer/ui/page_view.hpp"
#include "viewer/ui/widgets.hpp"
#include "viewer/views/figures.hpp"

namespace shardbook::views {

using lanes::PlotState;
using scene::Scene;
using ui::Intents;
// What a table shows; made when its figures are, not in every frame.
using Cells = std::vector<std::vector<std::string>>;

// --- top_bar.cpp: what is open, how it is laid out ----------------------------------------------------
struct TopBar {
  std::vector<std::string> runs;      // titles of the runs that are open
  int current = -1;
  std::string layout;                 // "read", "split", "trace"
  bool dark = false;
  float loading = -1;                 // 0 to 1 while a run is being opened
  std::string stage;                  // what it is doing
};
// Intents: run.show I, run.close I, library, layout.*, theme, help, palette.
Intents draw_top_bar(const TopBar& state);

// --- overview.cpp: a bar a rank, and one sentence -------------------------------------------------------
// The window is the step that the view is in, else the whole run. Folded, it is the bars and one line; unfolded, all that
// there is to say. Intents: exposed.next, rank.show R, step N, show.header.
struct Overview {
  bool made = false, unfolded = false;
  std::string cause;                  // why this step takes what it takes: `shardbook why`'s sentence, or that it is being found
  // As much of it as the folded header has room for, in lines of this width and letters of this size.
  struct FoldedCause {
    std::string of;
    float width = 0, letters = 0;
    std::string words;
    int lines = 0;
  } folded_cause;
  std::string straggler;              // who is late; "" if nobody is
  struct Kind {
    std::string name;                 // of the span that owns most
    std::string words, brief, more;   // brief: without the source line; more: all figures, for who points at it
  };
  std::vector<Kind> kinds;            // what exposed time is made of, in the window of the bars
  std::optional<metrics::Window> kinds_of;
  // Ranks that are alike within a hundredth of that window have one bar, unless the header is unfolded.
  std::vector<RankBar> bars;
  std::optional<std::pair<metrics::Window, bool>> bars_of;   // and whether it was unfolded
  int step = -1;                      // of that window; -1: the whole run
  std::vector<scene::SpanRef> exposed;   // of that step, in N's order
  // When a rank stood in a collective whose last rank had not come, and computed nothing.
  std::map<base::Rank, base::Intervals> waiting;
};
// Where the height is less than overview_height(), there are fewer bars.
Intents draw_overview(const Scene& scene, Overview& overview, const PlotState& plot, float height);
// What all bars and sentences take in this width.
float overview_height(const Scene& scene, Overview& overview, const PlotState& plot, float width);
// The step's number and window that the middle of the view lies in; -1 and the whole run if none.
scene::Scene::StepWindow step_in_view(const Scene& scene, const PlotState& plot);

// --- details_view.cpp: everything about the selected span ------------------------------------------------
Intents draw_details(const Scene& scene, const PlotState& plot);

// --- source_view.cpp: the line that launched it, with the book's span around it ----------------------------
struct SourceState {
  std::string path;                   // from the root; "" if nothing is shown yet
  int line = 0;
  ui::CodeView code;
  std::string standing;               // "as it was when this run was made", "the file has changed since", ...
  bool changed = false;
  std::string span, span_title;       // of the book, around the line; "" if none
  // Pages that name this span, one around it, or the file; and what of these they name.
  struct Note {
    std::string link, title, mentions;
  };
  std::vector<Note> notes;
};
Intents draw_source(SourceState& state);

// --- area_view.cpp: exact figures of what is selected ---------------------------------------------------------
struct AreaState {
  std::optional<lanes::Area> of;      // what `figures` were made for
  scene::AreaFigures figures;
  Cells ranks, labels;                // of `figures`
  int selected = -1;
};
Intents draw_area(AreaState& state, const Scene& scene, const PlotState& plot);

// --- find_view.cpp: spans by name, and how long they take --------------------------------------------------------
struct FindState {
  std::string query, searched;
  bool host = false, searched_host = false;
  bool take_focus = false;
  scene::Found found, shown;          // shown: narrowed by the histogram
  Cells cells;                        // of the first of `shown`
  std::optional<std::pair<base::Nanoseconds, base::Nanoseconds>> range, narrowed_to;   // of lengths; what `shown` is made for
  int place = -1;
};
Intents draw_find(FindState& state, const Scene& scene);

// --- compare_view.cpp: what did the change do? -------------------------------------------------------------------
struct Compared {
  std::shared_ptr<const Scene> scene;
  std::string title;
  int step_in_view = -1;              // as of step_in_view()
};
struct CompareState {
  int a = -1, b = -1;                 // of the runs that are open
  std::optional<int> step_a, step_b;  // as chosen by a click; else that in view
  std::optional<scene::Comparison> made;
  // What `shardbook diff` says of these steps: found beside the frames by the desk, none until it is known.
  struct Told {
    std::string sentence;
    std::vector<std::string> sums;    // what adds up to the step's difference
    bool equal = false;
    base::Nanoseconds step_a = 0, step_b = 0;   // that it speaks of: of modelled runs without tracing
  };
  std::optional<Told> told;
  std::string by_phase;               // of `made`, and all below
  std::vector<scene::Alignment> aligned;
  Cells ranks, ops;
  std::vector<base::Nanoseconds> difference;   // of `made`, a column each two pixels
  const Scene* made_a = nullptr;
  const Scene* made_b = nullptr;
};
Intents draw_compare(CompareState& state, const std::vector<Compared>& runs);

// --- library_view.cpp: labs, notes and runs to open -----------------------------------------------------------------
struct Library {
  struct Entry {
    std::string title, target, right;      // target: "lab:02", "note:03", or a path to open
  };
  std::vector<Entry> labs, notes, runs, rooms;
};
Intents draw_library(const Library& library);

// --- text_view.cpp: a page, with its way back ---------------------------------------------------------------------------
struct TextState {
  ui::PageView page;
  std::string title;                  // "" if no page is open
  bool can_go_back = false, can_go_forward = false;
  std::string query;
  bool searching = false, take_focus = false;
};
Intents draw_text(TextState& state);

// --- work_view.cpp: the lab's steps beside its text -----------------------------------------------------------------------
// Predict, run, check, hint: each button names the command that it stands for, and what that says is shown below.
struct Work {
  struct Part {
    std::string id, words;            // "02b", "02b Why · 35 min"
    bool passed = false;
  };
  struct Ask {
    std::string key, text, unit, draft;
  };
  std::vector<Part> parts;            // of the lab whose text is open; empty: it has none
  int current = 0;
  std::string question, state, file;  // of the current part: what it asks; "sealed, not run"; what one edits
  std::vector<Ask> asks;              // predictions that are not sealed yet
  std::vector<std::string> commands;  // what it says to run
  bool reads = false;                 // its work is notes about others' sources
  std::string command, output;        // of the last one: "./shardbook check 02b", and what it said
  std::string ended;                  // "running for 3 s", "ended with exit code 1 after 2.1 s"; "" before the first
  std::string run;                    // the run that it has left, to be opened; "" if none
  bool running = false, failed = false;
  int columns = 0;                    // letters of output that stand beside each other here; draw_work's
};
// Intents: work.part I, work.do COMMAND, work.cancel, open RUN, work.edit (opens the file's folder path as a hint).
Intents draw_work(Work& work);

// --- reading_view.cpp: a file of others beside the learner's notes about it ------------------------------------------------
// Selected lines are a citation, a citation that is clicked shows its lines, and below the notes stands what their check
// found. Notes are edited in the learner's own editor; here they are read again when they change.
struct Reading {
  struct File {
    std::string repository, path;
    bool here = true;                 // false: not fetched
  };
  std::vector<File> files;            // that the lab reads, and what else is here of their commits
  std::string missing;                // one sentence with the command, where files are not here
  bool choosing = true;               // the list of files stands in place of one
  int shown = -1;                     // of `files`; -1: none
  std::string commit;                 // of the shown one
  ui::CodeView code;
  std::string citation;               // of the selected lines, "a/b.py:L3-L9"; "" if there are none
  std::string query;
  bool searching = false, take_focus = false;

  struct Place {
    std::size_t begin, end;           // bytes of the line
    std::string words;                // "a/b.py:L3-L9"
  };
  struct Line {
    std::string text;
    bool fenced = false;
    std::vector<Place> places;
  };
  std::vector<std::string> notes;     // file names
  int note = 0;
  std::string folder;                 // of the notes, from the root
  std::vector<Line> lines;            // of the note
  std::string unread;                 // why there are none, one sentence
  int marked = 0;                     // line of the note
  bool scroll = false;                // to it; reset when done
  std::string cited;                  // the citation that was followed last, "12 a/b.py:L3-L9"
  int found = -1;                     // the finding that was gone to last

  struct Finding {
    std::string file, rule, sentence;
    int line = 0;
    bool warning = false;
  };
  std::vector<Finding> findings;      // of the note
  std::vector<std::string> unjudged;  // one sentence each
  std::string verdict;                // "2 findings of what 03a asks for"
  float notes_share = 0.42F, findings_share = 0.3F;
};
// Intents: reading.files, reading.file I, reading.note I, reading.cite WORDS, reading.finding I, reading.copy,
// reading.append, reading.check, reading.find, reading.
Intents draw_reading(Reading& reading, ImVec2 size);

// --- marks_view.cpp: ranges and remarks that the user has made ---------------------------------------------------------
struct MarksState {
  std::string draft;                  // of a remark that is being written
  bool writing = false, take_focus = false;
  int selected = -1;                  // ranges first, then annotations
};
Intents draw_marks(MarksState& state, const Scene& scene, const PlotState& plot);

// --- help_view.cpp, palette.cpp: over everything ----------------------------------------------------------------------------
Intents draw_help(ImVec2 size);

struct Palette {
  bool open = false, take_focus = false;
  std::string title;                  // "Commands", "Rows"
  std::string query;
  struct Choice {
    std::string words, keys;
    ui::Intent intent;
  };
  std::vector<Choice> choices;
  int selected = 0;
};
Intents draw_palette(Palette& palette, ImVec2 size);

// --- status_bar.cpp: where the times come from, and what went wrong -----------------------------------------------------------
struct StatusBar {
  std::string provenance;             // "measured on 4 × NVIDIA H200", "MODELLED h200x8"
  bool modelled = false;
  std::vector<std::string> banners;
  std::string problem;                // the last thing that could not be done
  std::string hint;
};
Intents draw_status_bar(const StatusBar& state);
// One line on the clock of a run, in every picture.
std::string provenance_text(const Scene& scene);

}  // namespace shardbook::views
