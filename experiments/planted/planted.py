"""Training steps of PyTorch with one fault planted in each, and a trace of each rank: does `shardbook why` name it?

    torchrun --standalone --nproc-per-node 2 experiments/planted/planted.py --fault sync --out traces

none          FSDP2, nothing planted
sync          FSDP2; the host looks at each block's output, and so waits for it
no_prefetch   FSDP2; in backward each block is gathered behind the reduction of the block before
tiny_buckets  DDP with a bucket for each parameter
slow_rank     FSDP2; rank 1 does work that nobody needs, in its fourth block
unfused       FSDP2; attention written out: scores, mask, softmax and product, each a kernel that moves memory

Traces have stacks (with_stack) of the modules and lines that launched each kernel. Needs PyTorch 2.6 or newer and NCCL.
"""
import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

FAULTS = ["none", "sync", "no_prefetch", "tiny_buckets", "slow_rank", "unfused"]
WORDS, BLOCKS = 8192, 6


class Attention(nn.Module):
    def __init__(self, width, heads, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.qkv, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True) if self.fused else self.written_out(q, k, v)
        return self.projection(attended.transpose(1, 2).flatten(2))

    def written_out(self, q, k, v):
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
        return scores.softmax(-1) @ v


class Block(nn.Module):
    def __init__(self, width, heads, fused):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, fused)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.slow = False

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        if self.slow:
            self.needless(x)
        return x + self.down(F.gelu(self.up(self.norm_2(x))))

    def needless(self, x):
        with torch.no_grad():
            for _ in range(12):
                self.up(x)


class Model(nn.Module):
    def __init__(self, width, heads, fused, looks):
        super().__init__()
        self.looks = looks
        self.embedding, self.head = nn.Embedding(WORDS, width), nn.Linear(width, WORDS)
        self.blocks = nn.ModuleList(Block(width, heads, fused) for _ in range(BLOCKS))

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
            if self.looks and not self.is_finite(x):
                raise FloatingPointError("not finite")
        return self.head(x)

    def is_finite(self, x):
        return x.isfinite().all().item()


def sharded(model, prefetch):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    if not prefetch:
        for unit in [model, *model.blocks]:
            unit.set_modules_to_backward_prefetch([unit])     # which is whole already: nothing is gathered ahead
    return model


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--fault", choices=FAULTS, required=True)
    options.add_argument("--out", default="traces")
    options.add_argument("--steps", type=int, default=2, help="that are traced")
    options.add_argument("--width", type=int, default=4096)
    options.add_argument("--sequences", type=int, default=2)
    options.add_argument("--tokens", type=int, default=2048)
    args = options.parse_args()

    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    with torch.device("cuda"):
        torch.manual_seed(0)
        model = Model(args.width, args.width // 128, args.fault != "unfused", args.fault == "sync")
        torch.manual_seed(1 + rank)
        tokens = torch.randint(WORDS, (args.sequences, args.tokens + 1))
    model.blocks[3].slow = args.fault == "slow_rank" and rank == 1
    if args.fault == "tiny_buckets":
        model = DistributedDataParallel(model.bfloat16(), device_ids=[rank], bucket_cap_mb=0.001, gradient_as_bucket_view=True)
    else:
        model = sharded(model, args.fault != "no_prefetch")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step():
        loss = F.cross_entropy(model(tokens[:, :-1]).float().flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(20):
        step()
    torch.cuda.synchronize()
    ms = (time.perf_counter() - begun) / 20 * 1e3

    folder = f"{args.out}/{args.fault}"
    os.makedirs(folder, exist_ok=True)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA],
        schedule=torch.profiler.schedule(wait=0, warmup=2, active=args.steps, repeat=1),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(f"{folder}/rank{rank}.json.gz"),
        with_stack=True,
    ) as profiler:
        for _ in range(2 + args.steps):
            step()
            profiler.step()
    if rank == 0:
        print(f"{args.fault}: {ms:.2f} ms a step untraced; traces in {folder}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
