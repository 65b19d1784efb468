#include "engine/timeline/whole.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "engine/timeline/run_info.hpp"

namespace shardbook::timeline {

namespace fs = std::filesystem;

void note_missing_ranks(Timeline& timeline, const std::string& name) {
  std::set<Rank> found;
  int size = 0;
  for (const Provenance& rank : timeline.ranks) {
    if (rank.foreign) return;   // one rank's trace of many is what other programs are asked for
    found.insert(rank.rank);
    size = std::max(size, rank.world_size);
  }
  if (found.empty() || static_cast<int>(found.size()) >= size) return;
  std::string missing;
  int named = 0;
  constexpr int most_named = 8;
  for (Rank rank = 0; rank < size && named <= most_named; ++rank) {
    if (found.contains(rank)) continue;
    missing += ++named > most_named ? ", …" : base::text(named > 1 ? ", " : "", rank);
  }
  timeline.banners.push_back(base::text(name, " holds ", found.size(), " of ", size, " ranks of its run (missing: ", missing,
                                        "): what is summed over ranks is not the whole"));
}

void note_mixed_runs(Timeline& timeline, const std::vector<std::string>& run_ids, const std::vector<std::string>& names) {
  std::size_t first = run_ids.size();
  for (std::size_t i = 0; i < run_ids.size(); ++i) {
    if (run_ids[i].empty()) continue;
    if (first == run_ids.size()) first = i;
    if (run_ids[i] == run_ids[first]) continue;
    timeline.banners.push_back(base::text(names[i], " is of another run than ", names[first], ": they were not recorded together"));
    return;
  }
}

void note_interrupted(Timeline& timeline, const std::string& folder) {
  std::error_code ignored;
  if (fs::exists(fs::path(folder) / unfinished_name, ignored)) {
    timeline.banners.push_back(folder + " is of a run that has not ended, or did not: what is there may not be the whole");
    return;
  }
  const std::string path = folder + "/run.json";
  if (!fs::is_regular_file(path, ignored)) {
    if (fs::exists(fs::path(folder) / "rank0.program", ignored)) timeline.banners.push_back(folder + " has no run.json, without which what its ranks recorded is not read: it is judged by its spans alone, as a trace of another program");
    return;
  }
  const base::Result<RunInfo> info = read_run_info(path);
  if (!info) return;
  const auto result = [&](const char* name) { return info.value().results.is_object() ? info.value().results.value(name, nlohmann::json()) : nlohmann::json(); };
  const nlohmann::json failure = result("failure"), stopped = result("stopped_early"), losses = result("losses");
  if (failure.is_string() && !failure.get<std::string>().empty()) {
    timeline.banners.push_back(base::text(folder, " is of a run that did not end as it should: ", failure.get<std::string>()));
  } else if (stopped.is_boolean() && stopped.get<bool>()) {
    const nlohmann::json asked = info.value().config.is_object() ? info.value().config.value("steps", nlohmann::json()) : nlohmann::json();
    timeline.banners.push_back(base::text(folder, " is of a run that was stopped after ", losses.size(), asked.is_number_integer() ? base::text(" of ", asked.get<std::int64_t>()) : "", " steps"));
  }
}

}  // namespace shardbook::timeline
