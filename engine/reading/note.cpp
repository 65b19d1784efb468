#include "engine/reading/note.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

namespace shardbook::reading {

namespace {

// The level of a heading, "## x" is 2; 0 where the line is none.
int heading_level(std::string_view line) {
  const std::size_t marks = std::min(line.find_first_not_of('#'), line.size());
  return marks > 0 && marks <= 6 && marks < line.size() && line[marks] == ' ' ? static_cast<int>(marks) : 0;
}

// Whether a line begins an item of a list that is not inside another: "- x", "* x", "3. x".
bool begins_item(std::string_view line) {
  if (line.starts_with("- ") || line.starts_with("* ") || line.starts_with("+ ")) return true;
  std::size_t digits = 0;
  while (digits < line.size() && std::isdigit(static_cast<unsigned char>(line[digits])) != 0) ++digits;
  return digits > 0 && digits < 4 && digits + 1 < line.size() && (line[digits] == '.' || line[digits] == ')') && line[digits + 1] == ' ';
}

// "**Input gradient first.** `a.py:L1`" -> "Input gradient first."
std::string title_of(std::string_view line) {
  line = trimmed(line);
  line.remove_prefix(std::min(line.find_first_not_of("#-*+ 0123456789.)"), line.size()));
  std::string title;
  for (const char letter : line.substr(0, line.find("**"))) {
    if (letter != '`' && letter != '*' && letter != '|') title += letter;
  }
  if (title.size() > 72) title = title.substr(0, title.rfind(' ', 72)) + " …";
  return title;
}

bool connects(std::string_view line) {
  const std::string low = lowered(line.substr(0, 60));
  return holds(low, "connect") && holds(low, "dots");
}

std::vector<Fence> fences_of(const std::vector<std::string>& lines, std::vector<bool>& inside) {
  std::vector<Fence> fences;
  inside.assign(lines.size(), false);
  std::string open;   // the marks that close it
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = trimmed(lines[i]);
    const std::size_t marks = std::min(line.find_first_not_of(line.starts_with("~") ? '~' : '`'), line.size());
    if (open.empty()) {
      if (marks < 3) continue;
      open = line.substr(0, marks);
      const std::string_view kind = trimmed(line.substr(marks));
      fences.push_back({std::string(kind.substr(0, kind.find_first_of(" {"))), static_cast<int>(i) + 2, {}, false});
    } else if (marks >= open.size() && line.starts_with(open) && marks == line.size()) {
      open.clear();
      fences.back().closed = true;
    } else {
      fences.back().lines.push_back(lines[i]);
    }
    inside[i] = true;
  }
  return fences;
}

// Times with their runs. The run stands in backticks within the parentheses behind "ms".
void find_figures(const std::string& line, int number, std::vector<Figure>& figures) {
  for (std::size_t at = line.find(" ms (`"); at != std::string::npos; at = line.find(" ms (`", at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && (std::isdigit(static_cast<unsigned char>(line[begin - 1])) != 0 || line[begin - 1] == '.')) --begin;
    const std::size_t run = at + 6, close = line.find('`', run);
    if (begin == at || close == std::string::npos) continue;
    figures.push_back({std::strtod(line.substr(begin, at - begin).c_str(), nullptr), line.substr(run, close - run), number});
  }
}

struct Part {
  std::size_t begin = 0, end = 0;   // lines, from 0
  bool heading = false;
};

// The page as parts: a heading with what is under it, and within it each item of a list that cites.
std::vector<Part> parts_of(const Note& note) {
  const auto cites = [&](const Part& part) {
    for (std::size_t i = part.begin; i < part.end; ++i) {
      if (!note.in_fence[i] && !citations_in(note.lines[i], 0).empty()) return true;
    }
    return false;
  };
  std::vector<Part> sections, parts;
  for (std::size_t i = 0; i < note.lines.size(); ++i) {
    const bool heading = !note.in_fence[i] && heading_level(note.lines[i]) > 0;
    if (heading || sections.empty() || (!note.in_fence[i] && connects(note.lines[i]))) sections.push_back({i, i, heading});
    sections.back().end = i + 1;
  }
  for (const Part& section : sections) {
    std::vector<Part> items;
    for (std::size_t i = section.begin; i < section.end; ++i) {
      if (note.in_fence[i] || !begins_item(note.lines[i])) continue;
      if (!items.empty()) items.back().end = i;
      items.push_back({i, section.end, false});
    }
    const auto citing = static_cast<std::size_t>(std::count_if(items.begin(), items.end(), cites));
    // A list whose items cite is a list of choices; else the section is one choice, with a list in it.
    if (citing >= 2) parts.insert(parts.end(), items.begin(), items.end());
    else parts.push_back(section);
  }
  return parts;
}

int words_in(const Note& note, std::size_t begin, std::size_t end) {
  int words = 0;
  for (std::size_t i = begin; i < end; ++i) {
    if (!note.in_fence[i] && heading_level(note.lines[i]) == 0) words += prose_words(note.lines[i]);
  }
  return words;
}

Choice choice_of(const Note& note, const Part& part) {
  Choice choice;
  choice.title = title_of(note.lines[part.begin]);
  choice.line = static_cast<int>(part.begin) + 1;
  std::size_t last = part.end;
  while (last > part.begin + 1 && trimmed(note.lines[last - 1]).empty()) --last;
  choice.last_line = static_cast<int>(last);
  choice.words = words_in(note, part.begin, part.end);
  for (std::size_t i = part.begin; i < part.end; ++i) {
    if (note.in_fence[i]) continue;
    for (Citation& one : citations_in(note.lines[i], static_cast<int>(i) + 1)) choice.citations.push_back(std::move(one));
    for (const CodeWord& word : code_words_in(note.lines[i])) {
      (word.of == CodeWord::Of::file ? choice.code_words : word.of == CodeWord::Of::our_switch ? choice.switches : choice.spans).push_back(word.name);
    }
  }
  return choice;
}

}  // namespace

int prose_words(std::string_view line) {
  // Citations go, code is one word, and of the rest a word has a letter or a digit.
  std::string plain(line);
  for (const Citation& one : citations_in(line, 0)) {
    for (std::size_t i = one.begin; i < one.end; ++i) plain[i] = ' ';
  }
  int words = 0;
  bool in_code = false, in_word = false;
  for (const char letter : plain) {
    if (letter == '`') {
      in_code = !in_code;
      continue;
    }
    const bool blank = !in_code && std::isspace(static_cast<unsigned char>(letter)) != 0;
    if (blank) in_word = false;
    else if (!in_word && (std::isalnum(static_cast<unsigned char>(letter)) != 0 || static_cast<unsigned char>(letter) >= 0xC3)) {
      in_word = true;
      ++words;
    }
  }
  return words;
}

Note parse_note(std::string name, std::vector<std::string> lines) {
  Note note;
  note.name = std::move(name);
  note.lines = std::move(lines);
  note.fences = fences_of(note.lines, note.in_fence);
  note.words = words_in(note, 0, note.lines.size());
  for (std::size_t i = 0; i < note.lines.size(); ++i) {
    if (!note.in_fence[i]) find_figures(note.lines[i], static_cast<int>(i) + 1, note.figures);
  }
  for (const Part& part : parts_of(note)) {
    if (connects(note.lines[part.begin]) && !note.in_fence[part.begin]) {
      note.has_closing = true;
      note.closing_line = static_cast<int>(part.begin) + 1;
      note.closing_words = words_in(note, part.begin, part.end);
      note.closing.clear();
      for (std::size_t i = part.begin; i < part.end; ++i) note.closing += lowered(note.lines[i]) + "\n";
      continue;
    }
    Choice choice = choice_of(note, part);
    if (!choice.citations.empty()) note.choices.push_back(std::move(choice));
  }
  return note;
}

}  // namespace shardbook::reading
