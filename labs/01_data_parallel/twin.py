"""Lab 01 in PyTorch: sum gradients over the GPUs, and leave a trace of each rank.

    torchrun --nproc-per-node 2 labs/01_data_parallel/twin.py --sums bucketed
    ./shardbook check 01 --trace experiments/01_data_parallel/twin/bucketed

--sums  naive      an all-reduce for each parameter, after backward
        flat       one all-reduce of everything, after backward
        bucketed   DistributedDataParallel: buckets of 256 MiB of 3.5 GB, beside backward
        sharded    reduce-scatter, an update of this rank's part, all-gather in bf16 (part b)

Needs PyTorch 2.6 or newer and NCCL.
"""
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from torch_twin import measure_and_trace, options_of, start

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


def main():
    options = options_of(__doc__, "01_data_parallel")
    options.add_argument("--sums", choices=["naive", "flat", "bucketed", "sharded"], default="bucketed")
    args = options.parse_args()

    rank = start()
    world = dist.get_world_size()
    with torch.device("cuda"):
        model = nn.Sequential(nn.Embedding(WORDS, WIDTH), *[Block() for _ in range(BLOCKS)], nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS))
        torch.manual_seed(1 + rank)
        tokens = torch.randint(WORDS, (SEQUENCES, TOKENS + 1))
    measure_and_trace(steps_of(args.sums, model, tokens, rank, world), args.sums, rank, args)


if __name__ == "__main__":
    main()
