#include "engine/cli/teacher_command.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <ostream>

#include "engine/base/nearest.hpp"
#include "engine/base/printable.hpp"
#include "engine/base/signals.hpp"
#include "engine/book/project.hpp"
#include "engine/cli/check_command.hpp"
#include "engine/cli/figures.hpp"
#include "engine/cli/loop_command.hpp"
#include "engine/workbook/learner.hpp"
#include "engine/workbook/lint.hpp"
#include "engine/workbook/submission.hpp"

namespace shardbook::cli {

namespace fs = std::filesystem;
using base::text;
using workbook::Course;

namespace {

// "Ada Lovelace" as a file's name: "ada-lovelace".
std::string file_name_of(const std::string& name) {
  std::string out;
  for (const char letter : name) {
    const unsigned char plain = static_cast<unsigned char>(letter);
    if (std::isalnum(plain)) out += static_cast<char>(std::tolower(plain));
    else if (!out.empty() && out.back() != '-') out += '-';
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return "submission-" + (out.empty() ? "of-nobody" : out) + ".json";
}

int said(const std::vector<std::string>& findings, Console& console) {
  for (const std::string& one : findings) console.out << base::printable(one) << "\n";
  return static_cast<int>(findings.size());
}

int lint_labs(const std::string& root, const std::vector<std::string>& names, Console& console) {
  int findings = 0;
  for (const std::string& name : names) {
    const base::Result<std::vector<std::string>> found = workbook::lint(root, name);
    if (!found) return refuse(console, found.error());
    findings += said(found.value(), console);
  }
  if (findings == 0) console.out << "all labs are whole in form; lab lint NN tries one\n";
  return findings == 0 ? exit_ok : exit_failed;
}

// What the texts of a lab state and is not so now.
std::vector<std::string> stale_in_texts_of(const std::string& root, const std::string& lab) {
  std::vector<std::string> pages, stale;
  for (const char* folder : {"labs", "solutions"}) {
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(root) / folder / lab, ignored)) {
      if (entry.path().extension() == ".md") pages.push_back(fs::path(folder) / lab / entry.path().filename());
    }
  }
  std::sort(pages.begin(), pages.end());
  for (const std::string& page : pages) {
    const base::Result<std::string> content = book::read_text((fs::path(root) / page).string());
    if (!content) continue;
    for (const Said& one : said_in(content.value(), page)) {
      if (!one.holds) stale.push_back(text(page, ":", one.line, ": ", one.term, " -> ", one.words, ": ", one.problem));
    }
  }
  return stale;
}

// Says which file is tried: on a terminal in a line that is overwritten.
workbook::Begins progress_on(Console& console) {
  return [&console](const std::string& file, int number, int of) {
    if (console.err_is_terminal) console.err << "\r\033[K" << number << " of " << of << "  " << file << std::flush;
    else if (number == 1) console.err << "trying " << count_text(of, "file") << ", a second or more each\n" << std::flush;
  };
}

void end_progress(Console& console) {
  if (console.err_is_terminal) console.err << "\r\033[K" << std::flush;
}

// One lab, with its trials: whether it is done.
int lint_lab(const std::string& root, const std::string& name, Console& console) {
  const base::SignalGuard signals;
  const base::Result<std::vector<std::string>> form = workbook::lint(root, name);
  if (!form) return refuse(console, form.error());
  int findings = said(form.value(), console);
  const base::Result<std::vector<workbook::Lab>> labs = workbook::all_labs(root);
  if (!labs) return refuse(console, labs.error());
  for (const workbook::Lab& one : labs.value()) {
    if (one.id == name || one.name == name) findings += said(stale_in_texts_of(root, one.name), console);
  }
  console.out << std::flush;
  const base::Result<std::vector<std::string>> tried = workbook::try_lab(root, name, trial_options(0), progress_on(console));
  end_progress(console);
  if (base::stop_signal() != 0) {
    console.err << "shardbook: stopped, as asked\n";
    return exit_stopped;
  }
  if (!tried) return refuse(console, tried.error());
  findings += said(tried.value(), console);
  if (findings == 0) console.out << "lab " << name << " is whole\n";
  return findings == 0 ? exit_ok : exit_failed;
}

int figures_of_lab(const std::string& root, const workbook::Lab& one, bool write, Console& console) {
  const base::Result<std::string> table = workbook::figures_table(root, one);
  if (!table) return refuse(console, table.error());
  if (!write) {
    if (!one.facts.empty()) console.out << table.value();
    // Of its exercises: what their solutions gave when they were written
    for (const workbook::Part& part : one.parts) {
      const std::string path = workbook::figures_path(one, part);
      const base::Result<std::string> content = book::read_text((fs::path(root) / path).string());
      if (content) console.out << path << "\n" << content.value() << "\n";
    }
    return exit_ok;
  }
  const base::SignalGuard signals;
  if (!one.facts.empty()) {
    const std::string path = "labs/" + one.name + "/figures.md";
    if (base::Status written = workbook::write_whole((fs::path(root) / path).string(), table.value()); !written) return refuse(console, written.error());
    console.out << "wrote " << path << "\n" << std::flush;
  }
  const base::Result<std::vector<std::string>> written = workbook::write_figures(root, one.id, trial_options(0), progress_on(console));
  end_progress(console);
  if (!written) return refuse(console, written.error());
  for (const std::string& path : written.value()) console.out << "wrote " << path << "\n";
  return exit_ok;
}

}  // namespace

std::vector<Switch> submit_switches() {
  return {{"name", "NAME", "Who you are.", ""}, {"out", "FILE", "Where to.", "submission-NAME.json, here"}};
}

int submit(const Line& line, Console& console) {
  base::Result<Course> course = course_here(console);
  if (!course) return refuse(console, course.error());
  base::Result<workbook::Submission> made = workbook::submission_of(course.value(), line.value("name"));
  if (!made) return refuse(console, made.error());
  const std::string out = line.has("out") ? line.value("out") : file_name_of(line.value("name"));
  if (base::Status written = workbook::write_whole(fs::absolute(out).string(), workbook::to_json(made.value())); !written) return refuse(console, written.error());
  console.out << "Wrote " << base::printable(out) << ": your progress and " << count_text(static_cast<long long>(made.value().files.size()), "file") << ", for your teacher.\n";
  return exit_ok;
}

std::vector<Switch> grade_switches() { return {}; }

int grade(const Line& line, Console& console) {
  base::Result<Course> course = course_here(console);
  if (!course) return refuse(console, course.error());
  std::vector<std::string> paths;
  for (const std::string& place : line.places) {
    std::error_code ignored;
    if (!fs::is_directory(place, ignored)) paths.push_back(place);
    else for (const fs::directory_entry& entry : fs::directory_iterator(place, ignored)) {
      if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<workbook::Submission> submissions;
  for (const std::string& path : paths) {
    base::Result<std::string> content = book::read_text(path);
    if (!content) return refuse(console, content.error());
    base::Result<workbook::Submission> one = workbook::submission_from_json(content.value(), path);
    if (!one) return refuse(console, one.error());
    submissions.push_back(std::move(one).value());
  }
  if (submissions.empty()) return refuse(console, "there is no submission (.json) in what was named");
  base::Result<std::vector<workbook::Grade>> grades = workbook::grade(course.value(), submissions, trial_options(0));
  if (!grades) return refuse(console, grades.error());
  console.out << workbook::to_csv(grades.value());
  return exit_ok;
}

std::vector<Switch> lab_switches() { return {{"write", "", "With figures: into labs/NN_name/figures.md, and what each solution's check finds into solutions/NN_name/NNa.figures.json.", ""}}; }

int lab(const Line& line, Console& console) {
  const std::string root = book::project_root();
  const std::string& verb = line.places.front();
  const std::size_t count = line.places.size();
  if (verb == "new") {
    if (count != 3) return refuse(console, "a new lab has a number and a name: ./shardbook lab new 05 sequence_parallel");
    base::Result<std::vector<std::string>> made = workbook::make_lab(root, line.places[1], line.places[2]);
    if (!made) return refuse(console, made.error());
    for (const std::string& path : made.value()) console.out << "made  " << path << "\n";
    console.out << "It works as it is: fill in what says TODO, then ./shardbook build, ./shardbook lab figures " << line.places[1] << " --write, ./shardbook lab lint " << line.places[1] << ".\n";
    return exit_ok;
  }
  if (verb == "lint" && count <= 2) {
    if (count == 2) return lint_lab(root, line.places[1].size() == 1 ? "0" + line.places[1] : line.places[1], console);
    base::Result<std::vector<workbook::Lab>> labs = workbook::all_labs(root);
    if (!labs) return refuse(console, labs.error());
    std::vector<std::string> names;
    for (const workbook::Lab& one : labs.value()) names.push_back(one.id);
    return lint_labs(root, names, console);
  }
  if (verb == "figures" && count == 2) {
    base::Result<std::vector<workbook::Lab>> labs = workbook::all_labs(root);
    if (!labs) return refuse(console, labs.error());
    base::Result<std::vector<workbook::Place>> parts = workbook::find_parts(labs.value(), line.places[1]);
    if (!parts) return refuse(console, parts.error());
    return figures_of_lab(root, *parts.value().front().lab, line.has("write"), console);
  }
  return refuse(console, text("`lab ", base::printable(verb), "` is none of: lab new NN NAME, lab lint [NN], lab figures NN [--write]"));
}

}  // namespace shardbook::cli
