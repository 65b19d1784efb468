#include "engine/launch/recover.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "engine/launch/journal.hpp"
#include "engine/launch/start.hpp"
#include "engine/timeline/whole.hpp"

namespace shardbook::launch {

namespace {

using namespace std::chrono_literals;

// World's patience with a rank that nothing can wake is 4 s.
constexpr auto patience = 6s;

base::Result<std::vector<Remains>> read_all(const std::string& folder, const std::string& run_id) {
  std::vector<Remains> all;
  for (const std::string& path : journals(folder)) {
    base::Result<Remains> one = read_journal(path);
    if (!one) return one.as_error();
    if (one.value().run_id == run_id) all.push_back(std::move(one).value());
  }
  return all;
}

// How many traced steps all have, the same ones.
std::size_t common_steps(const std::vector<Remains>& ranks) {
  std::size_t steps = ranks[0].traced.size();
  for (const Remains& rank : ranks) {
    steps = std::min(steps, rank.traced.size());
    for (std::size_t step = 0; step < steps; ++step) {
      if (rank.traced[step].step != ranks[0].traced[step].step) steps = step;
    }
  }
  return steps;
}

// `cause`: what ended it, if that is known.
base::Result<Outcome> finish(RunFolder& folder, const std::string& cause, std::vector<Remains> ranks) {
  const base::Result<Claim> claim = read_claim(folder.path());
  if (!claim) return claim.as_error();
  std::erase_if(ranks, [](const Remains& rank) { return rank.programs.empty(); });
  if (ranks.empty()) {
    return base::Error{base::text("the run in ", folder.path(), " did not end, and no rank had recorded a step: remove it")};
  }
  const int expected = claim.value().config.ranks;
  const bool lacks_ranks = static_cast<int>(ranks.size()) < expected;
  std::size_t steps = common_steps(ranks);
  // The model needs every rank's program.
  if (lacks_ranks && claim.value().config.clock != config::Clock::measured) steps = 0;

  // All that a rank would have handed over at the end.
  const Remains& farthest = *std::max_element(ranks.begin(), ranks.end(), [](const Remains& a, const Remains& b) {
    return a.outcome.results.size() < b.outcome.results.size();
  });
  std::vector<RankOutcome> outcomes;
  for (const Remains& rank : ranks) {
    base::Result<std::string> record = record_of(rank, steps);
    if (!record) return record.as_error();
    outcomes.push_back(rank.outcome);
    outcomes.back().record = std::move(record).value();
  }
  outcomes[0].results = farthest.outcome.results;
  outcomes[0].step_done = farthest.outcome.step_done;
  outcomes[0].step_timed = farthest.outcome.step_timed;
  outcomes[0].traced_took = farthest.outcome.traced_took;

  LaunchOptions options;
  options.command = claim.value().command;
  options.source_root = claim.value().source_root;
  const std::string what = base::text(cause, lacks_ranks ? base::text("; ", ranks.size(), " of ", expected, " ranks left a record") : "");
  return conclude(claim.value().config, options, folder, outcomes, ranks[0].backend, what);
}

}  // namespace

bool is_unfinished(const std::string& folder) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(std::filesystem::path(folder) / timeline::unfinished_name, ignored);
}

base::Result<Outcome> recover(const std::string& path) {
  base::Result<RunFolder> folder = RunFolder::taken_over(path);
  if (!folder) return folder.as_error();
  base::Result<std::vector<Remains>> ranks = read_all(path, folder.value().id());
  if (!ranks) return ranks.as_error();
  for (const Remains& rank : ranks.value()) {
    if (rank.alive) return base::Error{base::text("the run in ", path, " has not ended: its rank ", rank.rank, " still records")};
  }
  return finish(folder.value(), "it ended without a word (killed?)", std::move(ranks).value());
}

std::string rescue(RunFolder& folder, const std::string& cause) {
  if (folder.path().empty()) return "";
  const auto begun = std::chrono::steady_clock::now();
  base::Result<std::vector<Remains>> ranks = read_all(folder.path(), folder.id());
  const auto someone_lives = [&] {
    return ranks && std::any_of(ranks.value().begin(), ranks.value().end(), [](const Remains& rank) { return rank.alive; });
  };
  while (someone_lives() && std::chrono::steady_clock::now() - begun < patience) {
    std::this_thread::sleep_for(50ms);
    ranks = read_all(folder.path(), folder.id());
  }
  const bool recorded = !ranks || std::any_of(ranks.value().begin(), ranks.value().end(), [](const Remains& rank) {
    return !rank.outcome.results.empty() || !rank.traced.empty();
  });
  if (!recorded) return "";
  folder.keep();
  const base::Result<Outcome> finished = ranks ? finish(folder, cause, std::move(ranks).value()) : base::Result<Outcome>(ranks.as_error());
  if (finished) return base::text("; what was recorded by then is in ", folder.path());
  return base::text("; what was recorded by then is in ", folder.path(), ", but is no whole run: ", finished.error());
}

}  // namespace shardbook::launch
