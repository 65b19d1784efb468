// config/presets: what a model brings along when nothing else was asked for.
#pragma once

#include <string_view>

#include "engine/config/config.hpp"

namespace shardbook::config {

// A model and the defaults of a run that trains it.
struct Preset {
  ModelConfig model;
  int sequences;               // of the global batch
  int sequences_at_a_time;     // most of a micro-batch on one rank, while micro-batches is open
  int steps;
  int warmup_steps;
  double lr;
  const char* data;
};

// The preset of this name, or nullptr.
const Preset* find_preset(std::string_view name);

// The feed-forward width that keeps the preset's proportion to width.
int followed_ffn_width(const ModelConfig& model);

// Sets the sizes and defaults of the preset, but for options that were asked for.
void apply_preset(RunConfig& config, const Preset& preset);

}  // namespace shardbook::config
