#include "engine/launch/launch.hpp"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iomanip>

#include "engine/launch/resolve.hpp"
#include "engine/launch/speed.hpp"
#include "engine/launch/start.hpp"
#include "engine/timeline/writer.hpp"

namespace shardbook::launch {

namespace fs = std::filesystem;

std::string progress_text(const Progress& progress) {
  std::ostringstream out;
  out << "step " << progress.result.step << " · loss " << std::fixed << std::setprecision(3) << progress.result.loss << " · ";
  if (progress.clock == config::Clock::modelled) out << "≈ ";
  const double rate = progress.tokens_per_second;
  if (rate >= 1e6) out << std::setprecision(2) << rate / 1e6 << "M";
  else if (rate >= 1e4) out << std::setprecision(0) << rate / 1e3 << "k";
  else out << std::setprecision(0) << rate;
  out << " tok/s " << config::name_of(progress.clock);
  if (progress.clock == config::Clock::modelled) out << " " << progress.profile;
  out << " · wall " << std::setprecision(1) << progress.wall_seconds << " s";
  return out.str();
}

namespace {

std::string utc_now(const char* form) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[40];
  std::strftime(text, sizeof text, form, &parts);
  return text;
}

}  // namespace

RunFolder::~RunFolder() {
  std::error_code holds_something;
  for (const std::string& folder : made_) fs::remove(folder, holds_something);
}

namespace {

// "-prefetch0-sequences64": what differs from the model's defaults and changes the step, so that the folders of an
// experiment tell its runs apart.
std::string changed_options(const config::RunConfig& config) {
  static const char* const named[] = {"layers", "width", "heads", "ffn-width", "sequence", "sequences", "micro-batches", "precision", "prefetch", "reshard"};
  constexpr std::size_t longest = 60;
  config::RunConfig plain;
  if (!config::ask(plain, "model", {config.model.preset})) return "";
  const nlohmann::json given = nlohmann::json::parse(config::to_json(config)), usual = nlohmann::json::parse(config::to_json(plain));
  std::string changed;
  for (const char* name : named) {
    if (!given.contains(name) || !usual.contains(name) || given[name] == usual[name]) continue;
    const std::string value = given[name].is_string() ? given[name].get<std::string>() : given[name].dump();
    if (changed.size() + value.size() < longest) changed += base::text("-", name, value);
  }
  return changed;
}

}  // namespace

base::Result<RunFolder> make_run_folder(const config::RunConfig& config) {
  fs::path folder = config.out;
  if (folder.empty()) {
    const std::string lab = config.lab.empty() ? "train" : config.lab;
    const std::string layout = base::text(config.model.preset, "-tp", config.tp, "-fsdp", config.fsdp, changed_options(config));
    folder = fs::path("experiments") / lab / "runs" / (utc_now("%Y%m%d-%H%M%S-") + layout);
    for (int again = 2; fs::exists(folder) && again < 100; ++again) {
      folder = folder.parent_path() / (utc_now("%Y%m%d-%H%M%S-") + layout + "-" + std::to_string(again));
    }
  }
  std::vector<std::string> made;
  std::error_code problem;
  for (fs::path path = folder; !path.empty() && !fs::exists(path, problem); path = path.parent_path()) made.push_back(path.string());
  RunFolder run(folder.string(), std::move(made));
  fs::create_directories(folder, problem);
  const fs::path probe = folder / ".write-probe";
  const bool writable = !problem && std::ofstream(probe).put('x').flush().good();
  fs::remove(probe, problem);
  if (!writable) {
    return base::Error{base::text("the run's folder ", folder.string(),
                                  " cannot be written: name another with --out, or make it writable")};
  }
  return run;
}

namespace {

// run.json: what repeats the run, on what it ran, and what came of it.
timeline::RunInfo describe(const config::RunConfig& config, const LaunchOptions& options, const Outcome& outcome,
                           const std::vector<RankOutcome>& ranks, const std::string& backend) {
  timeline::RunInfo info;
  info.lab = config.lab;
  info.command = options.command;
  info.made_at = utc_now("%Y-%m-%dT%H:%M:%SZ");
  info.config = nlohmann::json::parse(config::to_json(config));
  info.hardware["device"] = ranks[0].device;
  info.hardware["ranks"] = static_cast<int>(ranks.size());
  info.versions["communication"] = backend;
  for (const auto& [name, version] : versions()) info.versions[name] = version;
  info.clock = config::name_of(config.clock);
  if (config.clock == config::Clock::modelled) info.profile = config.profile;
  for (const RankOutcome& rank : ranks) {
    info.clock_error_ns = std::max(info.clock_error_ns, rank.clock.error + rank.device_clock_error);
  }
  nlohmann::json losses = nlohmann::json::array(), norms = nlohmann::json::array();
  for (const train::StepResult& result : outcome.results) {
    losses.push_back(result.loss);
    norms.push_back(result.gradient_norm);
  }
  const Speed& speed = outcome.speed;
  info.results = {{"losses", losses}, {"gradient_norms", norms}, {"stopped_early", outcome.stopped_early},
                  {"step_ns", speed.step_ns}, {"step_min_ns", speed.step_min_ns}, {"step_max_ns", speed.step_max_ns},
                  {"steps_counted", speed.steps_counted}, {"tokens_per_second", speed.tokens_per_second},
                  {"mfu", speed.mfu}, {"traced_step_ns", speed.traced_step_ns}, {"tracing_cost", speed.tracing_cost},
                  {"tracing_pair_ns", speed.tracing_pair_ns},
                  {"allocated_bytes", speed.peak_memory_bytes}, {"program_hashes", outcome.program_hashes}};
  if (!options.source_root.empty()) info.sources = timeline::source_excerpts(outcome.timeline, options.source_root);
  return info;
}

base::Status write(const Outcome& outcome, const ResolvedRun& run) {
  base::Status written = timeline::write_run(outcome.timeline, outcome.info, outcome.folder);
  if (!written) return written;
  for (const program::Record& record : run.records) {
    const std::string path = (fs::path(outcome.folder) / base::text("rank", record.rank, ".program")).string();
    base::Status saved = program::save(path, record.rank, record.world_size, record.catalogue, record.programs, record.steps);
    if (!saved) return saved;
  }
  return base::Done{};
}

}  // namespace

base::Result<Outcome> conclude(const config::RunConfig& config, const LaunchOptions& options, const std::string& folder,
                               const std::vector<RankOutcome>& ranks, const std::string& backend) {
  base::Result<ResolvedRun> resolved = resolve_run(config, ranks);
  if (!resolved) return resolved.as_error();
  ResolvedRun run = std::move(resolved).value();

  Outcome outcome;
  outcome.folder = folder;
  outcome.results = ranks[0].results;
  outcome.stopped_early = ranks[0].stopped_early;
  outcome.speed = speed_of(config, ranks[0], run.step_ns, run.traced_step_ns);
  outcome.timeline = std::move(run.timeline);
  outcome.program_hashes = run.program_hashes;
  outcome.info = describe(config, options, outcome, ranks, backend);
  if (options.write_run) {
    base::Status written = write(outcome, run);
    if (!written) return written.as_error();
  }
  outcome.records = std::move(run.records);
  return outcome;
}

base::Result<Outcome> run(const config::RunConfig& config, const LaunchOptions& options) {
  if (config.device != config::DeviceKind::cuda) {
    base::Status alone = expect_no_launcher(config);
    if (!alone) return alone.as_error();
  }
  switch (config.device) {
    case config::DeviceKind::meta: return run_meta(config, options);
    case config::DeviceKind::host: return run_threads(config, options);
    case config::DeviceKind::cuda: return run_processes(config, options);
  }
  return base::Error{"no such device"};
}

}  // namespace shardbook::launch
