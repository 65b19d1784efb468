// config/switches: the design choices of Megatron's tensor parallelism and PyTorch's FSDP, a row each.
//
// A switch is a choice that production code has made and that a learner may make differently, to see on the timeline
// what it is for: `--set fsdp.backward_prefetch=post`. A row is data, so that help, notes, viewer and tests read the
// same one. What a value does to the step is said in train/seams.cpp alone: rooms get numbers, functions and pieces,
// and know no switch.
//
// Some rows are of the labs alone: a machine that is better or worse than the real one, and mistakes that one makes once
// and wants to see through. What is wrong on purpose is not set by --set but by --wrong, and says which check finds it.
//
// Rows promise something, and a test that is generated from the table holds them to it (tests/train/switches_test.cpp).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.hpp"

namespace shardbook::config {

struct RunConfig;

// Where the choice stands in the code that it is taken from.
struct Original {
  std::string repository;   // "pytorch/pytorch"
  std::string commit;       // a tag or a commit
  std::string path;
  int first_line = 0, last_line = 0;
  std::string what;         // the name that stands there, and what of it: "_prefetch_handle: in _pre_backward_hook"
};

enum class Promise {
  same_bits,   // losses and gradients stay the same, bit for bit
  bounded,     // sums run in another order, or in another type: within a derived bound
  time_only,   // only the times count: losses and gradients mean nothing, and none are reported
  wrong,       // a mistake on purpose, of labs; `caught_by` says what finds it
};
const char* name_of(Promise promise);

// What a value becomes.
enum class Seam {
  spec,     // another piece in the same place of the model
  plan,     // a number of a schedule, or a pass
  store,    // a policy of who keeps parameters
  machine,  // a property of the device or of its links
  group,    // how a group of ranks communicates
};
const char* name_of(Seam seam);

// A configuration to try it on: options of `train --device meta`, unless it says that it was measured, and the value to compare with the default.
// Of some rows memory is what they are for: then options are those of `plan`.
struct Trial {
  std::string options;     // "--model gpt-1.3b --fsdp 4 --sequences 32"
  std::string value;
  double percent = 0;      // the step changes by at least (moves) or by less than (still) so many percent
  bool measured = false;   // with `train --device cuda`, on 2 H200s (experiments/switches): no model has it, or only one by another profile than ships
  bool memory = false;     // not the step changes, but what a rank sets aside on its device
};

struct Switch {
  std::string key;                    // "fsdp.backward_prefetch"
  std::vector<std::string> values;    // what may stand there; empty: a whole number
  std::string form;                   // "RANK:MICROSECONDS", or a value of `values`; empty: no such
  int least = 0, most = 0;            // of a whole number
  std::string default_value;
  std::string option;                 // the option that it is another name of; empty: none
  std::string sentence;
  Promise promise = Promise::same_bits;
  Seam seam = Seam::plan;
  // Conditions, "fsdp > 1", "reshard = true", "dp > 1 or accumulate.reduce = last": options or switches, = > < and a value.
  // Needed: else the switch does nothing, and setting it is refused. Excluded: they cannot be carried out together;
  // "selective: attention = flash" where that is so of one value alone.
  std::vector<std::string> needs, excludes;
  std::vector<Original> originals;
  std::string megatron, pytorch;      // how it is asked for there; empty: it is not
  std::string note;                   // "04_fsdp#what-it-costs"
  std::string caught_by;              // of promise wrong: "verify", "verify --against", "plan"
  Trial moves, still;

  // No model has it: GPUs alone show what it does.
  bool of_gpus_alone() const { return moves.measured; }
  // "pre, post, none" or "0 to 8".
  std::string values_text() const;
};

// The table, by key.
const std::vector<Switch>& switches();
const Switch* find_switch(std::string_view key);

// The value in force: what was set, or the default.
std::string switch_value(const RunConfig& config, std::string_view key);
// Sets a switch from "key=value". Errors: no such key (the nearest is named), no such value, one that is wrong on purpose.
base::Status set_switch(RunConfig& config, std::string_view key_and_value);
// The same of those that are wrong on purpose, and of no others.
base::Status set_wrong(RunConfig& config, std::string_view key_and_value);
// What was set of one sort or the other, "key=value" each: together they repeat `config.switches`.
std::vector<std::string> set_switches(const RunConfig& config, bool wrong);
// Whether a condition of a row holds. REQUIRES: it names an option or a switch.
bool holds(const RunConfig& config, std::string_view condition);
// Whether all that was set can be carried out: the needs of each are there, and nothing that it excludes.
base::Status check_switches(const RunConfig& config);
// What an output must say beside the run's numbers: a sentence for each switch that makes them mean nothing.
std::vector<std::string> warnings(const RunConfig& config);

}  // namespace shardbook::config
