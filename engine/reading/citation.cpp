#include "engine/reading/citation.hpp"

#include <cctype>
#include <charconv>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/reading/words.hpp"

namespace shardbook::reading {

namespace {

bool is_path_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || holds("/._-+@:%~", std::string_view(&letter, 1));
}

// A number of at most nine digits at `at`, which is moved behind it; -1 where there is none.
int number_at(std::string_view line, std::size_t& at) {
  std::size_t end = at;
  while (end < line.size() && std::isdigit(static_cast<unsigned char>(line[end])) != 0) ++end;
  if (end == at || end - at > 9) return -1;
  int number = 0;
  std::from_chars(line.data() + at, line.data() + end, number);
  at = end;
  return number;
}

// Whose name follows this text.
CodeWord::Of owner_of(std::string_view before) {
  const std::string low = lowered(trimmed(before.substr(before.size() > 12 ? before.size() - 12 : 0)));
  if (low.ends_with("switch") || low.ends_with("switches")) return CodeWord::Of::our_switch;
  return low.ends_with("span") || low.ends_with("spans") ? CodeWord::Of::our_span : CodeWord::Of::file;
}

// Takes host and commit off a link of GitHub's.
void take_off_link(Citation& one) {
  const std::size_t blob = one.path.find("/blob/");
  if (!holds(one.path, "github.com/") || blob == std::string::npos) return;
  const std::size_t commit = blob + 6, end = one.path.find('/', commit);
  if (end == std::string::npos) return;
  one.commit = one.path.substr(commit, end - commit);
  one.path = one.path.substr(end + 1);
}

}  // namespace

std::vector<Citation> citations_in(std::string_view line, int number) {
  std::vector<Citation> found;
  for (std::size_t mark = line.find('L'); mark != std::string_view::npos; mark = line.find('L', mark + 1)) {
    // "path:" or "path#" before it.
    if (mark < 2 || (line[mark - 1] != ':' && line[mark - 1] != '#')) continue;
    std::size_t begin = mark - 1;
    while (begin > 0 && is_path_letter(line[begin - 1])) --begin;
    Citation one;
    one.path = line.substr(begin, mark - 1 - begin);
    if (!holds(one.path, ".") && !holds(one.path, "/")) continue;
    // "142", then perhaps "-L168".
    std::size_t at = mark + 1;
    one.first = one.last = number_at(line, at);
    if (one.first < 0) continue;
    for (const std::string_view dash : {"-", "–"}) {
      if (!line.substr(at).starts_with(dash)) continue;
      std::size_t behind = at + dash.size();
      if (behind < line.size() && line[behind] == 'L') ++behind;
      if (const int last = number_at(line, behind); last >= 0) {
        one.last = last;
        at = behind;
      }
      break;
    }
    take_off_link(one);
    while (one.path.starts_with("./")) one.path.erase(0, 2);
    if (one.path.empty()) continue;   // "./#L1", or a link to no file of its commit
    one.line = number;
    one.begin = begin;
    one.end = at;
    mark = at - 1;
    found.push_back(std::move(one));
  }
  // Each code word belongs to the citation before it.
  for (const CodeWord& word : code_words_in(line)) {
    Citation* owner = nullptr;
    for (Citation& one : found) {
      if (one.end <= word.begin) owner = &one;
    }
    if (owner != nullptr && word.of == CodeWord::Of::file) owner->symbols.push_back(word.name);
  }
  return found;
}

std::vector<CodeWord> code_words_in(std::string_view line) {
  std::vector<CodeWord> words;
  for (std::size_t open = line.find('`'); open != std::string_view::npos;) {
    const std::size_t begin = open + 1, close = line.find('`', begin);
    if (close == std::string_view::npos) break;
    std::string_view inside = line.substr(begin, close - begin);
    std::string_view name = inside.substr(0, inside.find_first_of("(=: \t["));
    const bool plain = name.size() == inside.size() || inside[name.size()] == '(' || inside[name.size()] == '=';
    if (plain && !inside.starts_with("-") && is_symbol(name)) words.push_back({std::string(name), begin, owner_of(line.substr(0, open))});
    open = line.find('`', close + 1);
  }
  return words;
}

std::string place_text(std::string_view path, int first, int last) {
  return first == last ? base::text(path, ":L", first) : base::text(path, ":L", first, "-L", last);
}

}  // namespace shardbook::reading
