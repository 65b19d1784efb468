// ui/imgui_version: how are keys asked for, pressed and led to a field, whichever Dear ImGui the distribution ships?
//
// Debian 12 and Ubuntu 22.04 ship 1.86: keys are the codes of who feeds them (here GLFW's), in arrays that a program
// may write itself. Ubuntu 24.04 ships 1.90: keys are ImGui's own, and come as events. All of the viewer names keys by
// GLFW's codes (keys.hpp) and asks here; imgui_version.cpp is the one file that looks at IMGUI_VERSION_NUM.
#pragma once

namespace shardbook::ui {

// Tells the context which of its own keys are which; once, before its first frame.
void prepare_keys();

// As ImGui's functions of these names, by GLFW's code. A code that ImGui has no key for is never down.
bool is_key_down(int code);
bool is_key_pressed(int code, bool repeat = true);
bool is_any_key_down();

// The next frame sees this key down or up, and these held, until told otherwise; for scripts and tests. What is fed
// before a frame is all seen by it, where events from a window may be spread over several.
void feed_key(int code, bool down);
void feed_held(bool ctrl, bool shift, bool alt);

// The next item gets the keys; a field is typed into from the next frame or the one after it.
void lead_keys_to_next_item();

// Did a character come that only the next frame will see, though its key is seen already?
bool is_character_late();

}  // namespace shardbook::ui
