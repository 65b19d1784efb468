#include "engine/config/presets.hpp"

#include <algorithm>

namespace shardbook::config {

const char* name_of(DeviceKind device) {
  switch (device) {
    case DeviceKind::host: return "host";
    case DeviceKind::cuda: return "cuda";
    case DeviceKind::meta: return "meta";
  }
  return "?";
}

const char* name_of(Precision precision) { return precision == Precision::bf16 ? "bf16" : "fp32"; }

const char* name_of(HostDtype dtype) { return dtype == HostDtype::f32 ? "f32" : "f64"; }

const char* name_of(Clock clock) {
  switch (clock) {
    case Clock::measured: return "measured";
    case Clock::modelled: return "modelled";
    case Clock::wall: return "wall";
  }
  return "?";
}

const char* name_of(Launch launch) { return launch == Launch::threads ? "threads" : "processes"; }

const char* name_of(Architecture architecture) { return architecture == Architecture::gpt ? "gpt" : "llama"; }

const char* name_of(AttentionKind attention) {
  switch (attention) {
    case AttentionKind::unfused: return "unfused";
    case AttentionKind::flash: return "flash";
    case AttentionKind::cudnn: return "cudnn";
  }
  return "?";
}

namespace {

// Learning rates of the GPT models: Brown et al. 2020, table 2.1, for the nearest size.
const std::vector<Preset>& table() {
  static const std::vector<Preset> presets = {
      {{.preset = "grammar-tutor", .layers = 4, .width = 128, .heads = 4, .head_dim = 32, .sequence = 128,
        .vocab = 256, .ffn_width = 512, .tied = true},
       16, 16, 40, 10, 2e-3, "grammar"},
      {{.preset = "gpt-124m", .layers = 12, .width = 768, .heads = 12, .head_dim = 64, .sequence = 1024,
        .vocab = 50304, .ffn_width = 3072, .tied = true},
       64, 8, 20, 5, 6e-4, "synthetic"},
      {{.preset = "gpt-1.3b", .layers = 24, .width = 2048, .heads = 16, .head_dim = 128, .sequence = 1024,
        .vocab = 50304, .ffn_width = 8192, .tied = false},
       64, 8, 20, 5, 2e-4, "synthetic"},
      {{.preset = "gpt-6.9b", .layers = 32, .width = 4096, .heads = 32, .head_dim = 128, .sequence = 2048,
        .vocab = 50304, .ffn_width = 16384, .tied = false},
       16, 2, 20, 5, 1.2e-4, "synthetic"},
      {{.preset = "llama-tutor", .layers = 4, .width = 128, .heads = 4, .head_dim = 32, .sequence = 128,
        .vocab = 256, .ffn_width = 352, .tied = false, .architecture = Architecture::llama, .key_value_heads = 2,
        .rope_theta = 10000},
       16, 16, 40, 10, 2e-3, "grammar"},
      {{.preset = "llama-8b", .layers = 32, .width = 4096, .heads = 32, .head_dim = 128, .sequence = 4096,
        .vocab = 128256, .ffn_width = 14336, .tied = false, .architecture = Architecture::llama, .key_value_heads = 8,
        .rope_theta = 500000},
       16, 2, 20, 5, 8e-5, "synthetic"},
  };
  return presets;
}

}  // namespace

const std::vector<ModelConfig>& presets() {
  static const std::vector<ModelConfig> models = [] {
    std::vector<ModelConfig> result;
    for (const Preset& preset : table()) result.push_back(preset.model);
    return result;
  }();
  return models;
}

const Preset* find_preset(std::string_view name) {
  const auto found = std::find_if(table().begin(), table().end(),
                                  [&](const Preset& preset) { return preset.model.preset == name; });
  return found == table().end() ? nullptr : &*found;
}

std::int64_t parameter_count(const ModelConfig& model) {
  const std::int64_t d = model.width;
  const std::int64_t ffn = model.ffn_width;
  const std::int64_t queries = std::int64_t{model.heads} * model.head_dim, keys = std::int64_t{model.kv_heads()} * model.head_dim;
  const std::int64_t attention = d * (queries + 2 * keys) + queries * d;
  const std::int64_t tables = model.vocab * d * (model.tied ? 1 : 2);
  // Llama: gate, up and down, and norms of a weight each. The last norm stands alone.
  if (model.architecture == Architecture::llama) return model.layers * (attention + 3 * d * ffn + 2 * d) + tables + d;
  // GPT-2: up and down, a bias for each linear, norms of weight and bias, and a table of positions.
  const std::int64_t biases = queries + 2 * keys + d + ffn + d;
  return model.layers * (attention + 2 * d * ffn + biases + 4 * d) + tables + model.sequence * d + 2 * d;
}

std::int64_t matmul_parameter_count(const ModelConfig& model) {
  const std::int64_t d = model.width;
  const std::int64_t queries = std::int64_t{model.heads} * model.head_dim, keys = std::int64_t{model.kv_heads()} * model.head_dim;
  const std::int64_t mlp = (model.architecture == Architecture::llama ? 3 : 2) * d * model.ffn_width;
  return model.layers * (d * (queries + 2 * keys) + queries * d + mlp) + model.vocab * d;
}

double flops_per_token(const ModelConfig& model) {
  // Forward once, and backward for inputs and weights, 2 flops each; of attention's pairs a causal mask leaves half.
  const double queries = static_cast<double>(model.heads) * model.head_dim;
  return 6.0 * static_cast<double>(matmul_parameter_count(model)) + 6.0 * model.layers * model.sequence * queries;
}

int followed_ffn_width(const ModelConfig& model) {
  const ModelConfig& preset = find_preset(model.preset)->model;
  return static_cast<int>(std::int64_t{preset.ffn_width} * model.width / preset.width);
}

void apply_preset(RunConfig& config, const Preset& preset) {
  auto bring = [&](const char* option, auto& field, const auto& value) {
    if (config.was_asked(option)) return;
    field = value;
    config.suggested.erase(option);
  };
  const ModelConfig& model = preset.model;
  config.model.preset = model.preset;
  bring("layers", config.model.layers, model.layers);
  bring("width", config.model.width, model.width);
  bring("heads", config.model.heads, model.heads);
  bring("ffn-width", config.model.ffn_width, followed_ffn_width(config.model));
  bring("architecture", config.model.architecture, model.architecture);
  bring("key-value-heads", config.model.key_value_heads, model.key_value_heads);
  bring("rope-theta", config.model.rope_theta, model.rope_theta);
  bring("sequence", config.model.sequence, model.sequence);
  bring("vocab", config.model.vocab, model.vocab);
  bring("tied", config.model.tied, model.tied);
  config.model.head_dim = config.model.width / config.model.heads;
  bring("sequences", config.sequences, preset.sequences);
  bring("steps", config.steps, preset.steps);
  bring("warmup-steps", config.warmup_steps, preset.warmup_steps);
  bring("lr", config.lr, preset.lr);
  bring("min-lr", config.min_lr, preset.lr / 10);
  bring("data", config.data, std::vector<std::string>{preset.data});
}

RunConfig::RunConfig() { apply_preset(*this, *find_preset("grammar-tutor")); }

}  // namespace shardbook::config
