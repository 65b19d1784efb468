#include "engine/reading/pasted.hpp"

#include <algorithm>
#include <map>
#include <string_view>

namespace shardbook::reading {

namespace {

struct Plain {
  std::string text;
  int line = 0;   // from 1
};

// What is compared: no marks in front, no empty lines.
std::vector<Plain> plain_of(const std::vector<std::string>& lines, bool of_note) {
  std::vector<Plain> plain;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string_view line = trimmed(lines[i]);
    while (of_note && (line.starts_with("> ") || line.starts_with("- ") || line.starts_with("* "))) line = trimmed(line.substr(2));
    if (of_note && line.size() > 2 && line.front() == '`' && line.back() == '`') line = line.substr(1, line.size() - 2);
    if (!line.empty() && !line.starts_with("```") && !line.starts_with("~~~")) plain.push_back({std::string(line), static_cast<int>(i) + 1});
  }
  return plain;
}

}  // namespace

std::vector<Pasted> pasted_in(const Note& note, const Sources& sources, const std::string& repository, const std::string& commit) {
  constexpr std::size_t run = most_pasted_lines + 1;
  std::vector<Pasted> found;
  const std::vector<Plain> mine = plain_of(note.lines, true);
  for (const std::string& path : sources.paths(repository, commit)) {
    const SourceFile file = sources.file(repository, commit, path);
    if (file.lines == nullptr) continue;
    const std::vector<Plain> theirs = plain_of(*file.lines, false);
    std::multimap<std::string_view, std::size_t> by_text;
    for (std::size_t i = 0; i < theirs.size(); ++i) by_text.emplace(theirs[i].text, i);
    for (std::size_t at = 0; at < mine.size();) {
      // The longest stretch of the file that these lines repeat.
      std::size_t longest = 0, from = 0;
      const auto [first, last] = by_text.equal_range(mine[at].text);
      for (auto same = first; same != last; ++same) {
        std::size_t length = 0;
        while (at + length < mine.size() && same->second + length < theirs.size() && mine[at + length].text == theirs[same->second + length].text) ++length;
        if (length > longest) longest = length, from = same->second;
      }
      if (longest < run) {
        ++at;
        continue;
      }
      found.push_back({mine[at].line, static_cast<int>(longest), place_text(path, theirs[from].line, theirs[from + longest - 1].line)});
      at += longest;
    }
  }
  for (const Fence& fence : note.fences) {
    const int length = static_cast<int>(fence.lines.size()), end = fence.line + length;
    if (fence.kind == "mermaid" || length <= most_pasted_lines) continue;
    const bool known = std::any_of(found.begin(), found.end(), [&](const Pasted& one) { return one.line >= fence.line && one.line < end; });
    if (!known) found.push_back({fence.line, length, ""});
  }
  std::sort(found.begin(), found.end(), [](const Pasted& left, const Pasted& right) { return left.line < right.line; });
  return found;
}

}  // namespace shardbook::reading
