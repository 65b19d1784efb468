// The table of switches. Lines of originals were read at the commits that stand beside them.
//
// A trial that is left empty has its why beside it. Percents are the modelled clock's (profile h200x8), rounded down
// from what it gave; tests/cli/switches_test.cpp holds the rows to them.
#include "engine/config/switches.hpp"

namespace shardbook::config {

namespace {

const char* const pytorch = "pytorch/pytorch";
const char* const megatron = "NVIDIA/Megatron-LM";
// The commit that the wheels of v2.8.0 name (torch.version.git_version).
const char* const torch_commit = "a1cb3cc05d46d198467bebbb6e8fba50a325d4e7";
const char* const megatron_commit = "d98e8a64ddf34856e74b24714e3bedb2f5a39553";

// Lines of each, and the name that stands there.
Original in_pytorch(std::string path, int first, int last, std::string what) {
  return {pytorch, torch_commit, "torch/" + std::move(path), first, last, std::move(what)};
}
Original in_megatron(std::string path, int first, int last, std::string what) {
  return {megatron, megatron_commit, "megatron/core/" + std::move(path), first, last, std::move(what)};
}

// A trial by what a rank sets aside.
Trial of_memory(std::string options, std::string value, double percent) { return {.options = std::move(options), .value = std::move(value), .percent = percent, .memory = true}; }

std::vector<Switch> make_switches() {
  std::vector<Switch> table;
  auto row = [&table](Switch made) { table.push_back(std::move(made)); };

  row({.key = "accumulate.reduce", .values = {"each", "last"}, .default_value = "each",
       .sentence = "Whether gradients are summed over ranks after each micro-batch, or once after the last (no_sync).",
       .promise = Promise::bounded, .seam = Seam::plan, .needs = {"fsdp > 1", "micro-batches > 1"}, .excludes = {},
       .originals = {in_pytorch("distributed/fsdp/fully_sharded_data_parallel.py", 1027, 1065, "no_sync"),
                     in_pytorch("distributed/fsdp/_runtime_utils.py", 738, 742, "_sync_gradients: what no_sync leaves out of _post_backward_hook"),
                     in_megatron("distributed/distributed_data_parallel.py", 588, 599, "no_sync")},
       .megatron = "config.no_sync_func (no flag: the schedule calls it)", .pytorch = "with model.no_sync(); set_requires_gradient_sync(False)", .note = "04_fsdp#micro-batches",
       .moves = {"--model gpt-124m --fsdp 8 --sequences 64 --micro-batches 4", "last", 5},
       .still = {"--model gpt-124m --fsdp 8 --sequences 4096 --micro-batches 4", "last", 0.5}});

  row({.key = "accumulate.weight_gradient", .values = {"fused", "apart"}, .default_value = "fused",
       .sentence = "Whether a matmul adds a micro-batch's weight gradient to the sum itself, or makes it in a place of its own, for another kernel to add.",
       .promise = Promise::bounded, .seam = Seam::spec, .needs = {"micro-batches > 1", "dp > 1 or accumulate.reduce = last"}, .excludes = {},
       .originals = {in_megatron("tensor_parallel/layers.py", 713, 729, "gradient_accumulation_fusion: wgrad_gemm_accum_fp32 adds to main_grad")},
       .megatron = "--no-gradient-accumulation-fusion", .pytorch = "AccumulateGrad: autograd always adds apart", .note = "04_fsdp#micro-batches",
       .moves = {"--model gpt-1.3b --fsdp 2 --sequences 16 --micro-batches 4 --set accumulate.reduce=last", "apart", 5},
       .still = {"--model gpt-124m --dp 2 --sequences 256 --micro-batches 2", "apart", 0.5}});

  row({.key = "activations.recompute", .values = {"none", "cheap", "selective", "full"}, .default_value = "none",
       .sentence = "What a block computes again in its backward: nothing, what costs no matmul (outputs of norms and of the activation), attention's probabilities (the square of positions, from q and k), or all, from its input.",
       // With fused attention there is no square to save
       .promise = Promise::same_bits, .seam = Seam::plan, .needs = {}, .excludes = {"selective: attention = flash", "selective: attention = cudnn"},
       .originals = {in_megatron("transformer/attention.py", 446, 497, "_checkpointed_attention_forward (selective)"),
                     in_megatron("transformer/transformer_config.py", 1983, 1989, "core_attn of fused attention needs no recompute"),
                     in_megatron("tensor_parallel/random.py", 591, 672, "CheckpointFunction"),
                     in_megatron("tensor_parallel/random.py", 848, 860, "CheckpointWithoutOutput: an output that its readers have saved is dropped, and made again (cheap)"),
                     in_megatron("transformer/transformer_config.py", 560, 582, "recompute_modules: layernorm, moe_act (cheap), core_attn (selective)"),
                     {pytorch, "00a1abb4ef74f047662e57678240bbe3dfe46ef0", "torch/_functorch/config.py", 69, 86, "ban_recompute_...: what torch.compile makes again unasked, pointwise ops that fuse into backward (cheap)"}},
       .megatron = "--recompute-granularity selective, with --recompute-modules layernorm, moe_act or core_attn; --recompute-granularity full --recompute-method uniform --recompute-num-layers 1", .pytorch = "torch.utils.checkpoint.checkpoint, round core attention or round a block; torch.compile makes pointwise ops again", .note = "06_memory#recompute",
       .moves = {"--model gpt-124m --fsdp 8 --sequences 64", "full", 20},
       // Where gathers take all the time, the small square of a short sequence hides behind them. A second forward of all does
       // not: 0.54 % is the least that was found (gpt-6.9b, --fsdp 2, 64 tokens), for it delays the last of them
       .still = {"--model gpt-1.3b --fsdp 2 --sequences 16 --sequence 64", "selective", 0.5}});

  row({.key = "attention.kernel", .values = {"unfused", "flash", "cudnn"}, .default_value = "unfused", .option = "attention",
       .sentence = "Whether attention is six matmuls and a softmax with the square of positions in memory, or one kernel each way that goes over it by tiles and keeps a number a query: the engine's own, or cuDNN's where that is installed.",
       .promise = Promise::bounded, .seam = Seam::spec, .needs = {}, .excludes = {"cudnn: attention-dropout > 0"},
       .originals = {in_megatron("transformer/enums.py", 51, 58, "AttnBackend"),
                     in_megatron("models/common/language_module/language_module.py", 108, 148, "_set_attention_backend"),
                     in_megatron("transformer/dot_product_attention.py", 26, 41, "DotProductAttention: the unfused form"),
                     {"karpathy/llm.c", "f1e2ace651495b74ae22d45d1723443fd00ecd3a", "llmc/cudnn_att.cpp", 137, 220, "lookup_cache_or_build_graph_bwd: cuDNN, its sums in one order"},
                     {"NVIDIA/cudnn-frontend", "3929da2ef4c1dba1bb8acb68727b9134f26f40c0", "include/cudnn_frontend/node/scaled_dot_product_flash_attention.h", 1482, 1487, "use_dp_workspace: what one order of sums asks for"}},
       .megatron = "--attention-backend flash (or fused: cuDNN's); --use-flash-attn", .pytorch = "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True), with sdpa_kernel(SDPBackend.FLASH_ATTENTION) or (SDPBackend.CUDNN_ATTENTION)", .note = "05_flash_attention#measured",
       .moves = {"--model gpt-1.3b --fsdp 2 --sequences 16", "flash", 5},
       .still = {"--model gpt-6.9b --fsdp 8 --sequences 8 --sequence 256", "flash", 0.5}});

  row({.key = "data_parallel.bucket_mib", .least = 1, .most = 4096, .default_value = "25",
       .sentence = "How large a bucket of gradients is, in MiB, before its all-reduce begins; a unit's gradients stay together, so a smaller one does nothing.",
       .promise = Promise::same_bits, .seam = Seam::plan, .needs = {"dp > 1", "data_parallel.reduce = bucketed"}, .excludes = {},
       .originals = {in_pytorch("csrc/distributed/c10d/reducer.hpp", 29, 30, "kDefaultBucketBytesCap"),
                     in_megatron("distributed/distributed_data_parallel.py", 131, 137, "bucket_size")},
       .megatron = "--ddp-bucket-size (in elements; 40 million, or a million a rank)", .pytorch = "DistributedDataParallel(bucket_cap_mb=25)", .note = "rooms/data_parallel#buckets",
       .moves = {"--model gpt-124m --dp 4 --sequences 4", "4096", 10},
       .still = {"--model gpt-124m --dp 8 --sequences 256", "50", 0.5}});

  row({.key = "data_parallel.reduce", .values = {"bucketed", "flat", "naive"}, .default_value = "bucketed",
       .sentence = "How gradients are summed over replicas: in buckets while backward runs, all at once after it, or each parameter by itself after it.",
       .promise = Promise::same_bits, .seam = Seam::plan, .needs = {"dp > 1"}, .excludes = {},
       .originals = {in_pytorch("csrc/distributed/c10d/reducer.hpp", 274, 284, "Reducer::mark_variable_ready, mark_bucket_ready"),
                     in_megatron("distributed/distributed_data_parallel.py", 553, 586, "_make_backward_post_hook"),
                     in_megatron("distributed/param_and_grad_buffer.py", 863, 884, "register_grad_ready")},
       .megatron = "--overlap-grad-reduce (off unless given)", .pytorch = "DistributedDataParallel(module)", .note = "rooms/data_parallel#when",
       .moves = {"--model gpt-124m --dp 8 --sequences 8", "naive", 50},
       .still = {"--model gpt-124m --dp 2 --sequences 512 --micro-batches 1 --attention flash", "flat", 0.5}});

  row({.key = "dropout.recompute", .values = {"repeats", "anew"}, .default_value = "repeats",
       .sentence = "A planted mistake: what a block computes again in its backward draws other dropout masks than its forward did.",
       .promise = Promise::wrong, .seam = Seam::spec, .needs = {"activations.recompute = full", "hidden-dropout > 0"}, .excludes = {},
       .originals = {}, .megatron = "", .pytorch = "", .note = "rooms/config#wrong", .caught_by = "verify --against"});

  row({.key = "dropout.stream", .values = {"by_place", "one"}, .default_value = "by_place",
       .sentence = "A planted mistake: all tp ranks drop from one random stream, so heads of different ranks get the same masks.",
       .promise = Promise::wrong, .seam = Seam::spec, .needs = {"tp > 1", "attention-dropout > 0"}, .excludes = {},
       .originals = {}, .megatron = "", .pytorch = "", .note = "rooms/config#wrong", .caught_by = "verify --against"});

  row({.key = "fsdp.backward_prefetch", .values = {"pre", "post", "none"}, .default_value = "pre",
       .sentence = "When backward gathers the next unit: before a unit's own work, after it, or when it is needed.",
       .promise = Promise::same_bits, .seam = Seam::plan, .needs = {"fsdp > 1", "reshard = true", "prefetch > 0"}, .excludes = {},
       .originals = {in_pytorch("distributed/fsdp/api.py", 73, 109, "BackwardPrefetch"),
                     in_pytorch("distributed/fsdp/_runtime_utils.py", 686, 689, "_prefetch_handle: in _pre_backward_hook, for BACKWARD_PRE"),
                     in_pytorch("distributed/fsdp/_runtime_utils.py", 789, 803, "_prefetch_handle: in _post_backward_reshard, for BACKWARD_POST")},
       .megatron = "", .pytorch = "FullyShardedDataParallel(backward_prefetch=BackwardPrefetch.BACKWARD_PRE)", .note = "04_fsdp#depth",
       .moves = {"--model gpt-124m --fsdp 8 --sequences 32", "none", 5},
       .still = {"--model gpt-124m --fsdp 8 --sequences 64", "post", 0.5}});

  row({.key = "fsdp.blocks_a_unit", .least = 1, .most = 256, .default_value = "1",
       .sentence = "How many blocks in a row are one unit, gathered, freed and reduced together: fewer and larger collectives, more memory whole at once. The last has what is left.",
       .promise = Promise::bounded, .seam = Seam::spec, .needs = {"fsdp > 1"}, .excludes = {},
       .originals = {in_pytorch("distributed/fsdp/_fully_shard/_fully_shard.py", 121, 130, "fully_shard: the parameters of one call are gathered in one collective"),
                     in_megatron("distributed/fsdp/mcore_fsdp_adapter.py", 163, 173, "fsdp_unit_modules: each layer, unless others are named"),
                     in_megatron("distributed/fsdp/src/megatron_fsdp/megatron_fsdp.py", 419, 444, "suggested_communication_unit_size: of two units, unless it is given")},
       .megatron = "--suggested-communication-unit-size (in elements; so much is gathered ahead at once)",
       .pytorch = "fully_shard([block, next_block]); FullyShardedDataParallel(auto_wrap_policy=transformer_auto_wrap_policy)", .note = "04_fsdp#units",
       .moves = {"--model gpt-1.3b --fsdp 8 --sequences 16", "24", 15},
       .still = {"--model gpt-1.3b --fsdp 2 --sequences 16", "2", 0.5}});

  row({.key = "fsdp.gather_awaited", .values = {"yes", "no"}, .default_value = "yes",
       .sentence = "A planted mistake: compute does not wait for the gather of the parameters that it is about to use.",
       .promise = Promise::wrong, .seam = Seam::store, .needs = {"fsdp > 1"}, .excludes = {},
       .originals = {}, .megatron = "", .pytorch = "", .note = "rooms/config#wrong", .caught_by = "verify"});

  row({.key = "fsdp.gradient_memory", .values = {"own", "lent"}, .default_value = "own",
       .sentence = "Whether the sums of blocks' gradients have memory of their own, or take that of activations which a block's backward was the last to read, free until the next step; and whether the whole gradients of embedding and head have a place each, or one in turn.",
       // The numbers of a lot are of two types, and what checks them must know which
       .promise = Promise::same_bits, .seam = Seam::store, .needs = {"fsdp > 1", "dp = 1", "micro-batches = 1"}, .excludes = {"activations.recompute = full", "fsdp.offload = parameters", "check-finite = true"},
       .originals = {in_pytorch("distributed/fsdp/_fully_shard/_fsdp_collectives.py", 453, 547, "reduce_output: allocated in foreach_reduce, when activations have been freed; the shard's gradient is a view of it")},
       .megatron = "", .pytorch = "optimizer.zero_grad(set_to_none=True), the default: gradients are made in backward, out of what the allocator got back from activations (lent)", .note = "06_memory#lent",
       .moves = of_memory("--model gpt-1.3b --fsdp 2 --sequences 16 --attention flash", "lent", 9),
       .still = of_memory("--model gpt-124m --fsdp 64 --sequences 512", "lent", 0.5)});

  row({.key = "fsdp.limit_all_gathers", .least = 0, .most = 64, .default_value = "0",
       .sentence = "How many freed units may still be in use on the GPU before the host waits for one of them; 0: the host never waits.",
       .promise = Promise::same_bits, .seam = Seam::plan, .needs = {"fsdp > 1", "reshard = true"}, .excludes = {},
       .originals = {in_pytorch("distributed/fsdp/_limiter_utils.py", 7, 33, "_FreeEventQueue"),
                     in_pytorch("distributed/fsdp/_runtime_utils.py", 293, 299, "dequeue_if_needed: the limiter, in _unshard")},
       .megatron = "", .pytorch = "FullyShardedDataParallel(limit_all_gathers=True): 2", .note = "04_fsdp#slots",
       .moves = {"--model gpt-124m --fsdp 8 --sequences 8", "1", 5},
       .still = {"--model gpt-124m --fsdp 8 --sequences 64", "2", 0.5}});

  row({.key = "fsdp.min_num_params", .least = 0, .most = 100000, .default_value = "0",
       .sentence = "How many million parameters a unit has at least, counted as a rank holds them whole: so many blocks in a row are joined. The last unit has what is left; 0: as fsdp.blocks_a_unit says.",
       .promise = Promise::bounded, .seam = Seam::spec, .needs = {"fsdp > 1"}, .excludes = {"fsdp.blocks_a_unit > 1"},
       .originals = {in_megatron("distributed/param_and_grad_buffer.py", 980, 996, "bucket_size: parameters are joined until a bucket has as many numbers; the last has what is left")},
       .megatron = "--ddp-bucket-size (in elements, of the buckets of gradients)", .pytorch = "FullyShardedDataParallel(auto_wrap_policy=partial(size_based_auto_wrap_policy, min_num_params=1e8)): of modules, which it never joins", .note = "04_fsdp#units",
       .moves = {"--model gpt-1.3b --fsdp 8 --sequences 16", "1000", 5},
       .still = {"--model gpt-1.3b --fsdp 2 --sequences 16", "100", 0.5}});

  row({.key = "fsdp.offload", .values = {"none", "optimizer", "parameters"}, .default_value = "none",
       .sentence = "What of a rank's shards lies in the host's memory: nothing; masters and moments, which cross to the device for the update and back, piece by piece; or, as in the originals, parameters and gradients as well: they cross for each gather and after each reduction, and the CPU updates.",
       .promise = Promise::same_bits, .seam = Seam::store, .needs = {}, .excludes = {"parameters: dp > 1"},
       .originals = {in_pytorch("distributed/fsdp/api.py", 230, 242, "CPUOffload"),
                     in_pytorch("distributed/fsdp/_flat_param.py", 1212, 1229, "pin_memory: the shard, and room for its gradient, in host memory"),
                     in_pytorch("distributed/fsdp/_flat_param.py", 1299, 1302, "flat_param_to: the shard, to the device, in pre_unshard"),
                     in_pytorch("distributed/fsdp/_runtime_utils.py", 965, 987, "_offload_grad: the reduced gradient, to the host"),
                     in_pytorch("distributed/fsdp/_fully_shard/_fsdp_param.py", 739, 743, "offload_to_cpu: in all_gather_inputs, the shard goes to the device"),
                     in_pytorch("distributed/fsdp/_fully_shard/_fsdp_collectives.py", 524, 542, "offload_to_cpu: in foreach_reduce, the reduced shard goes to the CPU, and is added up there"),
                     in_pytorch("distributed/fsdp/_fully_shard/_fsdp_param_group.py", 485, 489, "grad_offload_event: in finalize_backward, the thread waits for it, and the optimizer steps on the CPU"),
                     in_megatron("optimizer/cpu_offloading/hybrid_optimizer.py", 150, 179, "step: gradients go to the host, and a CPU optimizer steps"),
                     in_megatron("optimizer/cpu_offloading/hybrid_optimizer.py", 216, 222, "_d2h_stream, _h2d_stream: a stream for each direction")},
       .megatron = "--optimizer-cpu-offload --optimizer-offload-fraction 1.0 --overlap-cpu-optimizer-d2h-h2d", .pytorch = "parameters: fully_shard(module, offload_policy=CPUOffloadPolicy(pin_memory=True)); FullyShardedDataParallel(cpu_offload=CPUOffload(offload_params=True))", .note = "06_memory#offload",
       .moves = {"--model gpt-1.3b --fsdp 2 --sequences 16", "optimizer", 100},
       .still = {"--model gpt-124m --fsdp 8 --sequences 4096 --micro-batches 4", "optimizer", 0.5}});

  row({.key = "fsdp.parameter_copy", .values = {"kept", "made"}, .default_value = "kept",
       .sentence = "Whether a rank keeps, beside the fp32 masters of its shard, the copy in bf16 that gathers send, or makes it for each gather, in its own place of what is gathered.",
       .promise = Promise::same_bits, .seam = Seam::store, .needs = {"fsdp > 1"}, .excludes = {"fsdp.offload = optimizer", "fsdp.offload = parameters"},
       .originals = {in_pytorch("distributed/fsdp/_fully_shard/_fsdp_collectives.py", 92, 116, "all_gather_copy_in_cuda: shards are copied, and so rounded, into their place in what is gathered")},
       .megatron = "", .pytorch = "fully_shard(module, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16)), always (made)", .note = "06_memory#copy",
       .moves = of_memory("--model gpt-6.9b --fsdp 2 --sequences 4 --attention flash", "made", 8),
       .still = of_memory("--model gpt-124m --fsdp 64 --sequences 512", "made", 0.5)});

  row({.key = "fsdp.prefetch", .least = 0, .most = 64, .default_value = "1", .option = "prefetch",
       .sentence = "How many units ahead of their use are gathered.",
       .promise = Promise::same_bits, .seam = Seam::plan, .needs = {"fsdp > 1"}, .excludes = {},
       .originals = {in_pytorch("distributed/fsdp/_fully_shard/_fsdp_param_group.py", 512, 524, "_backward_prefetch"),
                     in_pytorch("distributed/fsdp/_fully_shard/_fsdp_state.py", 249, 251, "_states_to_forward_prefetch"),
                     in_pytorch("distributed/fsdp/_fully_shard/_fully_shard.py", 418, 436, "set_modules_to_forward_prefetch")},
       .megatron = "--overlap-param-gather (one bucket ahead)", .pytorch = "FSDPModule.set_modules_to_forward_prefetch", .note = "04_fsdp#depth",
       .moves = {"--model gpt-124m --fsdp 8 --sequences 32", "0", 10},
       .still = {"--model gpt-124m --fsdp 8 --sequences 64", "2", 0.5}});

  row({.key = "fsdp.reduce_dtype", .values = {"fp32", "bf16"}, .default_value = "fp32",
       .sentence = "In which type gradients are summed over the ranks that shard: bf16 is half of the bytes, and each summand and each partial sum is rounded. The host computes bf16 in f32, so there the bits stay.",
       .promise = Promise::bounded, .seam = Seam::store, .needs = {"fsdp > 1"}, .excludes = {},
       .originals = {in_pytorch("distributed/fsdp/api.py", 112, 129, "MixedPrecision"),
                     in_pytorch("distributed/fsdp/_runtime_utils.py", 751, 760, "_reduce_dtype: what the gradient is rounded to, in _post_backward_hook"),
                     in_pytorch("distributed/fsdp/_fully_shard/_fsdp_collectives.py", 435, 466, "reduce_scatter_input: of reduce_dtype, in foreach_reduce"),
                     in_pytorch("distributed/fsdp/_fully_shard/_fsdp_collectives.py", 508, 510, "_to_dtype_if_needed: the sum, back in the type of the shard"),
                     in_megatron("distributed/distributed_data_parallel_config.py", 12, 16, "grad_reduce_in_fp32"),
                     in_megatron("distributed/distributed_data_parallel_config.py", 64, 67, "reduce_scatter_with_fp32_accumulation: crosses in bf16, sums in fp32")},
       .megatron = "--grad-reduce-in-bf16 (micro-batches are then added up in bf16, too)", .pytorch = "MixedPrecision(reduce_dtype=torch.bfloat16); MixedPrecisionPolicy(reduce_dtype=torch.bfloat16); not given, that of the parameters", .note = "04_fsdp#reduce-dtype",
       .moves = {"--model gpt-1.3b --fsdp 8 --sequences 8", "bf16", 8},
       .still = {"--model gpt-1.3b --fsdp 2 --sequences 16", "bf16", 0.5}});

  row({.key = "fsdp.reshard", .values = {"true", "false"}, .default_value = "true", .option = "reshard",
       .sentence = "Whether a block's parameters are freed after its forward and gathered again for its backward.",
       .promise = Promise::same_bits, .seam = Seam::store, .needs = {"fsdp > 1"}, .excludes = {},
       .originals = {in_pytorch("distributed/fsdp/_fully_shard/_fully_shard.py", 143, 154, "reshard_after_forward"),
                     in_pytorch("distributed/fsdp/_fully_shard/_fsdp_param_group.py", 332, 342, "reshard")},
       .megatron = "--data-parallel-sharding-strategy optim_grads", .pytorch = "fully_shard(module, reshard_after_forward=True)", .note = "04_fsdp#memory",
       .moves = {"--model gpt-1.3b --fsdp 8 --sequences 16", "false", 5},
       .still = {"--model gpt-124m --fsdp 8 --sequences 512 --micro-batches 1", "false", 0.5}});

  row({.key = "fsdp.reshard_group", .least = 0, .most = 4096, .default_value = "0",
       .sentence = "Over how many ranks in a row a block stays sharded between its forward and its backward, which gathers it among these alone; 0: over all. More memory, and gathers that cross no slower link. (1 would be fsdp.reshard=false.)",
       .promise = Promise::same_bits, .seam = Seam::store, .needs = {"fsdp > 2", "reshard = true"}, .excludes = {},
       .originals = {in_pytorch("distributed/fsdp/_fully_shard/_fsdp_param_group.py", 332, 342, "reshard: to the post-forward mesh, and an event for the next unshard"),
                     in_pytorch("distributed/fsdp/_fully_shard/_fsdp_param.py", 544, 576, "to_sharded_post_forward: a rank's part is copied, and the whole freed"),
                     {pytorch, "0140b62d8bab203e4699faeba802b5204fa51d26", "torch/distributed/fsdp/_fully_shard/_fsdp_init.py", 15, 53, "_get_post_forward_mesh_info: ranks in a row"}},
       .megatron = "", .pytorch = "fully_shard(module, reshard_after_forward=8); DeepSpeed: zero_hpz_partition_size (ZeRO++)", .note = "04_fsdp#near",
       // Two nodes, of which each has two ranks of a group. With all eight of a node the assumed network is as good as NVLink
       .moves = {"--model gpt-6.9b --layers 8 --tp 4 --fsdp 4 --sequences 8 --micro-batches 2 --set accumulate.reduce=last", "2", 5},
       .still = {"--model gpt-124m --fsdp 16 --sequences 128 --micro-batches 1", "8", 0.5}});

  row({.key = "fsdp.sharding", .values = {"flat", "per_parameter"}, .default_value = "flat",
       .sentence = "Whether a unit's parameters are laid flat, cut and gathered as one, or each is cut and gathered by itself: as many bytes, and a collective for each bias. (FSDP2 cuts each as well, but copies a unit's together to gather them at once.)",
       .promise = Promise::bounded, .seam = Seam::store, .needs = {"fsdp > 1"}, .excludes = {"per_parameter: data_parallel.reduce = naive"},
       .originals = {in_pytorch("distributed/fsdp/_flat_param.py", 812, 867, "flatten_tensors: end to end, with padding"),
                     in_pytorch("distributed/fsdp/_fully_shard/_fsdp_param.py", 359, 365, "_chunk_with_empty: each parameter, cut by itself"),
                     in_pytorch("distributed/fsdp/_fully_shard/_fsdp_collectives.py", 337, 345, "split_with_sizes_copy: what was gathered at once, into its parameters"),
                     in_pytorch("distributed/fsdp/_fully_shard/_fsdp_collectives.py", 571, 578, "chunk_cat: gradients together, to be reduced at once")},
       .megatron = "", .pytorch = "FullyShardedDataParallel: flat; fully_shard: per parameter, gathered together", .note = "04_fsdp#one-by-one",
       .moves = {"--model gpt-124m --fsdp 8 --sequences 8", "per_parameter", 50},
       .still = {"--model gpt-6.9b --fsdp 8 --sequences 128 --micro-batches 1", "per_parameter", 0.5}});

  row({.key = "fsdp.update", .values = {"whole", "by_unit"}, .default_value = "whole",
       .sentence = "Whether the norm waits for all sums of a step, and the next step's gathers for its whole update; or a unit's squares are taken once its own sum is there, and it is gathered once it is itself updated, while other units still are. The norm then adds them up in the order in which they come.",
       .promise = Promise::bounded, .seam = Seam::store, .needs = {"fsdp > 1"}, .excludes = {},
       .originals = {in_megatron("optimizer/optimizer.py", 1667, 1676, "ChainedOptimizer._step: the first part's gather begins before the others are updated"),
                     in_megatron("optimizer/optimizer_config.py", 340, 341, "overlap_param_gather_with_optimizer_step")},
       .megatron = "--overlap-param-gather-with-optimizer-step (of the first of several model chunks)", .pytorch = "fully_shard: whole; the first gathers wait for the stream of the optimizer, or for FSDPModule.set_post_optim_event(event)", .note = "04_fsdp#by-unit",
       .moves = {"--model gpt-1.3b --layers 2 --fsdp 2 --sequences 2", "by_unit", 7},
       .still = {"--model gpt-124m --fsdp 8 --sequences 4096 --micro-batches 4", "by_unit", 0.5}});

  row({.key = "fsdp.update_awaited", .values = {"yes", "no"}, .default_value = "yes",
       .sentence = "A planted mistake: the next step's gathers do not wait for the update, and may gather shards as they were before it.",
       .promise = Promise::wrong, .seam = Seam::store, .needs = {"fsdp > 1"}, .excludes = {},
       .originals = {}, .megatron = "", .pytorch = "", .note = "rooms/config#wrong", .caught_by = "verify"});

  row({.key = "gelu.kernel", .values = {"apart", "in_matmuls"}, .default_value = "apart",
       .sentence = "Whether GELU and its slope are kernels of their own, that read again what a matmul has just written; or the matmuls on both sides do them with the numbers that they have (epilogues of cuBLASLt).",
       .promise = Promise::bounded, .seam = Seam::spec, .needs = {}, .excludes = {"architecture = llama"},
       .originals = {{"karpathy/llm.c", "f1e2ace651495b74ae22d45d1723443fd00ecd3a", "llmc/matmul.cuh", 174, 190, "matmul_cublaslt: GELU_AUX_BIAS forward, DGELU backward (-ge 2; off unless asked for)"},
                     {"NVIDIA/TransformerEngine", "d0067d0da6cb01811b8072a7d304f0e00344ce2b", "transformer_engine/common/gemm/cublaslt_gemm.cu", 650, 690, "cublas_gemm: the epilogues of bias and GELU"},
                     {"NVIDIA/TransformerEngine", "d0067d0da6cb01811b8072a7d304f0e00344ce2b", "transformer_engine/pytorch/module/layernorm_mlp.py", 571, 586, "gemm_gelu_fusion: on, where numbers are not fp8"},
                     in_megatron("fusions/fused_bias_gelu.py", 16, 36, "bias_gelu, bias_gelu_back: with the bias, and apart from the matmul")},
       .megatron = "--no-bias-gelu-fusion (bias and GELU as one kernel, unless it is given)", .pytorch = "torch.compile(mode=\"max-autotune\"): Triton's matmuls take what follows as an epilogue", .note = "07_speed#gelu",
       // Of time it was measured to save 1.5 % of gpt-124m's step and nothing of gpt-1.3b's
       .moves = of_memory("--model gpt-124m --layers 2 --vocab 256 --attention flash --sequences 64 --micro-batches 1", "in_matmuls", 7),
       .still = of_memory("--model gpt-1.3b --sequences 8", "in_matmuls", 0.5)});

  row({.key = "host.connections", .least = 0, .most = 32, .default_value = "0",
       .sentence = "Over how many queues the streams of a rank come to its GPU; 0: as CUDA has it (8). With 1 kernels come in the order in which the host issued them, so that a sum over ranks is there before the weight gradient that was issued after it; nothing else gets ahead of what waits, either.",
       .promise = Promise::same_bits, .seam = Seam::group, .needs = {"device = cuda", "ranks > 1"}, .excludes = {},
       .originals = {in_megatron("tensor_parallel/layers.py", 842, 849, "CUDA_DEVICE_MAX_CONNECTIONS: 1, in the order in which they are called"),
                     in_megatron("distributed/distributed_data_parallel.py", 333, 339, "... and what then must not be issued back to back")},
       .megatron = "CUDA_DEVICE_MAX_CONNECTIONS=1 in the environment, which it asks for under tensor parallelism", .pytorch = "CUDA_DEVICE_MAX_CONNECTIONS=1 in the environment", .note = "03_tensor_parallel#behind",
       // Beside the sums of tp 2, which it is for, it gained 0.8 %
       .moves = {"--model gpt-1.3b --fsdp 2 --sequences 4", "1", 5, true},
       .still = {"--model gpt-124m --fsdp 2 --sequences 512 --micro-batches 1 --attention flash", "1", 0.5, true}});

  row({.key = "host.delay", .least = 0, .most = 10000, .default_value = "0",
       .sentence = "A machine of the labs: each op costs the host so many microseconds more, as a slower language would.",
       .promise = Promise::same_bits, .seam = Seam::machine, .needs = {}, .excludes = {},
       .originals = {}, .megatron = "", .pytorch = "", .note = "rooms/config#lab-machine",
       .moves = {"--model gpt-124m --fsdp 8 --sequences 8", "10", 20},
       .still = {"--model gpt-1.3b --sequences 16", "10", 0.5}});

  row({.key = "host.graph", .values = {"off", "on"}, .default_value = "off",
       .sentence = "Whether a step that is not traced is captured once as a CUDA graph and then launched by one call. Traced steps are issued one by one, as without.",
       .promise = Promise::same_bits, .seam = Seam::plan, .needs = {},
       // The host waits within such a step, works in it, or numbers what it issues
       .excludes = {"host.synchronize = layer", "fsdp.limit_all_gathers > 0", "fsdp.offload = optimizer", "fsdp.offload = parameters", "check-finite = true",
                    "dropout.recompute = anew"},
       .originals = {in_megatron("full_cuda_graph.py", 184, 243, "cuda_graph_warmup_steps: the iteration before which forward and backward of all micro-batches are captured"),
                     in_megatron("full_cuda_graph.py", 97, 135, "StaticBufferLoader: inputs are copied to buffers that stay"),
                     {pytorch, "00cbb1f84c40c6785c055b00d7faa81dee6a2c43", "aten/src/ATen/cuda/CUDAGraph.cpp", 95, 135, "capture_begin: in the capture mode that is asked for"}},
       .megatron = "--cuda-graph-impl full_iteration (forward and backward; --cuda-graph-impl local: layer by layer); --enable-cuda-graph, before", .pytorch = "torch.cuda.graph(g), g.replay(); torch.cuda.make_graphed_callables", .note = "07_speed#graph",
       .moves = {"--model grammar-tutor", "on", 15},
       .still = {"--model gpt-6.9b --sequences 16", "on", 0.5}});

  row({.key = "host.synchronize", .values = {"never", "layer"}, .default_value = "never",
       .sentence = "A planted mistake: the host waits for the GPU after each layer, as a forgotten .item() or print makes it do.",
       .promise = Promise::same_bits, .seam = Seam::plan, .needs = {}, .excludes = {},
       .originals = {}, .megatron = "", .pytorch = "loss.item(), torch.cuda.synchronize()", .note = "04_fsdp#issued",
       .moves = {"--model gpt-124m --fsdp 8 --sequences 8", "layer", 5},
       .still = {"--model gpt-1.3b --sequences 16", "layer", 0.5}});

  row({.key = "initialization.slices", .values = {"by_place", "alike"}, .default_value = "by_place",
       .sentence = "A planted mistake: each rank draws its slice of a cut parameter as if it were the first, so that all slices are alike.",
       .promise = Promise::wrong, .seam = Seam::spec, .needs = {"tp > 1"}, .excludes = {},
       .originals = {}, .megatron = "", .pytorch = "", .note = "rooms/config#wrong", .caught_by = "verify --against"});

  row({.key = "loss.chunks", .least = 1, .most = 1024, .default_value = "1",
       .sentence = "In how many runs of tokens the logits are made. From 2 on they are never there as a whole: each run's logits, its loss and their gradients are made in the head's backward, in one place after the other.",
       .promise = Promise::bounded, .seam = Seam::spec, .needs = {}, .excludes = {"tensor_parallel.sequence = cut"},
       .originals = {{"pytorch/torchtitan", "b5bcd76c66d0acb1a08b176d9639425bc55e0b2a", "torchtitan/components/loss.py", 501, 545, "ChunkedLossWrapper: for each chunk lm_head, loss and backward; the gradient of the head's input is put together"}},
       .megatron = "", .pytorch = "torchtitan: ChunkedLossWrapper(num_chunks=8)", .note = "06_memory#chunks",
       .moves = of_memory("--model gpt-124m --fsdp 8 --sequences 64 --attention flash", "8", 15),
       .still = of_memory("--model gpt-6.9b --tp 8 --sequences 1 --micro-batches 1 --attention flash", "8", 0.5)});

  row({.key = "loss.divisor", .values = {"all_tokens", "own_tokens"}, .default_value = "all_tokens",
       .sentence = "A planted mistake: each rank divides its loss by its own tokens, and the sum over ranks is taken for the mean.",
       .promise = Promise::wrong, .seam = Seam::spec, .needs = {"fsdp > 1"}, .excludes = {},
       .originals = {}, .megatron = "", .pytorch = "", .note = "rooms/config#wrong", .caught_by = "verify --against"});

  row({.key = "loss.kernel", .values = {"apart", "fused"}, .default_value = "apart",
       .sentence = "Whether the loss goes over the logits three times (maximum, sum of exponentials, gradient), as it must where ranks that cut the vocabulary reduce something in between; or one kernel reads each row once, keeps it, and writes the gradient over it.",
       .promise = Promise::same_bits, .seam = Seam::spec, .needs = {}, .excludes = {"tp > 1"},
       .originals = {{"karpathy/llm.c", "f1e2ace651495b74ae22d45d1723443fd00ecd3a", "llmc/fused_classifier.cuh", 68, 133, "fused_classifier_kernel5: loss and gradient in a kernel, the row read twice"},
                     in_megatron("fusions/fused_cross_entropy.py", 87, 133, "_VocabParallelCrossEntropy: what lies between its collectives is compiled into one kernel each"),
                     in_megatron("tensor_parallel/cross_entropy.py", 121, 183, "_VocabParallelCrossEntropy.forward: the steps apart")},
       .megatron = "--cross-entropy-loss-fusion (its collectives stay between the kernels)", .pytorch = "torch.compile of cross_entropy", .note = "07_speed#loss",
       .moves = {"--model gpt-124m --layers 2 --fsdp 8 --sequences 512 --micro-batches 1 --attention flash", "fused", 5},
       .still = {"--model gpt-6.9b --fsdp 8 --sequences 8 --sequence 256", "fused", 0.5}});

  row({.key = "matmul.sms_beside", .least = 0, .most = 64, .default_value = "0",
       .sentence = "How many of a GPU's multiprocessors a matmul leaves to a collective that starts beside it: it is planned for the rest, so that the collective need not wait for its end; 0: none. Which matmuls do follows from the order of the step, and from how long the profile says that each op takes.",
       .promise = Promise::bounded, .seam = Seam::group, .needs = {"device = cuda", "ranks > 1"}, .excludes = {},
       .originals = {{"NVIDIA/TransformerEngine", "d0067d0da6cb01811b8072a7d304f0e00344ce2b", "transformer_engine/common/comm_gemm_overlap/comm_gemm_overlap.cpp", 141, 144, "_math_sms: what a matmul that is cut up with its collective leaves, and NVTE_EXT_MARGIN_SM"},
                     {"NVIDIA/TransformerEngine", "d0067d0da6cb01811b8072a7d304f0e00344ce2b", "transformer_engine/common/gemm/cublaslt_gemm.cu", 464, 469, "CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET"}},
       .megatron = "NVTE_EXT_MARGIN_SM=16 in the environment, of TransformerEngine: all of its matmuls", .pytorch = "torch._C._set_sm_carveout_experimental(16): all matmuls, until it is set otherwise", .note = "07_speed#room",
       // What it is for, beside the sums of tp 2, gained 0.8 %; a matmul with an epilogue loses more than its collective gains
       .moves = {"--model gpt-1.3b --fsdp 2 --sequences 16 --micro-batches 1 --attention cudnn --set loss.kernel=fused --set gelu.kernel=in_matmuls --set fsdp.gradient_memory=lent --set nccl.buffers=windows", "16", 5, true},
       .still = {"--model gpt-124m --fsdp 2 --sequences 512 --micro-batches 1 --attention flash", "24", 0.5, true}});

  row({.key = "nccl.buffers", .values = {"plain", "registered", "windows"}, .default_value = "plain",
       .sentence = "What the memory of collectives is to NCCL: memory like any other, that it moves through buffers of its own; registered, so that peers read it themselves (of ours, gathers alone); or windows that all ranks have at one place, so that gathers are done by copy engines and take no multiprocessors.",
       .promise = Promise::bounded, .seam = Seam::group, .needs = {"device = cuda or clock = modelled", "ranks > 1"}, .excludes = {"registered: device = meta", "registered: device = host"},
       .originals = {in_megatron("distributed/distributed_data_parallel_config.py", 121, 136, "nccl_ub: parameters and gradients in registered memory"),
                     in_megatron("distributed/distributed_data_parallel_config.py", 171, 175, "disable_symmetric_registration: registered instead of windows"),
                     in_megatron("nccl_allocator.py", 163, 182, "register_mem_pool: symm says whether as windows"),
                     {"NVIDIA/nccl", "f1308997d0420148b1be1c24d63f19d902ae589b", "src/register/coll_reg.cc", 182, 187, "ncclRegisterCollBuffers: which collectives gain nothing"},
                     {"NVIDIA/nccl", "f1308997d0420148b1be1c24d63f19d902ae589b", "src/enqueue.cc", 2556, 2564, "taskAppend: when copy engines do it"}},
       .megatron = "--use-nccl-ub (with --use-megatron-fsdp); --disable-symmetric-registration", .pytorch = "pool = torch.cuda.MemPool(backend.mem_allocator); backend.register_mem_pool(pool); options.config.cta_policy = ProcessGroupNCCL.NCCL_CTA_POLICY_ZERO, over windows (symm=True)", .note = "07_speed#buffers",
       // Where gathers lie open, for copy engines are slower; where they are hidden it gains: gpt-1.3b with 16 sequences 2 to 4 %
       .moves = {"--model gpt-6.9b --fsdp 2 --sequences 2 --sequence 256", "windows", 5, true},
       .still = {"--model gpt-124m --fsdp 2 --sequences 512 --micro-batches 1 --attention flash", "windows", 0.5, true}});

  row({.key = "nccl.last_ctas", .least = 0, .most = 64, .default_value = "0",
       .sentence = "How many of a GPU's multiprocessors the last reductions of a step take at least, of the first block's gradient and the embedding's, behind which no block is left to compute; 0: as many as the others. Also where nccl.max_ctas is less, which then bounds the others alone. NCCL has one number for all calls of a communicator, so the ranks that shard have a second one.",
       .promise = Promise::bounded, .seam = Seam::group, .needs = {"device = cuda", "fsdp > 1"}, .excludes = {},
       .originals = {in_megatron("parallel_state.py", 188, 189, "min_ctas: in get_nccl_options, for each kind of group, not for some of its calls")},
       .megatron = "--nccl-communicator-config-path (min_ctas: of all calls of a group)", .pytorch = "ProcessGroupNCCL.Options().config.min_ctas (of all calls of a group)", .note = "04_fsdp#last-reductions",
       .moves = {"--model gpt-1.3b --layers 2 --fsdp 2 --sequences 2 --set nccl.buffers=windows --set fsdp.update=by_unit", "32", 5, true},
       .still = {"--model gpt-6.9b --fsdp 2 --sequences 4 --micro-batches 1 --attention cudnn --set loss.kernel=fused --set gelu.kernel=in_matmuls --set fsdp.gradient_memory=lent --set nccl.buffers=windows --set fsdp.update=by_unit", "32", 0.5, true}});

  row({.key = "nccl.max_ctas", .least = 0, .most = 64, .default_value = "0",
       .sentence = "How many of a GPU's multiprocessors a collective may take at most; 0: as NCCL chooses. Fewer leave more to the kernels beside it, and move bytes more slowly.",
       .promise = Promise::bounded, .seam = Seam::group, .needs = {"device = cuda", "ranks > 1"}, .excludes = {},
       .originals = {in_megatron("parallel_state.py", 184, 189, "max_ctas: in get_nccl_options, for each kind of group")},
       .megatron = "--nccl-communicator-config-path (max_ctas)", .pytorch = "ProcessGroupNCCL.Options().config.max_ctas", .note = "04_fsdp#multiprocessors",
       .moves = {"--model gpt-1.3b --fsdp 2 --sequences 8", "8", 5, true},
       .still = {"--model gpt-124m --fsdp 2 --sequences 8", "32", 0.5, true}});

  row({.key = "network", .values = {"real", "ideal"}, .default_value = "real",
       .sentence = "A machine of the labs: with an ideal network nothing is moved and no rank waits for another, so only times count.",
       .promise = Promise::time_only, .seam = Seam::machine, .needs = {"ranks > 1"}, .excludes = {},
       .originals = {}, .megatron = "", .pytorch = "", .note = "rooms/config#lab-machine",
       .moves = {"--model gpt-1.3b --tp 8 --sequences 8", "ideal", 20},
       .still = {"--model gpt-124m --dp 2 --sequences 512 --micro-batches 1", "ideal", 0.5}});

  row({.key = "optimizer.update", .values = {"after_sums", "before_sums"}, .default_value = "after_sums",
       .sentence = "A planted mistake: parameters are updated before the gradients are summed over ranks.",
       .promise = Promise::wrong, .seam = Seam::plan, .needs = {"fsdp > 1"}, .excludes = {},
       .originals = {}, .megatron = "", .pytorch = "", .note = "rooms/config#wrong", .caught_by = "plan"});

  row({.key = "rank.slow", .values = {"none"}, .form = "RANK:MICROSECONDS", .default_value = "none",
       .sentence = "A machine of the labs: on this rank each kernel takes so many microseconds longer, as on a GPU that is throttled or shared.",
       .promise = Promise::same_bits, .seam = Seam::machine, .needs = {"ranks > 1"}, .excludes = {},
       .originals = {}, .megatron = "", .pytorch = "", .note = "rooms/config#lab-machine",
       .moves = {"--model gpt-124m --tp 2 --sequences 8", "1:20", 20},
       .still = {"--model gpt-124m --fsdp 2 --sequences 512 --micro-batches 1 --attention flash", "1:1", 0.5}});

  row({.key = "tensor_parallel.conjugates", .values = {"f_and_g", "both_ways"}, .default_value = "f_and_g",
       .sentence = "A planted mistake: g sums on its way back as well, so a gradient that each rank holds whole is taken n times.",
       .promise = Promise::wrong, .seam = Seam::spec, .needs = {"tp > 1"}, .excludes = {"tensor_parallel.sequence = cut"},
       .originals = {}, .megatron = "", .pytorch = "", .note = "rooms/config#wrong", .caught_by = "verify --against"});

  row({.key = "tensor_parallel.input_gradient_sum", .values = {"overlapped", "first", "awaited"}, .default_value = "overlapped",
       .sentence = "When the weight gradient of a column-parallel linear runs: beside the sum over ranks of its input gradient, whichever is let in first; beside it, the sum with a head start; or after it.",
       .promise = Promise::same_bits, .seam = Seam::spec, .needs = {"tp > 1"}, .excludes = {"first: tensor_parallel.overlap = pieces"},
       .originals = {in_megatron("tensor_parallel/layers.py", 694, 698, "allreduce_dgrad: issued"),
                     in_megatron("tensor_parallel/layers.py", 807, 808, "allreduce_dgrad: awaited")},
       .megatron = "", .pytorch = "", .note = "03_tensor_parallel#behind",
       .moves = {"--model gpt-124m --tp 6 --sequences 2", "awaited", 5},
       .still = {"--model grammar-tutor --tp 2 --fsdp 1", "awaited", 0.5}});

  row({.key = "tensor_parallel.overlap", .values = {"none", "pieces"}, .default_value = "none",
       .sentence = "Whether a linear whose tokens are cut waits until all rows have been gathered, or multiplies each rank's rows as they come, and sends each rank's sum as it is made (async tensor parallelism).",
       .promise = Promise::bounded, .seam = Seam::spec, .needs = {"tp > 1", "tensor_parallel.sequence = cut"}, .excludes = {},
       .originals = {in_megatron("model_parallel_config.py", 265, 294, "tp_comm_overlap: and which of its parts, tp_comm_overlap_ag, _rs and _rs_dgrad"),
                     in_megatron("extensions/transformer_engine.py", 1188, 1202, "tp_comm_overlap: becomes ub_overlap_ag and ub_overlap_rs of TransformerEngine's linears"),
                     {pytorch, "006b161f8e5a26c8618dee34ee4d6b5dcaf578c0", "torch/distributed/_symmetric_memory/__init__.py", 295, 326, "_pipelined_multi_all_gather_and_consume: mine first, then each rank's rows as they come, by copy engines"},
                     {pytorch, "006b161f8e5a26c8618dee34ee4d6b5dcaf578c0", "torch/distributed/_symmetric_memory/__init__.py", 400, 473, "_pipelined_produce_and_all2all: each rank's rows as they are made; summed at the end"},
                     {"pytorch/torchtitan", "b5bcd76c66d0acb1a08b176d9639425bc55e0b2a", "torchtitan/distributed/compile.py", 75, 96, "_maybe_enable_async_tp: how it is asked for"}},
       .megatron = "--tp-comm-overlap", .pytorch = "torch._inductor.config._micro_pipeline_tp = True, with torch.compile; torchtitan: --compile.enable_async_tensor_parallel", .note = "03_tensor_parallel#pieces",
       .moves = {"--model gpt-1.3b --tp 2 --fsdp 1 --sequences 8 --set tensor_parallel.sequence=cut", "pieces", 5},
       .still = {"--model gpt-124m --tp 2 --fsdp 1 --sequences 4 --micro-batches 1 --set tensor_parallel.sequence=cut", "pieces", 0.5}});

  row({.key = "tensor_parallel.partial_gradients", .values = {"summed", "unsummed"}, .default_value = "summed",
       .sentence = "A planted mistake: norms that see the rows of one tp rank keep the gradient of those rows, and are not summed over tp.",
       .promise = Promise::wrong, .seam = Seam::spec, .needs = {"tp > 1", "tensor_parallel.sequence = cut"}, .excludes = {},
       .originals = {}, .megatron = "", .pytorch = "", .note = "rooms/config#wrong", .caught_by = "verify --against"});

  row({.key = "tensor_parallel.row_bias", .values = {"after_the_sum", "before_the_sum"}, .default_value = "after_the_sum",
       .sentence = "A planted mistake: a row-parallel linear adds its bias before the sum over ranks, so it counts once a rank.",
       .promise = Promise::wrong, .seam = Seam::spec, .needs = {"tp > 1", "architecture = gpt"}, .excludes = {"tensor_parallel.sequence = cut"},
       .originals = {}, .megatron = "", .pytorch = "", .note = "rooms/config#wrong", .caught_by = "verify --against"});

  row({.key = "tensor_parallel.sequence", .values = {"whole", "cut"}, .default_value = "whole",
       .sentence = "Whether all tp ranks hold all rows of the activations between the cut linears, or each those of some tokens (sequence parallelism).",
       .promise = Promise::bounded, .seam = Seam::spec, .needs = {"tp > 1"}, .excludes = {},
       .originals = {in_megatron("tensor_parallel/mappings.py", 300, 352, "_GatherFromSequenceParallelRegion"),
                     in_megatron("tensor_parallel/mappings.py", 355, 381, "_ReduceScatterToSequenceParallelRegion"),
                     in_megatron("tensor_parallel/layers.py", 667, 711, "sequence_parallel: the input gathered again, its gradient scattered"),
                     in_megatron("distributed/finalize_model_grads.py", 416, 484, "_allreduce_non_tensor_model_parallel_grads")},
       .megatron = "--sequence-parallel", .pytorch = "parallelize_module(norm, mesh, SequenceParallel())", .note = "03_tensor_parallel#sequence",
       .moves = {"--model gpt-124m --tp 4 --sequences 8", "cut", 5},
       .still = {"--model gpt-1.3b --tp 4 --sequences 24 --micro-batches 1", "cut", 0.5}});

  row({.key = "tensor_parallel.sum_awaited", .values = {"yes", "no"}, .default_value = "yes",
       .sentence = "A planted mistake: compute does not wait for the sums over ranks of activations and their gradients.",
       .promise = Promise::wrong, .seam = Seam::spec, .needs = {"tp > 1"}, .excludes = {},
       .originals = {}, .megatron = "", .pytorch = "", .note = "rooms/config#wrong", .caught_by = "verify"});
  return table;
}

}  // namespace

const std::vector<Switch>& switches() {
  static const std::vector<Switch> table = make_switches();
  return table;
}

}  // namespace shardbook::config
