// The table of switches. Lines of originals were read at the commits that stand beside them.
#include "engine/config/switches.hpp"

namespace shardbook::config {

namespace {

const char* const pytorch = "pytorch/pytorch";
const char* const megatron = "NVIDIA/Megatron-LM";
const char* const torch_tag = "v2.8.0";
const char* const megatron_commit = "d98e8a64";

std::vector<Switch> make_table() {
  std::vector<Switch> table;
  auto row = [&table](Switch made) { table.push_back(std::move(made)); };

  row({.key = "accumulate.reduce", .values = {"each", "last"}, .default_value = "each",
       .sentence = "Whether gradients are summed over ranks after each micro-batch, or once after the last (no_sync).",
       .promise = Promise::bounded, .seam = Seam::plan, .needs = {"fsdp > 1", "micro-batches > 1"}, .excludes = {},
       .originals = {{pytorch, torch_tag, "torch/distributed/fsdp/fully_sharded_data_parallel.py", 1077, 1107, "no_sync"}},
       .megatron = "config.no_sync_func", .pytorch = "with model.no_sync()", .note = "04_fsdp#what-it-costs",
       .moves = {"--model gpt-1.3b --fsdp 8 --sequences 32 --micro-batches 4", "last", 5},
       .still = {"--model gpt-1.3b --fsdp 8 --sequences 512 --micro-batches 4", "last", 2}});

  row({.key = "activations.recompute", .values = {"none", "full"}, .default_value = "none",
       .sentence = "Whether a block keeps what its backward needs, or only its input, from which it computes the rest again.",
       .promise = Promise::same_bits, .seam = Seam::plan, .needs = {}, .excludes = {},
       .originals = {{megatron, megatron_commit, "megatron/core/tensor_parallel/random.py", 0, 0, "CheckpointFunction"}},
       .megatron = "--recompute-granularity full --recompute-method uniform", .pytorch = "torch.utils.checkpoint.checkpoint", .note = "04_fsdp#what-it-costs",
       .moves = {"--model gpt-1.3b --fsdp 4 --sequences 32", "full", 15}, .still = {}});

  row({.key = "data_parallel.bucket_mib", .least = 1, .most = 4096, .default_value = "25",
       .sentence = "How large a bucket of gradients is, in MiB, before its all-reduce begins.",
       .promise = Promise::same_bits, .seam = Seam::plan, .needs = {"dp > 1", "data_parallel.reduce = bucketed"}, .excludes = {},
       .originals = {{pytorch, torch_tag, "torch/nn/parallel/distributed.py", 0, 0, "bucket_cap_mb"}},
       .megatron = "--ddp-bucket-size (in elements)", .pytorch = "DistributedDataParallel(bucket_cap_mb=25)", .note = "02_data_parallel",
       .moves = {"--model gpt-124m --dp 8 --sequences 8", "4096", 5}, .still = {"--model gpt-124m --dp 8 --sequences 512", "128", 2}});

  row({.key = "data_parallel.reduce", .values = {"bucketed", "flat", "naive"}, .default_value = "bucketed",
       .sentence = "How gradients are summed over replicas: in buckets while backward runs, all at once after it, or each parameter by itself after it.",
       .promise = Promise::same_bits, .seam = Seam::plan, .needs = {"dp > 1"}, .excludes = {},
       .originals = {{pytorch, torch_tag, "torch/csrc/distributed/c10d/reducer.cpp", 0, 0, "Reducer"}},
       .megatron = "--overlap-grad-reduce", .pytorch = "DistributedDataParallel", .note = "02_data_parallel",
       .moves = {"--model gpt-124m --dp 8 --sequences 8", "naive", 20}, .still = {}});

  row({.key = "fsdp.backward_prefetch", .values = {"pre", "post", "none"}, .default_value = "pre",
       .sentence = "When backward gathers the next unit: before a unit's own work, after it, or when it is needed.",
       .promise = Promise::same_bits, .seam = Seam::plan, .needs = {"fsdp > 1", "reshard = true", "prefetch > 0"}, .excludes = {},
       .originals = {{pytorch, torch_tag, "torch/distributed/fsdp/_runtime_utils.py", 0, 0, "_prefetch_handle, BackwardPrefetch"}},
       .megatron = "", .pytorch = "FullyShardedDataParallel(backward_prefetch=BackwardPrefetch.BACKWARD_PRE)", .note = "04_fsdp#what-it-costs",
       .moves = {"--model gpt-1.3b --fsdp 8 --sequences 16", "none", 5},
       .still = {"--model gpt-1.3b --fsdp 8 --sequences 256", "post", 2}});

  row({.key = "fsdp.limit_all_gathers", .least = 0, .most = 64, .default_value = "0",
       .sentence = "How many freed units may still be in use on the GPU before the host waits for one of them; 0: the host never waits.",
       .promise = Promise::same_bits, .seam = Seam::plan, .needs = {"fsdp > 1", "reshard = true"}, .excludes = {},
       .originals = {{pytorch, torch_tag, "torch/distributed/fsdp/_limiter_utils.py", 0, 0, "_FreeEventQueue"}},
       .megatron = "", .pytorch = "FullyShardedDataParallel(limit_all_gathers=True): 2", .note = "04_fsdp#what-it-costs",
       .moves = {"--model gpt-124m --fsdp 8 --sequences 8", "1", 5},
       .still = {"--model gpt-1.3b --fsdp 8 --sequences 256", "2", 0.5}});

  row({.key = "fsdp.prefetch", .least = 0, .most = 64, .default_value = "1", .option = "prefetch",
       .sentence = "How many units ahead of their use are gathered.",
       .promise = Promise::same_bits, .seam = Seam::plan, .needs = {"fsdp > 1"}, .excludes = {},
       .originals = {{pytorch, torch_tag, "torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py", 0, 0, "_backward_prefetch"}},
       .megatron = "--overlap-param-gather", .pytorch = "FSDPModule.set_modules_to_forward_prefetch", .note = "04_fsdp#what-it-costs",
       .moves = {"--model gpt-1.3b --fsdp 8 --sequences 64", "0", 5},
       .still = {"--model gpt-1.3b --fsdp 8 --sequences 256", "2", 0.5}});

  row({.key = "fsdp.reshard", .values = {"true", "false"}, .default_value = "true", .option = "reshard",
       .sentence = "Whether a block's parameters are freed after its forward and gathered again for its backward.",
       .promise = Promise::same_bits, .seam = Seam::store, .needs = {"fsdp > 1"}, .excludes = {},
       .originals = {{pytorch, torch_tag, "torch/distributed/fsdp/_fully_shard/_fully_shard.py", 0, 0, "reshard_after_forward"}},
       .megatron = "--data-parallel-sharding-strategy", .pytorch = "fully_shard(module, reshard_after_forward=True)", .note = "04_fsdp#what-it-costs",
       .moves = {"--model gpt-1.3b --fsdp 8 --sequences 8", "false", 5},
       .still = {"--model gpt-1.3b --fsdp 8 --sequences 512", "false", 2}});

  row({.key = "host.synchronize", .values = {"never", "layer"}, .default_value = "never",
       .sentence = "A planted mistake: the host waits for the GPU after each layer, as a forgotten .item() or print makes it do.",
       .promise = Promise::same_bits, .seam = Seam::plan, .needs = {}, .excludes = {},
       .originals = {}, .megatron = "", .pytorch = "loss.item(), torch.cuda.synchronize()", .note = "04_fsdp#what-it-costs",
       .moves = {"--model gpt-124m --fsdp 2 --sequences 2", "layer", 5},
       .still = {"--model gpt-1.3b --fsdp 1 --sequences 8", "layer", 2}});

  row({.key = "tensor_parallel.input_gradient_sum", .values = {"overlapped", "awaited"}, .default_value = "overlapped",
       .sentence = "Whether the weight gradient of a column-parallel linear runs while its input gradient is summed over ranks, or after.",
       .promise = Promise::same_bits, .seam = Seam::spec, .needs = {"tp > 1"}, .excludes = {},
       .originals = {{megatron, megatron_commit, "megatron/core/tensor_parallel/layers.py", 694, 698, "async_grad_allreduce"}},
       .megatron = "--no-async-tensor-model-parallel-allreduce", .pytorch = "", .note = "03_tensor_parallel",
       .moves = {"--model gpt-1.3b --tp 8 --sequences 8", "awaited", 2}, .still = {}});
  return table;
}

}  // namespace

const std::vector<Switch>& switches() {
  static const std::vector<Switch> table = make_table();
  return table;
}

}  // namespace shardbook::config
