// launch/journal: what a rank has recorded so far, safe from its own end.
//
// Idea: `rankN.partial` in the run's folder grows by one write a step: its loss, and of a traced step its times. A
// rank that is killed leaves all but the step that it was in; recover.hpp reads it. The program of the steps is
// written when it is new, which is before the first traced step.
//
// Invariants: a chunk is whole or not there (length and hash before it); nothing here makes a rank wait for a disk,
// for nothing is synced: it is the process' end that is survived, not the machine's. A rank that cannot write (a full
// disk) goes on without.
//
// The form: "SHBKPART", then chunks of length, kind, hash (8 bytes each, little end first) and payload (world/wire).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/launch/rank.hpp"

namespace shardbook::launch {

class Journal {
 public:
  Journal() = default;   // of a run that is not written
  // Errors: the folder is not there, or holds this rank's already.
  static base::Result<Journal> begin(const std::string& folder, const std::string& run_id, base::Rank rank, int size);
  Journal(Journal&& other) noexcept { *this = std::move(other); }
  Journal& operator=(Journal&& other) noexcept;
  ~Journal();

  // What is known of the rank before its first step: device, clock, memory; and what its collectives run over.
  void head(const RankOutcome& outcome, const std::string& backend);
  // The programs, if there are new ones.
  void programs(const program::Recorder& recorder, int size);
  void traced(const program::StepTimes& times);
  void result(const train::StepResult& result, base::Nanoseconds done);

 private:
  void append(int kind, std::string_view payload);

  int file_ = -1;
  std::size_t programs_ = 0;
};

// What a rank left.
struct Remains {
  std::string run_id, backend;
  base::Rank rank = 0;
  int size = 1;
  RankOutcome outcome;                          // all but the record
  std::string programs;                         // program::encode without steps; "" where no step was issued
  std::vector<program::StepTimes> traced;
  bool alive = false;                           // the process that writes it still runs
};

// Reads up to the last whole chunk. Errors: it is no journal.
base::Result<Remains> read_journal(const std::string& path);
// The record of `steps` steps, as program::encode makes it. Errors: damaged.
base::Result<std::string> record_of(const Remains& remains, std::size_t steps);

// The journals in a folder, by rank.
std::vector<std::string> journals(const std::string& folder);

}  // namespace shardbook::launch
