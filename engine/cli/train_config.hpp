// cli/train_config: from a line of `train` or `run` to a config that can be run.
//
// The order of authority: what stands on the line, what stands in --config, what the lab suggests, what the model
// brings along. Only the first two are asked for, and only they are refused when the node cannot grant them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/cli/command.hpp"
#include "engine/book/project.hpp"
#include "engine/config/config.hpp"
#include "engine/launch/launch.hpp"

namespace shardbook::cli {

// One switch an option of config::options(), and --config.
std::vector<Switch> training_switches();

struct TrainingConfig {
  config::RunConfig config;        // validated
  std::vector<std::string> said;   // what was chosen and why, one sentence each; config.notes among them
};

// `gpus`: as config::validate takes it. A lab takes the largest of its layouts that the GPUs allow; where none fits,
// it runs on the host, unless --device cuda was asked for.
// Errors: one sentence; those of a file name file, line and key.
base::Result<TrainingConfig> training_config(const Line& line, const std::optional<book::Lab>& lab, int gpus);
// The same without a lab, for what follows from shapes alone: where no device is asked for and the layout has more ranks than there are
// GPUs here, it is that of --device meta.
base::Result<TrainingConfig> config_of_shapes(const Line& line, int gpus);
// The same for one GPU's work of a step on any node: a layout of more GPUs than are here, as the folder of a run may ask for, is settled
// for as many as it has ranks.
base::Result<TrainingConfig> config_of_any_node(const Line& line, int gpus);

// The validated config of options of `train` on --device meta. Errors: a sentence.
base::Result<config::RunConfig> config_on_meta(const std::vector<std::string>& words);
// What `train --device meta` with these words would give; nothing is written. `--device` may stand among them as meta only.
// Without `make_timeline` there is none, which saves a third of the time. Errors: those of the words; another device.
base::Result<launch::Outcome> run_on_meta(const std::vector<std::string>& words, bool make_timeline = true);

}  // namespace shardbook::cli
