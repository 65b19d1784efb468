#include "engine/cli/train_command.hpp"

#include <cstdlib>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <ostream>
#include <utility>

#include "engine/base/json.hpp"
#include "engine/base/printable.hpp"
#include "engine/cli/report.hpp"
#include "engine/cli/train_config.hpp"
#include "engine/launch/launch.hpp"
#include "engine/launch/rank.hpp"
#include "engine/launch/resolve.hpp"
#include "engine/simulate/profile.hpp"
#include "engine/timeline/output.hpp"
#include "engine/world/launchers.hpp"
#include "engine/world/processes.hpp"

namespace shardbook::cli {

using base::text;

namespace {

// Who this process is among those that a launcher started.
struct Speaker {
  world::Launcher launcher = world::Launcher::none;
  base::Rank rank = 0;

  bool is_first() const { return rank == 0; }
  // Started by another shardbook, which says what went wrong once for all.
  bool has_parent() const { return launcher == world::Launcher::shardbook; }
};

// One line that is written over on a terminal, plain lines elsewhere.
class ProgressLine {
 public:
  ProgressLine(std::ostream& out, bool is_terminal) : out_(out), is_terminal_(is_terminal) {}
  ~ProgressLine() { finish(); }
  void show(const std::string& line) {
    out_ << (is_terminal_ ? "\r\x1b[K" : "") << line << (is_terminal_ ? "" : "\n") << std::flush;
    is_open_ = is_terminal_;
  }
  void finish() {
    if (is_open_) out_ << "\n" << std::flush;
    is_open_ = false;
  }

 private:
  std::ostream& out_;
  bool is_terminal_;
  bool is_open_ = false;
};

// world and launch begin the sentence with "rank N" where a rank failed; all else was refused, or could not be written.
int exit_code_of(const std::string& error) { return error.substr(0, 5) == "rank " ? exit_failed : exit_bad_input; }

int fail(Console& console, const Speaker& speaker, const std::string& error) {
  const int code = exit_code_of(error);
  // The failure of a rank reaches the parent by itself.
  if (code != exit_failed || !speaker.has_parent()) console.err << "shardbook: " << base::printable(error) << "\n";
  return code;
}

base::Status write_summary(const std::string& folder, const std::string& content) {
  timeline::Output file((std::filesystem::path(folder) / "summary.txt").string());
  file << content;
  return file.commit();
}

std::string notes_text(const std::vector<std::string>& said) {
  std::string out;
  for (const std::string& sentence : said) out += wrapped("note: ", sentence, 80);
  return out;
}

// Whatever can be refused before a rank starts and a folder is made. Data of threads are launch::run's to refuse: it
// opens them once for all.
base::Status refuse_early(const config::RunConfig& config) {
  if (config.clock == config::Clock::modelled) {
    base::Result<simulate::Profile> profile = simulate::find_profile(config.profile);
    if (!profile) return profile.as_error();
    if (std::string problem = simulate::problem_of(profile.value(), launch::conditions_of(config)); !problem.empty()) return base::Error{std::move(problem)};
  }
  const bool threads = config.device == config::DeviceKind::host && config.launch == config::Launch::threads;
  if (threads || config.device == config::DeviceKind::meta) return base::Done{};
  base::Result<std::unique_ptr<data::TokenSource>> source = launch::open_source(config);
  return source ? base::Status(base::Done{}) : base::Status(source.as_error());
}

// `asked`: the lab that was named on the line, which suggests options. A config that is repeated, or a spawned rank's,
// names its lab itself.
int run(const Line& line, const std::optional<book::Lab>& asked, const std::string& command, Console& console) {
  base::Result<world::Launch> started = world::from_environment(world::process_environment());
  if (!started) return refuse(console, started.error());
  const Speaker speaker{started.value().launcher, started.value().place.rank};

  base::Result<TrainingConfig> made = training_config(line, asked, launch::gpus_available());
  if (!made) return refuse(console, made.error());
  const base::Result<config::RunConfig> settled = launch::settle_ranks(made.value().config);
  if (!settled) return refuse(console, settled.error());
  const config::RunConfig& config = settled.value();
  std::optional<book::Lab> lab = asked;
  if (!lab && !config.lab.empty()) {
    base::Result<book::Lab> found = book::find_lab(book::project_root(), config.lab);
    if (!found) return refuse(console, found.error());
    lab = found.value();
  }
  if (base::Status status = refuse_early(config); !status) return refuse(console, status.error());

  // What was chosen is said once, and the heading by whoever holds rank 0: on GPUs, whose set-up takes its time, at
  // once; else with the first step, when nothing can be refused any more.
  std::ostream& words = config.json ? console.err : console.out;
  const bool on_gpus = config.device == config::DeviceKind::cuda;
  const bool processes = on_gpus || (config.device == config::DeviceKind::host && config.launch == config::Launch::processes);
  const bool spawns = processes && config.ranks > 1 && speaker.launcher == world::Launcher::none;
  const std::string heading = heading_text(config, lab);
  std::string unsaid;
  if (speaker.is_first() && !speaker.has_parent()) unsaid = notes_text(made.value().said);
  if (speaker.is_first() && !spawns) unsaid += heading;
  const auto begin_to_speak = [&] { words << std::exchange(unsaid, "") << std::flush; };
  if (on_gpus || spawns) begin_to_speak();

  launch::LaunchOptions options;
  // Ranks that we start ourselves record what the user typed, not the line that they were started by.
  const char* typed = speaker.has_parent() ? std::getenv("SHARDBOOK_COMMAND") : nullptr;
  options.command = typed != nullptr ? typed : command;
  if (spawns) ::setenv("SHARDBOOK_COMMAND", command.c_str(), 1);
  options.source_root = book::project_root();
  ProgressLine progress(words, config.json ? console.err_is_terminal : console.out_is_terminal);
  options.progress = [&](const launch::Progress& now) {
    begin_to_speak();
    progress.show(launch::progress_text(now));
  };
  // Of meta's many ranks, at most once a second
  auto last_said = std::chrono::steady_clock::now();
  options.issued = [&](int ranks) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_said < std::chrono::seconds(1)) return;
    last_said = now;
    begin_to_speak();
    progress.show(text("issued ", ranks, " of ", config.ranks, " ranks"));
  };
  base::Result<launch::Outcome> outcome = launch::run(config, options);
  progress.finish();
  if (!outcome) return fail(console, speaker, outcome.error());
  const int code = outcome.value().failure.empty() ? outcome.value().stopped_early ? exit_stopped : exit_ok : exit_failed;
  if (outcome.value().role != launch::Role::reporter) return code;

  // What is kept comes before what is said: nobody may be there to read it.
  const cause::Recorded recorded = recorded_of(outcome.value());
  const std::string after = outcome_text(config, outcome.value(), recorded, lab);
  if (!outcome.value().folder.empty()) {
    if (base::Status status = write_summary(outcome.value().folder, heading + "\n" + after); !status) return refuse(console, status.error());
  }
  begin_to_speak();
  if (config.json) {
    console.out << base::json_text_or_throw(outcome_json(config, outcome.value(), recorded), 2) << "\n";
  } else {
    console.out << "\n" << base::printable(after, base::Lines::kept);
  }
  console.out << std::flush;
  if (code == exit_failed) {
    const std::string error = outcome.value().failure + (outcome.value().folder.empty() ? "" : "; the run is in " + outcome.value().folder);
    if (speaker.has_parent()) world::tell_parent(error);
    fail(console, speaker, error);
  }
  return code;
}

std::string command_text(const std::string& name, const Line& line) {
  std::string words = "shardbook " + name;
  for (const std::string& place : line.places) words += " " + shell_word(place);
  for (const auto& [option, values] : line.switches) {
    words += " --" + option;
    for (const std::string& value : values) words += " " + shell_word(value);
  }
  return words;
}

}  // namespace

int train(const Line& line, Console& console) { return run(line, std::nullopt, command_text("train", line), console); }

int run_lab(const Line& line, Console& console) {
  base::Result<book::Lab> lab = book::find_lab(book::project_root(), line.places.front());
  if (!lab) return refuse(console, lab.error());
  return run(line, lab.value(), command_text("run", line), console);
}

}  // namespace shardbook::cli
