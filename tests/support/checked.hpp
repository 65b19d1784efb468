// What check/ says of programs that ranks have recorded: each host run of the tests goes through it.
#pragma once

#include <string>
#include <vector>

#include "engine/check/hang.hpp"
#include "engine/check/ledger.hpp"
#include "engine/check/races.hpp"
#include "engine/program/file.hpp"
#include "engine/program/recorder.hpp"

namespace shardbook::tests {

// What one rank issued, kept beyond its device.
struct Recorded {
  base::Rank rank = 0;
  program::Catalogue catalogue;
  std::vector<program::Program> programs;  // each distinct one, in the order of its first step
};

inline Recorded recorded_by(const program::Recorder& recorder) {
  Recorded recorded{recorder.rank(), recorder.catalogue(), {}};
  for (const auto& program : recorder.programs()) recorded.programs.push_back(*program);
  return recorded;
}

// The first race, diverging collective or hang, or "".
inline std::string problem_of(const std::vector<Recorded>& ranks) {
  std::vector<check::RankSteps> pages;
  for (const Recorded& recorded : ranks) {
    check::Steps issued;
    for (const program::Program& program : recorded.programs) issued.push_back(&program);
    const check::Steps steps = check::steps_to_check(issued);
    const std::vector<check::Race> races = check::races(recorded.catalogue, steps);
    if (!races.empty()) {
      return base::text("rank ", recorded.rank, ": ", check::sentence(races[0], recorded.catalogue, steps), "; ", races.size(), " such pairs in all");
    }
    pages.push_back({recorded.rank, &recorded.catalogue, issued});
  }
  const std::vector<check::Divergence> divergences = check::divergences(pages);
  return divergences.empty() ? check::hang(pages).sentence : divergences[0].sentence;
}

// The same of a run on disk.
inline std::string problem_of_run(const std::string& folder, int ranks) {
  std::vector<Recorded> all;
  std::vector<program::Record> records;  // their text must outlive the programs
  for (int rank = 0; rank < ranks; ++rank) {
    base::Result<program::Record> record = program::load(folder + "/rank" + std::to_string(rank) + ".program");
    if (!record) return record.error();
    records.push_back(std::move(record).value());
    Recorded& recorded = all.emplace_back();
    recorded.rank = rank;
    recorded.catalogue = records.back().catalogue;
    for (const auto& program : records.back().programs) recorded.programs.push_back(*program);
  }
  return problem_of(all);
}

}  // namespace shardbook::tests
