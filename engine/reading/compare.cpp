#include "engine/reading/compare.hpp"

#include <algorithm>
#include <utility>

#include "engine/reading/words.hpp"

namespace shardbook::reading {

using base::Error;
using base::text;

const char* name_of(Mark mark) {
  switch (mark) {
    case Mark::none: return "";
    case Mark::had: return "had";
    case Mark::missed: return "missed";
    case Mark::differs: return "differs";
  }
  return "";
}

base::Result<Mark> mark_of(const std::string& word) {
  for (const Mark mark : {Mark::had, Mark::missed, Mark::differs}) {
    if (word == name_of(mark)) return mark;
  }
  return Error{text("'", word, "' is no mark; there are had, missed and differs")};
}

namespace {

bool same_file(const std::string& left, const std::string& right) {
  const std::string &longer = left.size() < right.size() ? right : left, &shorter = left.size() < right.size() ? left : right;
  return longer == shorter || longer.ends_with("/" + shorter);
}

bool share_a_name(const Citation& left, const Citation& right) {
  return std::any_of(left.symbols.begin(), left.symbols.end(), [&](const std::string& one) { return std::find(right.symbols.begin(), right.symbols.end(), one) != right.symbols.end(); });
}

bool meet(const Citation& left, const Citation& right, bool by_name) {
  if (!same_file(left.path, right.path)) return false;
  if (share_a_name(left, right)) return true;
  return !by_name && left.first <= right.last + near_lines && right.first <= left.last + near_lines;
}

std::string short_place(const Citation& citation) {
  return place_text(citation.path.substr(citation.path.rfind('/') + 1), citation.first, citation.last);
}

Side side_of(const Choice& choice, const Citation& citation) { return {choice.title, short_place(citation), choice.line}; }

// The citation of `choice` that meets one of `other`; nullptr where none does.
const Citation* met(const Choice& choice, const Choice& other, bool by_name) {
  for (const Citation& one : choice.citations) {
    for (const Citation& two : other.citations) {
      if (meet(one, two, by_name)) return &one;
    }
  }
  return nullptr;
}

}  // namespace

Comparison compare_notes(const std::vector<NoteAt>& mine, const std::vector<NoteAt>& reference) {
  Comparison comparison;
  for (const NoteAt& theirs : reference) {
    const auto own = std::find_if(mine.begin(), mine.end(), [&](const NoteAt& one) { return one.note.name == theirs.note.name; });
    if (own == mine.end()) continue;
    const bool by_name = !own->commit.empty() && !theirs.commit.empty() && own->commit != theirs.commit;
    if (by_name) comparison.by_name.push_back(theirs.note.name);
    for (const Choice& choice : theirs.note.choices) {
      Row row{theirs.note.name, side_of(choice, choice.citations.front()), {}, Mark::none, ""};
      for (const Choice& candidate : own->note.choices) {
        const Citation* place = met(candidate, choice, by_name);
        if (place == nullptr) continue;
        row.mine.push_back(side_of(candidate, *place));
        if (row.mine.size() == 1) row.reference = side_of(choice, *met(choice, candidate, by_name));
      }
      comparison.rows.push_back(std::move(row));
    }
    for (const Choice& choice : own->note.choices) {
      const bool alone = std::none_of(theirs.note.choices.begin(), theirs.note.choices.end(), [&](const Choice& other) { return met(choice, other, by_name) != nullptr; });
      if (alone) comparison.mine_alone.emplace_back(own->note.name, side_of(choice, choice.citations.front()));
    }
  }
  return comparison;
}

base::Status read_marks(const std::string& content, Comparison& comparison, std::vector<std::string>& kept) {
  int number = 0;
  for (std::size_t at = 0; at < content.size();) {
    const std::size_t end = std::min(content.find('\n', at), content.size());
    const std::string line = content.substr(at, end - at);
    at = end + 1;
    ++number;
    if (trimmed(line).empty() || line.front() == '#') continue;
    std::vector<std::string> parts;
    std::string rest = line;
    for (std::size_t bar = 0; parts.size() < 3 && (bar = rest.find(" | ")) != std::string::npos; rest = rest.substr(bar + 3)) parts.push_back(rest.substr(0, bar));
    parts.push_back(rest);
    if (parts.size() == 3) parts.push_back("");
    base::Result<Mark> mark = parts.size() == 4 ? mark_of(std::string(trimmed(parts[2]))) : base::Result<Mark>(Error{"it needs NOTE | CHOICE | MARK | WHY"});
    if (!mark) return Error{text(marks_file, ":", number, ": ", mark.error())};
    const auto row = std::find_if(comparison.rows.begin(), comparison.rows.end(), [&](const Row& one) { return one.note == parts[0] && one.reference.title == parts[1]; });
    if (row == comparison.rows.end()) {
      kept.push_back(line);
      continue;
    }
    row->mark = mark.value();
    row->why = parts[3];
  }
  return base::Done{};
}

std::string marks_text(const Comparison& comparison, const std::vector<std::string>& kept) {
  std::string out = "# NOTE | CHOICE OF THE REFERENCE | had, missed or differs | WHY\n";
  for (const Row& row : comparison.rows) {
    if (row.mark == Mark::none) continue;
    std::string why = row.why;
    std::replace(why.begin(), why.end(), '\n', ' ');
    out += text(row.note, " | ", row.reference.title, " | ", name_of(row.mark), " | ", why, "\n");
  }
  for (const std::string& line : kept) out += line + "\n";
  return out;
}

std::vector<std::string> not_judged(const Comparison& comparison) {
  std::vector<std::string> sentences = {"Places are compared, not reasons: two choices that cite one line may say opposite things, and one insight may stand at two lines.",
                                        "A choice that the reference lacks is not wrong: it is a set of picks, not the list."};
  for (const std::string& note : comparison.by_name) {
    sentences.push_back(text(note, " reads another commit than the reference, so line numbers were not compared: choices meet by the names they cite."));
  }
  return sentences;
}

}  // namespace shardbook::reading
