"""Lab 01 in PyTorch: sum gradients over the GPUs, and leave a trace of each rank.

    torchrun --nproc-per-node 2 labs/01_data_parallel/twin.py --sums bucketed
    ./shardbook check 01 --trace experiments/01_data_parallel/twin/bucketed

--sums  naive      an all-reduce for each parameter, after backward
        flat       one all-reduce of everything, after backward
        bucketed   DistributedDataParallel: buckets of 256 MiB of 3.5 GB, beside backward
        sharded    reduce-scatter, an update of this rank's part, all-gather in bf16 (part b)

Needs PyTorch 2.6 or newer and NCCL.
"""
import argparse
import os
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

# Wide, so that the GPUs have more to do than the host has to issue, with a profiler that listens.
SEQUENCES, TOKENS, WIDTH, HEADS, BLOCKS, WORDS = 4, 1024, 4096, 32, 4, 8192


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.projection = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        qkv = self.qkv(self.norm_1(x)).unflatten(-1, (3, HEADS, WIDTH // HEADS))
        q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(attended.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


def flat_views(parameters, world):
    """All parameters, and all gradients, end to end in one tensor each; p.data and p.grad become views of them."""
    count = sum(p.numel() for p in parameters)
    padded = (count + world - 1) // world * world
    values, gradients = (torch.zeros(padded, device="cuda") for _ in range(2))
    at = 0
    for p in parameters:
        place = slice(at, at + p.numel())
        values[place] = p.data.flatten()
        p.data, p.grad = values[place].view_as(p), gradients[place].view_as(p)
        at += p.numel()
    return values, gradients


def steps_of(sums, model, tokens, rank, world):
    """The function that makes one step."""
    parameters = list(model.parameters())
    if sums == "bucketed":
        model = DistributedDataParallel(model, device_ids=[rank], bucket_cap_mb=256, gradient_as_bucket_view=True)
    else:
        values, gradients = flat_views(parameters, world)
        part = slice(rank * len(values) // world, (rank + 1) * len(values) // world)
    if sums == "sharded":
        mine = values[part].clone().requires_grad_()          # this rank's part, in f32
        mine.grad = gradients[part]
        gathered = values.bfloat16()
    optimizer = torch.optim.AdamW([mine] if sums == "sharded" else parameters, lr=1e-4, fused=True)

    def step():
        with torch.autocast("cuda", torch.bfloat16):
            logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        if sums == "naive":
            for p in parameters:
                dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        if sums == "flat":
            dist.all_reduce(gradients, op=dist.ReduceOp.AVG)
        if sums == "sharded":
            dist.reduce_scatter_tensor(mine.grad, gradients, op=dist.ReduceOp.AVG)
        optimizer.step()
        if sums == "sharded":
            gathered[part].copy_(mine.detach())
            dist.all_gather_into_tensor(gathered, gathered[part])
            values.copy_(gathered)
        if sums == "bucketed":
            optimizer.zero_grad(set_to_none=False)
        else:
            gradients.zero_()
        return loss

    return step


def measure_and_trace(step, folder, rank, steps):
    """Milliseconds a step, untraced; then a trace of `steps` more."""
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(20):
        loss = step()
    torch.cuda.synchronize()
    ms = (time.perf_counter() - begun) / 20 * 1e3

    os.makedirs(folder, exist_ok=True)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA],
        schedule=torch.profiler.schedule(wait=0, warmup=2, active=steps, repeat=1),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(f"{folder}/rank{rank}.json.gz"),
    ) as profiler:
        for _ in range(2 + steps):
            step()
            profiler.step()
    return ms, loss.item()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sums", choices=["naive", "flat", "bucketed", "sharded"], default="bucketed")
    options.add_argument("--steps", type=int, default=2, help="that are traced")
    options.add_argument("--out", default="experiments/01_data_parallel/twin")
    args = options.parse_args()

    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    world = dist.get_world_size()
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = nn.Sequential(nn.Embedding(WORDS, WIDTH), *[Block() for _ in range(BLOCKS)], nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS))
        torch.manual_seed(1 + rank)
        tokens = torch.randint(WORDS, (SEQUENCES, TOKENS + 1))
    ms, loss = measure_and_trace(steps_of(args.sums, model, tokens, rank, world), f"{args.out}/{args.sums}", rank, args.steps)
    if rank == 0:
        print(f"{args.sums}: {ms:.2f} ms a step, loss {loss:.4f}; traces in {args.out}/{args.sums}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
