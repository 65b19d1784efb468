// ui/widgets: the few things that can be clicked, each known by its words.
//
// Every widget of the viewer is made here and notes its label and rectangle for the frame, so that a
// script clicks by words ("click "Open"") and a test can ask what is on the screen. Labels are what the
// user reads; two equal ones are told apart by their pane ("notes/03 Tensor parallel").
#pragma once

#include <imgui.h>

#include <string>
#include <vector>

#include "viewer/page/flow.hpp"

namespace shardbook::ui {

// A command with what it is about: what views return and the desk carries out, what scripts say, too.
struct Intent {
  std::string id;          // of keys.hpp, or one that only views use ("open", "follow", "select", "show")
  std::string argument;    // "note:03#cost", "r0.s20/117"
};
using Intents = std::vector<Intent>;

// --- What is on the screen ------------------------------------------------------------------------
struct Spot {
  std::string pane, label;
  ImVec2 from, to;         // screen pixels, clipped to what is visible; empty if scrolled away
};
void begin_frame_spots();
const std::vector<Spot>& spots();
void note_spot(const std::string& label, ImVec2 from, ImVec2 to);
// Text that `expect` may look for, beside spots' labels: words that were drawn in this frame.
void note_words(const std::string& words);
const std::vector<std::string>& words();

// --- Panes ----------------------------------------------------------------------------------------
// A pane is a child window with a name and, if `title`, a head line with it, or other words, its first letter made large.
// Without `scrollbar` what is too long is still scrolled by the wheel, and the body never gets narrower. In a pane that has rows or
// tables, arrows and Tab go from one thing to the next and Enter presses it; in all others arrows are commands.
// False: nothing of it can be seen; end_pane comes all the same.
bool begin_pane(const char* name, ImVec2 size, bool title = true, const std::string& other_words = "", bool scrollbar = true);
void end_pane();
// The panes of this frame in the order drawn, the one that has the keys, and giving them to one at its next frame.
const std::vector<std::string>& panes();
const std::string& focused_pane();
void focus_pane(const std::string& name);
// Does the pane that is being drawn have the keys? Outside of panes: does the window.
bool has_keys();
// A vertical or horizontal divider to drag between two panes; changes *first_px. True while dragged.
bool splitter(const char* name, bool vertical, float* first_px, float least_first, float least_second, float whole);

// --- Things to click ------------------------------------------------------------------------------
bool button(const std::string& label, const std::string& hint = "", bool enabled = true);
bool small_button(const std::string& label, const std::string& hint = "");
bool toggle(const std::string& label, bool* on, const std::string& hint = "");
bool link(const std::string& label, const std::string& hint = "");
bool row(const std::string& label, bool selected, const std::string& right = "");     // a line of a list
// The label stands in the empty field. *text follows each letter; true: Enter was pressed.
bool text_field(const std::string& label, std::string* text, float width, bool take_focus = false);
bool tab(const std::string& label, bool selected);
void heading(const std::string& text);
void words_line(const std::string& text);            // body text in ImGui's colour, in one line, cut with … and a hint if too long
void paragraph(const std::string& text, ImU32 colour = 0);   // wrapped
void dim_line(const std::string& text);
// "name   value" with the values in a column; the value can be copied by a click.
void fact(const std::string& name, const std::string& value, float name_width);
void hint_on_hover(const std::string& text);

// Sortable table of short texts; returns the clicked row (an index into `cells`, however sorted) or -1. Numbers are
// right-aligned, and sorted by value with their unit ("12 us" before "1.5 ms").
struct Column {
  std::string title;
  bool number = false;
  float width = 0;        // 0: what is left
};
int table(const char* name, const std::vector<Column>& columns, const std::vector<std::vector<std::string>>& cells,
          int selected, float height);

}  // namespace shardbook::ui
