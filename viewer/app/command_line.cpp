// app/command_line: see command_line.hpp.
#include "viewer/app/command_line.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <set>
#include <tuple>

#include "engine/base/check.hpp"
#include "engine/base/nearest.hpp"

namespace shardbook::app {

namespace {

constexpr const char* view_help =
    "Opens the viewer on runs, traces of torch.profiler (.json, .json.gz), packed runs, and labs by number.\n"
    "Without a name: what can be opened. F1 lists all keys.\n\n"
    "  shardbook view experiments/02_tensor_parallel/runs/RUN\n"
    "  shardbook view 02 RUN                     the lab's text beside the run\n"
    "  shardbook view RUN --screenshot out.png   without a window or a display";
constexpr const char* diagram_help =
    "Reads a diagram in Mermaid's language: flowchart, sequence diagram or gantt chart. Says what was understood, or\n"
    "line and reason and exit code 2. Of a page (.md), the first one, or that of --number.\n\n"
    "  shardbook diagram map.mmd\n"
    "  shardbook diagram notes/map.md --number 2 --png map.png";

// CLI11 speaks of options; users get one sentence with the nearest word.
std::string sentence_of(const CLI::App& command, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) return "which diagram? It is: shardbook diagram FILE";
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    if (command.get_parent() == nullptr) return base::text("'", command.remaining().front(), "' is nothing that the viewer does; it is view or diagram");
    std::vector<std::string> known;
    for (const CLI::Option* option : command.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    for (const std::string& word : command.remaining()) {
      if (word.substr(0, 1) == "-") return base::text("there is no option ", word, "; the nearest is ", base::nearest(word, known));
      return base::text("'", word, "' is one word too many");
    }
  }
  std::string words = error.what();
  std::replace(words.begin(), words.end(), '\n', ' ');
  if (const std::size_t colon = words.find(": is "); colon != std::string::npos) words.erase(colon, 1);
  return words;
}

// What an option takes, and the sentence if it is given something else. (CLI11 puts "--name: " before it.)
CLI::Validator word_of(const std::set<std::string>& words, const std::string& said) {
  return CLI::Validator([=](std::string& given) { return words.contains(given) ? std::string() : base::text("is ", said, ", not '", given, "'"); }, "");
}
CLI::Validator number_from(double least, double most) {
  return CLI::Validator(
      [=](std::string& given) {
        char* end = nullptr;
        const double number = std::strtod(given.c_str(), &end);
        const bool fits = !given.empty() && *end == '\0' && number >= least && number <= most;
        return fits ? std::string() : base::text("is a number from ", least, " to ", most, ", not '", given, "'");
      },
      "");
}

int refuse(std::ostream& err, const std::string& sentence) {
  err << "shardbook-viewer: " << sentence << "\n";
  return 2;
}

}  // namespace

base::Result<std::pair<int, int>> size_of(const std::string& words) {
  int width = 0, height = 0;
  char rest = 0;
  const int found = std::sscanf(words.c_str(), "%dx%d%c", &width, &height, &rest);
  if (found != 2 || width < 320 || height < 200 || width > 16384 || height > 16384) {
    return base::Error{base::text("--size is WxH in pixels, from 320x200 to 16384x16384, not '", words, "'")};
  }
  return std::pair(width, height);
}

int main_with(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  CLI::App app("Shardbook's viewer: timelines beside notes, diagrams and source.", "shardbook-viewer");
  app.require_subcommand(0, 1);

  ViewRequest view_request;
  std::string size;
  CLI::App* view_command = app.add_subcommand("view", view_help);
  view_command->add_option("open", view_request.open, "Runs, traces, packs, labs.");
  view_command->add_option("--screenshot", view_request.screenshot, "Draw one picture into this file (PNG), without a window.");
  view_command->add_option("--script", view_request.script, "Do what this file says, without a window.");
  view_command->add_option("--size", size, "Of the picture, in pixels. Default: 1280x800.");
  view_command->add_option("--scale", view_request.scale, "How large letters and panes are. Default: 1.")->check(number_from(0.5, 4));
  view_command->add_option("--theme", view_request.theme, "light or dark.")->check(word_of({"light", "dark"}, "light or dark"));
  view_command->add_option("--layout", view_request.layout, "read, split or trace.")->check(word_of({"read", "split", "trace"}, "read, split or trace"));
  view_command->add_option("--view", view_request.view, "A link to begin with: trace:RUN?t=1.2ms..1.9ms, note:03, lab:02.");
  view_command->add_option("--panel", view_request.panel, "The panel to show: span, source, area, find, compare, marks.")->check(word_of({"span", "source", "area", "find", "compare", "marks"}, "span, source, area, find, compare or marks"));

  DiagramRequest diagram_request;
  CLI::App* diagram_command = app.add_subcommand("diagram", diagram_help);
  diagram_command->add_option("file", diagram_request.file, "Mermaid text, or a page that holds some; - is the standard input.")->required();
  diagram_command->add_flag("--json", diagram_request.json, "What was understood, as JSON.");
  diagram_command->add_option("--png", diagram_request.png, "Draw it into this file.");
  diagram_command->add_option("--number", diagram_request.number, "Which diagram of a page. Default: 1.")->check(number_from(1, 10'000));
  diagram_command->add_option("--scale", diagram_request.scale, "How large it is drawn. Default: 1.")->check(number_from(0.5, 4));
  diagram_command->add_option("--theme", diagram_request.theme, "light or dark.")->check(word_of({"light", "dark"}, "light or dark"));

  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    out << (chosen.empty() ? &app : chosen.front())->help();
    return 0;
  } catch (const CLI::ParseError& error) {
    const auto chosen = app.get_subcommands();
    return refuse(err, sentence_of(chosen.empty() ? app : *chosen.front(), error));
  }
  if (*view_command) {
    if (!size.empty()) {
      const base::Result<std::pair<int, int>> given = size_of(size);
      if (!given) return refuse(err, given.error());
      std::tie(view_request.width, view_request.height) = given.value();
    }
    return view(view_request, err);
  }
  if (*diagram_command) return draw_diagram(diagram_request, out, err);
  out << app.help();
  return 0;
}

}  // namespace shardbook::app
