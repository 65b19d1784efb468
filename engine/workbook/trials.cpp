// workbook/trials: do a lab's files do what it says of them? See lint.hpp.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/base/json.hpp"
#include "engine/base/signals.hpp"
#include "engine/book/project.hpp"
#include "engine/workbook/answers.hpp"
#include "engine/workbook/learner.hpp"
#include "engine/workbook/lint.hpp"

namespace shardbook::workbook {

namespace fs = std::filesystem;
using base::Error;
using base::text;
using Figures = std::map<std::string, double>;

namespace {

constexpr const char* fails_with = "// fails with: ";

std::string first_line(const std::string& content) {
  std::string line = content.substr(0, content.find('\n'));
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return line;
}

// As CMake writes the JSON of a verdict: it compares the two.
std::string text_of(const Figures& figures) {
  std::string all;
  for (const auto& [name, value] : figures) {
    char number[40];
    std::snprintf(number, sizeof number, "%.17g", value);
    const bool whole = std::string_view(number).find_first_of(".e") == std::string_view::npos;
    all += text(all.empty() ? "" : ",\n", "  \"", name, "\" : ", number, whole ? ".0" : "");
  }
  return all.empty() ? "{}\n" : "{\n" + all + "\n}\n";
}

// What such a file holds; nothing where it is none.
Figures figures_in(const std::string& content) {
  Figures figures;
  const nlohmann::json json = base::try_parse_json(content);
  if (!json.is_object()) return {};
  for (const auto& [name, value] : json.items()) {
    if (value.is_number()) figures[name] = value.get<double>();
  }
  return figures;
}

std::string names_of(const Figures& figures) {
  std::string all;
  for (const auto& [name, value] : figures) all += (all.empty() ? "" : ", ") + name;
  return all.empty() ? "none" : all;
}

struct Trial {
  enum class Of { solution, starter, wrong } of;
  Place place;
  std::string file;   // from the root
};

class Trials {
 public:
  Trials(const std::string& root, const Lab& lab, const TrialOptions& options, const Begins& begins) : root_(root), lab_(lab), options_(options), begins_(begins) {}

  base::Result<std::vector<std::string>> findings() {
    const std::vector<Trial> all = trials();
    std::string skipped;
    for (std::size_t at = 0; at < all.size(); ++at) {
      const Trial& trial = all[at];
      if (trial.place.part->id == skipped) continue;
      if (begins_) begins_(trial.file, static_cast<int>(at) + 1, static_cast<int>(all.size()));
      const base::Result<Verdict> verdict = judged(trial);
      if (base::stop_signal() != 0) return Error{"stopped, as asked"};
      if (!verdict) {
        // What keeps one file of a part from being tried keeps the others
        say(trial.file, verdict.error());
        skipped = trial.place.part->id;
      } else if (!verdict.value().passed && verdict.value().findings.front().rule == starved_rule) {
        say(trial.file, "is not judged: " + verdict.value().findings.front().message);
      } else if (trial.of == Trial::Of::solution) {
        of_solution(trial, verdict.value());
      } else {
        of_failure(trial, verdict.value());
      }
    }
    return found_;
  }

  base::Result<std::vector<std::string>> write() {
    std::vector<Trial> all = trials();
    std::erase_if(all, [](const Trial& one) {
      return one.of != Trial::Of::solution || one.place.part->kind != Kind::exercise || one.place.seed > static_cast<int>(one.place.part->by_seed.size());
    });
    std::vector<std::string> written;
    for (std::size_t at = 0; at < all.size(); ++at) {
      if (begins_) begins_(all[at].file, static_cast<int>(at) + 1, static_cast<int>(all.size()));
      const base::Result<Verdict> verdict = judged(all[at]);
      if (!verdict) return verdict.as_error();
      if (!verdict.value().passed) return Error{text(all[at].file, ": does not pass: ", verdict.value().findings.front().message)};
      const std::string path = figures_path(*all[at].place.lab, *all[at].place.part, all[at].place.seed);
      if (base::Status done = write_whole((fs::path(root_) / path).string(), text_of(verdict.value().figures)); !done) return done.as_error();
      written.push_back(path);
    }
    return written;
  }

 private:
  void say(const std::string& where, const std::string& what) { found_.push_back(where + ": " + what); }
  bool exists(const std::string& path) const {
    std::error_code ignored;
    return fs::exists(fs::path(root_) / path, ignored);
  }
  std::string content(const std::string& path) const {
    const base::Result<std::string> read = book::read_text((fs::path(root_) / path).string());
    return read ? read.value() : "";
  }
  base::Result<Verdict> judged(const Trial& trial) const {
    TrialOptions options = options_;
    options.seed = trial.place.seed;
    options.strict = true;
    return judge(root_, trial.place, (fs::path(root_) / trial.file).string(), options);
  }

  // Files that there are; lint names those that there are not.
  std::vector<Trial> trials() const {
    std::vector<Trial> all;
    const auto add = [&](Trial::Of of, const Place& place, const std::string& file) {
      if (exists(file)) all.push_back({of, place, file});
    };
    for (const Part& part : lab_.parts) {
      const Place first{&lab_, &part};
      if (part.kind == Kind::notes && options_.notes) add(Trial::Of::solution, first, solution_of(first));
      if (part.kind != Kind::exercise) continue;
      for (int seed = 0; seed <= static_cast<int>(part.by_seed.size()); ++seed) {
        const Place place{&lab_, &part, seed};
        add(Trial::Of::solution, place, solution_of(place));
        add(Trial::Of::starter, place, starter_of(place));
      }
      // A seed also draws sizes: one more, that picks the first file again
      const Place other{&lab_, &part, static_cast<int>(part.by_seed.size()) + 1};
      add(Trial::Of::solution, other, solution_of(other));
      std::vector<std::string> wrong;
      std::error_code ignored;
      for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(root_) / "tests/data/labs" / part.id, ignored)) {
        if (entry.path().extension() == ".cpp") wrong.push_back("tests/data/labs/" + part.id + "/" + entry.path().filename().string());
      }
      std::sort(wrong.begin(), wrong.end());
      for (const std::string& file : wrong) add(Trial::Of::wrong, first, file);
    }
    return all;
  }

  void of_solution(const Trial& trial, const Verdict& verdict) {
    const Part& part = *trial.place.part;
    const bool other_sizes = trial.place.seed > static_cast<int>(part.by_seed.size());
    if (!verdict.passed) return say(trial.file, text("does not pass", other_sizes ? text(" with seed ", trial.place.seed) : "", ": ", verdict.findings.front().message));
    if (part.kind != Kind::exercise || other_sizes) return;
    const std::string where = "labs/" + lab_.name + "/lab.json, " + part.id;
    const std::string gives = text("the check", trial.place.seed == 0 ? "" : " of " + trial.file, " gives no figure `");
    for (const Prediction& one : part.predict) {
      if (verdict.figures.contains(one.found) || number_in(one.found, one.unit) || lab_.facts.contains(one.found)) continue;
      say(where, text("prediction `", one.key, "`: ", gives, one.found, "`; it gives ", names_of(verdict.figures)));
    }
    for (const std::string& name : part.show) {
      if (!verdict.figures.contains(name)) say(where, text("\"show\": ", gives, name, "`; it gives ", names_of(verdict.figures)));
    }
    const std::string known = figures_path(*trial.place.lab, *trial.place.part, trial.place.seed), again = text("./shardbook lab figures ", lab_.id, " --write");
    if (!exists(known)) say(known, "is missing: " + again);
    else if (figures_in(content(known)) != verdict.figures) say(known, text("is stale: ", again, "; then look at the texts that quote it"));
  }

  // A starter or a wrong answer: it must fail, and with what is meant for it.
  void of_failure(const Trial& trial, const Verdict& verdict) {
    if (verdict.passed) return say(trial.file, "passes, and must not");
    const std::string& message = verdict.findings.front().message;
    std::string source = trial.file, expected;
    if (trial.of == Trial::Of::wrong) {
      expected = first_line(content(trial.file));
      if (expected.rfind(fails_with, 0) != 0) return;   // lint says so
      expected.erase(0, std::string_view(fails_with).size());
    } else {
      source = text("tests/data/labs/", trial.place.part->id, "/starter", trial.place.seed == 0 ? "" : "_" + std::to_string(trial.place.seed), ".txt");
      expected = first_line(content(source));
    }
    const std::string found = text("the check", source == trial.file ? "" : " of " + trial.file, " says '", message, "'");
    if (!exists(source)) say(source, text("is missing: its first line is a part of what the starter's check says; ", found));
    else if (expected.empty()) say(source, text("says nothing in its first line; ", found));
    else if (message.find(expected) == std::string::npos) say(source, text("its first line expects '", expected, "'; ", found));
  }

  const std::string& root_;
  const Lab& lab_;
  const TrialOptions& options_;
  const Begins& begins_;
  std::vector<std::string> found_;
};

template <class Act>
base::Result<std::vector<std::string>> of_lab(const std::string& root, const std::string& name, const Act& act) {
  const base::Result<std::vector<Lab>> labs = all_labs(root);
  if (!labs) return labs.as_error();
  for (const Lab& lab : labs.value()) {
    if (lab.id == name || lab.name == name) return act(lab);
  }
  return Error{text("there is no lab '", name, "' with parts below ", root, "/labs")};
}

}  // namespace

base::Result<std::vector<std::string>> try_lab(const std::string& root, const std::string& name, const TrialOptions& options, const Begins& begins) {
  return of_lab(root, name, [&](const Lab& lab) { return Trials(root, lab, options, begins).findings(); });
}

base::Result<std::vector<std::string>> write_figures(const std::string& root, const std::string& name, const TrialOptions& options, const Begins& begins) {
  return of_lab(root, name, [&](const Lab& lab) { return Trials(root, lab, options, begins).write(); });
}

}  // namespace shardbook::workbook
