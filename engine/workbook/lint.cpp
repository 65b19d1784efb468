#include "engine/workbook/lint.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

#include "engine/book/project.hpp"
#include "engine/workbook/answers.hpp"

namespace shardbook::workbook {

namespace fs = std::filesystem;
using base::Error;
using base::text;

namespace {

constexpr int most_minutes = 45, most_words_of_why = 60, fewest_wrong_answers = 3;
constexpr std::size_t hints_of_a_part = 3, fewest_cards_of_a_part = 2;

// The content with every run of blanks and line ends as one blank.
std::string on_one_line(const std::string& content) {
  std::istringstream words(content);
  std::string out;
  for (std::string word; words >> word;) out += (out.empty() ? "" : " ") + word;
  return out;
}

int words_in(const std::string& content) {
  std::istringstream words(content);
  int count = 0;
  for (std::string word; words >> word;) ++count;
  return count;
}

// The number with three digits or more that a text gives and that is `value`, as it stands there; "" where none is.
std::string number_told(const std::string& page, double value) {
  const auto part_of_number = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  for (std::size_t at = 0; at < page.size();) {
    if (!part_of_number(page[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < page.size() && part_of_number(page[end])) ++end;
    std::string number = page.substr(at, end - at);
    at = end;
    while (!number.empty() && number.back() == '.') number.pop_back();
    const std::size_t point = number.find('.');
    const std::size_t decimals = point == std::string::npos ? 0 : number.size() - point - 1;
    const bool is_exact = std::count_if(number.begin(), number.end(), [](char c) { return c != '.'; }) >= 3;
    if (is_exact && std::abs(std::strtod(number.c_str(), nullptr) - value) <= 0.5 * std::pow(10, -static_cast<double>(decimals)) * 1.001) return number;
  }
  return "";
}

class Linter {
 public:
  Linter(const std::string& root, const Lab& lab) : root_(root), lab_(lab), facts_(root, lab), folder_("labs/" + lab.name) {}

  std::vector<std::string> findings() {
    whole_lab();
    for (const Part& part : lab_.parts) of_part(part);
    return found_;
  }

 private:
  void say(const std::string& where, const std::string& what) { found_.push_back(where + ": " + what); }
  bool exists(const std::string& path) const {
    std::error_code ignored;
    return fs::is_regular_file(fs::path(root_) / path, ignored);
  }
  std::string content(const std::string& path) const {
    const base::Result<std::string> read = book::read_text((fs::path(root_) / path).string());
    return read ? read.value() : "";
  }
  void need(const std::string& path, const std::string& why) {
    if (!exists(path)) say(path, "is missing: " + why);
  }

  void whole_lab() {
    const std::string json = folder_ + "/lab.json";
    if (const base::Result<book::Lab> runs = book::find_lab(root_, lab_.name); !runs) {
      const std::string& error = runs.error();
      const std::size_t path = error.find("lab.json: ");
      say(json, "`run` cannot read it: " + (path == std::string::npos ? error : error.substr(path + 10)));
    }
    for (const auto& [what, given] : {std::pair{"title", &lab_.title}, {"question", &lab_.question}, {"stakes", &lab_.stakes}}) {
      if (given->empty()) say(json, text("\"", what, "\" is missing"));
    }
    std::set<std::string> ids;
    for (const Part& part : lab_.parts) {
      if (!ids.insert(part.id).second) say(json, "there are two parts " + part.id);
      if (part.id.compare(0, lab_.id.size(), lab_.id) != 0) say(json, text("part ", part.id, " of lab ", lab_.id, " should begin with ", lab_.id));
    }
    need(folder_ + "/text.md", "the text, a chapter a part");
    need("solutions/" + lab_.name + "/solution.md", "why, and all questions answered");
    if (!lab_.facts.empty()) {
      const base::Result<std::string> table = figures_table(root_, lab_);
      if (!table) say(json, table.error());
      else if (content(folder_ + "/figures.md") != table.value()) say(folder_ + "/figures.md", text("is not what the facts give today: ./shardbook lab figures ", lab_.id, " --write"));
    }
    const std::string page = on_one_line(content(folder_ + "/text.md"));
    for (const std::string& phrase : lab_.stated) {
      const base::Result<std::string> filled = facts_.filled(phrase);
      if (!filled) say(json, filled.error());
      else if (page.find(filled.value()) == std::string::npos) say(folder_ + "/text.md", text("should state '", filled.value(), "', as its facts give it today"));
    }
    links_of(folder_ + "/text.md");
    links_of("solutions/" + lab_.name + "/solution.md");
    left_to_write(folder_);
    left_to_write("solutions/" + lab_.name);
  }

  // Files that `lab new` made and nobody has filled in. A starter may say it to the learner.
  void left_to_write(const std::string& folder) {
    std::vector<std::string> files;
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(root_) / folder, ignored)) {
      if (entry.is_regular_file(ignored)) files.push_back(fs::relative(entry.path(), root_, ignored).generic_string());
    }
    std::sort(files.begin(), files.end());
    for (const std::string& file : files) {
      if (is_starter(file)) continue;
      const std::string all = content(file);
      const std::size_t at = all.find("TODO");
      if (at != std::string::npos) say(file + ":" + std::to_string(1 + std::count(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(at), '\n')), "says TODO still");
    }
  }

  bool is_starter(const std::string& file) const {
    for (const Part& part : lab_.parts) {
      for (int seed = 0; seed <= static_cast<int>(part.by_seed.size()); ++seed) {
        if (file == starter_of({&lab_, &part, seed})) return true;
      }
    }
    return false;
  }

  // Links to files that are not there.
  void links_of(const std::string& page) {
    const std::string all = content(page);
    for (std::size_t at = all.find("]("); at != std::string::npos; at = all.find("](", at + 2)) {
      std::string link = all.substr(at + 2, all.find(')', at) - at - 2);
      link = link.substr(0, link.find('#'));
      if (link.empty() || link.find(':') != std::string::npos) continue;
      std::error_code ignored;
      if (!fs::exists(fs::path(root_) / fs::path(page).parent_path() / link, ignored)) say(page, text("links to ", link, ", which is not there"));
    }
  }

  void of_part(const Part& part) {
    const std::string where = folder_ + "/lab.json, " + part.id;
    if (part.minutes < 1 || part.minutes > most_minutes) say(where, text("takes ", part.minutes, " minutes; a part takes at most ", most_minutes));
    if (part.predict.empty() && part.kind != Kind::notes) say(where, "nothing is predicted: ask for a figure before it is seen");
    if (part.hints.size() != hints_of_a_part) say(where, text("has ", part.hints.size(), " hints and not three: a question; a place; nearly there"));
    if (part.cards.size() < fewest_cards_of_a_part) say(where, text("has ", part.cards.size(), " cards; at least two"));
    if (part.transfer.question.empty() || part.transfer.answer.empty()) say(where, "has no transfer question with its answer");
    if (part.run.empty() && part.produce.empty()) say(where, "says neither what to run nor what to produce");
    if (part.why.empty()) say(where, "has no \"why\", which is shown on a pass");
    const base::Result<std::string> why = facts_.filled(part.why);
    if (!why) say(where, why.error());
    else if (words_in(why.value()) > most_words_of_why) say(where, text("its \"why\" has ", words_in(why.value()), " words; at most ", most_words_of_why));
    if (content(folder_ + "/text.md").find("## " + part.id + " " + part.title + "\n") == std::string::npos) say(folder_ + "/text.md", text("has no chapter '## ", part.id, " ", part.title, "'"));
    if (content("solutions/" + lab_.name + "/solution.md").find("## " + part.id) == std::string::npos) say("solutions/" + lab_.name + "/solution.md", "has no chapter '## " + part.id + "'");
    of_text(part);
    if (part.kind != Kind::exercise) of_predictions(part);
    if (part.kind == Kind::exercise) of_exercise(part);
    if (part.kind == Kind::answers) of_answers(part);
  }

  // Of an exercise, its check gives the figures (trials.cpp).
  void of_predictions(const Part& part) {
    for (const Prediction& one : part.predict) {
      if (number_in(one.found, one.unit) || lab_.facts.contains(one.found)) continue;
      std::string known;
      for (const auto& [name, fact] : lab_.facts) known += (known.empty() ? "" : ", ") + name;
      say(folder_ + "/lab.json, " + part.id, text("prediction `", one.key, "`: there is no fact `", one.found, "`; ", known.empty() ? "the lab has none" : "there is " + known));
    }
    if (!part.show.empty()) say(folder_ + "/lab.json, " + part.id, "\"show\" is of an exercise: it names figures of its check");
  }

  // What is to be predicted stands in the last chapter, and not where one reads before the check.
  void of_text(const Part& part) {
    const std::string page = content(folder_ + "/text.md");
    if (page.find("\n### " + part.id + "\n") == std::string::npos) say(folder_ + "/text.md", text("its last chapter, of what there is to find, has no '### ", part.id, "'"));
    const std::size_t begin = page.find("\n## " + part.id + " ");
    if (begin == std::string::npos) return;
    const std::string head = page.substr(0, page.find("\n## ")) + "\n" + lab_.stakes + "\n" + part.question + "\n" + part.produce + "\n";
    const std::string chapter = page.substr(begin + 1, page.find("\n## ", begin + 1) - begin - 1);
    for (const Prediction& one : part.predict) {
      if (const std::optional<double> found = found_by(part, one)) {
        if (const std::string number = number_told(head + chapter, *found); !number.empty()) {
          say(folder_ + "/text.md", text("says ", number, ", which ", part.id, " asks to predict ('", one.key, "')"));
        }
      }
    }
  }

  // What a prediction is compared with, as the solution finds it.
  std::optional<double> found_by(const Part& part, const Prediction& one) {
    if (const std::optional<double> number = number_in(one.found, one.unit)) return number;
    // cmake/CheckExercise.cmake holds this file to what the solution writes
    const std::string figures = content(figures_path(lab_, part)), name = "\"" + one.found + "\"";
    if (const std::size_t at = figures.find(name); at != std::string::npos) return std::strtod(figures.c_str() + figures.find(':', at) + 1, nullptr);
    const base::Result<Value> fact = part.kind == Kind::answers ? facts_.value(one.found) : Error{""};
    if (fact && fact.value().is_number) return fact.value().number;
    return std::nullopt;
  }

  void of_exercise(const Part& part) {
    for (int seed = 0; seed <= static_cast<int>(part.by_seed.size()); ++seed) {
      const Place place{&lab_, &part, seed};
      need(starter_of(place), "the starter, which compiles as it is and fails with a message that teaches");
      need(solution_of(place), "the solution, which passes");
    }
    need(folder_ + "/lab.hpp", "the one-page interface");
    if (content(folder_ + "/CMakeLists.txt").find("shardbook_exercise(" + part.id + " ") == std::string::npos) say(folder_ + "/CMakeLists.txt", "has no shardbook_exercise(" + part.id + " ...)");
    int wrong = 0;
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(root_) / "tests/data/labs" / part.id, ignored)) {
      if (entry.path().extension() != ".cpp") continue;
      ++wrong;
      const std::string path = "tests/data/labs/" + part.id + "/" + entry.path().filename().string();
      if (content(path).compare(0, 15, "// fails with: ") != 0) say(path, "its first line should be '// fails with: <part of the message meant for it>'");
    }
    if (wrong < fewest_wrong_answers) say("tests/data/labs/" + part.id, text("holds ", wrong, " typical wrong answers; at least ", fewest_wrong_answers));
  }

  void of_answers(const Part& part) {
    const Place place{&lab_, &part};
    if (part.answers.empty()) say(folder_ + "/lab.json, " + part.id, "asks nothing");
    int wrong = 0;
    for (const Answer& answer : part.answers) wrong += static_cast<int>(answer.wrong.size());
    if (wrong < fewest_wrong_answers) say(folder_ + "/lab.json, " + part.id, text("knows ", wrong, " typical wrong answers; at least ", fewest_wrong_answers));
    const std::string path = solution_of(place);
    need(path, "the answers, which pass");
    const base::Result<Answers> answers = answers_from(content(path), part, path);
    if (!answers) return say(path, answers.error());
    const base::Result<Verdict> verdict = judge_answers(facts_, part, answers.value(), path);
    if (!verdict) say(folder_ + "/lab.json", verdict.error());
    else if (!verdict.value().passed) say(path, "does not pass: " + verdict.value().findings.front().message);
  }

  const std::string& root_;
  const Lab& lab_;
  Facts facts_;
  std::string folder_;
  std::vector<std::string> found_;
};

}  // namespace

base::Result<std::string> figures_table(const std::string& root, const Lab& lab) {
  Facts facts(root, lab);
  std::string out = "# The figures of lab " + lab.id + "\n\nMade by `./shardbook lab figures " + lab.id + " --write`, from what each line names. `./shardbook lab lint` compares.\n\n"
                    "| name | value | figure | of |\n|---|---:|---|---|\n";
  const auto words = [](const std::map<std::string, std::string>& keys) {
    std::string all;
    for (const auto& [key, value] : keys) all += (all.empty() ? "" : ", ") + (key == "run" ? fs::path(value).stem().stem().string() : key + " " + value);
    return all;
  };
  for (const auto& [name, fact] : lab.facts) {
    const base::Result<Value> value = facts.value(name);
    if (!value) return value.as_error();
    out += "| `" + name + "` | " + shown(value.value()) + " | " + fact.figure + " | " + words(fact.of) + (fact.less.empty() ? "" : "; less " + words(fact.less)) + " |\n";
  }
  return out;
}

base::Result<std::vector<std::string>> lint(const std::string& root, const std::string& name) {
  base::Result<std::vector<Lab>> labs = all_labs(root);
  if (!labs) return labs.as_error();
  for (const Lab& lab : labs.value()) {
    if (lab.id == name || lab.name == name) return Linter(root, lab).findings();
  }
  return Error{text("there is no lab '", name, "' with parts below ", root, "/labs")};
}

}  // namespace shardbook::workbook
