// The table of options: what each is called, takes and means. Everything that reads or prints a
// config goes through it.
#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "engine/base/nearest.hpp"
#include "engine/config/config.hpp"
#include "engine/config/options.hpp"
#include "engine/config/presets.hpp"
#include "engine/config/switches.hpp"

namespace shardbook::config {

namespace {

using base::Done;
using base::Error;
using base::Status;
using base::text;
using Kind = Option::Kind;

// ---- Reading and writing one value -----------------------------------------------------------

template <class Number>
std::optional<Number> parse(std::string_view value) {
  Number number{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size()) return std::nullopt;
  return number;
}

// The shortest text that reads back as the same number.
template <class Number>
std::string print(Number number) {
  char buffer[64];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr};
}

// The names of an enumeration's values 0 to count - 1, as in "host|cuda|meta".
template <class Enum>
std::string names_of(int count, const char* between) {
  std::string names;
  for (int value = 0; value < count; ++value) {
    names += text(value == 0 ? "" : between, name_of(static_cast<Enum>(value)));
  }
  return names;
}

// ---- Rows of each kind -------------------------------------------------------------------------
// `field` gives the place in a config: a function from RunConfig& to a reference.

template <class Integer = int, class Field>
Option integer(std::string name, std::string default_text, Integer least, Integer most, Field field,
               std::string help) {
  return {std::move(name), Kind::integer, "N", std::move(default_text), std::move(help), true, false,
          [=](RunConfig& config, std::string_view value) -> Status {
            const auto number = parse<Integer>(value);
            if (!number || *number < least || *number > most) {
              return Error{text("must be a whole number from ", least, " to ", most, ", not '", value, "'")};
            }
            field(config) = *number;
            return Done{};
          },
          [=](const RunConfig& config) { return print(field(const_cast<RunConfig&>(config))); }};
}

// least <= number < below.
template <class Field>
Option real(std::string name, std::string default_text, double least, double below, Field field, std::string help) {
  return {std::move(name), Kind::number, "X", std::move(default_text), std::move(help), true, false,
          [=](RunConfig& config, std::string_view value) -> Status {
            const auto number = parse<double>(value);
            if (!number || !(*number >= least && *number < below)) {
              return Error{text("must be a number of at least ", least, " and below ", below, ", not '", value, "'")};
            }
            field(config) = *number;
            return Done{};
          },
          [=](const RunConfig& config) { return print(field(const_cast<RunConfig&>(config))); }};
}

template <class Field>
Option boolean(std::string name, std::string default_text, Field field, std::string help) {
  return {std::move(name), Kind::boolean, "true|false", std::move(default_text), std::move(help), true, false,
          [=](RunConfig& config, std::string_view value) -> Status {
            if (value != "true" && value != "false") return Error{text("must be true or false, not '", value, "'")};
            field(config) = value == "true";
            return Done{};
          },
          [=](const RunConfig& config) { return field(const_cast<RunConfig&>(config)) ? "true" : "false"; }};
}

// One of the first `count` values of an enumeration.
template <class Enum, class Field>
Option choice(std::string name, int count, std::string default_text, Field field, std::string help) {
  return {std::move(name), Kind::choice, names_of<Enum>(count, "|"), std::move(default_text), std::move(help), true,
          false,
          [=](RunConfig& config, std::string_view value) -> Status {
            for (int candidate = 0; candidate < count; ++candidate) {
              if (value != name_of(static_cast<Enum>(candidate))) continue;
              field(config) = static_cast<Enum>(candidate);
              return Done{};
            }
            return Error{text("must be one of ", names_of<Enum>(count, ", "), ", not '", value, "'")};
          },
          [=](const RunConfig& config) -> std::string { return name_of(field(const_cast<RunConfig&>(config))); }};
}

template <class Field>
Option words(std::string name, std::string values, std::string default_text, Field field, std::string help) {
  return {std::move(name), Kind::text, std::move(values), std::move(default_text), std::move(help), true, false,
          [=](RunConfig& config, std::string_view value) -> Status {
            field(config) = value;
            return Done{};
          },
          [=](const RunConfig& config) { return field(const_cast<RunConfig&>(config)); }};
}

// ---- Rows that are one of a kind ---------------------------------------------------------------

Option model_option() {
  std::string names;
  for (const ModelConfig& model : presets()) names += (names.empty() ? "" : "|") + model.preset;
  return {"model", Kind::choice, names, "grammar-tutor",
          "The model: its sizes, and the defaults of a run that trains it.", true, false,
          [names](RunConfig& config, std::string_view value) -> Status {
            const Preset* preset = find_preset(value);
            if (preset == nullptr) return Error{text("must be one of ", names, ", not '", value, "'")};
            apply_preset(config, *preset);
            return Done{};
          },
          [](const RunConfig& config) { return config.model.preset; }};
}

// Sizes that others follow: head_dim always, the feed-forward width unless it was asked for.
Option following(Option option) {
  option.set = [set = std::move(option.set)](RunConfig& config, std::string_view value) -> Status {
    if (Status status = set(config, value); !status) return status;
    config.model.head_dim = config.model.width / config.model.heads;
    if (!config.was_asked("ffn-width")) config.model.ffn_width = followed_ffn_width(config.model);
    return Done{};
  };
  return option;
}

std::string lines_of(const std::vector<std::string>& values) {
  std::string lines;
  for (const std::string& value : values) lines += (lines.empty() ? "" : "\n") + value;
  return lines;
}

Option data_option() {
  return {"data", Kind::texts, "grammar|synthetic|FILE...", "by model",
          "What to train on: drills that the project generates, uniform random tokens, or files of UTF-8 text "
          "(a byte is a token) or Megatron's indexed .bin/.idx.",
          true, true,
          [](RunConfig& config, std::string_view value) -> Status {
            if (value.empty()) return Error{"must name a file, or be grammar or synthetic"};
            config.data.emplace_back(value);
            return Done{};
          },
          [](const RunConfig& config) { return lines_of(config.data); }};
}

Option set_option() {
  return {"set", Kind::texts, "KEY=VALUE...", "none",
          "A design choice made otherwise, to see what it is for; shardbook switches lists them.", true, true,
          [](RunConfig& config, std::string_view value) -> Status { return set_switch(config, value); },
          [](const RunConfig& config) { return lines_of(set_switches(config, false)); }};
}

Option wrong_option() {
  return {"wrong", Kind::texts, "KEY=VALUE...", "none",
          "A mistake made on purpose, to see what finds it: for labs only, since the run's numbers are wrong.", true, true,
          [](RunConfig& config, std::string_view value) -> Status { return set_wrong(config, value); },
          [](const RunConfig& config) { return lines_of(set_switches(config, true)); }};
}

Option trace_option() {
  return {"trace-steps", Kind::text, "A:B", "three after the warm-up",
          "Steps to record, A <= step < B, counted from 0; 0:0 records none.", true, false,
          [](RunConfig& config, std::string_view value) -> Status {
            const std::size_t colon = value.find(':');
            const auto begin = parse<int>(value.substr(0, colon));
            const auto end = colon == std::string_view::npos ? std::nullopt : parse<int>(value.substr(colon + 1));
            if (!begin || !end || *begin < 0 || *end < *begin) {
              return Error{text("must be A:B with 0 <= A <= B, as in 5:8, not '", value, "'")};
            }
            config.trace_steps = {*begin, *end};
            return Done{};
          },
          [](const RunConfig& config) { return text(config.trace_steps.begin, ":", config.trace_steps.end); }};
}

Option not_stored(Option option) {
  option.stored = false;
  return option;
}

// The place of a field in the config.
#define FIELD(member) [](RunConfig& config) -> auto& { return config.member; }

constexpr std::uint64_t any_seed = ~std::uint64_t{0};

std::vector<Option> make_options() {
  return {
      // The model and its sizes.
      model_option(),
      integer("layers", "by model", 1, 1024, FIELD(model.layers), "Transformer blocks."),
      following(integer("width", "by model", 1, 65536, FIELD(model.width), "Numbers of a token's state (d_model).")),
      following(integer("heads", "by model", 1, 1024, FIELD(model.heads), "Attention heads of a block.")),
      integer("key-value-heads", "by model", 0, 1024, FIELD(model.key_value_heads),
              "Heads of keys and values that the attention heads share; 0 gives each its own."),
      integer("ffn-width", "by model's proportion", 1, 1 << 20, FIELD(model.ffn_width), "Hidden width of a block's MLP."),
      integer("sequence", "by model", 1, 1 << 20, FIELD(model.sequence), "Tokens of one training sequence."),
      integer("vocab", "by model", 2, 1 << 24, FIELD(model.vocab), "Rows of the embedding table, padding included."),
      boolean("tied", "by model", FIELD(model.tied), "Use the embedding table as the head too."),
      choice<Architecture>("architecture", 2, "by model", FIELD(model.architecture),
                           "The blocks' pieces: GPT-2's, or Llama's (RMS norm, SwiGLU, rotary positions, no biases)."),
      real("rope-theta", "by model", 2, 1e12, FIELD(model.rope_theta), "Base of llama's rotary positions."),
      choice<AttentionKind>("attention", 3, "unfused", FIELD(attention),
                            "Attention with the square of probabilities in memory, or by tiles without it: by the engine's kernels, or cuDNN's."),
      real("hidden-dropout", "0", 0, 1, FIELD(hidden_dropout),
           "Part of the embedding, and of each branch that joins the residual, that is dropped in training."),
      real("attention-dropout", "0", 0, 1, FIELD(attention_dropout),
           "Part of attention's probabilities that is dropped in training."),

      // The layout.
      integer("tp", "1", 1, 1024, FIELD(tp), "Ranks that share each matmul (tensor parallel)."),
      integer("fsdp", "1 on host and meta, all GPUs on cuda", 1, 65536, FIELD(fsdp),
              "Ranks that share the parameters and split the batch (fully sharded data parallel)."),
      integer("dp", "1", 1, 65536, FIELD(dp),
              "Replicas that hold the same parameters, split the batch and sum their gradients (data parallel)."),
      integer("ranks", "tp x fsdp x dp", 0, 65536, FIELD(ranks), "Ranks in all; what tp and fsdp leave open follows."),
      integer("prefetch", "1", 0, 64, FIELD(prefetch), "Blocks whose parameters are gathered ahead of their use."),
      boolean("reshard", "true", FIELD(reshard), "Free a block's gathered parameters after its forward."),
      set_option(),
      wrong_option(),

      // The device and its clock.
      choice<DeviceKind>("device", 3, "cuda where there is a GPU, else host", FIELD(device),
                         "Where numbers are computed; meta computes shapes only."),
      choice<Precision>("precision", 2, "bf16", FIELD(precision),
                        "Precision on the GPU (bf16 keeps fp32 masters), and nominally on host and meta."),
      choice<HostDtype>("host-dtype", 2, "f32", FIELD(host_dtype), "How the host stores its numbers."),
      choice<Clock>("clock", 3, "measured on cuda, else modelled", FIELD(clock),
                    "Who tells the time: the GPUs, a machine profile, or this CPU."),
      words("profile", "NAME|FILE", "h200x8", FIELD(profile), "The machine profile of the modelled clock."),
      choice<Launch>("launch", 2, "processes on cuda, else threads", FIELD(launch), "What a rank is."),
      real("comm-timeout", "600, in a lab 10; of threads 0", 0, 1e6, FIELD(comm_timeout),
           "Seconds that a rank waits in a collective, before all are asked who does not come; 0 waits for ever."),

      // The batch and the optimizer.
      integer("sequences", "by model", 1, 1 << 24, FIELD(sequences), "Sequences of the global batch of a step."),
      integer("micro-batches", "as few as fit", 1, 1 << 16, FIELD(micro_batches),
              "Parts in which a rank's share of the batch is computed (gradient accumulation)."),
      integer("steps", "by model", 1, 100'000'000, FIELD(steps), "Optimizer steps."),
      integer("warmup-steps", "by model", 0, 100'000'000, FIELD(warmup_steps),
              "Steps over which the learning rate rises."),
      real("lr", "by model", 0, 1e3, FIELD(lr), "Peak learning rate."),
      real("min-lr", "lr / 10", 0, 1e3, FIELD(min_lr), "Learning rate at the end of the cosine."),
      real("weight-decay", "0.1", 0, 1e3, FIELD(weight_decay), "AdamW's decay of matrices and tables."),
      real("beta1", "0.9", 0, 1, FIELD(beta1), "AdamW's decay of the first moment."),
      real("beta2", "0.95", 0, 1, FIELD(beta2), "AdamW's decay of the second moment."),
      real("eps", "1e-08", 1e-30, 1, FIELD(eps), "AdamW's term that keeps a division finite."),
      real("clip", "1", 0, 1e9, FIELD(clip), "Largest global norm of the gradients; 0 switches clipping off."),
      integer<std::uint64_t>("seed", "1234", 0, any_seed, FIELD(seed), "Draws the weights and the order of the data."),
      data_option(),

      words("matmuls", "FILE", "none", FIELD(matmuls), "On GPUs: multiply by the algorithms that `tune` has measured, and kept in this file."),

      // Checkpoints.
      words("checkpoint", "DIR", "none", FIELD(checkpoint), "Folder to save checkpoints to: after the last step, and every so many."),
      integer("save-every", "0", 0, 100'000'000, FIELD(save_every), "Steps from one checkpoint to the next; 0 saves after the last step alone."),
      integer("keep-checkpoints", "2", 0, 1'000'000, FIELD(keep_checkpoints), "Newest checkpoints that stay; 0 keeps all."),
      words("resume", "DIR", "none", FIELD(resume),
            "Go on from a checkpoint, or from the newest whole one of a folder, with its run's options but for those asked for."),

      // The record and the output.
      trace_option(),
      not_stored(words("out", "DIR", "a new folder under experiments/", FIELD(out), "Folder of the run.")),
      words("lab", "NAME", "none", FIELD(lab), "The lab that the run belongs to."),
      integer("progress", "5", 0, 100'000'000, FIELD(progress),
              "Steps from one progress line to the next; 0 prints none."),
      not_stored(boolean("json", "false", FIELD(json), "Print figures as JSON.")),
      boolean("check-finite", "false", FIELD(check_finite),
              "Look through what each op writes, and name the first op and rank that write a number which is not finite."),
      integer<std::uint64_t>("drain-seed", "0", 0, any_seed, FIELD(drain_seed),
                             "Draws the order in which host queues drain; 0 takes turns."),
  };
}

#undef FIELD

// ---- Looking up --------------------------------------------------------------------------------

Error unknown(std::string_view name) {
  return {text("there is no option --", name, "; the nearest is --", nearest_option(name))};
}

// Drops what was set of one sort of switches.
void forget_switches(RunConfig& config, bool wrong) {
  for (const std::string& set : set_switches(config, wrong)) config.switches.erase(set.substr(0, set.find('=')));
}

// Sets `option` to `values`; on an error the config is as it was.
Status set_values(RunConfig& config, const Option& option, const std::vector<std::string>& values) {
  const std::size_t most = option.takes_many ? values.size() : 1;
  if (values.empty() || values.size() > most) {
    return Error{text("takes ", option.takes_many ? "at least one value" : "one value", ", not ", values.size())};
  }
  RunConfig changed = config;
  if (option.name == "data") changed.data.clear();
  if (option.name == "set" || option.name == "wrong") forget_switches(changed, option.name == "wrong");
  for (const std::string& value : values) {
    if (Status status = option.set(changed, value); !status) return status;
  }
  config = std::move(changed);
  return Done{};
}

}  // namespace

const std::vector<Option>& options() {
  static const std::vector<Option> table = make_options();
  return table;
}

const Option* find_option(std::string_view name) {
  const auto found = std::find_if(options().begin(), options().end(),
                                  [&](const Option& option) { return option.name == name; });
  return found == options().end() ? nullptr : &*found;
}

std::string nearest_option(std::string_view name) {
  std::vector<std::string> names;
  for (const Option& option : options()) names.push_back(option.name);
  return base::nearest(name, names);
}

Status take(RunConfig& config, const Option& option, const std::vector<std::string>& values) {
  RunConfig changed = config;
  const bool another_model = option.name == "model" && config.was_asked("model") &&
                             values != std::vector<std::string>{config.model.preset};
  if (another_model) {
    for (const char* size : {"layers", "width", "heads", "key-value-heads", "ffn-width", "sequence", "vocab", "tied", "architecture",
                             "rope-theta"}) {
      changed.asked.erase(size);
    }
  }
  if (Status status = set_values(changed, option, values); !status) return status;
  changed.asked.insert(option.name);
  changed.suggested.erase(option.name);
  config = std::move(changed);
  return Done{};
}

Status ask(RunConfig& config, std::string_view name, const std::vector<std::string>& values) {
  const Option* option = find_option(name);
  if (option == nullptr) return unknown(name);
  if (Status status = take(config, *option, values); !status) return Error{text("--", name, " ", status.error())};
  return Done{};
}

Status suggest(RunConfig& config, std::string_view name, const std::vector<std::string>& values) {
  const Option* option = find_option(name);
  if (option == nullptr) return unknown(name);
  if (config.was_asked(name)) return Done{};
  if (Status status = set_values(config, *option, values); !status) return Error{text("--", name, " ", status.error())};
  config.suggested.emplace(name);
  return Done{};
}

}  // namespace shardbook::config
