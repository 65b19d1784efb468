// cli/command: what is a command, and how is its line read?
//
// A command is a row of a table: name, what it takes, what it says of itself, what it does. CLI11 splits the
// line; which switches there are, and what each means, comes from the row (for training: from config::options()).
// A line becomes a Line, or one sentence for the user; nothing has happened by then.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/cli/console.hpp"

namespace shardbook::cli {

// Exit codes of every command.
inline constexpr int exit_ok = 0;
inline constexpr int exit_failed = 1;      // a run failed
inline constexpr int exit_bad_input = 2;   // what was asked for cannot be, or cannot be written
inline constexpr int exit_stopped = 3;     // a run was asked to stop, and did; what it had is written

// Prints "shardbook: <sentence>" on the error stream; returns exit_bad_input.
int refuse(Console& console, const std::string& sentence);

struct Switch {
  std::string name;           // without dashes
  std::string values;         // "N", "FILE..."; empty: a flag
  std::string help;           // one sentence
  std::string default_text;   // empty: none is said
  bool many = false;          // takes several values
  bool boolean = false;       // takes true or false, and alone means true
};

// What stands on a line behind the command's name.
struct Line {
  std::vector<std::string> places;                             // in order: NOTE, FILE ...
  std::map<std::string, std::vector<std::string>> switches;    // by name; a flag has no values

  bool has(const std::string& name) const { return switches.contains(name); }
  // The only value of a switch, or "" where it is not given.
  std::string value(const std::string& name) const;
};

struct Command {
  std::string name;
  std::string places;         // "DIR|FILE...", "[NOTE]"; empty: none
  int least_places = 0;
  int most_places = 0;        // -1: any number
  std::string summary;        // one line of the overview
  std::string help;           // paragraphs of `COMMAND --help`, with examples
  std::vector<Switch> switches;
  int (*act)(const Line& line, Console& console) = nullptr;
  bool passes_on = false;     // another program reads the line: all words go to `act` as places
  std::string (*unknown)(const std::string& name) = nullptr;   // what to say of this switch, which there is not; "": the nearest is named
};

// Errors: an unknown switch (the nearest is named), a value that is missing or too much, too few or too many places.
base::Result<Line> read_line(const Command& command, const std::vector<std::string>& arguments);

// A whole number of at least `least`. Errors: "--step must be ...".
base::Result<int> whole_number(const std::string& switch_name, const std::string& text, int least = 0);

}  // namespace shardbook::cli
