// ui/keys: the table, and which of it was pressed; see keys.hpp.
#include "viewer/ui/keys.hpp"

#include <imgui.h>

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include "viewer/ui/imgui_version.hpp"

namespace shardbook::ui {

const std::vector<Command>& commands() {
  static const std::vector<Command> table = {
      // --- Move about in time -------------------------------------------------------------------------
      {"view.zoom_in", "W or = or +", "Zoom in, at the pointer", "Move", true},
      {"view.zoom_out", "S or -", "Zoom out, at the pointer", "Move", true},
      {"view.pan_left", "A or Left", "Move left", "Move", true},
      {"view.pan_right", "D or Right", "Move right", "Move", true},
      {"scroll.up", "Up", "Scroll up", "Move", true},
      {"scroll.down", "Down", "Scroll down", "Move", true},
      {"scroll.page_up", "PageUp", "Scroll up by a page", "Move"},
      {"scroll.page_down", "PageDown", "Scroll down by a page", "Move"},
      {"view.center", "F", "Center the selection", "Move"},
      {"view.fit", "F F or Home", "Show the whole run", "Move"},
      {"view.zoom_area", "Z", "Zoom to the selected area, or to the selection", "Move"},
      {"view.back", "Backspace", "Back to the view before", "Move"},
      {"view.forward", "Shift+Backspace", "Forward again", "Move"},
      {"step", "1..9", "Show step 1 to 9 of those recorded", "Move"},
      {"step.next", "Shift+Right", "Next step", "Move"},
      {"step.previous", "Shift+Left", "Previous step", "Move"},

      // --- Select -------------------------------------------------------------------------------------
      {"exposed.next", "N", "Next exposed span of the step in view, longest blocking first", "Select"},
      {"exposed.previous", "Shift+N", "Previous exposed span", "Select"},
      {"select.next", ".", "Next span of the row", "Select"},
      {"select.previous", ",", "Previous span of the row", "Select"},
      {"select.up", "Ctrl+Up", "The span above", "Select"},
      {"select.down", "Ctrl+Down", "The span below", "Select"},
      {"follow.in", "[", "Follow the edge back: what this span waited for", "Select"},
      {"follow.out", "]", "Follow the edge on: what waited for this span", "Select"},
      {"follow.cycle", "Ctrl+]", "The next edge, where there are several", "Select"},
      {"area.of_selection", "R", "Measure the selection as an area", "Select"},
      {"range.temporary", "M", "Mark the selection's time, until the next mark", "Select"},
      {"range.keep", "Shift+M", "Keep this time as a range", "Select"},
      {"annotate", "Shift+A", "Write a remark at the selection", "Select"},
      {"delete", "Delete", "Delete the selected range or remark", "Select"},
      {"up", "Escape", "Close, clear, or one level up", "Select"},
      {"find", "/ or Ctrl+F", "Find spans, or words on the page", "Select"},
      {"find.next", "Ctrl+G", "Next hit (Enter, in the field)", "Select"},
      {"find.previous", "Ctrl+Shift+G", "Previous hit (Shift+Enter, in the field)", "Select"},

      // --- Show ---------------------------------------------------------------------------------------
      {"show.exposed", "E", "Exposed communication, on or off", "Show"},
      {"show.critical", "C", "Critical path, on or off", "Show"},
      {"show.idle_causes", "I", "Causes of idle time, on or off", "Show"},
      {"show.header", "U", "All figures of the step above the rows, or one line", "Show"},
      {"show.memory", "Y", "Memory in use by kind, on or off", "Show"},
      {"show.host", "H", "Host calls: when each was issued, on or off", "Show"},
      {"pin", "P", "Pin the row, or let it go", "Show"},
      {"rank.open", "O", "Open the rank", "Show"},
      {"rank.fold", "X", "Fold the rank", "Show"},
      {"tracks", "Ctrl+P", "Find a row", "Show"},
      {"compare", "Ctrl+D", "Compare with another run", "Show"},
      {"link.copy", "Ctrl+L", "Copy a link to this view", "Show"},
      {"screenshot", "Ctrl+S", "Save a picture of the window", "Show"},

      // --- Text ---------------------------------------------------------------------------------------
      {"go.source", "G", "Go to the source line of the selection", "Text"},
      {"go.note", "T", "Go to the note about the selection", "Text"},
      {"text.back", "Alt+Left", "Back to the page before", "Text"},
      {"text.forward", "Alt+Right", "Forward again", "Text"},
      {"text.copy", "Ctrl+C", "Copy the selected text", "Text"},
      {"text.select_all", "Ctrl+A", "Select the whole page", "Text"},
      {"library", "Ctrl+O", "Runs, labs and notes to open", "Text"},
      {"work", "K", "The lab's steps beside its text: predict, run, check, hint", "Text"},

      // --- Lab 03's sources, beside notes ----------------------------------------------------------------
      {"reading", "L", "Sources beside your notes, on or off", "Lab 03's sources"},
      {"reading.longer", "Shift+Down", "A line more (Ctrl+Down: below)", "Lab 03's sources"},
      {"reading.shorter", "Shift+Up", "A line less (Ctrl+Up: above)", "Lab 03's sources"},
      {"reading.copy", "Ctrl+Shift+C", "Copy the citation of the lines", "Lab 03's sources"},
      {"reading.append", "Ctrl+Shift+A", "Add it to your notes", "Lab 03's sources"},
      {"reading.check", "F5", "Check the notes again", "Lab 03's sources"},

      // --- Window -------------------------------------------------------------------------------------
      {"help", "F1 or ?", "Keys and what they do", "Window"},
      {"palette", "Ctrl+Shift+P", "Any command, by its name", "Window"},
      {"layout.read", "F2", "Mostly text", "Window"},
      {"layout.split", "F3", "Text, timeline and details", "Window"},
      {"layout.trace", "F4", "Mostly timeline", "Window"},
      {"drawer", "Q", "Details, on or off", "Window"},
      {"pane.next", "F6", "Next pane", "Window"},
      {"pane.previous", "Shift+F6", "Pane before", "Window"},
      {"theme", "Ctrl+T", "Light or dark", "Window"},
      {"scale.up", "Ctrl+= or Ctrl++", "Larger", "Window"},
      {"scale.down", "Ctrl+-", "Smaller", "Window"},
      {"scale.reset", "Ctrl+0", "As large as at first", "Window"},
      {"quit", "Ctrl+Q", "Quit", "Window"},
  };
  return table;
}

const Command* find_command(std::string_view id) {
  for (const Command& command : commands()) {
    if (id == command.id) return &command;
  }
  return nullptr;
}

// --- Names of keys --------------------------------------------------------------------------------
namespace {

constexpr std::array<std::pair<std::string_view, int>, 31> named_keys = {{
    {"Escape", GLFW_KEY_ESCAPE}, {"Enter", GLFW_KEY_ENTER}, {"Tab", GLFW_KEY_TAB}, {"Backspace", GLFW_KEY_BACKSPACE},
    {"Insert", GLFW_KEY_INSERT}, {"Delete", GLFW_KEY_DELETE}, {"Space", GLFW_KEY_SPACE},
    {"Left", GLFW_KEY_LEFT}, {"Right", GLFW_KEY_RIGHT}, {"Up", GLFW_KEY_UP}, {"Down", GLFW_KEY_DOWN},
    {"PageUp", GLFW_KEY_PAGE_UP}, {"PageDown", GLFW_KEY_PAGE_DOWN}, {"Home", GLFW_KEY_HOME}, {"End", GLFW_KEY_END},
    {"=", GLFW_KEY_EQUAL}, {"+", GLFW_KEY_EQUAL}, {"-", GLFW_KEY_MINUS}, {",", GLFW_KEY_COMMA}, {".", GLFW_KEY_PERIOD},
    {"/", GLFW_KEY_SLASH}, {"?", GLFW_KEY_SLASH}, {"[", GLFW_KEY_LEFT_BRACKET}, {"]", GLFW_KEY_RIGHT_BRACKET},
    {";", GLFW_KEY_SEMICOLON}, {"'", GLFW_KEY_APOSTROPHE}, {"\\", GLFW_KEY_BACKSLASH}, {"`", GLFW_KEY_GRAVE_ACCENT},
    {"Ctrl", GLFW_KEY_LEFT_CONTROL}, {"Shift", GLFW_KEY_LEFT_SHIFT}, {"Alt", GLFW_KEY_LEFT_ALT},
}};

bool is_sign(std::string_view name) {
  return name.size() == 1 && std::string_view("=+-,./?[];'\\`").find(name[0]) != std::string_view::npos;
}

}  // namespace

int key_code(std::string_view name) {
  if (name.size() == 1 && name[0] >= 'A' && name[0] <= 'Z') return GLFW_KEY_A + (name[0] - 'A');
  if (name.size() == 1 && name[0] >= '0' && name[0] <= '9') return GLFW_KEY_0 + (name[0] - '0');
  if (name.size() >= 2 && name.size() <= 3 && name[0] == 'F') {
    int number = 0;
    const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
    const bool whole = error == std::errc() && end == name.data() + name.size() && name[1] != '0';
    return whole && number >= 1 && number <= 12 ? GLFW_KEY_F1 + number - 1 : -1;
  }
  for (const auto& [known, code] : named_keys) {
    if (known == name) return code;
  }
  return -1;
}

Chord parse_chord(std::string_view text) {
  Chord chord;
  for (bool again = true; again;) {
    again = false;
    for (const auto& [prefix, held] : {std::pair{std::string_view("Ctrl+"), &chord.ctrl},
                                       std::pair{std::string_view("Shift+"), &chord.shift},
                                       std::pair{std::string_view("Alt+"), &chord.alt}}) {
      if (text.size() > prefix.size() && text.substr(0, prefix.size()) == prefix) {
        *held = true;
        text.remove_prefix(prefix.size());
        again = true;
      }
    }
  }
  chord.key = key_code(text);
  const bool shifted = text == "+" || text == "?";     // on the keyboard whose places GLFW's names mean
  if (is_sign(text) && !chord.ctrl && !chord.alt && !chord.shift) chord.typed = static_cast<unsigned char>(text[0]);
  if (shifted) chord.shift = true;
  return chord;
}

std::vector<std::vector<Chord>> chords_of(std::string_view keys) {
  std::vector<std::vector<Chord>> all;
  if (keys == "1..9") {
    for (char digit = '1'; digit <= '9'; ++digit) all.push_back({parse_chord(std::string(1, digit))});
    return all;
  }
  while (!keys.empty()) {
    const std::size_t next = keys.find(" or ");
    std::string_view one = keys.substr(0, next);
    keys = next == std::string_view::npos ? std::string_view() : keys.substr(next + 4);
    std::vector<Chord> row;
    while (!one.empty()) {
      const std::size_t blank = one.find(' ');
      row.push_back(parse_chord(one.substr(0, blank)));
      one = blank == std::string_view::npos ? std::string_view() : one.substr(blank + 1);
    }
    all.push_back(std::move(row));
  }
  return all;
}

// --- What was pressed -----------------------------------------------------------------------------
namespace {

// The table with its keys read once.
struct Binding {
  const Command* command;
  std::vector<Chord> row;
  int digit;
};

const std::vector<Binding>& bindings() {
  static const std::vector<Binding> all = [] {
    std::vector<Binding> made;
    for (const Command& command : commands()) {
      int digit = 0;
      for (std::vector<Chord>& row : chords_of(command.keys)) {
        made.push_back({&command, std::move(row), std::string_view(command.keys) == "1..9" ? ++digit : 0});
      }
    }
    return made;
  }();
  return all;
}

// Signs are looked for among the characters of this frame; where a frame has none (a key that is held, a script),
// the place of the key counts.
bool is_down(const Chord& chord, bool held) {
  const ImGuiIO& io = ImGui::GetIO();
  if (chord.typed != 0 && is_character_late()) return false;
  if (chord.typed != 0 && !io.InputQueueCharacters.empty()) {
    return !io.KeyCtrl && !io.KeyAlt && io.InputQueueCharacters.contains(static_cast<ImWchar>(chord.typed));
  }
  if (chord.key < 0 || io.KeyCtrl != chord.ctrl || io.KeyShift != chord.shift || io.KeyAlt != chord.alt) return false;
  return held ? is_key_down(chord.key) : is_key_pressed(chord.key, false);
}

// May this act while words are being typed?
bool acts_while_typing(const Command& command, const Chord& chord) {
  const std::string_view id = command.id;
  if (id == "text.copy" || id == "text.select_all") return false;
  return chord.ctrl || chord.alt || chord.key == GLFW_KEY_ESCAPE || (chord.key >= GLFW_KEY_F1 && chord.key <= GLFW_KEY_F12);
}

bool any_click() {
  return ImGui::IsMouseClicked(0) || ImGui::IsMouseClicked(1) || ImGui::IsMouseClicked(2);
}

// What one context has seen so far.
struct Memory {
  const ImGuiContext* context = nullptr;
  int frame = -1;
  std::vector<Pressed> pressed;
  Chord last;                  // the last press, for two in a row
  double last_time = -10;
};

int newly_pressed_key() {
  for (int key = GLFW_KEY_SPACE; key <= GLFW_KEY_MENU; ++key) {
    const bool modifier = key >= GLFW_KEY_LEFT_SHIFT && key <= GLFW_KEY_RIGHT_SUPER;
    if (!modifier && is_key_pressed(key, false)) return key;
  }
  return -1;
}

}  // namespace

std::vector<Pressed> pressed_commands() {
  // The same answer to all who ask in a frame.
  static Memory memory;
  const int frame = ImGui::GetFrameCount();
  if (memory.context == ImGui::GetCurrentContext() && memory.frame == frame) return memory.pressed;
  if (memory.context != ImGui::GetCurrentContext()) memory = {};
  memory.context = ImGui::GetCurrentContext();
  memory.frame = frame;
  memory.pressed.clear();

  // Single presses, and the second of two in a row, which then stands for both.
  const bool typing = ImGui::GetIO().WantTextInput;
  const bool soon = ImGui::GetTime() - memory.last_time < 1.0;
  const Command* second = nullptr;
  const Command* first = nullptr;
  for (const Binding& binding : bindings()) {
    const Chord& chord = binding.row.back();
    if (typing && !acts_while_typing(*binding.command, chord)) continue;
    if (!is_down(chord, binding.command->repeats && binding.row.size() == 1)) continue;
    if (binding.row.size() == 2) {
      if (soon && memory.last == binding.row.front()) second = binding.command;
      continue;
    }
    const bool is_there = std::any_of(memory.pressed.begin(), memory.pressed.end(),
                                      [&](const Pressed& one) { return one.command == binding.command; });
    if (!is_there) memory.pressed.push_back({binding.command, binding.digit});
    first = binding.command;
  }
  if (second != nullptr) {
    std::erase_if(memory.pressed, [&](const Pressed& one) { return one.command == first; });
    memory.pressed.push_back({second, 0});
  }

  // What the next frame will call "the last press".
  const int key = newly_pressed_key();
  const ImGuiIO& io = ImGui::GetIO();
  if (second != nullptr || any_click()) {
    memory.last = {};
  } else if (key >= 0) {
    memory.last = {key, io.KeyCtrl, io.KeyShift, io.KeyAlt, 0};
    memory.last_time = ImGui::GetTime();
  }
  return memory.pressed;
}

}  // namespace shardbook::ui
