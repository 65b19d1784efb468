// cause/whatif: what would this run's step have taken, had that been otherwise?
//
// The words of the command line become a simulate::Change, and the step is resolved with it. What comes out is a
// model, whatever clock the run had, and says so.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/cause/study.hpp"
#include "engine/program/file.hpp"

namespace shardbook::cause {

// What was asked for, word by word: "host=0", "comm=0.5", "rank2.compute=2", "wait=engine/fsdp/schedule.cpp:79".
struct Asked {
  std::vector<std::string> scale;      // KEY=FACTOR
  std::vector<std::string> drop;       // wait=FILE:LINE, or waits=KIND
  std::vector<std::string> earlier;    // FILE:LINE of collectives that are issued one place earlier
  bool alike = false;                  // all ranks as the one in the middle
  std::vector<std::string> set;        // KEY=VALUE of switches: another step was issued (Issued)
  bool empty() const { return scale.empty() && drop.empty() && earlier.empty() && !alike && set.empty(); }
};

// Keys of --scale, each with one sentence.
struct ScaleKey {
  const char* name;
  const char* sentence;
  double simulate::Scale::*factor;
};
const std::vector<ScaleKey>& scale_keys();

// Errors: a key that there is not (the nearest is named), a factor that is none, a rank or a line that the run lacks (those
// that it has are named).
base::Result<simulate::Change> change_of(const Study& study, const Asked& asked);

// What the ranks of the run issue with switches set otherwise, and what machine they then have.
struct Issued {
  std::vector<program::Record> records;
  simulate::Conditions conditions;
};

struct WhatIf {
  std::string asked;                   // "host = 0, comm = 0.5"
  Nanoseconds before_ns = 0;           // the step as the run says
  Nanoseconds after_ns = 0;            // the step as it would be: before_ns plus what the resolver says of the change
  metrics::Partition before, after;    // of the first rank, as resolved
  Rank rank = 0;
  std::optional<simulate::Kept> kept;  // of a measured step that was issued otherwise: where its times come from
  double error = 0;                    // of the resolver with nothing changed, as a part of before_ns
  Nanoseconds clock_ns = 0;            // of the step as it would be: what a slower clock takes, or less than 0, a faster one saves
  bool free_communication = false;     // that was asked: what is exposed still is waiting
  bool scaled_compute = false;         // that was asked
  double change() const { return static_cast<double>(after_ns - before_ns) / static_cast<double>(before_ns); }
};

// Errors: those of change_of; ranks that wait for each other for ever.
base::Result<WhatIf> what_if(const Study& study, const Asked& asked);
// The same of a step that is issued otherwise; `asked` is of that step. Errors: also ranks or ops that were not measured.
base::Result<WhatIf> what_if(const Study& study, const Asked& asked, const Issued& issued);

// At most 80 columns.
std::string to_text(const Study& study, const WhatIf& answer);
nlohmann::json to_json(const Study& study, const WhatIf& answer);

}  // namespace shardbook::cause
