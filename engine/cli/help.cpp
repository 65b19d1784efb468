#include "engine/cli/help.hpp"

#include <algorithm>
#include <map>
#include <sstream>

#include "engine/cli/built_with.hpp"

namespace shardbook::cli {

namespace {

constexpr int help_columns = 100;

// A term and its text, in two columns; a long term stands on a line of its own.
std::string entry(const std::string& term, const std::string& content, int term_columns) {
  const bool is_long = width_of(term) > term_columns;
  return (is_long ? "  " + term + "\n" : "") + wrapped("  " + pad_right(is_long ? "" : term, term_columns) + "  ", content, help_columns);
}

struct Group {
  const char* title;
  std::vector<const char*> commands;
};

const std::vector<Group>& groups() {
  static const std::vector<Group> all = {
      {"Learn", {"next", "check", "hint", "list", "card", "solution", "reset", "run", "read", "notes", "switches"}},
      {"Train, and look at what it left", {"train", "plan", "view", "show", "metrics"}},
      {"Find out why", {"why", "whatif", "diff", "verify"}},
      {"Take it along, or send it", {"pack", "report", "checkpoint"}},
      {"Teach", {"submit", "grade", "lab", "figures"}},
      {"Diagrams of pages", {"diagram"}},
      {"This machine", {"doctor", "calibrate", "tune", "bench"}},
      {"The launcher, ./shardbook at the project's root", {"build", "test", "fetch"}},
  };
  return all;
}

// Where a new part of the options begins in the table of config::options().
const std::map<std::string, std::string>& option_groups() {
  static const std::map<std::string, std::string> titles = {
      {"rank", "What is shown"},
      {"model", "The model"},
      {"tp", "The layout, and the schedule of FSDP"},
      {"device", "The device and its clock"},
      {"sequences", "The batch and the optimizer"},
      {"data", "Data"},
      {"checkpoint", "Checkpoints"},
      {"trace-steps", "Record and output"},
      {"config", "All of these from a file"},
  };
  return titles;
}

const char* examples = R"(Start with one of these:
  ./shardbook next       the labs, part by part: predict, look, write, check; no GPU needed
  ./shardbook run 02     train a small model cut by tensor parallel and FSDP; see where the time goes
  ./shardbook read 03    why a matmul can be cut over ranks, with the engine's own code
  ./shardbook view experiments/captured/gpt-1.3b-fsdp4.tar.gz
                         steps that were measured on four GPUs; to look at them needs none
  ./shardbook train --device meta --model gpt-6.9b --tp 8 --fsdp 8
                         64 GPUs on a laptop: shapes only, times from a machine profile
)";

}  // namespace

std::string first_steps() {
  return std::string("shardbook ") + built_with::version +
         ": learn how large models are trained on many GPUs, by running it and looking.\n\n"
         "  1. ./shardbook run 02       train a small model cut over 4 ranks (no GPU needed; under a minute)\n"
         "  2. ./shardbook view FOLDER  the timeline that the run left: what computed, what communicated, what waited\n"
         "                              (./shardbook show FOLDER draws it in the terminal)\n"
         "  3. ./shardbook read 03      why it is so, with the code that did it\n\n"
         "./shardbook --help lists every command; ./shardbook doctor says what works on this machine.\n";
}

std::string overview(const std::vector<Command>& commands) {
  std::ostringstream out;
  out << "shardbook: learn how large models are trained on many GPUs, by running it and looking.\n\n" << examples;
  for (const Group& group : groups()) {
    out << "\n" << group.title << "\n";
    for (const char* name : group.commands) {
      const auto command = std::find_if(commands.begin(), commands.end(), [&](const Command& one) { return one.name == name; });
      out << entry(command->name + (command->places.empty() ? "" : " " + command->places), command->summary, 22);
    }
  }
  out << "\nEvery command explains itself: ./shardbook COMMAND --help. Commands that print figures take --json.\n"
         "Exit codes: 0 done, 1 a run failed, 2 what was asked for cannot be, 3 a run was asked to stop.\n";
  return out.str();
}

std::string help_of(const Command& command) {
  std::ostringstream out;
  out << "shardbook " << command.name << (command.places.empty() ? "" : " " + command.places)
      << (command.switches.empty() ? "" : " [options]") << "\n" << command.summary << "\n\n" << command.help;
  const bool trains = std::any_of(command.switches.begin(), command.switches.end(), [](const Switch& one) { return one.name == "tp"; });
  if (!command.switches.empty() && !trains) out << "\nOptions\n";
  for (const Switch& one : command.switches) {
    if (trains) {
      if (const auto title = option_groups().find(one.name); title != option_groups().end()) out << "\n" << title->second << "\n";
    }
    const std::string term = "--" + one.name + (one.values.empty() ? "" : " " + one.values);
    out << entry(term, one.help + (one.default_text.empty() ? "" : " [" + one.default_text + "]"), 27);
  }
  return out.str();
}

}  // namespace shardbook::cli
