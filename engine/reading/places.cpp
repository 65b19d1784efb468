#include "engine/reading/places.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <set>

#include "engine/base/nearest.hpp"

namespace shardbook::reading {

using base::text;

namespace {

// Where a name stands in a file, by whatever is known of it: lines, ascending. `known` is false where neither file nor
// table can say.
struct Lookup {
  bool known = false;
  std::vector<int> lines;
};

Lookup lookup(const SourceFile& file, const std::string& symbol) {
  // Of self.weight.main_grad the last part is looked for.
  const std::string name = symbol.substr(symbol.rfind('.') + 1);
  Lookup found;
  if (file.lines != nullptr) {
    found.known = true;
    for (std::size_t i = 0; i < file.lines->size(); ++i) {
      if (holds_symbol((*file.lines)[i], name)) found.lines.push_back(static_cast<int>(i) + 1);
    }
  } else if (file.facts != nullptr) {
    const auto row = file.facts->names.find(name);
    found.known = row != file.facts->names.end();
    if (found.known) found.lines = row->second;
  }
  return found;
}

// The name in the file that is likest to one that is not there: "; did you mean `allreduce_dgrad`?"
std::string likest(const SourceFile& file, const std::string& symbol) {
  std::set<std::string> names;
  if (file.facts != nullptr) {
    for (const auto& [name, lines] : file.facts->names) names.insert(name);
  }
  if (file.lines != nullptr) {
    for (const std::string& line : *file.lines) {
      std::string word;
      for (const char letter : line + " ") {
        if (std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_') word += letter;
        else if (!word.empty()) names.insert(std::exchange(word, ""));
      }
    }
  }
  if (names.empty()) return "";
  const std::string best = base::nearest(symbol, {names.begin(), names.end()});
  return base::is_near(symbol, best) ? text("; the nearest name there is `", best, "`") : "";
}

std::string nearest_line(const Citation& citation, const std::vector<int>& lines) {
  const int line = *std::min_element(lines.begin(), lines.end(), [&](int left, int right) { return std::abs(left - citation.first) < std::abs(right - citation.first); });
  return text("L", line);
}

void judge_range(Verdict& verdict, const Citation& citation, const std::string& place, int lines_of_file) {
  if (citation.first < 1 || citation.last < citation.first) {
    verdict.rule = "range";
    verdict.sentence = text(place, " is no range: the first line comes first, and lines count from 1");
  } else if (lines_of_file > 0 && citation.last > lines_of_file) {
    verdict.rule = "range";
    verdict.sentence = text(place, " ends behind the file, which has ", lines_of_file, " lines at this commit: is it another version that you read?");
  } else if (citation.last - citation.first >= most_cited_lines) {
    verdict.rule = "range";
    verdict.sentence = text(place, " is ", citation.last - citation.first + 1, " lines long: cite the few that make the choice (at most ", most_cited_lines, ")");
  }
}

void judge_symbols(Verdict& verdict, const SourceFile& file, const Citation& citation, const Choice& choice, const std::string& place) {
  const bool own = !citation.symbols.empty();
  const std::vector<std::string>& symbols = own ? citation.symbols : choice.code_words;
  if (symbols.empty()) {
    verdict.rule = "symbol";
    verdict.sentence = text(place, " comes without a name: write in backticks which class, function or variable stands there");
    return;
  }
  std::string elsewhere, unknown;
  for (const std::string& symbol : symbols) {
    const Lookup found = lookup(file, symbol);
    const bool inside = std::any_of(found.lines.begin(), found.lines.end(), [&](int line) { return line >= citation.first && line <= citation.last; });
    if (inside && !own) return;
    if (inside) continue;
    if (!found.known) unknown += text(unknown.empty() ? "`" : ", `", symbol, "`");
    else if (elsewhere.empty() && found.lines.empty()) elsewhere = text("`", symbol, "` is nowhere in ", citation.path, " at this commit", likest(file, symbol));
    else if (elsewhere.empty()) elsewhere = text("`", symbol, "` is not in ", place, "; the nearest line that has it is ", nearest_line(citation, found.lines));
  }
  if (!own && !unknown.empty()) elsewhere.clear();
  if (!elsewhere.empty()) {
    verdict.rule = "symbol";
    verdict.sentence = elsewhere;
  } else if (!unknown.empty()) {
    verdict.unjudged = text(place, ": whether ", unknown, " stands there (the table does not have the name; the file would tell)");
  }
}

}  // namespace

std::string whole_path(const Sources& sources, const std::string& repository, const std::string& commit, const std::string& path) {
  std::string rest = path;
  for (const char* folder : {"megatron-lm/", "Megatron-LM/", "pytorch/"}) {
    if (rest.starts_with(folder)) rest.erase(0, std::string(folder).size());
  }
  std::set<std::string> known;
  for (const std::string& one : sources.paths(repository, commit)) known.insert(one);
  if (const Project* project = sources.facts().project(repository); project != nullptr && project->commit == commit) {
    for (const FileFacts& one : project->files) known.insert(one.path);
  }
  if (known.contains(rest)) return rest;
  std::vector<std::string> ends;
  for (const std::string& one : known) {
    if (one.ends_with("/" + rest)) ends.push_back(one);
  }
  return ends.size() == 1 ? ends.front() : rest;
}

Verdict judge(const Sources& sources, const std::string& repository, const std::string& commit, const Citation& written, const Choice& choice) {
  Verdict verdict;
  Citation citation = written;
  citation.path = whole_path(sources, repository, commit, written.path);
  const std::string place = place_text(citation.path, citation.first, citation.last);
  const SourceFile file = sources.file(repository, commit, citation.path);
  verdict.by = file.lines != nullptr ? Verdict::By::file : file.facts != nullptr ? Verdict::By::facts : Verdict::By::nothing;
  if (!file.problem.empty()) verdict.unjudged = file.problem;

  const int lines = file.lines != nullptr ? static_cast<int>(file.lines->size()) : file.facts != nullptr ? file.facts->lines : 0;
  judge_range(verdict, citation, place, lines);
  if (!verdict.rule.empty()) return verdict;
  if (verdict.by != Verdict::By::nothing) {
    judge_symbols(verdict, file, citation, choice, place);
    return verdict;
  }
  // Files of this commit are here, and this one is not among them: with a whole clone that is a fault, with the few that
  // `notes sources` fetches it is not.
  if (verdict.unjudged.empty()) {
    verdict.unjudged = sources.knows(repository, commit) ? text(place, ": ", citation.path, " is neither in the table nor among the sources that are here")
                                                         : text(place, ": nothing of commit ", commit.substr(0, 8), " is here");
  }
  if (const std::string missing = sources.missing(text(commit, ":", citation.path)); !missing.empty()) {
    verdict.rule = "path";
    verdict.sentence = missing;
    verdict.unjudged.clear();
  }
  return verdict;
}

}  // namespace shardbook::reading
