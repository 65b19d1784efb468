// Rows of the table of switches, made ready to be tried.
#pragma once

#include <optional>

#include "engine/config/switches.hpp"
#include "tests/support/switch_names.hpp"
#include "tests/train/host_run.hpp"

namespace shardbook::tests {

// Values to try, other than the default.
inline std::vector<std::string> other_values(const config::Switch& row) {
  if (!row.form.empty()) return {"0:3", "1:20"};
  if (row.key == "fsdp.reshard_group") return {"2"};   // a divisor of the ranks that shard, 4
  if (row.values.empty()) {
    std::vector<std::string> some;
    for (int value : {row.least, row.least + 1, row.most}) {
      if (value <= row.most && std::to_string(value) != row.default_value) some.push_back(std::to_string(value));
    }
    return some;
  }
  std::vector<std::string> others = row.values;
  std::erase(others, row.default_value);
  return others;
}

// A layout in which the row's needs are met, and nothing that it excludes, or nothing: what a need asks for that is no size of the layout is given.
inline std::optional<config::RunConfig> meeting_needs(const config::Switch& row, config::RunConfig config) {
  for (const std::string& need : row.needs) {
    if (need == "micro-batches > 1") config.micro_batches = 2;
    if (need == "micro-batches = 1") config.micro_batches = 1;
    if (need == "fsdp > 2" && config.fsdp == 2) config.ranks *= 2, config.fsdp = 4;
    if (need.starts_with("dp > 1") && config.ranks <= 4) config.ranks *= config.dp = 2;
    if (need == "attention-dropout > 0") config.attention_dropout = 0.1;
    if (need == "hidden-dropout > 0") config.hidden_dropout = 0.1;
    if (need == "activations.recompute = full") config.switches["activations.recompute"] = "full";
    if (need == "tensor_parallel.sequence = cut") config.switches["tensor_parallel.sequence"] = "cut";
    if (!config::holds(config, need)) return std::nullopt;
  }
  for (const std::string& excluded : row.excludes) {
    if (excluded == "tp > 1" && one_in != 1) config.ranks /= config.tp, config.tp = 1;   // there is no layout of one rank then
    if (excluded.find(": ") == std::string::npos && config::holds(config, excluded)) return std::nullopt;   // not of one value alone
  }
  return config;
}

}  // namespace shardbook::tests
