// ui/keys: what can be done here, and by which key?
//
// One table: help shows it, the palette searches it, tests press every key of it, and whatever is done
// by mouse is in it too. A command is named by its id ("view.zoom_in"); what it does is the desk's.
// Letters act only where no text is being typed, and by place on the keyboard as GLFW names it. Signs
// (/ ? [ ] = - , .) act by the character that was typed, which stands elsewhere on other keyboards.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardbook::ui {

struct Command {
  const char* id;         // "view.zoom_in"
  const char* keys;       // "W", "Ctrl+P", "Shift+N", "1..9", "F F" (twice); several by " or "; "" = by palette only
  const char* what;       // "Zoom in at the pointer"
  const char* group;      // "Move", "Select", "Show", "Text", "Lab 03's sources", "Window"
  bool repeats = false;   // acts in every frame while held (pan, zoom)
};

const std::vector<Command>& commands();
const Command* find_command(std::string_view id);

// The commands whose keys went down (or are held, if they repeat) in this frame; "1..9" gives the digit
// as argument. While a text field has the focus: only chords with Ctrl or Alt, Escape and F keys, and not those
// that edit text (copy, all). Two keys in a row ("F F") come after the command of the first one, if no other key
// and no click came between, and within a second. Asked twice in a frame, the answer is the same.
struct Pressed {
  const Command* command;
  int digit = 0;
};
std::vector<Pressed> pressed_commands();

// GLFW's key code of a name ("W", "Escape", "F1", "Left", "=", ","), or -1; for scripts and tests.
int key_code(std::string_view name);

// One press: a key with what is held beside it.
struct Chord {
  int key = -1;            // GLFW's code; -1: the name is not known
  bool ctrl = false, shift = false, alt = false;
  unsigned typed = 0;      // the sign that it types, of a sign key without Ctrl and Alt ("?" is 63), else 0
  bool operator==(const Chord&) const = default;
};
Chord parse_chord(std::string_view text);
// "F F or Home" -> {{F, F}, {Home}}; "1..9" -> {{1}} to {{9}}. What is not known has a key of -1.
std::vector<std::vector<Chord>> chords_of(std::string_view keys);

}  // namespace shardbook::ui
