// ui/imgui_version: see imgui_version.hpp.
#include "viewer/ui/imgui_version.hpp"

#include <imgui.h>
#include <imgui_internal.h>

#define GLFW_INCLUDE_NONE
#include <GLFW/glfw3.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace shardbook::ui {

// 1.87 brought keys as events; what is used of them here has its names since 1.89.
#if IMGUI_VERSION_NUM >= 18900

namespace {

ImGuiKey imgui_key(int code) {
  // Rows of keys lie in the same order in both.
  const auto within = [code](int first, int last) { return code >= first && code <= last; };
  if (within(GLFW_KEY_A, GLFW_KEY_Z)) return static_cast<ImGuiKey>(ImGuiKey_A + (code - GLFW_KEY_A));
  if (within(GLFW_KEY_0, GLFW_KEY_9)) return static_cast<ImGuiKey>(ImGuiKey_0 + (code - GLFW_KEY_0));
  if (within(GLFW_KEY_F1, GLFW_KEY_F12)) return static_cast<ImGuiKey>(ImGuiKey_F1 + (code - GLFW_KEY_F1));
  if (within(GLFW_KEY_KP_0, GLFW_KEY_KP_9)) return static_cast<ImGuiKey>(ImGuiKey_Keypad0 + (code - GLFW_KEY_KP_0));
  switch (code) {
    case GLFW_KEY_ESCAPE: return ImGuiKey_Escape;
    case GLFW_KEY_ENTER: return ImGuiKey_Enter;
    case GLFW_KEY_TAB: return ImGuiKey_Tab;
    case GLFW_KEY_BACKSPACE: return ImGuiKey_Backspace;
    case GLFW_KEY_INSERT: return ImGuiKey_Insert;
    case GLFW_KEY_DELETE: return ImGuiKey_Delete;
    case GLFW_KEY_SPACE: return ImGuiKey_Space;
    case GLFW_KEY_LEFT: return ImGuiKey_LeftArrow;
    case GLFW_KEY_RIGHT: return ImGuiKey_RightArrow;
    case GLFW_KEY_UP: return ImGuiKey_UpArrow;
    case GLFW_KEY_DOWN: return ImGuiKey_DownArrow;
    case GLFW_KEY_PAGE_UP: return ImGuiKey_PageUp;
    case GLFW_KEY_PAGE_DOWN: return ImGuiKey_PageDown;
    case GLFW_KEY_HOME: return ImGuiKey_Home;
    case GLFW_KEY_END: return ImGuiKey_End;
    case GLFW_KEY_EQUAL: return ImGuiKey_Equal;
    case GLFW_KEY_MINUS: return ImGuiKey_Minus;
    case GLFW_KEY_COMMA: return ImGuiKey_Comma;
    case GLFW_KEY_PERIOD: return ImGuiKey_Period;
    case GLFW_KEY_SLASH: return ImGuiKey_Slash;
    case GLFW_KEY_LEFT_BRACKET: return ImGuiKey_LeftBracket;
    case GLFW_KEY_RIGHT_BRACKET: return ImGuiKey_RightBracket;
    case GLFW_KEY_SEMICOLON: return ImGuiKey_Semicolon;
    case GLFW_KEY_APOSTROPHE: return ImGuiKey_Apostrophe;
    case GLFW_KEY_BACKSLASH: return ImGuiKey_Backslash;
    case GLFW_KEY_GRAVE_ACCENT: return ImGuiKey_GraveAccent;
    case GLFW_KEY_LEFT_CONTROL: return ImGuiKey_LeftCtrl;
    case GLFW_KEY_LEFT_SHIFT: return ImGuiKey_LeftShift;
    case GLFW_KEY_LEFT_ALT: return ImGuiKey_LeftAlt;
    default: return ImGuiKey_None;
  }
}

void feed(ImGuiKey key, bool down) {
  ImGuiIO& io = ImGui::GetIO();
  io.ConfigInputTrickleEventQueue = false;
  if (key != ImGuiKey_None) io.AddKeyEvent(key, down);
}

}  // namespace

void prepare_keys() {}

bool is_key_down(int code) {
  const ImGuiKey key = imgui_key(code);
  return key != ImGuiKey_None && ImGui::IsKeyDown(key);
}

bool is_key_pressed(int code, bool repeat) {
  const ImGuiKey key = imgui_key(code);
  return key != ImGuiKey_None && ImGui::IsKeyPressed(key, repeat);
}

bool is_any_key_down() {
  for (int key = ImGuiKey_NamedKey_BEGIN; key < ImGuiKey_NamedKey_END; ++key) {
    if (ImGui::IsKeyDown(static_cast<ImGuiKey>(key))) return true;
  }
  return false;
}

void feed_key(int code, bool down) { feed(imgui_key(code), down); }

void feed_held(bool ctrl, bool shift, bool alt) {
  feed(ImGuiMod_Ctrl, ctrl);
  feed(ImGuiMod_Shift, shift);
  feed(ImGuiMod_Alt, alt);
  feed(ImGuiKey_LeftCtrl, ctrl);
  feed(ImGuiKey_LeftShift, shift);
  feed(ImGuiKey_LeftAlt, alt);
}

void lead_keys_to_next_item() {
  // 1.90.1 looks for the item in the focus scope of the window that had the keys before.
  ImGui::SetWindowFocus();
  ImGui::SetKeyboardFocusHere();
}

bool is_character_late() {
  const auto& waiting = ImGui::GetCurrentContext()->InputEventsQueue;
  return std::any_of(waiting.begin(), waiting.end(), [](const ImGuiInputEvent& event) { return event.Type == ImGuiInputEventType_Text; });
}

#else

namespace {

bool has_place(int code) { return code >= 0 && code < static_cast<int>(std::size(ImGui::GetIO().KeysDown)); }

}  // namespace

void prepare_keys() {
  // Those that its own widgets ask for.
  constexpr std::pair<int, int> keys[] = {
      {ImGuiKey_Tab, GLFW_KEY_TAB}, {ImGuiKey_LeftArrow, GLFW_KEY_LEFT}, {ImGuiKey_RightArrow, GLFW_KEY_RIGHT},
      {ImGuiKey_UpArrow, GLFW_KEY_UP}, {ImGuiKey_DownArrow, GLFW_KEY_DOWN}, {ImGuiKey_PageUp, GLFW_KEY_PAGE_UP},
      {ImGuiKey_PageDown, GLFW_KEY_PAGE_DOWN}, {ImGuiKey_Home, GLFW_KEY_HOME}, {ImGuiKey_End, GLFW_KEY_END},
      {ImGuiKey_Insert, GLFW_KEY_INSERT}, {ImGuiKey_Delete, GLFW_KEY_DELETE}, {ImGuiKey_Backspace, GLFW_KEY_BACKSPACE},
      {ImGuiKey_Space, GLFW_KEY_SPACE}, {ImGuiKey_Enter, GLFW_KEY_ENTER}, {ImGuiKey_Escape, GLFW_KEY_ESCAPE},
      {ImGuiKey_A, GLFW_KEY_A}, {ImGuiKey_C, GLFW_KEY_C}, {ImGuiKey_V, GLFW_KEY_V}, {ImGuiKey_X, GLFW_KEY_X},
      {ImGuiKey_Y, GLFW_KEY_Y}, {ImGuiKey_Z, GLFW_KEY_Z}};
  for (const auto& [key, code] : keys) ImGui::GetIO().KeyMap[key] = code;
}

bool is_key_down(int code) { return has_place(code) && ImGui::IsKeyDown(code); }
bool is_key_pressed(int code, bool repeat) { return has_place(code) && ImGui::IsKeyPressed(code, repeat); }

bool is_any_key_down() {
  const ImGuiIO& io = ImGui::GetIO();
  return std::any_of(std::begin(io.KeysDown), std::end(io.KeysDown), [](bool down) { return down; });
}

void feed_key(int code, bool down) {
  if (has_place(code)) ImGui::GetIO().KeysDown[code] = down;
}

void feed_held(bool ctrl, bool shift, bool alt) {
  ImGuiIO& io = ImGui::GetIO();
  io.KeyCtrl = io.KeysDown[GLFW_KEY_LEFT_CONTROL] = ctrl;
  io.KeyShift = io.KeysDown[GLFW_KEY_LEFT_SHIFT] = shift;
  io.KeyAlt = io.KeysDown[GLFW_KEY_LEFT_ALT] = alt;
}

void lead_keys_to_next_item() { ImGui::SetKeyboardFocusHere(); }

bool is_character_late() { return false; }

#endif

}  // namespace shardbook::ui
