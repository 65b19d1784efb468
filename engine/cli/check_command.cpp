#include "engine/cli/check_command.hpp"

#include <unistd.h>

#include <filesystem>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "engine/base/json.hpp"
#include "engine/base/printable.hpp"
#include "engine/base/signals.hpp"
#include "engine/book/project.hpp"
#include "engine/cli/loop_command.hpp"
#include "engine/cli/notes_command.hpp"
#include "engine/cli/trace_check.hpp"
#include "engine/workbook/answers.hpp"
#include "engine/workbook/child.hpp"
#include "engine/workbook/learner.hpp"

namespace shardbook::cli {

namespace fs = std::filesystem;
using base::Error;
using base::text;
using workbook::Course;
using workbook::Finding;
using workbook::Part;
using workbook::PartState;
using workbook::Place;
using workbook::Verdict;

namespace {

constexpr std::size_t longest_said = 160;
constexpr int failures_before_anyway = 3;
constexpr int watch_ms = 100;
// Of a check that could not be made for want of a processor: to be made again, and no outcome.
constexpr int not_judged = -1;

// At most so many bytes, ending with a whole word.
std::string cut_to(const std::string& sentence, std::size_t most) {
  if (sentence.size() <= most) return sentence;
  const std::size_t blank = sentence.rfind(' ', most);
  return sentence.substr(0, blank == std::string::npos ? most : blank) + " ...";
}

// What `read` or an editor opens for this page.
std::string page_command(const Place& place, const std::string& page) {
  const std::string name = page.substr(0, page.find('#'));
  const bool own = name.empty() || name.find(place.lab->name) != std::string::npos;
  if (own && name.find(".hpp") == std::string::npos) return "./shardbook read " + place.part->id;
  return name.find(".md") != std::string::npos || name.find('/') == std::string::npos ? "./shardbook read " + name : name;
}

std::string sentence_of(const Finding& finding) {
  return base::printable(finding.message) + (finding.message.back() == '.' || finding.message.back() == '?' ? "" : ".");
}

// The figures that the part's text says to look at, as the check found them.
void say_shown(const Part& part, const Verdict& verdict, Console& console) {
  std::ostringstream figures;
  figures << std::setprecision(5);
  for (const std::string& name : part.show) {
    const auto found = verdict.figures.find(name);
    if (found != verdict.figures.end()) figures << (figures.tellp() == 0 ? "" : ", ") << name << " " << found->second;
  }
  if (figures.tellp() != 0) say(console, figures.str() + ".", bold("See  ", console.out_is_terminal), "     ");
}

void say_failure(const Place& place, const PartState& state, const Verdict& verdict, Console& console) {
  const Finding& first = verdict.findings.front();
  say(console, sentence_of(first), bold("✗ ", console.out_is_terminal));
  console.out << "\n";
  std::string where = first.file;
  if (first.line > 0) where += ":" + std::to_string(first.line);
  if (!where.empty()) console.out << "Where " << base::printable(where) << (first.place.empty() ? "" : " · " + base::printable(first.place)) << "\n";
  else if (!first.place.empty()) console.out << "Where " << base::printable(first.place) << "\n";
  point_to(console, "Read", page_command(place, first.page));
  if (state.hints < static_cast<int>(place.part->hints.size())) {
    point_to(console, "Hint", "./shardbook hint " + place.part->id, text(state.hints, " of ", place.part->hints.size(), " seen"));
  } else if (state.failures >= failures_before_anyway) {
    point_to(console, "Else", "./shardbook solution " + place.part->id + " --anyway");
  }
  if (place.part->kind == workbook::Kind::answers && !first.place.empty()) {
    point_to(console, "Next", "./shardbook check " + place.part->id + " " + first.place + "=...", "or in the file");
  } else {
    point_to(console, "Next", "./shardbook check " + place.part->id, "again, when you have changed it");
  }
}

// The starters of the labs end in a comment that asks for a few words; nobody judges them.
bool explanation_is_empty(const Course& course, const Place& place) {
  constexpr std::string_view asked = "// Explain, in at most";
  const base::Result<std::string> content = book::read_text((fs::path(course.root) / workbook::own_file_of(place)).string());
  const std::size_t at = content ? content.value().rfind(asked) : std::string::npos;
  if (at == std::string::npos) return false;
  const std::string_view below = std::string_view(content.value()).substr(std::min(content.value().find('\n', at), content.value().size()));
  return below.find_first_not_of("/ \t\r\n") == std::string_view::npos;
}

base::Status say_pass(const Course& course, const Place& place, const PartState& state, const Verdict& verdict, Console& console) {
  const Part& part = *place.part;
  workbook::Facts facts(course.root, *place.lab);
  console.out << bold(text("✓ ", part.id, " passed"), console.out_is_terminal) << "\n";
  base::Result<std::vector<workbook::Compared>> compared = workbook::compared(facts, part, state, verdict.figures);
  if (!compared) return compared.as_error();
  for (const workbook::Compared& one : compared.value()) say(console, text(one.key, ": ", workbook::sentence(one)), "  ");
  if (!part.show.empty()) {
    console.out << "\n";
    say_shown(part, verdict, console);
  }
  if (!part.why.empty()) {
    base::Result<std::string> why = facts.filled(part.why);
    if (!why) return why.as_error();
    console.out << "\n";
    say(console, why.value(), bold("Why  ", console.out_is_terminal), "     ");
  }
  for (const std::string& remark : verdict.remarks) {
    console.out << "\n";
    say(console, remark + ".", bold("Note  ", console.out_is_terminal), "      ");
  }
  if (explanation_is_empty(course, place)) {
    console.out << "\n";
    say(console, text("your explanation, at the end of ", workbook::own_file_of(place), ", is still empty: write it before you look at the solution's."), bold("Explain  ", console.out_is_terminal), "         ");
  }
  if (const std::optional<workbook::DueCard> due = workbook::due_card(course, part.id)) {
    console.out << "\n";
    say(console, text(due->card.question, " (from ", due->part, "; ./shardbook card)"), bold("Recall  ", console.out_is_terminal), "        ");
  }
  console.out << "\n";
  point_to(console, "Read", "./shardbook read " + part.id + " --found", "the figures that there were to find");
  point_to(console, "Look", "./shardbook solution " + part.id, "one way to do it, and answers to the questions");
  point_to(console, "Next", "./shardbook next");
  return base::Done{};
}

nlohmann::json json_of(const Place& place, const Verdict& verdict, const std::vector<workbook::Compared>& compared) {
  nlohmann::json json = {{"part", place.part->id}, {"passed", verdict.passed}, {"seconds", verdict.seconds},
                         {"findings", nlohmann::json::array()}, {"figures", verdict.figures}, {"predictions", nlohmann::json::array()}, {"remarks", verdict.remarks}};
  for (const Finding& one : verdict.findings) {
    json["findings"].push_back({{"rule", one.rule}, {"message", one.message}, {"file", one.file}, {"line", one.line}, {"page", one.page}, {"place", one.place}});
  }
  for (const workbook::Compared& one : compared) {
    nlohmann::json row = {{"key", one.key}, {"predicted", one.predicted}, {"found", one.found}, {"unit", one.unit}};
    if (one.ratio) row["ratio"] = *one.ratio;
    json["predictions"].push_back(std::move(row));
  }
  return json;
}

// KEY=VALUE words are answers, and go into the learner's file.
base::Status take_answers(const Place& place, const std::vector<std::string>& words, const std::string& file) {
  if (words.empty()) return base::Done{};
  if (place.part->kind != workbook::Kind::answers) return Error{text("'", words.front(), "': ", place.part->id, " asks for no answers, but for a file")};
  std::string lines;
  for (const std::string& word : words) lines += word + "\n";
  base::Result<workbook::Answers> given = workbook::answers_from(lines, *place.part, "the command line");
  if (!given) return given.as_error();
  base::Result<std::string> content = book::read_text(file);
  if (!content) return content.as_error();
  if (const std::string why = workbook::why_no_text(content.value(), workbook::own_file_of(place)); !why.empty()) return Error{why + ": save it as UTF-8; nothing was added"};
  return workbook::write_whole(file, workbook::with_answers(content.value(), given.value()));
}

// Alone on the learner's files; says so where it has to wait for another terminal.
base::Result<workbook::Lock> alone(const Course& course, const Place& place, Console& console) {
  constexpr int patience_s = 30;
  return workbook::lock_checks(course.root, place.part->id, patience_s, [&] {
    console.err << "shardbook: another terminal is in the middle of a check; this one waits for it, at most " << patience_s << " s\n" << std::flush;
  });
}

int stopped(Console& console) {
  console.err << "shardbook: stopped, as asked\n";
  return exit_stopped;
}

struct Judged {
  Verdict verdict;
  PartState state;      // with this verdict in it
};

// Judges the learner's file and notes what came of it.
base::Result<Judged> judge_own(Course& course, const Place& place, const std::string& file, const workbook::TrialOptions& trial, Console& console) {
  const base::Result<workbook::Lock> lock = alone(course, place, console);
  if (!lock) return lock.as_error();
  // The hash is of what is judged: a save in between shows in the next check.
  const std::string hash = workbook::own_hash(course.root, place);
  base::Result<Verdict> verdict = workbook::judge(course.root, place, file, trial);
  if (!verdict) return verdict.as_error();
  if (!verdict.value().passed && verdict.value().findings.front().rule == workbook::starved_rule) return Judged{std::move(verdict).value(), {}};
  workbook::Event event{"", place.part->id, verdict.value().passed ? "passed" : "failed", {{"file", hash}}, "", 0};
  if (!verdict.value().passed) {
    event.values["rule"] = verdict.value().findings.front().rule;
    event.said = cut_to(verdict.value().findings.front().message, longest_said);
  } else {
    // What was found stands beside what was predicted, so that predictions can be scored over the course.
    workbook::Facts facts(course.root, *place.lab);
    base::Result<std::vector<workbook::Compared>> compared = workbook::compared(facts, *place.part, course.state(place), verdict.value().figures);
    if (!compared) return compared.as_error();
    for (const workbook::Compared& one : compared.value()) {
      if (!one.found.empty()) event.values[one.key] = one.found;
    }
  }
  if (base::Status noted = workbook::append(course.root, event); !noted) return noted.as_error();
  base::Result<workbook::Progress> progress = workbook::read_progress(course.root);
  if (!progress) return progress.as_error();
  course.progress = std::move(progress).value();
  return Judged{std::move(verdict).value(), course.state(place)};
}

int check_once(Course& course, const Place& place, const std::string& file, const workbook::TrialOptions& trial, bool as_json, Console& console) {
  base::Result<Judged> judged = judge_own(course, place, file, trial, console);
  if (base::stop_signal() != 0 && !judged) return stopped(console);
  if (!judged) return refuse(console, judged.error());
  const auto& [verdict, state] = judged.value();
  if (!verdict.passed && verdict.findings.front().rule == workbook::starved_rule) {
    refuse(console, verdict.findings.front().message);
    return not_judged;
  }
  if (as_json) {
    workbook::Facts facts(course.root, *place.lab);
    base::Result<std::vector<workbook::Compared>> compared = workbook::compared(facts, *place.part, state, verdict.figures);
    console.out << base::json_text(json_of(place, verdict, compared ? compared.value() : std::vector<workbook::Compared>{}), 2) << "\n";
  } else if (verdict.passed) {
    if (base::Status said = say_pass(course, place, state, verdict, console); !said) return refuse(console, said.error());
  } else {
    say_failure(place, state, verdict, console);
  }
  return verdict.passed ? exit_ok : exit_failed;
}

// Until the learner's files look otherwise than `seen`, and the same twice: an editor has done with them then. False: asked
// to stop.
bool await_save(const Course& course, const Place& place, const std::string& seen, const Console& console) {
  std::string before;
  while (base::stop_signal() == 0 && console.out) {
    ::usleep(watch_ms * 1000);
    const std::string now = workbook::own_look(course.root, place);
    if (!now.empty() && now != seen && now == before) return true;
    before = now;
  }
  return false;
}

int watch(Course& course, const Place& place, const std::string& file, const workbook::TrialOptions& trial, bool as_json, Console& console) {
  while (true) {
    const std::string seen = workbook::own_look(course.root, place);
    const int code = check_once(course, place, file, trial, as_json, console);
    if (code != exit_failed && code != not_judged) return code;
    std::ostream& words = as_json ? console.err : console.out;
    words << dim("Watching " + workbook::own_file_of(place) + ": checked again when it is saved; Ctrl-C ends.", !as_json && console.out_is_terminal) << "\n" << std::flush;
    if (!await_save(course, place, seen, console)) return stopped(console);
    words << "\n";
  }
}

// Who writes labs tries a solution or a starter without a prediction; nothing is noted.
int check_ours(const Course& course, const Place& place, const std::string& what, const workbook::TrialOptions& trial, bool as_json, Console& console) {
  if (what == "starter" && place.part->kind != workbook::Kind::exercise) return refuse(console, text("--starter is of an exercise, and ", place.part->id, " has none"));
  const std::string file = what == "starter" ? workbook::starter_of(place) : workbook::solution_of(place);
  base::Result<Verdict> verdict = workbook::judge(course.root, place, (fs::path(course.root) / file).string(), trial);
  if (!verdict) return refuse(console, verdict.error());
  if (as_json) {
    console.out << base::json_text(json_of(place, verdict.value(), {}), 2) << "\n";
  } else if (verdict.value().passed) {
    console.out << "✓ the " << what << " of " << place.part->id << " passes\n";
    say_shown(*place.part, verdict.value(), console);
  } else {
    say(console, sentence_of(verdict.value().findings.front()), text("✗ the ", what, " of ", place.part->id, " does not pass: "), "  ");
  }
  return verdict.value().passed ? exit_ok : exit_failed;
}

}  // namespace

workbook::TrialOptions trial_options(int seed, const std::vector<std::string>& clones) {
  workbook::TrialOptions options;
  options.seed = seed;
  options.notes = [clones](const std::string& root, const Place& place, const std::string& folder) { return judge_notes(root, place, folder, clones); };
  return options;
}

std::vector<Switch> check_switches() {
  return {{"watch", "", "Check again whenever the file is saved, until it passes.", ""},
          {"solution", "", "Check the solution instead; nothing is noted.", ""},
          {"starter", "", "Check the file that the part begins with; nothing is noted.", ""},
          {"trace", "TRACE...", "Ask your own torch.profiler traces, one a rank, what the lab (01, 02, 04) is about.", "", true},
          {"clone", "DIR...", "Of lab 03: clones of Megatron-LM and PyTorch, to hold your citations against at your commits.", "none", true},
          {"json", "", "What was found, as JSON on standard output.", ""}};
}

int check_part(const Line& line, Console& console) {
  if (line.has("trace")) return check_trace(line, console);
  base::Result<Course> opened = course_here(console);
  if (!opened) return refuse(console, opened.error());
  Course& course = opened.value();
  std::vector<std::string> named, words;
  for (const std::string& word : line.places) (word.find('=') == std::string::npos ? named : words).push_back(word);
  if (named.size() > 1) return refuse(console, text("'", named[1], "' is one word too many for check [NN[a]] [KEY=VALUE...]"));
  base::Result<Place> meant = part_meant(course, named);
  if (!meant) return refuse(console, meant.error());
  const Place place = meant.value();
  const bool as_json = line.has("json");
  const auto clones = line.switches.find("clone");
  if (clones != line.switches.end() && place.part->kind != workbook::Kind::notes) return refuse(console, text("--clone is for notes on others' sources, and ", place.part->id, " has none"));
  const workbook::TrialOptions trial = trial_options(course.progress.seed, clones == line.switches.end() ? std::vector<std::string>{} : clones->second);
  for (const char* ours : {"solution", "starter"}) {
    if (line.has(ours)) return check_ours(course, place, ours, trial, as_json, console);
  }

  const PartState state = course.state(place);
  if (!place.part->predict.empty() && !state.predicted) {
    return refuse(console, text(place.part->id, " begins with a prediction, sealed before you look: ./shardbook next", named.empty() ? "" : " " + place.part->id));
  }
  bool made = false;
  base::Result<std::string> file = workbook::provide_own_file(course.root, place, &made);
  if (!file) return refuse(console, file.error());
  const bool judges_nothing = made && state.begun && words.empty() && place.part->kind != workbook::Kind::notes;
  if (judges_nothing) return refuse(console, text(workbook::own_file_of(place), " was not there; what ", place.part->id, " begins with stands there now, and was not judged"));
  const base::SignalGuard signals;
  if (!words.empty()) {
    const base::Result<workbook::Lock> lock = alone(course, place, console);
    if (!lock) return refuse(console, lock.error());
    if (base::Status taken = take_answers(place, words, file.value()); !taken) return refuse(console, taken.error());
  }
  if (line.has("watch")) return watch(course, place, file.value(), trial, as_json, console);
  const int code = check_once(course, place, file.value(), trial, as_json, console);
  return code == not_judged ? exit_bad_input : code;
}

std::vector<Switch> solution_switches() {
  return {{"anyway", "", "Without a pass, after three failed checks; that is noted.", ""}};
}

int solution_of_part(const Line& line, Console& console) {
  base::Result<Course> opened = course_here(console);
  if (!opened) return refuse(console, opened.error());
  const Course& course = opened.value();
  base::Result<Place> meant = course.part(line.places.front());
  if (!meant) return refuse(console, meant.error());
  const Place place = meant.value();
  const PartState state = course.state(place);
  const std::string id = place.part->id;
  if (!state.passed && state.passed_at.empty()) {
    if (state.failures < failures_before_anyway) {
      const int left = failures_before_anyway - state.failures;
      return refuse(console, text("the solution of ", id, " comes with a pass, or with --anyway after three failed checks (", left, " more); ./shardbook hint ", id, " helps"));
    }
    if (!line.has("anyway")) return refuse(console, text("the solution of ", id, " comes with a pass; after ", state.failures, " failed checks you may see it with --anyway, which is noted"));
    if (base::Status noted = workbook::append(course.root, {"", id, "solution", {}, "anyway", 0}); !noted) return refuse(console, noted.error());
  }
  if (place.part->kind == workbook::Kind::notes) {
    point_to(console, "Why", "./shardbook read " + workbook::solution_of(place) + "/solution.md#" + id);
    point_to(console, "Look", "./shardbook read solutions/03-reading-ref.md", "all candidates with places, and the eight sentences");
    point_to(console, "Next", "./shardbook notes compare", "the reference beside your notes");
    return exit_ok;
  }
  base::Result<std::string> content = book::read_text((fs::path(course.root) / workbook::solution_of(place)).string());
  if (!content) return refuse(console, content.error());
  console.out << dim(workbook::solution_of(place), console.out_is_terminal) << "\n\n" << base::printable(content.value(), base::Lines::kept) << "\n";
  point_to(console, "Why", "./shardbook read solutions/" + place.lab->name + "/solution.md#" + id);
  return exit_ok;
}

int reset_part(const Line& line, Console& console) {
  base::Result<Course> opened = course_here(console);
  if (!opened) return refuse(console, opened.error());
  const Course& course = opened.value();
  base::Result<Place> meant = course.part(line.places.front());
  if (!meant) return refuse(console, meant.error());
  base::Result<std::string> kept = workbook::reset_own_file(course.root, meant.value());
  if (!kept) return refuse(console, kept.error());
  if (base::Status noted = workbook::append(course.root, {"", meant.value().part->id, "reset", {}, "", 0}); !noted) return refuse(console, noted.error());
  console.out << workbook::own_file_of(meant.value()) << " is as at the beginning\n";
  if (!kept.value().empty()) console.out << "What stood there is kept in " << kept.value() << "\n";
  return exit_ok;
}

}  // namespace shardbook::cli
