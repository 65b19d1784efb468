// workbook/facts: what is the right answer?
//
// A fact is a figure with its place, and its value is computed when it is asked for, from the run or the profile that it
// names: no lab, check or solution holds a result. Units are in the figure's name. A fact with `less` is the difference.
//
//   of a run (a folder or pack; "run")   window_ms, compute_ms, exposed_ms, memory_ms, idle_ms, compute_percent,
//     exposed_percent (of "rank", else the mean over ranks; of "step", else all that was recorded), late_rank, ranks
//   of one step of it ("run", "step")    step_ms, blocking_ms, regime, share_percent ("regime"), own_percent ("rank": that
//     part of the path which is its own), behind_host_ms ("rank": the device's end behind the host's last call), span_us
//     ("op", "phase": mean over spans of rank 0), price_ms ("scale": KEY=FACTOR; what the step gains by whatif)
//   of a profile ("profile")             collective_us ("op", "ranks", "bytes")
#pragma once

#include <map>
#include <memory>
#include <string>

#include "engine/base/result.hpp"
#include "engine/workbook/lab.hpp"

namespace shardbook::workbook {

// A number, or a word ("host"); a rank is a number.
struct Value {
  bool is_number = true;
  double number = 0;
  std::string word;
};

// Computes facts, and keeps the runs that it has opened.
class Facts {
 public:
  Facts(std::string root, const Lab& lab);
  ~Facts();
  Facts(const Facts&) = delete;
  Facts& operator=(const Facts&) = delete;

  // Errors: no fact of this name (the lab is named), a run that cannot be read, a key that is missing.
  base::Result<Value> value(const std::string& name);
  base::Result<Value> value(const Fact& fact);
  // The text with each {name} or {name:DECIMALS} replaced by the value. Errors: those of value().
  base::Result<std::string> filled(const std::string& text);

 private:
  struct Runs;
  std::string root_;
  const Lab& lab_;
  std::unique_ptr<Runs> runs_;
};

// "1.76", "98.6", "290", "2": three significant digits, or so many decimals; words as they are.
std::string shown(const Value& value, int decimals = -1);

}  // namespace shardbook::workbook
