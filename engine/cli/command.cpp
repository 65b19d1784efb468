#include "engine/cli/command.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

#include "engine/base/nearest.hpp"
#include "engine/base/printable.hpp"

namespace shardbook::cli {

using base::Error;
using base::text;

int refuse(Console& console, const std::string& sentence) {
  console.err << "shardbook: " << base::printable(sentence) << "\n";
  return exit_bad_input;
}

std::string Line::value(const std::string& name) const {
  const auto found = switches.find(name);
  return found == switches.end() || found->second.empty() ? "" : found->second.front();
}

namespace {

const Switch* find(const Command& command, std::string_view name) {
  const auto found = std::find_if(command.switches.begin(), command.switches.end(),
                                  [&](const Switch& candidate) { return candidate.name == name; });
  return found == command.switches.end() ? nullptr : &*found;
}

// "--tied" alone becomes "--tied true", so that a boolean neither needs its value nor takes the next word for one.
std::vector<std::string> spell_out_booleans(const Command& command, const std::vector<std::string>& arguments) {
  std::vector<std::string> spelt;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    spelt.push_back(arguments[i]);
    if (arguments[i].substr(0, 2) != "--") continue;
    const Switch* one = find(command, arguments[i].substr(2));
    if (one == nullptr || !one->boolean) continue;
    const bool has_value = i + 1 < arguments.size() && (arguments[i + 1] == "true" || arguments[i + 1] == "false");
    if (!has_value) spelt.push_back("true");
  }
  return spelt;
}

Error unknown_switch(const Command& command, const std::string& argument) {
  std::string name = argument.substr(0, argument.find('='));
  name.erase(0, name.find_first_not_of('-'));
  if (const std::string known_elsewhere = command.unknown != nullptr ? command.unknown(name) : ""; !known_elsewhere.empty()) return {known_elsewhere};
  std::vector<std::string> known;
  for (const Switch& one : command.switches) known.push_back(one.name);
  const std::string hint = known.empty() ? text(command.name, " has no options")
                                         : text("the nearest is --", base::nearest(name, known));
  return {text("there is no option ", argument.substr(0, argument.find('=')), "; ", hint)};
}

}  // namespace

base::Result<Line> read_line(const Command& command, const std::vector<std::string>& arguments) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::map<std::string, CLI::Option*> options;
  std::map<std::string, std::vector<std::string>> several;   // by a type that holds many, CLI11 knows to take many
  for (const Switch& one : command.switches) {
    if (one.values.empty()) options[one.name] = app.add_flag("--" + one.name);
    else if (one.many) options[one.name] = app.add_option("--" + one.name, several[one.name]);
    else options[one.name] = app.add_option("--" + one.name)->expected(1);
  }

  // CLI11 takes the arguments last to first, and hands back what no switch has claimed.
  std::vector<std::string> reversed = spell_out_booleans(command, arguments);
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    const std::string what = error.what();
    const std::string name = what.substr(0, what.find(':'));
    const Switch* one = name.substr(0, 2) == "--" ? find(command, name.substr(2)) : nullptr;
    if (one == nullptr) return Error{text("the line cannot be read: ", what)};
    const CLI::Option* option = options.at(one->name);
    if (!one->many && option->count() > 1) return Error{text(name, " is given ", option->count(), " times; it takes one value")};
    return Error{text(name, " needs a value: ", one->values)};
  }

  Line line;
  for (const auto& [name, option] : options) {
    if (option->count() == 0) continue;
    const Switch* one = find(command, name);
    line.switches[name] = one->values.empty() ? std::vector<std::string>{} : option->results();
  }
  for (const std::string& rest : app.remaining()) {
    if (rest.size() > 1 && rest[0] == '-') return unknown_switch(command, rest);
    line.places.push_back(rest);
  }
  const int places = static_cast<int>(line.places.size());
  if (places < command.least_places) {
    return Error{text(command.name, " needs ", command.places, ": see `shardbook ", command.name, " --help`")};
  }
  if (command.most_places >= 0 && places > command.most_places) {
    return Error{text("'", line.places[static_cast<std::size_t>(command.most_places)], "' is one word too many for ", command.name,
                      command.places.empty() ? std::string() : text(" ", command.places), ": see `shardbook ", command.name,
                      " --help`")};
  }
  return line;
}

base::Result<int> whole_number(const std::string& switch_name, const std::string& value, int least) {
  int number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size() || number < least) {
    return Error{text("--", switch_name, " must be a whole number of at least ", least, ", not '", value, "'")};
  }
  return number;
}

}  // namespace shardbook::cli
