// config: what was asked for, and is it possible?
//
// One table (`options()`) holds every option of a run: name, help, how its text is read and how it
// is written back. The command line, `--config FILE` and the config that a run stores are made from
// this table, so an option is added in one place and a stored config repeats its run exactly.
//
// A RunConfig remembers which options were *asked for*. What was asked for is granted or refused
// with one sentence; what was not asked for follows the model, the device and the GPUs at hand.
//
// Invariants: after validate(), tp * fsdp == ranks, every cut of heads, vocabulary, feed-forward
// width and sequences is whole, and to_json() followed by read_json() gives an equal config.
//
// Sources: sizes of the models after Brown et al. 2020 (arXiv:2005.14165, table 2.1), with head
// dimension 128 in the large ones; of llama-8b after Grattafiori et al. 2024 (arXiv:2407.21783, table 3). Vocabulary 50304 is GPT-2's 50257 rounded up to a multiple of
// 128, as NVIDIA/Megatron-LM pads it (megatron/training/vocab_utils.py, calculate_padded_vocab_size).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.hpp"

namespace shardbook::config {

// Where the numbers are: on the CPU, on GPUs, or nowhere (shapes only).
enum class DeviceKind { host, cuda, meta };
// The nominal precision: bf16 with fp32 masters, or fp32 throughout. It decides bytes and flops of
// the program on every device; on the host the numbers themselves are in HostDtype.
enum class Precision { bf16, fp32 };
// How the host stores its numbers.
enum class HostDtype { f32, f64 };
// Which pieces a decoder has: GPT-2's (LayerNorm, GELU, learnt positions, biases) or Llama's (norm by RMS, SwiGLU, rotary
// positions, no biases, query heads that share key-value heads).
enum class Architecture { gpt, llama };
// How attention is computed: with the whole square of probabilities in memory, or by tiles without it.
enum class AttentionKind { unfused, flash, cudnn };
// Who tells the time: events on the GPUs; a machine profile; or this CPU.
enum class Clock { measured, modelled, wall };
// What a rank is: a thread of this process, or a process of its own.
enum class Launch { threads, processes };

const char* name_of(DeviceKind device);
const char* name_of(Precision precision);
const char* name_of(HostDtype dtype);
const char* name_of(Clock clock);
const char* name_of(Launch launch);
const char* name_of(Architecture architecture);
const char* name_of(AttentionKind attention);

// Sizes of a decoder. head_dim * heads == width; ffn_width keeps the preset's proportion to width unless asked for.
struct ModelConfig {
  std::string preset;
  int layers = 0;
  int width = 0;      // d_model
  int heads = 0;
  int head_dim = 0;
  int sequence = 0;   // tokens of one training sequence; also the rows of gpt's position table
  int vocab = 0;      // rows of the embedding table, padding included
  int ffn_width = 0;
  bool tied = true;   // the head is the transposed embedding
  Architecture architecture = Architecture::gpt;
  int key_value_heads = 0;   // 0: as many as heads
  double rope_theta = 10000;  // base of rotary positions; of no meaning for gpt

  int kv_heads() const { return key_value_heads == 0 ? heads : key_value_heads; }
  bool operator==(const ModelConfig&) const = default;
};

// The presets, smallest first of each architecture: grammar-tutor, gpt-124m, gpt-1.3b, gpt-6.9b; llama-tutor, llama-8b.
const std::vector<ModelConfig>& presets();

// Numbers that are learnt. Of gpt: layers * (4 d^2 + 2 d ffn + 9 d + ffn) + V d (twice when untied) + S d
// + 2 d, which is layers * (12 d^2 + 13 d) + ... when ffn = 4 d; biases and both norms included. Of llama: layers *
// (2 d^2 + 2 d kv + 3 d ffn + 2 d) + V d (twice when untied) + d, with kv the width of k and of v.
std::int64_t parameter_count(const ModelConfig& model);
// Of them those that each token is multiplied with: the matrices of the linears and of the head, tied or not. A look into a
// table is no matmul.
std::int64_t matmul_parameter_count(const ModelConfig& model);
// What one token of training needs, forward and backward: 6 a number of a matmul and 6 L S d for causal attention. Nothing that
// is computed again counts, nor what the mask takes away (MFU, after the PaLM paper, arXiv:2204.02311, appendix B).
double flops_per_token(const ModelConfig& model);

// Steps begin <= step < end, counted from 0.
struct StepRange {
  int begin = 0;
  int end = 0;

  bool contains(int step) const { return begin <= step && step < end; }
  bool operator==(const StepRange&) const = default;
};

// All that decides a run. Default-constructed it is the grammar tutor, nothing asked for.
struct RunConfig {
  RunConfig();

  ModelConfig model;

  // Device and clock.
  DeviceKind device = DeviceKind::host;
  Precision precision = Precision::bf16;
  HostDtype host_dtype = HostDtype::f32;
  Clock clock = Clock::modelled;
  std::string profile = "h200x8";   // machine profile of the modelled clock: a name or a file
  Launch launch = Launch::threads;
  double comm_timeout = 0;          // seconds that a rank waits in a collective; 0 = for ever

  // Layout: ranks == tp * fsdp * dp once validated.
  int tp = 1;
  int fsdp = 1;
  int dp = 1;                       // replicas: groups of tp * fsdp ranks that hold the same parameters
  int ranks = 0;                    // 0 until validated, unless asked for

  AttentionKind attention = AttentionKind::unfused;

  // Probability with which training drops an element: of embedding and branches, of attention's probabilities.
  double hidden_dropout = 0;
  double attention_dropout = 0;

  // Schedule of FSDP.
  int prefetch = 1;                 // units gathered ahead of use
  bool reshard = true;              // free every block's parameters after its forward

  // Switches that were set, by key (switches.hpp); what is not here has its default.
  std::map<std::string, std::string, std::less<>> switches;

  // Batch and optimizer.
  int sequences = 0;                // of the global batch
  int micro_batches = 1;            // a rank's sequences of a step come in this many parts (gradient accumulation)
  int steps = 0;
  int warmup_steps = 0;             // learning rate rises linearly over these, then a cosine to min_lr
  double lr = 0;
  double min_lr = 0;
  double weight_decay = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double clip = 1.0;                // largest global gradient norm; 0 = off
  std::uint64_t seed = 1234;

  // Data: {"grammar"}, {"synthetic"}, or files.
  std::vector<std::string> data;

  std::string matmuls;              // file of algorithms that were measured (launch/matmul_file.hpp); empty = the heuristic's

  // Checkpoints.
  std::string checkpoint;           // folder that they are saved to; empty = none are
  int save_every = 0;               // steps from one to the next; 0 = after the last step alone
  int keep_checkpoints = 2;         // so many stay; 0 = all
  std::string resume;               // a checkpoint, or a folder of them, to go on from; empty = from first values

  // Record and output.
  StepRange trace_steps;
  std::string out;                  // folder of the run; empty = a new one under experiments/
  std::string lab;                  // name of the lab that this run belongs to; empty = none
  int progress = 5;                 // steps between progress lines; 0 = none
  bool json = false;                // figures as JSON on standard output
  bool check_finite = false;        // after each op, whether what it wrote is finite
  std::uint64_t drain_seed = 0;     // order in which host queues drain; 0 = round robin

  // Names of the options that were asked for, on the command line or in a file, and of those that a
  // lab suggests. An option in neither is open: validate() chooses it.
  std::set<std::string, std::less<>> asked;
  std::set<std::string, std::less<>> suggested;
  // What validate() chose or changed that was not asked for: one sentence each, to be printed.
  std::vector<std::string> notes;

  bool was_asked(std::string_view option) const { return asked.contains(option); }
  bool is_open(std::string_view option) const { return !was_asked(option) && !suggested.contains(option); }
  // Ranks that split the batch.
  int data_ranks() const { return dp * fsdp; }
  // Sequences of one micro-batch on one rank. REQUIRES: validated.
  int sequences_per_micro_batch() const { return sequences / (data_ranks() * micro_batches); }
  // Tokens of one micro-batch on one rank: rows of its activations. REQUIRES: validated.
  int tokens_per_micro_batch() const { return sequences_per_micro_batch() * model.sequence; }
  // Tokens of the global batch: what the summed loss is divided by.
  std::int64_t global_tokens() const { return std::int64_t{sequences} * model.sequence; }
};

// One row of the table.
struct Option {
  enum class Kind { integer, number, boolean, choice, text, texts };

  std::string name;                 // "micro-batches": `--micro-batches` and the key in a file
  Kind kind;
  std::string values;               // what may stand there: "N", "host|cuda|meta", "A:B", "FILE..."
  std::string default_text;         // for the help: a value, or what it follows ("by model")
  std::string help;                 // one sentence
  bool stored = true;               // part of the config that repeats the run
  bool takes_many = false;          // several values; set() appends
  // Reads one value into the config. Does not mark it as asked for: ask() and suggest() do. An error
  // goes on after the option's name: "must be one of host, cuda, meta, not 'gpu'".
  std::function<base::Status(RunConfig&, std::string_view text)> set;
  // The value as text that set() reads back; several values one a line.
  std::function<std::string(const RunConfig&)> get;
};

// The table, in the order of the help.
const std::vector<Option>& options();
// The row with this name (without dashes), or nullptr.
const Option* find_option(std::string_view name);
// The known option name nearest to this one by edit distance; never empty.
std::string nearest_option(std::string_view name);

// What the user asked for: sets the option and marks it. For an option that takes many, `values`
// replaces what was there; for others it holds one value. `model` resets the sizes and defaults of
// the preset that were not asked for, so the order of options does not matter; asked for a second
// time with another preset (a file's, then the command line's) it also drops the sizes asked for
// with the first, so whoever adds to a file's config asks in the order of the table.
// Errors: unknown option (the nearest one is named), text that is no such value.
base::Status ask(RunConfig& config, std::string_view option, const std::vector<std::string>& values);
// A default that a lab brings: sets the option unless it was asked for. A layout that is only
// suggested shrinks to the GPUs at hand.
base::Status suggest(RunConfig& config, std::string_view option, const std::vector<std::string>& values);

// A flat JSON object of options, all as asked for. `name` is the file's name in error sentences,
// which hold file, line and key. Errors: malformed JSON, unknown or repeated key, wrong value.
base::Status read_json(RunConfig& config, std::string_view json, std::string_view name);
// The same from a file. Errors: missing, unreadable, a folder.
base::Status read_file(RunConfig& config, const std::string& path);
// Every stored option as a flat JSON object, in the order of the table, one a line.
std::string to_json(const RunConfig& config);

// The config with every open choice made, or the one sentence that says why it is impossible.
// gpus_available: GPUs that all ranks may use together, over all nodes; 0 on a build without CUDA.
// An open device is cuda where there is a GPU; on cuda an open fsdp takes all GPUs, and a layout
// that was not asked for shrinks until it fits them. Notes say what was chosen and why. Paths of
// data become absolute, so that the stored config holds from any folder. Idempotent.
base::Result<RunConfig> validate(RunConfig config, int gpus_available);

// What an open comm-timeout is. A thread cannot be stopped alone, and a deadlock is known without: threads wait for
// ever. Processes wait as long as PyTorch's with NCCL, and in a lab 10 s.
// Source: pytorch/pytorch@4c2f2809, torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp, kProcessGroupNCCLDefaultTimeout: ten minutes.
double usual_comm_timeout(const RunConfig& config);

}  // namespace shardbook::config
