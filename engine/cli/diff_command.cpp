#include "engine/cli/diff_command.hpp"

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "engine/base/printable.hpp"
#include "engine/book/project.hpp"
#include "engine/cli/loop_command.hpp"
#include "engine/cli/why_command.hpp"
#include "engine/workbook/child.hpp"

namespace shardbook::cli {

namespace fs = std::filesystem;
using base::text;

namespace {

int beside_solution(const std::string& name, Console& console) {
  base::Result<workbook::Course> course = course_here(console);
  if (!course) return refuse(console, course.error());
  base::Result<workbook::Place> place = course.value().part(name);
  if (!place) return refuse(console, text("diff takes two runs, or a part that you have passed: ", place.error()));
  const workbook::PartState state = course.value().state(place.value());
  if (state.passed_at.empty() && !state.solution_seen) {
    return refuse(console, text("the solution of ", name, " comes with a pass: ./shardbook check ", name));
  }
  const fs::path root = course.value().root;
  const std::string own = workbook::own_file_of(place.value()), solution = workbook::solution_of(place.value());
  workbook::ChildOptions options;
  options.folder = root.string();
  base::Result<workbook::ChildEnd> end = workbook::run_child({"diff", "-u", own, solution}, options);
  if (!end) return refuse(console, end.error());
  if (end.value().code == 0) console.out << "your file and the solution are equal\n";
  else console.out << base::printable(end.value().said, base::Lines::kept);
  return end.value().code <= 1 ? exit_ok : exit_bad_input;
}

}  // namespace

std::vector<std::string> newest_runs(const std::string& root) {
  std::vector<std::pair<fs::file_time_type, std::string>> runs;
  std::error_code ignored;
  for (const fs::directory_entry& lab : fs::directory_iterator(fs::path(root) / "experiments", ignored)) {
    for (const fs::directory_entry& run : fs::directory_iterator(lab.path() / "runs", ignored)) {
      const fs::path info = run.path() / "run.json";
      if (fs::exists(info, ignored)) runs.emplace_back(fs::last_write_time(info, ignored), run.path().string());
    }
  }
  std::sort(runs.rbegin(), runs.rend());
  std::vector<std::string> paths;
  for (const auto& [when, path] : runs) paths.push_back(path);
  return paths;
}

int diff_any(const Line& line, Console& console) {
  if (line.places.size() == 2) return diff(line, console);
  if (line.places.size() == 1) return beside_solution(line.places.front(), console);
  const std::vector<std::string> runs = newest_runs(book::project_root());
  if (runs.size() < 2) return refuse(console, text("there are fewer than two runs below experiments/: name two, as in `shardbook diff --help`"));
  Line both = line;
  both.places = {runs[1], runs[0]};
  console.err << "note: " << base::printable(runs[1]) << " against " << base::printable(runs[0]) << "\n";
  return diff(both, console);
}

}  // namespace shardbook::cli
