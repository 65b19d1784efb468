#include "engine/workbook/submission.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/json.hpp"
#include "engine/base/printable.hpp"
#include "engine/book/project.hpp"
#include "engine/workbook/answers.hpp"
#include "engine/workbook/learner.hpp"
#include "engine/workbook/scratch.hpp"

namespace shardbook::workbook {

namespace fs = std::filesystem;
using base::Error;
using base::text;
using Json = nlohmann::json;

namespace {

constexpr const char* format = "shardbook submission 1";

std::string seal_of(const Submission& submission) {
  std::string all = submission.name + "\n" + submission.made_at + "\n" + submission.progress;
  for (const auto& [path, content] : submission.files) all += "\n" + path + "\n" + content;
  return file_hash(all);
}

// A folder in which a learner's files lie as in the project, so that they are judged as there.
class Desk {
 public:
  explicit Desk(const std::string& root) {
    if (!is_there()) return;
    std::error_code failed;
    for (const char* one : {"engine", "labs", "notes", "solutions"}) fs::create_directory_symlink(fs::path(root) / one, folder_ / one, failed);
    fs::create_directory(folder_ / "experiments", failed);
    fs::create_directory_symlink(fs::path(root) / "experiments/captured", folder_ / "experiments/captured", failed);
  }
  bool is_there() const { return folder_.is_there(); }
  std::string root() const { return folder_.path().string(); }

  // Only below experiments/, whatever a path says.
  void lay(const std::string& path, const std::string& content) const {
    const fs::path plain = fs::path(path).lexically_normal();
    const bool inside = !plain.is_absolute() && plain.begin() != plain.end() && *plain.begin() == "experiments" &&
                        std::find(plain.begin(), plain.end(), "captured") == plain.end();
    if (!inside) return;
    std::error_code ignored;
    fs::create_directories((folder_.path() / plain).parent_path(), ignored);
    std::ofstream(folder_.path() / plain, std::ios::binary) << content;
  }

 private:
  const Scratch folder_{"grade"};
};

std::string predictions_text(const std::vector<Compared>& all) {
  std::string out;
  for (const Compared& one : all) {
    if (one.found.empty()) continue;
    const std::string score = one.ratio ? shown({true, *one.ratio, ""}, 2) + "x" : one.same ? "yes" : "no";
    out += (out.empty() ? "" : ", ") + one.key + " " + score;
  }
  return out;
}

// The learner's own exercise of a part, "" where there is none.
std::string code_of(const Submission& submission, const Place& place) {
  const auto found = submission.files.find(own_file_of(place));
  return place.part->kind == Kind::exercise && found != submission.files.end() ? found->second : "";
}

std::vector<std::string> equals_of(const Course& course, const std::vector<Submission>& all, const Submission& own, const Place& place) {
  std::vector<std::string> equal;
  const std::string code = code_of(own, place);
  if (code.empty()) return equal;
  const std::string shape = shape_of_code(code);
  const auto starter = book::read_text((fs::path(course.root) / starter_of(place)).string());
  if (starter && shape_of_code(starter.value()) == shape) return equal;   // untouched: equal to every other untouched one
  for (const Submission& other : all) {
    if (&other != &own && !code_of(other, place).empty() && shape_of_code(code_of(other, place)) == shape) equal.push_back(other.name);
  }
  const auto solution = book::read_text((fs::path(course.root) / solution_of(place)).string());
  if (solution && shape_of_code(solution.value()) == shape) equal.push_back("the solution");
  return equal;
}

std::vector<std::string> remarks_of(const std::vector<Submission>& all, const Submission& own, const Progress& progress) {
  std::vector<std::string> remarks;
  if (!own.seal_holds) remarks.push_back("the file was edited after it was made");
  if (!progress.problems.empty()) {
    remarks.push_back(text(progress.problems.size(), progress.problems.size() == 1 ? " progress line does" : " progress lines do", " not count (edited, or of another seed)"));
  }
  for (const Submission& other : all) {
    if (&other == &own || progress.seed == 0) continue;
    if (progress_of(other.progress, "").seed == progress.seed) remarks.push_back(text("seed ", progress.seed, " is also ", other.name, "'s"));
  }
  return remarks;
}

}  // namespace

std::string shape_of_code(const std::string& code) {
  static const std::set<std::string> kept = {"if", "else", "for", "while", "do", "return", "const", "double", "int", "float", "bool", "auto", "void", "struct", "std",
                                             "break", "continue", "switch", "case", "true", "false", "size_t", "include", "namespace"};
  std::string out;
  std::map<std::string, int> names;
  for (std::size_t at = 0; at < code.size();) {
    const unsigned char letter = static_cast<unsigned char>(code[at]);
    if (std::isspace(letter)) {
      ++at;
    } else if (code.compare(at, 2, "//") == 0) {
      at = std::min(code.size(), code.find('\n', at));
    } else if (code.compare(at, 2, "/*") == 0) {
      const std::size_t end = code.find("*/", at + 2);
      at = end == std::string::npos ? code.size() : end + 2;
    } else if (std::isalpha(letter) || letter == '_') {
      std::size_t end = at;
      while (end < code.size() && (std::isalnum(static_cast<unsigned char>(code[end])) || code[end] == '_')) ++end;
      const std::string word = code.substr(at, end - at);
      out += kept.contains(word) ? word : "#" + std::to_string(names.try_emplace(word, static_cast<int>(names.size())).first->second);
      out += ' ';
      at = end;
    } else {
      out += code[at++];
    }
  }
  return out;
}

base::Result<Submission> submission_of(const Course& course, const std::string& name) {
  if (name.find_first_not_of(" \t") == std::string::npos) return Error{"a submission needs a name: --name \"Ada Lovelace\""};
  Submission submission{name, now(), "", {}, true};
  std::error_code ignored;
  const std::string path = (fs::path(course.root) / "experiments/progress.txt").string();
  if (!fs::exists(path, ignored)) return Error{"there is nothing to submit yet: ./shardbook next"};
  base::Result<std::string> progress = book::read_text(path);
  if (!progress) return progress.as_error();
  submission.progress = base::printable(progress.value(), base::Lines::kept);
  for (const Place& place : course.places()) {
    for (auto& [file, content] : own_files(course.root, place)) submission.files[file] = base::printable(content, base::Lines::kept);
  }
  return submission;
}

std::string to_json(const Submission& submission) {
  return base::json_text(Json{{"format", format}, {"name", submission.name}, {"made_at", submission.made_at}, {"progress", submission.progress},
              {"files", submission.files}, {"seal", seal_of(submission)}}, 1) + "\n";
}

base::Result<Submission> submission_from_json(const std::string& content, const std::string& path) {
  Submission submission;
  try {
    const Json json = base::parse_json(content);
    if (json.at("format").get<std::string>() != format) return Error{text(path, " is no submission: its format is not \"", format, "\"")};
    submission.name = base::printable(json.at("name").get<std::string>());
    submission.made_at = json.at("made_at").get<std::string>();
    submission.progress = json.at("progress").get<std::string>();
    submission.files = json.at("files").get<std::map<std::string, std::string>>();
    submission.seal_holds = json.value("seal", "") == seal_of(submission);
  } catch (const Json::exception& error) {
    return Error{text(path, " is no submission that can be read: ", error.what())};
  }
  return submission;
}

base::Result<std::vector<Grade>> grade(const Course& course, const std::vector<Submission>& submissions, const TrialOptions& given) {
  std::vector<Grade> grades;
  std::map<const Lab*, std::unique_ptr<Facts>> facts;
  for (const Lab& lab : course.labs) facts[&lab] = std::make_unique<Facts>(course.root, lab);
  for (const Submission& submission : submissions) {
    const Desk desk(course.root);
    if (!desk.is_there()) return Error{"cannot make a scratch folder: is the disk full, or TMPDIR wrong?"};
    for (const auto& [path, content] : submission.files) desk.lay(path, content);
    const Progress progress = progress_of(submission.progress, submission.name + "'s progress");
    TrialOptions options = given;
    options.seed = progress.seed;
    for (const Place& place : course.places()) {
      const PartState state = state_of(progress, place.part->id, own_hash(desk.root(), place));
      Grade row;
      row.name = submission.name;
      row.part = place.part->id;
      row.seed = progress.seed;
      row.tries = state.failures + (state.passed_at.empty() ? 0 : 1);
      row.hints = state.hints;
      row.minutes = state.minutes;
      row.solution_seen = state.solution_seen;
      row.remarks = remarks_of(submissions, submission, progress);
      std::map<std::string, double> figures;
      row.handed_in = !own_files(desk.root(), place).empty();
      if (row.handed_in) {
        base::Result<Verdict> verdict = judge(desk.root(), place, (fs::path(desk.root()) / own_file_of(place)).string(), options);
        if (!verdict) return Error{text(submission.name, ", ", place.part->id, ": ", verdict.error())};
        row.passed = verdict.value().passed;
        if (!row.passed) row.finding = verdict.value().findings.front().message;
        if (!row.passed && state.passed) row.remarks.push_back("the progress file says passed, and the file does not pass here");
        figures = verdict.value().figures;
      }
      base::Result<std::vector<Compared>> predictions = compared(*facts[place.lab], *place.part, state, figures);
      if (!predictions) return predictions.as_error();
      row.predictions = predictions_text(predictions.value());
      row.equal_to = equals_of(course, submissions, submission, {place.lab, place.part, progress.seed});
      grades.push_back(std::move(row));
    }
  }
  return grades;
}

std::string to_csv(const std::vector<Grade>& grades) {
  const auto cell = [](std::string content) {
    content = base::printable(content);
    // A spreadsheet takes these for a formula.
    if (!content.empty() && std::string("=+-@").find(content[0]) != std::string::npos) content = "'" + content;
    if (content.find_first_of(",\"") == std::string::npos) return content;
    std::string quoted;
    for (const char letter : content) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
    return "\"" + quoted + "\"";
  };
  const auto joined = [](const std::vector<std::string>& all) {
    std::string out;
    for (const std::string& one : all) out += (out.empty() ? "" : "; ") + one;
    return out;
  };
  std::string out = "name,seed,part,result,tries,hints,minutes,solution_seen,predictions,same_code_as,finding,remarks\n";
  for (const Grade& row : grades) {
    out += text(cell(row.name), ",", row.seed, ",", row.part, ",", !row.handed_in ? "none" : row.passed ? "passed" : "failed", ",", row.tries, ",", row.hints, ",",
                row.minutes, ",", row.solution_seen ? "yes" : "no", ",", cell(row.predictions), ",", cell(joined(row.equal_to)), ",", cell(row.finding), ",",
                cell(joined(row.remarks)), "\n");
  }
  return out;
}

}  // namespace shardbook::workbook
