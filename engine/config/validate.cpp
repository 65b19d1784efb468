// Is it possible? Each question below fills what is open and refuses, with one sentence, what was
// asked for and cannot be.
#include <algorithm>
#include <filesystem>
#include <numeric>

#include "engine/config/config.hpp"
#include "engine/config/presets.hpp"
#include "engine/config/switches.hpp"

namespace shardbook::config {

namespace {

using base::Done;
using base::Error;
using base::Status;
using base::text;

constexpr int most_host_ranks = 256;

// "1, 2, 4": the sizes of tp up to 64 that cut heads, vocabulary and feed-forward width evenly.
std::string tensor_parallel_sizes(const ModelConfig& model) {
  std::string sizes;
  for (int tp = 1; tp <= 64; ++tp) {
    if (model.heads % tp != 0 || model.kv_heads() % tp != 0 || model.vocab % tp != 0 || model.ffn_width % tp != 0) continue;
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(tp);
  }
  return sizes;
}

// The largest divisor of `whole` that is at most `most`; 1 at the least.
int largest_divisor(int whole, int most) {
  for (int divisor = std::min(whole, most); divisor > 1; --divisor) {
    if (whole % divisor == 0) return divisor;
  }
  return 1;
}

Status settle_device(RunConfig& config, int gpus) {
  // A clock or a storage type that only the host has says that the host is meant.
  const bool host_meant = (config.was_asked("clock") && config.clock != Clock::measured) ||
                          config.was_asked("host-dtype");
  if (config.is_open("device")) {
    config.device = gpus > 0 && !host_meant ? DeviceKind::cuda : DeviceKind::host;
  }
  const bool cuda = config.device == DeviceKind::cuda;
  if (cuda && gpus == 0) {
    return Error{"--device cuda needs a GPU, and none can be used here: choose --device host, or let "
                 "`shardbook doctor` say what is missing"};
  }
  if (config.is_open("launch")) config.launch = cuda ? Launch::processes : Launch::threads;
  if (config.is_open("comm-timeout")) config.comm_timeout = usual_comm_timeout(config);
  if (config.is_open("clock")) config.clock = cuda ? Clock::measured : Clock::modelled;

  if (cuda && config.clock != Clock::measured) {
    return Error{text("--clock ", name_of(config.clock), " is for --device host or meta; a run on --device cuda is "
                      "measured on its GPUs, so leave --clock out or change the device")};
  }
  if (!cuda && config.clock == Clock::measured) {
    return Error{text("--clock measured needs --device cuda; --device ", name_of(config.device), " has ",
                      config.device == DeviceKind::host ? "modelled and wall" : "modelled only")};
  }
  if (config.device == DeviceKind::meta && config.clock == Clock::wall) {
    return Error{"--clock wall needs numbers to compute, and --device meta has shapes only: choose --device host, or "
                 "--clock modelled"};
  }
  return Done{};
}

Status check_model(const RunConfig& config) {
  const ModelConfig& model = config.model;
  if (model.width % model.heads != 0) {
    return Error{text("a width of ", model.width, " does not divide over ", model.heads,
                      " heads: change --width or --heads")};
  }
  if (model.heads % model.kv_heads() != 0) {
    return Error{text(model.heads, " heads do not share ", model.kv_heads(),
                      " key-value heads evenly: change --heads or --key-value-heads")};
  }
  if (model.architecture == Architecture::llama && model.head_dim % 2 != 0) {
    return Error{text("rotary positions turn pairs, and heads of ", model.head_dim, " numbers have one over: change --heads")};
  }
  const bool tiles_fit = config.precision == Precision::bf16 && (model.head_dim == 32 || model.head_dim == 64 || model.head_dim == 128);
  if (config.device == DeviceKind::cuda && config.attention != AttentionKind::unfused && !tiles_fit) {
    return Error{text("--attention ", name_of(config.attention), " on --device cuda is for --precision bf16 and heads of 32, 64 or 128 numbers, not ",
                      name_of(config.precision), " and ", model.head_dim, ": choose --attention unfused")};
  }
  if (config.attention == AttentionKind::cudnn && config.attention_dropout > 0) {
    return Error{text("--attention cudnn drops nothing, for cuDNN would draw by a stream of its own, and --attention-dropout is ", config.attention_dropout,
                      ": choose --attention flash, or leave the dropout out")};
  }
  return Done{};
}

// tp, fsdp and ranks from those of them that were asked for.
Status settle_layout(RunConfig& config, int gpus) {
  const bool tp_asked = config.was_asked("tp");
  const bool fsdp_asked = config.was_asked("fsdp");
  // Ranks 0 leaves the number open, as if it had not been asked for.
  if (config.was_asked("ranks") && config.ranks > 0) {
    if (config.ranks % config.dp != 0) {
      return Error{text("--ranks ", config.ranks, " does not divide by --dp ", config.dp, ": the world is tp x fsdp x dp ranks")};
    }
    const int ranks = config.ranks / config.dp;
    if (tp_asked && fsdp_asked) {
      if (config.tp * config.fsdp != ranks) {
        return Error{text("--ranks ", config.ranks, " is not --tp ", config.tp, " x --fsdp ", config.fsdp,
                          config.dp > 1 ? text(" x --dp ", config.dp) : "", " = ", config.tp * config.fsdp * config.dp,
                          ": leave one of them out")};
      }
    } else if (fsdp_asked) {
      if (ranks % config.fsdp != 0) {
        return Error{text("--ranks ", ranks, " does not divide by --fsdp ", config.fsdp,
                          ": the world is tp x fsdp ranks")};
      }
      config.tp = ranks / config.fsdp;
    } else {
      if (tp_asked && ranks % config.tp != 0) {
        return Error{text("--ranks ", ranks, " does not divide by --tp ", config.tp,
                          ": the world is tp x fsdp ranks")};
      }
      config.tp = largest_divisor(ranks, config.tp);
      config.fsdp = ranks / config.tp;
    }
  } else if (config.device == DeviceKind::cuda && config.is_open("fsdp")) {
    config.fsdp = std::max(1, gpus / (config.tp * config.dp));
    if (config.was_asked("sequences")) config.fsdp = largest_divisor(config.sequences / std::gcd(config.sequences, config.dp), config.fsdp);
  }
  return Done{};
}

// More ranks than GPUs: shrink what was not asked for, refuse what was.
Status fit_to_gpus(RunConfig& config, int all_gpus) {
  const int gpus = all_gpus / config.dp;   // of one replica
  const int tp = config.tp;
  const int fsdp = config.fsdp;
  const bool ranks_asked = config.was_asked("ranks") && config.ranks > 0;
  if (!ranks_asked && !config.was_asked("fsdp")) config.fsdp = largest_divisor(fsdp, std::max(1, gpus / config.tp));
  if (!ranks_asked && !config.was_asked("tp")) config.tp = largest_divisor(tp, std::max(1, gpus / config.fsdp));
  if (config.tp * config.fsdp > gpus) {
    return Error{text("tp ", tp, " x fsdp ", fsdp, config.dp > 1 ? text(" x dp ", config.dp) : "", " is ", tp * fsdp * config.dp, " ranks, and ",
                      all_gpus, all_gpus == 1 ? " GPU is" : " GPUs are", " here: ask for fewer ranks, or for --device host")};
  }
  if (config.tp != tp || config.fsdp != fsdp) {
    config.notes.push_back(text("tp ", tp, " x fsdp ", fsdp, " would need ", tp * fsdp, " GPUs and ", gpus,
                                gpus == 1 ? " is" : " are", " here, so this runs tp ", config.tp, " x fsdp ",
                                config.fsdp, "; --device host runs all ", tp * fsdp, " ranks"));
  }
  return Done{};
}

Status check_layout(RunConfig& config, int gpus) {
  if (Status status = settle_layout(config, gpus); !status) return status;
  if (config.device == DeviceKind::cuda) {
    if (Status status = fit_to_gpus(config, gpus); !status) return status;
  }
  config.ranks = config.tp * config.fsdp * config.dp;
  if (config.device == DeviceKind::host && config.ranks > most_host_ranks) {
    return Error{text(config.ranks, " ranks are more than the ", most_host_ranks,
                      " that --device host runs: choose --device meta, which computes shapes only")};
  }

  const ModelConfig& model = config.model;
  auto divides = [&](int size, const char* what) -> Status {
    if (size % config.tp == 0) return Done{};
    return Error{text(size, " ", what, " do not divide over --tp ", config.tp, ": choose --tp from ",
                      tensor_parallel_sizes(model))};
  };
  if (Status status = divides(model.heads, "heads"); !status) return status;
  if (Status status = divides(model.kv_heads(), "key-value heads"); !status) return status;
  if (Status status = divides(model.vocab, "rows of the vocabulary"); !status) return status;
  return divides(model.ffn_width, "columns of the feed-forward width");
}

Status settle_batch(RunConfig& config) {
  // The batch must divide over fsdp; one that was not asked for grows until it does.
  auto grow = [&](int parts) {
    const int whole = (config.sequences + parts - 1) / parts * parts;
    if (whole == config.sequences) return;
    config.notes.push_back(text("the batch of ", config.sequences, " sequences grew to ", whole,
                                ", so that it divides over fsdp ", config.fsdp, config.dp > 1 ? text(" x dp ", config.dp) : "",
                                config.is_open("micro-batches")
                                    ? ""
                                    : text(" x ", config.micro_batches, " micro-batches")));
    config.sequences = whole;
  };
  const bool sequences_asked = config.was_asked("sequences");
  const bool parts_open = config.is_open("micro-batches");
  const int parts = config.data_ranks() * (parts_open ? 1 : config.micro_batches);
  if (!sequences_asked) grow(parts);
  if (config.sequences % parts != 0) {
    return Error{text(config.sequences, " sequences do not divide over fsdp ", config.fsdp, config.dp > 1 ? text(" x dp ", config.dp) : "",
                      parts_open ? "" : text(" x ", config.micro_batches, " micro-batches = ", parts),
                      ": choose a multiple of ", parts, " with --sequences")};
  }

  // The fewest micro-batches of which each holds no more sequences than the model's preset allows.
  if (parts_open) {
    const int mine = config.sequences / config.data_ranks();
    const int most = find_preset(config.model.preset)->sequences_at_a_time;
    config.micro_batches = mine / largest_divisor(mine, most);
    if (sequences_asked && config.micro_batches > 1) {
      config.notes.push_back(text("a rank's ", mine, " sequences come in ", config.micro_batches, " micro-batches of ", mine / config.micro_batches,
                                  ", each issued by itself (--micro-batches 1 takes them at once)"));
    }
  }
  return Done{};
}

// With tokens cut a tp rank holds the rows of as many tokens as any other.
Status check_rows(const RunConfig& config) {
  const int tokens = config.tokens_per_micro_batch();
  if (switch_value(config, "tensor_parallel.sequence") != "cut" || tokens % config.tp == 0) return Done{};
  return Error{text("--set tensor_parallel.sequence=cut: the ", tokens, " tokens of a micro-batch do not divide over --tp ", config.tp,
                    ": change --sequences, --sequence or --micro-batches")};
}

// A part of a block is kept by runs of equally many ranks.
Status check_reshard_group(const RunConfig& config) {
  const int near = std::stoi(switch_value(config, "fsdp.reshard_group"));
  if (near == 0 || config.fsdp <= 2) return Done{};
  if (near == 1) return Error{"--set fsdp.reshard_group=1: a rank that keeps a block by itself keeps all of it, which is --reshard false"};
  if (near < config.fsdp && config.fsdp % near == 0) return Done{};
  std::string sizes;
  for (int size = 2; size < config.fsdp; ++size) {
    if (config.fsdp % size == 0) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  }
  return Error{text("--set fsdp.reshard_group=", near, ": the ", config.fsdp, " ranks of --fsdp are not cut into runs of ", near,
                    sizes.empty() ? ", nor of any other size" : ": choose from " + sizes + ", or 0 for all of them")};
}

Status settle_steps(RunConfig& config) {
  if (!config.was_asked("warmup-steps")) config.warmup_steps = std::min(config.warmup_steps, config.steps / 4);
  if (config.warmup_steps > config.steps) {
    return Error{text("--warmup-steps ", config.warmup_steps, " is more than --steps ", config.steps)};
  }
  if (config.is_open("min-lr")) config.min_lr = config.lr / 10;
  if (config.min_lr > config.lr) {
    return Error{text("--min-lr ", config.min_lr, " is above --lr ", config.lr)};
  }
  if (config.is_open("trace-steps")) {
    const int begin = std::min(config.warmup_steps, std::max(0, config.steps - 3));
    config.trace_steps = {begin, std::min(begin + 3, config.steps)};
  }
  if (config.trace_steps.end > config.steps) {
    return Error{text("--trace-steps ", config.trace_steps.begin, ":", config.trace_steps.end, " ends after the ",
                      config.steps, " steps of the run")};
  }
  return Done{};
}

Status settle_data(RunConfig& config) {
  for (std::string& name : config.data) {
    if (name == "grammar" || name == "synthetic") {
      if (config.data.size() > 1) {
        return Error{text("--data ", name, " stands alone; a file of that name is ./", name)};
      }
      if (name == "grammar" && config.model.vocab < 256) {
        return Error{text("--data grammar is bytes, so it needs a vocabulary of 256, not ", config.model.vocab)};
      }
      continue;
    }
    name = std::filesystem::absolute(name).lexically_normal().string();
  }
  return Done{};
}

// What cuBLASLt asks of GELU in a matmul, and what is for GPUs alone.
Status check_matmuls(const RunConfig& config) {
  if (config.device == DeviceKind::host) {
    if (config.matmuls.empty()) return Done{};
    return Error{text("--matmuls ", config.matmuls, " says by which of cuBLASLt's algorithms a GPU multiplies, and --device host has none: leave it out")};
  }
  const int numbers = config.precision == Precision::bf16 ? 8 : 4;   // of 16 bytes
  if (switch_value(config, "gelu.kernel") == "in_matmuls" && config.model.ffn_width / config.tp % numbers != 0) {
    return Error{text("--set gelu.kernel=in_matmuls needs rows of a multiple of 16 bytes, so --ffn-width over --tp must divide by ", numbers, ", and ", config.model.ffn_width, " / ", config.tp,
                      " does not: change the width, or leave GELU apart")};
  }
  return Done{};
}

// Checkpoints hold for any folder that a run is started in, and so does the file of matmuls.
Status settle_checkpoints(RunConfig& config) {
  if (config.checkpoint.empty() && config.save_every > 0) {
    return Error{text("--save-every ", config.save_every, " saves nowhere: name a folder with --checkpoint DIR")};
  }
  for (std::string* folder : {&config.checkpoint, &config.resume, &config.matmuls}) {
    if (!folder->empty()) *folder = std::filesystem::absolute(*folder).lexically_normal().string();
  }
  return Done{};
}

}  // namespace

double usual_comm_timeout(const RunConfig& config) {
  if (config.launch == Launch::threads) return 0;
  return config.device == DeviceKind::host && !config.lab.empty() ? 10 : 600;
}

base::Result<RunConfig> validate(RunConfig config, int gpus_available) {
  config.notes.clear();
  if (Status status = settle_device(config, gpus_available); !status) return status.as_error();
  if (Status status = check_model(config); !status) return status.as_error();
  if (Status status = check_layout(config, gpus_available); !status) return status.as_error();
  if (Status status = settle_batch(config); !status) return status.as_error();
  if (Status status = check_rows(config); !status) return status.as_error();
  if (Status status = check_reshard_group(config); !status) return status.as_error();
  if (Status status = settle_steps(config); !status) return status.as_error();
  if (Status status = settle_data(config); !status) return status.as_error();
  if (Status status = settle_checkpoints(config); !status) return status.as_error();
  if (Status status = check_switches(config); !status) return status.as_error();
  if (Status status = check_matmuls(config); !status) return status.as_error();
  if (config.device == DeviceKind::host && switch_value(config, "fsdp.reduce_dtype") == "bf16") {
    config.notes.push_back("--device host stores each number as --host-dtype says and rounds no gradient to bf16: of fsdp.reduce_dtype=bf16 it shows bytes and times, GPUs the rounding");
  }
  for (std::string& warning : warnings(config)) config.notes.push_back(std::move(warning));
  return config;
}

}  // namespace shardbook::config
