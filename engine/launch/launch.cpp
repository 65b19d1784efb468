#include "engine/launch/launch.hpp"

#include <filesystem>
#include <iomanip>

#include "engine/base/check.hpp"
#include "engine/base/json.hpp"
#include "engine/config/in_force.hpp"
#include "engine/kernels/cudnn_attention.hpp"
#include "engine/launch/checkpoints.hpp"
#include "engine/launch/clocks.hpp"
#include "engine/launch/resolve.hpp"
#include "engine/launch/run_folder.hpp"
#include "engine/launch/speed.hpp"
#include "engine/launch/start.hpp"
#include "engine/timeline/writer.hpp"

namespace shardbook::launch {

namespace fs = std::filesystem;

std::string progress_text(const Progress& progress) {
  std::ostringstream out;
  out << "step " << progress.result.step << std::fixed << std::setprecision(3);
  if (progress.has_numbers) out << " · loss " << progress.result.loss << " · ";
  else out << " · no loss · ";
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

bool on_cudnn(const config::RunConfig& config) {
  return config.device == config::DeviceKind::cuda && config.attention == config::AttentionKind::cudnn;
}

// When each step ended, after the first did.
nlohmann::json after_the_first(const std::vector<base::Nanoseconds>& done) {
  nlohmann::json out = nlohmann::json::array();
  for (const base::Nanoseconds end : done) out.push_back(end - done.front());
  return out;
}

// run.json: what repeats the run, on what it ran, and what came of it.
timeline::RunInfo describe(const config::RunConfig& config, const LaunchOptions& options, const RunFolder& folder,
                           const Outcome& outcome, const std::vector<RankOutcome>& ranks, const std::string& backend) {
  timeline::RunInfo info;
  info.id = folder.id();
  info.lab = config.lab;
  info.command = options.command;
  info.made_at = folder.made_at();
  info.config = base::parse_json(config::to_json(config));
  info.switches = config::switches_in_force(config);
  info.hardware["device"] = ranks[0].device;
  info.hardware["ranks"] = static_cast<int>(ranks.size());
  info.versions["communication"] = backend;
  for (const auto& [name, version] : versions()) info.versions[name] = version;
  if (on_cudnn(config)) info.versions["cuDNN"] = kernels::cudnn_version();
  info.clock = config::name_of(config.clock);
  if (config.clock == config::Clock::modelled) info.profile = config.profile;
  for (const RankOutcome& rank : ranks) {
    info.clock_error_ns = std::max(info.clock_error_ns, clock_error_of(rank));
  }
  // JSON has no number that is not finite: such a loss is null, and `failure` says what it was.
  nlohmann::json losses = nlohmann::json::array(), norms = nlohmann::json::array();
  for (const train::StepResult& result : outcome.results) {
    losses.push_back(result.loss);
    norms.push_back(result.gradient_norm);
  }
  const Speed& speed = outcome.speed;
  info.results = {{"losses", losses}, {"gradient_norms", norms}, {"stopped_early", outcome.stopped_early},
                  {"failure", outcome.failure}, {"step_ns", speed.step_ns}, {"step_min_ns", speed.step_min_ns}, {"step_max_ns", speed.step_max_ns},
                  {"steps_counted", speed.steps_counted}, {"tokens_per_second", speed.tokens_per_second},
                  {"mfu", speed.mfu}, {"traced_step_ns", speed.traced_step_ns}, {"near_traced_ns", speed.near_traced_ns}, {"tracing_cost", speed.tracing_cost},
                  {"tracing_pair_ns", speed.tracing_pair_ns},
                  {"allocated_bytes", speed.peak_memory_bytes}, {"program_hashes", outcome.program_hashes}};
  if (speed.as_graph && speed.replayed == 0) {
    info.results["graph"] = {{"modelled", true}};
    if (speed.exposed_as_graph >= 0) info.results["graph"]["exposed_share"] = speed.exposed_as_graph;
  }
  if (speed.replayed > 0) {
    const int all = static_cast<int>(ranks[0].step_how.size());
    info.results["graph"] = {{"replayed", speed.replayed}, {"others", all - speed.replayed}, {"nodes", speed.graph.nodes}, {"made_in_ns", speed.graph.made_in}};
  }
  if (const std::string wrong = config::wrong_on_purpose(config); !wrong.empty()) info.results["wrong_on_purpose"] = wrong;
  if (config::only_times_count(config)) info.results["only_times_count"] = true;
  const std::vector<base::Nanoseconds>& done = ranks[0].step_done;
  if (done.size() > 1) info.results["steps_wall_ns"] = done.back() - done.front();   // of all steps but the first
  if (config.clock != config::Clock::modelled) info.results["steps_done_ns"] = after_the_first(done);
  const Saves& saves = outcome.saves;
  if (saves.count > 0) info.results["saves"] = {{"count", saves.count}, {"bytes", saves.bytes}, {"writing_ns", saves.writing}, {"waited_ns", saves.waited}};
  if (!outcome.results.empty() && outcome.results[0].step > 0) info.results["first_step"] = outcome.results[0].step;
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

base::Result<Outcome> conclude(const config::RunConfig& config, const LaunchOptions& options, RunFolder& folder,
                               const std::vector<RankOutcome>& ranks, const std::string& backend, const std::string& interruption) {
  SHARDBOOK_CHECK(options.make_timeline || !options.write_run, "a run that is written has its timeline");
  base::Result<ResolvedRun> resolved = resolve_run(config, ranks, options.make_timeline);
  if (!resolved) return resolved.as_error();
  ResolvedRun run = std::move(resolved).value();

  Outcome outcome;
  outcome.folder = folder.path();
  if (!config::only_times_count(config)) outcome.results = ranks[0].results;
  outcome.stopped_early = ranks[0].stopped_early || !interruption.empty();
  outcome.failure = interruption;
  for (std::size_t rank = 0; rank < ranks.size() && outcome.failure.empty(); ++rank) {
    if (!ranks[rank].not_finite.empty()) outcome.failure = base::text("rank ", rank, ": ", ranks[rank].not_finite);
  }
  outcome.saves = ranks[0].saves;
  outcome.speed = speed_of(config, ranks[0], run.step_ns, run.traced_step_ns);
  outcome.speed.exposed_as_graph = run.exposed_as_graph;
  outcome.timeline = std::move(run.timeline);
  outcome.program_hashes = run.program_hashes;
  outcome.info = describe(config, options, folder, outcome, ranks, backend);
  if (options.write_run) {
    base::Status written = write(outcome, run);
    if (!written) return written.as_error();
    folder.finish();
  }
  outcome.records = std::move(run.records);
  return outcome;
}

base::Result<Outcome> conclude_or_keep(const config::RunConfig& config, const LaunchOptions& options, RunFolder& folder,
                                       const std::vector<RankOutcome>& ranks, const std::string& backend) {
  base::Result<Outcome> outcome = conclude(config, options, folder, ranks, backend);
  if (outcome || folder.path().empty()) return outcome;
  folder.keep();
  return base::Error{base::text(outcome.error(), "; what the ranks recorded is still in ", folder.path(),
                                ": `./shardbook metrics ", folder.path(), "` makes the run of it when that is mended")};
}

base::Result<Outcome> run(const config::RunConfig& config, const LaunchOptions& options) {
  base::Result<config::RunConfig> settled = settle_ranks(config);
  if (!settled) return settled.as_error();
  if (const base::Result<std::int64_t> possible = check_checkpoints(settled.value()); !possible) return possible.as_error();
  if (config.device == config::DeviceKind::meta) return run_meta(settled.value(), options);
  if (on_cudnn(config)) {
    if (const std::string problem = kernels::cudnn_problem(); !problem.empty()) return base::Error{"--attention cudnn: " + problem};
  }
  return settled.value().launch == config::Launch::processes ? run_processes(settled.value(), options) : run_threads(settled.value(), options);
}

}  // namespace shardbook::launch
