// app/script_lines: see script_lines.hpp.
#include "viewer/app/script_lines.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <sstream>

#include "engine/base/check.hpp"
#include "engine/base/nearest.hpp"
#include "viewer/ui/keys.hpp"

namespace shardbook::app {

namespace {

struct Verb {
  const char* name;
  std::size_t least, most;           // words
  const char* usage;
};

constexpr Verb verbs[] = {
    {"open", 1, 64, "open PATH..."},
    {"size", 2, 3, "size W H [SCALE]"},
    {"theme", 1, 1, "theme light|dark"},
    {"wait", 0, 1, "wait [FRAMES]"},
    {"cmd", 1, 2, "cmd ID [ARGUMENT]"},
    {"key", 1, 1, "key \"Ctrl+P\""},
    {"type", 1, 1, "type \"text\""},
    {"layout", 1, 1, "layout read|split|trace"},
    {"click", 1, 1, "click \"LABEL\""},
    {"hover", 1, 1, "hover \"LABEL\""},
    {"drag", 3, 3, "drag \"LABEL\" DX DY"},
    {"scroll", 2, 2, "scroll \"LABEL\" N"},
    {"expect", 1, 3, "expect \"words\", expect NAME VALUE, expect NAME ~|>|<|>=|<=|!= VALUE"},
    {"refuse", 1, 1, "refuse \"words\""},
    {"save", 3, 3, "save NAME as WORD"},
    {"shot", 1, 1, "shot FILE.png"},
};

bool is_reference(const std::string& word) { return !word.empty() && word[0] == '$'; }

// Words of a line; "quoted ones" may hold blanks, \" and \\ and \n. '#' begins a remark, outside of a word.
base::Result<std::vector<std::string>> split(const std::string& line) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < line.size();) {
    if (line[at] == ' ' || line[at] == '\t' || line[at] == '\r') {
      ++at;
    } else if (line[at] == '#') {
      break;
    } else if (line[at] == '"') {
      std::string word;
      for (++at; at < line.size() && line[at] != '"'; ++at) {
        if (line[at] == '\\' && at + 1 < line.size()) {
          ++at;
          word += line[at] == 'n' ? '\n' : line[at];
        } else {
          word += line[at];
        }
      }
      if (at >= line.size()) return base::Error{"a quotation mark is opened and never closed"};
      ++at;
      words.push_back(word);
    } else {
      const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
      words.push_back(line.substr(at, end - at));
      at = end;
    }
  }
  return words;
}

// The first thing wrong with a line's words, or "".
std::string complaint(const ScriptLine& line) {
  const auto& words = line.words;
  const auto is_number = [&](std::size_t i) { return i >= words.size() || is_reference(words[i]) || read_number(words[i]).ok(); };
  const auto one_of = [&](const std::set<std::string>& allowed) { return is_reference(words[0]) || allowed.contains(words[0]); };
  if (line.verb == "size") {
    if (!is_number(0) || !is_number(1) || !is_number(2)) return "a size is two or three numbers";
    for (std::size_t i = 0; i < 2; ++i) {
      if (!is_reference(words[i]) && (read_number(words[i]).value() < 64 || read_number(words[i]).value() > 16384)) return "a side is 64 to 16384 pixels";
    }
  }
  if (line.verb == "theme" && !one_of({"light", "dark"})) return "a theme is light or dark";
  if (line.verb == "layout" && !one_of({"read", "split", "trace"})) return "a layout is read, split or trace";
  if (line.verb == "wait" && !is_number(0)) return base::text("'", words[0], "' is no number of frames");
  if (line.verb == "drag" && (!is_number(1) || !is_number(2))) return "how far to drag is two numbers of pixels";
  if (line.verb == "scroll" && !is_number(1)) return "how far to scroll is a number of notches";
  if (line.verb == "save" && words[1] != "as") return "it is: save NAME as WORD";
  if (line.verb == "key" && !is_reference(words[0])) {
    const auto rows = ui::chords_of(words[0]);
    if (rows.size() != 1 || rows[0].empty()) return base::text("'", words[0], "' is no key");
    for (const ui::Chord& chord : rows[0]) {
      if (chord.key < 0) return base::text("there is no key called '", words[0], "'; keys are named as W, Ctrl+Shift+P, F1, Escape, PageUp");
    }
  }
  if (line.verb == "expect" && words.size() == 3) {
    static const std::set<std::string> signs = {"~", ">", "<", ">=", "<=", "!=", "="};
    if (!signs.contains(words[1])) return base::text("'", words[1], "' compares nothing; there are = != ~ < <= > >=");
    const bool of_numbers = words[1] != "~" && words[1] != "=" && words[1] != "!=";
    if (of_numbers && !is_number(2)) return base::text("'", words[2], "' is no number");
  }
  return "";
}

}  // namespace

base::Result<double> read_number(const std::string& word) {
  char* end = nullptr;
  const double number = std::strtod(word.c_str(), &end);
  if (word.empty() || end != word.c_str() + word.size() || !std::isfinite(number)) return base::Error{word};
  return number;
}

base::Result<std::vector<ScriptLine>> script_lines(const std::string& text, const std::string& name) {
  std::vector<ScriptLine> lines;
  std::istringstream in(text);
  std::string one;
  for (int number = 1; std::getline(in, one); ++number) {
    const auto wrong = [&](const std::string& what) { return base::Error{base::text(name, ":", number, ": ", what)}; };
    base::Result<std::vector<std::string>> words = split(one);
    if (!words) return wrong(words.error());
    if (words.value().empty()) continue;
    ScriptLine line;
    line.number = number;
    line.text = one.substr(one.find_first_not_of(" \t"));
    while (!line.text.empty() && (line.text.back() == '\r' || line.text.back() == ' ')) line.text.pop_back();
    line.verb = words.value()[0];
    line.words.assign(words.value().begin() + 1, words.value().end());

    // A verb that exists, as many words as it takes, and each of its kind.
    const Verb* verb = std::find_if(std::begin(verbs), std::end(verbs), [&](const Verb& known) { return line.verb == known.name; });
    if (verb == std::end(verbs)) {
      std::vector<std::string> known;
      for (const Verb& each : verbs) known.emplace_back(each.name);
      return wrong(base::text("'", line.verb, "' is nothing that a script can do; the nearest is `", base::nearest(line.verb, known), "`"));
    }
    if (line.words.size() < verb->least || line.words.size() > verb->most) return wrong(base::text("it is: ", verb->usage));
    const std::string what = complaint(line);
    if (!what.empty()) return wrong(what);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace shardbook::app
