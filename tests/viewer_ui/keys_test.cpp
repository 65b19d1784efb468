// Is the table of keys whole, and does each key do its one thing?
#include "viewer/ui/keys.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "tests/viewer_ui/screen.hpp"

namespace shardbook::ui {
namespace {

std::string name_of(const Chord& chord) {
  return std::string(chord.ctrl ? "Ctrl+" : "") + (chord.shift ? "Shift+" : "") + (chord.alt ? "Alt+" : "") + std::to_string(chord.key);
}

TEST(Keys, every_name_of_a_key_is_known) {
  for (const Command& command : commands()) {
    for (const auto& row : chords_of(command.keys)) {
      ASSERT_FALSE(row.empty()) << command.id;
      EXPECT_LE(row.size(), 2U) << command.id;
      for (const Chord& chord : row) EXPECT_GE(chord.key, 0) << command.id << ": " << command.keys;
    }
  }
}

TEST(Keys, no_two_commands_have_one_key) {
  std::map<std::string, std::string> seen;
  for (const Command& command : commands()) {
    for (const auto& row : chords_of(command.keys)) {
      std::string name;
      for (const Chord& chord : row) name += name_of(chord) + " ";
      const auto [at, is_new] = seen.emplace(name, command.id);
      EXPECT_TRUE(is_new || at->second == command.id) << command.id << " and " << at->second << " both have " << command.keys;
    }
  }
}

TEST(Keys, ids_are_unique_and_everything_says_what_it_does) {
  std::set<std::string> ids;
  const std::set<std::string> groups = {"Move", "Select", "Show", "Text", "Lab 03's sources", "Window"};
  for (const Command& command : commands()) {
    EXPECT_TRUE(ids.insert(command.id).second) << command.id;
    EXPECT_FALSE(std::string(command.what).empty()) << command.id;
    EXPECT_TRUE(groups.contains(command.group)) << command.id;
    EXPECT_EQ(find_command(command.id), &command);
  }
  EXPECT_EQ(find_command("nothing"), nullptr);
}

TEST(Keys, names_of_keys_that_do_not_exist_have_no_code) {
  for (const char* name : {"", "F0", "F13", "F99", "F1x", "a", "AA", "Return", "ü"}) EXPECT_EQ(key_code(name), -1) << name;
  EXPECT_EQ(key_code("W"), 'W');
  EXPECT_EQ(key_code("0"), '0');
  EXPECT_EQ(key_code("F12"), key_code("F1") + 11);
}

TEST(Keys, chords_are_read_with_what_is_held) {
  const Chord palette = parse_chord("Ctrl+Shift+P");
  EXPECT_TRUE(palette.ctrl && palette.shift && !palette.alt);
  EXPECT_EQ(palette.key, 'P');
  EXPECT_EQ(parse_chord("Ctrl++").key, key_code("="));
  EXPECT_EQ(parse_chord("?").typed, static_cast<unsigned>('?'));
  EXPECT_EQ(chords_of("F F or Home").size(), 2U);
  EXPECT_EQ(chords_of("F F or Home")[0].size(), 2U);
  EXPECT_EQ(chords_of("1..9").size(), 9U);
  EXPECT_TRUE(chords_of("").empty());
}

class Pressing : public testing::Test {
 protected:
  Screen screen;
  std::vector<std::string> got;

  void frame() {
    screen.frame([&] {
      got.clear();
      for (const Pressed& one : pressed_commands()) {
        got.emplace_back(one.command->id);
        if (one.digit != 0) got.back() += ':' + std::to_string(one.digit);
      }
    });
  }
  std::vector<std::string> tap(const Chord& chord) {
    screen.hold(chord, true);
    frame();
    const std::vector<std::string> there = got;
    screen.hold(chord, false);
    frame();
    return there;
  }
  // Longer than two presses in a row may lie apart.
  void rest() {
    for (int i = 0; i < 70; ++i) frame();
  }
};

TEST_F(Pressing, each_key_of_the_table_gives_its_command_and_no_other) {
  rest();
  for (const Command& command : commands()) {
    for (const auto& row : chords_of(command.keys)) {
      std::vector<std::string> there;
      for (const Chord& chord : row) there = tap(chord);
      ASSERT_EQ(there.size(), 1U) << command.id << " by " << command.keys;
      EXPECT_EQ(there[0].substr(0, there[0].find(':')), command.id);
      rest();
    }
  }
}

TEST_F(Pressing, a_digit_comes_with_its_number) {
  rest();
  EXPECT_EQ(tap(parse_chord("7")), std::vector<std::string>{"step:7"});
}

TEST_F(Pressing, twice_in_a_row_counts_only_if_nothing_came_between_and_soon) {
  rest();
  EXPECT_EQ(tap(parse_chord("F")), std::vector<std::string>{"view.center"});
  EXPECT_EQ(tap(parse_chord("F")), std::vector<std::string>{"view.fit"});
  EXPECT_EQ(tap(parse_chord("F")), std::vector<std::string>{"view.center"}) << "the third starts anew";
  tap(parse_chord("N"));
  EXPECT_EQ(tap(parse_chord("F")), std::vector<std::string>{"view.center"});
  rest();
  EXPECT_EQ(tap(parse_chord("F")), std::vector<std::string>{"view.center"});
}

TEST_F(Pressing, what_repeats_acts_in_every_frame_and_the_rest_once) {
  rest();
  screen.hold(parse_chord("W"), true);
  frame();
  frame();
  EXPECT_EQ(got, std::vector<std::string>{"view.zoom_in"});
  screen.hold(parse_chord("W"), false);
  screen.hold(parse_chord("N"), true);
  frame();
  EXPECT_EQ(got, std::vector<std::string>{"exposed.next"});
  frame();
  EXPECT_TRUE(got.empty());
}

TEST_F(Pressing, a_sign_counts_by_its_character_wherever_its_key_is) {
  rest();
  // On a Spanish keyboard "/" is Shift+7, and the key at the place of "/" types "-".
  ImGui::GetIO().AddInputCharacter('/');
  EXPECT_EQ(tap(parse_chord("Shift+7")), std::vector<std::string>{"find"});
  ImGui::GetIO().AddInputCharacter('-');
  EXPECT_EQ(tap(parse_chord("/")), std::vector<std::string>{"view.zoom_out"});
}

TEST_F(Pressing, letters_are_words_while_a_field_is_typed_into_but_chords_act) {
  std::string text;
  const auto draw = [&] {
    text_field("field", &text, 200, true);
    got.clear();
    for (const Pressed& one : pressed_commands()) got.push_back(one.command->id);
  };
  for (int i = 0; i < 4; ++i) screen.frame(draw);
  ASSERT_TRUE(ImGui::GetIO().WantTextInput);
  for (const char* key : {"W", "N", "/", "1", "Delete", "Ctrl+C", "Ctrl+A"}) {
    screen.hold(parse_chord(key), true);
    screen.frame(draw);
    EXPECT_TRUE(got.empty()) << key;
    screen.hold(parse_chord(key), false);
    screen.frame(draw);
  }
  for (const char* key : {"Ctrl+P", "F1", "Escape"}) {
    screen.hold(parse_chord(key), true);
    screen.frame(draw);
    EXPECT_EQ(got.size(), 1U) << key;
    screen.hold(parse_chord(key), false);
    screen.frame(draw);
  }
}

}  // namespace
}  // namespace shardbook::ui
