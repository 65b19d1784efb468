// The lab's steps beside its text: what is asked, sealed and judged is the workbook's; here its commands are started, shown and
// ended, and the state that they leave is read again.
#include <algorithm>
#include <filesystem>

#include "engine/workbook/course.hpp"
#include "engine/workbook/learner.hpp"
#include "viewer/app/desk_state.hpp"

namespace shardbook::app {

namespace fs = std::filesystem;
using base::text;

namespace {

constexpr int frames_between_looks = 120;   // at the progress file, which a terminal may change, too

// "02_tensor_parallel" of "labs/02_tensor_parallel/text.es.md", "" of other pages.
std::string lab_of_page(const std::string& path) {
  if (!path.starts_with("labs/")) return "";
  return path.substr(5, path.find('/', 5) - 5);
}

std::string words_of(const workbook::Place& place, const workbook::PartState& state) {
  const std::string time = state.passed ? "passed" : text(state.begun ? text(state.minutes, " of ") : std::string(), place.part->minutes, " min");
  return text(place.part->id, " ", place.part->title, " · ", time);
}

// "0.4", "12"
std::string seconds_words(double seconds) {
  const int tenths = static_cast<int>(10 * seconds + 0.5);
  return tenths < 100 ? text(tenths / 10, ".", tenths % 10) : text(tenths / 10);
}

std::string state_words(const workbook::Part& part, const workbook::PartState& state) {
  std::string words;
  if (state.predicted) {
    words = "Sealed:";
    for (const workbook::Prediction& one : part.predict) {
      const auto found = state.predicted->find(one.key);
      if (found != state.predicted->end()) words += text(words.back() == ':' ? " " : ", ", one.key, " = ", found->second, one.unit.empty() ? "" : " " + one.unit);
    }
  }
  if (state.reopened) words += text(words.empty() ? "" : ". ", "Open again: what was passed has changed");
  if (!state.passed && state.failures > 0) words += text(words.empty() ? "" : ". ", state.failures, state.failures == 1 ? " check" : " checks", " failed, ", state.hints, state.hints == 1 ? " hint seen" : " hints seen");
  return words;
}

}  // namespace

// What is typed into a prediction stays while the part does.
void Desk::Impl::read_work() {
  work_read_at = frames;
  const std::string lab = lab_of_page(page.path);
  if (lab != work_lab) {
    work_lab = lab;
    work_chosen = false;
  }
  work.parts.clear();
  if (lab.empty() || options.root.empty()) return;
  const base::Result<workbook::Course> course = workbook::open_course(options.root);
  if (!course) return fail(course.error());
  std::vector<workbook::Place> places;
  for (const workbook::Place& place : course.value().places()) {
    if (place.lab->name == lab) places.push_back(place);
  }
  int open = -1;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const workbook::PartState state = course.value().state(places[i]);
    work.parts.push_back({places[i].part->id, words_of(places[i], state), state.passed});
    if (open < 0 && !state.passed) open = static_cast<int>(i);
  }
  if (work.parts.empty()) return;
  if (!work_chosen) work.current = std::max(open, 0);
  work.current = std::clamp(work.current, 0, static_cast<int>(work.parts.size()) - 1);

  const workbook::Place& place = places[static_cast<std::size_t>(work.current)];
  const workbook::PartState state = course.value().state(place);
  work.question = place.part->question;
  work.state = state_words(*place.part, state);
  work.file = place.part->kind == workbook::Kind::notes || place.part->exercise.empty() ? "" : workbook::own_file_of(place);
  work.commands = place.part->run;
  work.reads = place.part->kind == workbook::Kind::notes;
  if (work_asks_of != place.part->id || state.predicted) work.asks.clear();
  work_asks_of = place.part->id;
  if (!state.predicted && work.asks.empty()) {
    for (const workbook::Prediction& one : place.part->predict) work.asks.push_back({one.key, one.text, one.unit, ""});
  }
}

// In each frame: what the child has said since, and whether it has ended.
void Desk::Impl::take_work() {
  const bool ended = job.poll();
  if (job.running() || ended) {
    work.command = job.command();
    work.output = plain_output(job.said());
    work.running = job.running();
  }
  if (job.running()) {
    work.ended = text("running for ", static_cast<int>(job.seconds()), " s", job.cancelled() ? ", told to stop" : "");
  } else if (ended) {
    work.failed = job.code() != 0;
    work.ended = job.cancelled() ? std::string("stopped, as asked") : text(job.code() == 0 ? "done in " : text("exit code ", job.code(), " after "), seconds_words(job.seconds()), " s");
    const std::string run = run_named_in(work.output);
    std::error_code ignored;
    work.run = !run.empty() && fs::exists(fs::path(options.root) / run, ignored) ? (fs::path(options.root) / run).string() : "";
    read_work();
  }
  if (show_work && (lab_of_page(page.path) != work_lab || frames - work_read_at > frames_between_looks)) read_work();
}

void Desk::Impl::do_work(const std::string& command) {
  const std::vector<std::string> words = own_words(command);
  if (words.empty()) return fail(text("'", command, "' is none of the workbook's own commands; a terminal runs it"));
  if (const base::Status started = job.start(options.root, words, work.columns); !started) return fail(started.error());
  work.run.clear();
  take_work();
}

void Desk::Impl::choose_work(int place) {
  work.current = place;
  work_chosen = true;
  read_work();
}

void Desk::Impl::turn_work() {
  show_work = !show_work;
  if (!show_work) return;
  if (layout == "trace") layout = "split";
  show_library = show_library && page.path.empty();
  read_work();
  if (work.parts.empty()) fail("this page has no steps: open a lab (Ctrl+O)");
}

}  // namespace shardbook::app
