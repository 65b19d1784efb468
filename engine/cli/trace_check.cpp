#include "engine/cli/trace_check.hpp"

#include <nlohmann/json.hpp>
#include <ostream>

#include "engine/base/json.hpp"
#include "engine/base/printable.hpp"
#include "engine/book/project.hpp"
#include "engine/cli/loop_command.hpp"
#include "engine/cli/open_trace.hpp"
#include "engine/workbook/trace_predicates.hpp"

namespace shardbook::cli {

using base::text;
using workbook::Predicate;
using workbook::TraceVerdict;

namespace {

nlohmann::json json_of(const std::string& part, const workbook::OwnTrace& trace, const TraceVerdict& verdict) {
  nlohmann::json json = {{"part", part}, {"trace", trace.about}, {"passed", verdict.passed()}, {"shares", verdict.shares}, {"predicates", nlohmann::json::array()}, {"figures", verdict.figures}};
  for (const Predicate& one : verdict.predicates) {
    json["predicates"].push_back({{"rule", one.rule}, {"holds", one.holds}, {"title", one.title}, {"expected", one.expected}, {"found", one.found}, {"why", one.why}, {"place", one.place}, {"page", one.page}});
  }
  return json;
}

void say_verdict(const std::string& part, const std::vector<std::string>& files, const workbook::OwnTrace& trace, const TraceVerdict& verdict, Console& console) {
  const bool terminal = console.out_is_terminal;
  console.out << bold(text(part, " · your trace: ", base::printable(trace.about)), terminal) << "\n";
  const Predicate* first = nullptr;
  for (const Predicate& one : verdict.predicates) {
    if (one.holds) {
      say(console, text(one.title, ": ", one.found, "."), "✓ ");
      continue;
    }
    say(console, text(one.title, ": expected ", one.expected, "; found ", one.found, "."), bold("✗ ", terminal));
    if (first == nullptr) first = &one;
  }
  say(console, text("The GPUs' time: ", verdict.shares, "."));
  console.out << "\n";
  if (first != nullptr) {
    say(console, base::printable(first->why), "Why   ");
    if (!first->place.empty()) say(console, base::printable(first->place), "Where ");
    // Of a lab's part its name is enough
    const bool of_lab = first->page.starts_with("labs/");
    point_to(console, "Read", "./shardbook read " + (of_lab ? first->page.substr(first->page.find('#') + 1) : first->page));
  } else {
    say(console, verdict.untold);
  }
  std::string named;
  for (const std::string& file : files) named += " " + shell_word(file);
  point_to(console, "Look", "./shardbook view" + named);
  point_to(console, "Path", "./shardbook why" + named, "what the step waited for");
}

}  // namespace

int check_trace(const Line& line, Console& console) {
  if (line.has("watch") || line.has("solution")) return refuse(console, text("--trace asks your traces, so it goes with neither --watch nor --solution"));
  if (line.places.size() != 1) return refuse(console, "--trace needs one lab or part before it, as in ./shardbook check 04 --trace rank0.json.gz rank1.json.gz");
  const std::string& part = line.places.front();
  const std::vector<std::string>& files = line.switches.at("trace");
  base::Result<timeline::Timeline> timeline = open_trace(files, console);
  if (!timeline) return refuse(console, timeline.error());
  print_banners(timeline.value(), console);
  base::Result<workbook::OwnTrace> trace = workbook::own_trace(std::move(timeline).value());
  if (!trace) return refuse(console, trace.error());
  base::Result<TraceVerdict> verdict = workbook::judge_trace(trace.value(), part);
  if (!verdict) return refuse(console, verdict.error());
  if (line.has("json")) console.out << base::json_text(json_of(part, trace.value(), verdict.value()), 2) << "\n";
  else say_verdict(part, files, trace.value(), verdict.value(), console);
  if (!verdict.value().passed()) return exit_failed;
  const std::string root = book::project_root();
  if (root.empty()) return exit_ok;
  const base::Status noted = workbook::append(root, {"", part, "traced", {{"ranks", std::to_string(trace.value().timeline.ranks.size())}}, "", 0});
  return noted ? exit_ok : refuse(console, noted.error());
}

}  // namespace shardbook::cli
