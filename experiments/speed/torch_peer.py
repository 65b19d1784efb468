"""One shape in PyTorch, as a user would train it: the peer of `shardbook bench --vs torch`, which starts it.

    torchrun --standalone --nproc-per-node 2 experiments/speed/torch_peer.py --cut fsdp --sequences 8 --steps 40 \\
        --architecture gpt --layers 24 --width 2048 --heads 16 --ffn-width 8192 --sequence 1024 --vocab 50304

--cut fsdp   FSDP2 (fully_shard): a block a unit and the rest one, bf16 parameters and f32 reductions, shards freed after forward;
             --sequences are those of each GPU
--cut tp     DTensor: column and row parallel linears with sequence parallel between them, the loss on cut logits; FSDP2 over
             one rank gives bf16 with f32 masters, as torchtitan has it; --sequences are those of all GPUs together

Each block is compiled, and the loss except under --cut tp, whose logits are cut; attention is scaled_dot_product_attention, AdamW is fused,
gradients are clipped to norm 1. Tokens are random. The last line is JSON: the median, least and most of the steps behind the first twelve, in ns, by CUDA
events; the most memory that was allocated on rank 0; and of two steps more, under torch.profiler, how long rank 0's GPU was busy in
each, and how long with more than NCCL's kernels. The second is what its own kernels take at least, at the clock of that step: a GPU
that waits for its host has a higher one. The first holds what NCCL's kernels wait for the other ranks, whose hosts fall behind too, and
profiled steps are longer than others, so it can be more than a step takes. Needs PyTorch 2.6 or newer.
"""
import argparse
import json
import os
import pathlib
import statistics
import tempfile
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, RowwiseParallel, SequenceParallel, loss_parallel,
                                               parallelize_module)

WARM_UP = 12
PROFILED = 2


class Attention(nn.Module):
    def __init__(self, of):
        super().__init__()
        self.size, self.rotary = of.width // of.heads, of.architecture == "llama"
        bias = not self.rotary
        self.q = nn.Linear(of.width, of.heads * self.size, bias=bias)
        self.k = nn.Linear(of.width, of.kv_heads * self.size, bias=bias)
        self.v = nn.Linear(of.width, of.kv_heads * self.size, bias=bias)
        self.projection = nn.Linear(of.width, of.width, bias=bias)

    def forward(self, x, turns):
        # Heads of this rank: what the cut linears give
        q, k, v = (linear(x).unflatten(-1, (-1, self.size)).transpose(1, 2) for linear in (self.q, self.k, self.v))
        if self.rotary:
            q, k = turned(q, turns), turned(k, turns)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
        return self.projection(attended.transpose(1, 2).flatten(2))


def turned(x, turns):
    cos, sin = turns
    first, second = x.chunk(2, -1)
    return (x * cos + torch.cat((-second, first), -1) * sin).to(x.dtype)


class GeluMlp(nn.Module):
    def __init__(self, of):
        super().__init__()
        self.up, self.down = nn.Linear(of.width, of.ffn_width), nn.Linear(of.ffn_width, of.width)

    def forward(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh"))


class SwiGluMlp(nn.Module):
    def __init__(self, of):
        super().__init__()
        self.gate, self.up = (nn.Linear(of.width, of.ffn_width, bias=False) for _ in range(2))
        self.down = nn.Linear(of.ffn_width, of.width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, of):
        super().__init__()
        llama = of.architecture == "llama"
        norm = nn.RMSNorm if llama else nn.LayerNorm
        self.norm_1, self.norm_2 = norm(of.width), norm(of.width)
        self.attention = Attention(of)
        self.mlp = SwiGluMlp(of) if llama else GeluMlp(of)

    def forward(self, x, turns):
        x = x + self.attention(self.norm_1(x), turns)
        return x + self.mlp(self.norm_2(x))


class Model(nn.Module):
    def __init__(self, of):
        super().__init__()
        self.of = of
        self.table = nn.Embedding(of.vocab, of.width)
        self.places = None if of.architecture == "llama" else nn.Embedding(of.sequence, of.width)
        self.blocks = nn.ModuleList(Block(of) for _ in range(of.layers))
        self.norm = (nn.RMSNorm if of.architecture == "llama" else nn.LayerNorm)(of.width)
        self.head = nn.Linear(of.width, of.vocab, bias=False)
        if of.tied:
            self.head.weight = self.table.weight

    def forward(self, tokens, at, turns):
        x = self.table(tokens)
        if self.places is not None:
            x = x + self.places(at)
        for block in self.blocks:
            x = block(x, turns)
        return self.head(self.norm(x))


def cut_over_tp(model, mesh):
    """Weights cut by columns and rows; between the pieces each rank holds a part of every sequence."""
    cut = {"table": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)), "norm": SequenceParallel(),
           "head": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False)}
    if model.places is not None:
        cut["places"] = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))
    parallelize_module(model, mesh, cut)
    for block in model.blocks:
        mlp = {name: ColwiseParallel() for name in ("mlp.up", "mlp.gate") if name == "mlp.up" or hasattr(block.mlp, "gate")}
        parallelize_module(block, mesh, {
            "norm_1": SequenceParallel(), "norm_2": SequenceParallel(),
            "attention": PrepareModuleInput(input_layouts=(Shard(1), None), desired_input_layouts=(Replicate(), None)),
            "attention.q": ColwiseParallel(), "attention.k": ColwiseParallel(), "attention.v": ColwiseParallel(),
            "attention.projection": RowwiseParallel(output_layouts=Shard(1)),
            "mlp": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)), **mlp,
            "mlp.down": RowwiseParallel(output_layouts=Shard(1))})


def made(of, mesh):
    # Made where it is cut, without memory for the whole; to_empty would part a tied table from the head
    with torch.device("cuda" if of.tied else "meta"):
        model = Model(of)
    if of.cut == "tp":
        cut_over_tp(model, mesh["tp"])
    for block in model.blocks:
        block.compile()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for unit in [*model.blocks, model]:
        fully_shard(unit, mesh=mesh["dp"], mp_policy=policy, reshard_after_forward=True)
    if not of.tied:
        model.to_empty(device="cuda")
    torch.manual_seed(1234)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.02) if parameter.dim() > 1 else nn.init.ones_(parameter)
    return model


def covered(intervals):
    """How much of the line they cover together."""
    total, until = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def busy_of(step):
    """ns a step: this GPU busy with anything; with anything but NCCL's kernels. All ranks call it, for they step together; rank 0 looks."""
    if dist.get_rank() != 0:
        for _ in range(PROFILED):
            step()
        torch.cuda.synchronize()
        return {}
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        for _ in range(PROFILED):
            step()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        on_gpu = [event for event in json.loads(path.read_text())["traceEvents"] if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    if not on_gpu:
        return {}   # the profiler saw nothing, which is not the same as nothing being there
    spans = {which: [(event["ts"], event["ts"] + event["dur"]) for event in on_gpu if which == "all" or not event["name"].startswith("nccl")]
             for which in ("all", "computing")}
    return {"busy_ns": 1e3 * covered(spans["all"]) / PROFILED, "computing_ns": 1e3 * covered(spans["computing"]) / PROFILED}


def options():
    parse = argparse.ArgumentParser()
    parse.add_argument("--cut", choices=("fsdp", "tp"), required=True)
    parse.add_argument("--architecture", choices=("gpt", "llama"), default="gpt")
    for name in ("sequences", "layers", "width", "heads", "ffn-width", "sequence", "vocab"):
        parse.add_argument("--" + name, type=int, required=True)
    parse.add_argument("--kv-heads", type=int, default=0)
    parse.add_argument("--tied", action="store_true")
    parse.add_argument("--steps", type=int, default=40)
    of = parse.parse_args()
    of.kv_heads = of.kv_heads or of.heads
    if of.steps <= WARM_UP:
        parse.error(f"--steps must be more than {WARM_UP}, which warm up")
    return of


def main():
    of = options()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
    ranks = dist.get_world_size()
    mesh = init_device_mesh("cuda", (1, ranks) if of.cut == "tp" else (ranks, 1), mesh_dim_names=("dp", "tp"))
    torch.set_float32_matmul_precision("high")
    model = made(of, mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, betas=(0.9, 0.95), fused=True)

    torch.manual_seed(1 if of.cut == "tp" else 1 + dist.get_rank())
    tokens = torch.randint(of.vocab, (of.sequences, of.sequence + 1), device="cuda")
    at = torch.arange(of.sequence, device="cuda").expand(of.sequences, -1)
    angles = torch.outer(torch.arange(of.sequence, device="cuda"), 500000.0 ** -torch.arange(0, 1, 2 / (of.width // of.heads), device="cuda"))
    turns = tuple(torch.cat((f(angles), f(angles)), -1).to(torch.bfloat16) for f in (torch.cos, torch.sin))
    loss_of = torch.compile(lambda logits, next_tokens: F.cross_entropy(logits.flatten(0, 1).float(), next_tokens.flatten(0, 1)))

    def step():
        if of.cut == "tp":
            with loss_parallel():
                logits = model(tokens[:, :-1], at, turns)
                loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten(0, 1))
                loss.backward()
        else:
            loss = loss_of(model(tokens[:, :-1], at, turns), tokens[:, 1:])
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss

    ends = [torch.cuda.Event(enable_timing=True) for _ in range(of.steps)]
    began = time.monotonic()
    for end in ends:
        loss = step()
        end.record()
    torch.cuda.synchronize()
    took = sorted(1e6 * ends[i - 1].elapsed_time(ends[i]) for i in range(WARM_UP, of.steps))
    seconds, peak = time.monotonic() - began, torch.cuda.max_memory_allocated()
    busy = busy_of(step)
    if dist.get_rank() == 0:
        print(json.dumps({"name": "FSDP2, compiled" if of.cut == "fsdp" else "DTensor + SP, compiled", "step_ns": statistics.median(took),
                          "step_min_ns": took[0], "step_max_ns": took[-1], "peak_bytes": peak, **busy,
                          "loss": float(loss.full_tensor() if hasattr(loss, "full_tensor") else loss), "seconds": seconds,
                          "versions": {"torch": torch.__version__, "cuda": torch.version.cuda, "nccl": ".".join(map(str, torch.cuda.nccl.version()))}}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
