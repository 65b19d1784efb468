// ui/keys: what can be done here, and by which key?
//
// One table: help shows it, the palette searches it, tests press every key of it, and whatever is done
// by mouse is in it too. A command is named by its id ("view.zoom_in"); what it does is the desk's.
// Letters act only where no text is being typed, and by place on the keyboard as GLFW names it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardbook::ui {

struct Command {
  const char* id;         // "view.zoom_in"
  const char* keys;       // "W", "Ctrl+P", "Shift+N", "1..9"; several by " or "; "" = by palette only
  const char* what;       // "Zoom in at the pointer"
  const char* group;      // "Move", "Select", "Show", "Text", "Window"
  bool repeats = false;   // acts in every frame while held (pan, zoom)
};

const std::vector<Command>& commands();
const Command* find_command(std::string_view id);

// The commands whose keys went down (or are held, if they repeat) in this frame; "1..9" gives the digit
// as argument. Nothing while a text field has the focus, but for chords with Ctrl, Escape, F keys.
struct Pressed {
  const Command* command;
  int digit = 0;
};
std::vector<Pressed> pressed_commands();

// GLFW's key code of a name ("W", "Escape", "F1", "Left", "=", ","), or -1; for scripts and tests.
int key_code(std::string_view name);

}  // namespace shardbook::ui
