"""Lab 02 in PyTorch: cut the linears of each block over the GPUs, and leave a trace of each rank.

    torchrun --nproc-per-node 2 labs/02_tensor_parallel/twin.py --sums hidden
    ./shardbook check 02 --trace experiments/02_tensor_parallel/twin/hidden

--sums  hidden      backward's sum of an input gradient runs beside the weight gradient
        awaited     it is awaited before the weight gradient begins
        forgotten   there is none: each rank goes on with its summand (the loss looks right, the gradients are not)
--connections 8  is what CUDA gives where nobody asks (CUDA_DEVICE_MAX_CONNECTIONS): then the weight gradient may get the
        GPU first, and the sum waits. With 1, the default here and in Megatron, what is issued first starts first.
--width 128 is the grammar tutor's: too narrow for two GPUs (part b). The folder is then named hidden-width128.

Needs PyTorch 2.6 or newer and NCCL. It is what Megatron's ColumnParallelLinear and RowParallelLinear do, in short.
"""
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from torch_twin import measure_and_trace, options_of, start

BLOCKS, WORDS = 4, 8192


class ColumnForward(torch.autograd.Function):
    """Outputs are cut: x is whole, y a part. In backward each rank's dx is a summand."""

    @staticmethod
    def forward(ctx, x, weight, sums):
        ctx.save_for_backward(x, weight)
        ctx.sums = sums
        return x @ weight.t()

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        dx = dy @ weight
        if ctx.sums != "forgotten":
            work = dist.all_reduce(dx, async_op=True)
        if ctx.sums == "awaited":
            work.wait()
        dweight = dy.flatten(0, 1).t() @ x.flatten(0, 1)
        if ctx.sums == "hidden":
            work.wait()
        return dx, dweight, None


class RowForward(torch.autograd.Function):
    """Inputs are cut: x is a part, each rank's y a summand. In backward dy is whole, and dx a part."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        y = x @ weight.t()
        dist.all_reduce(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        return dy @ weight, dy.flatten(0, 1).t() @ x.flatten(0, 1)


def part_of(outputs, inputs, dim, pieces=1):
    """This rank's part of a weight that is drawn whole on every rank; `pieces` are cut one by one (q, k and v)."""
    whole = torch.randn(pieces, outputs // pieces, inputs) / inputs**0.5
    mine = whole.chunk(dist.get_world_size(), 1 + dim)[dist.get_rank()]
    return nn.Parameter(mine.flatten(0, 1).clone())


class Block(nn.Module):
    def __init__(self, width, heads, sums):
        super().__init__()
        self.heads, self.sums = heads // dist.get_world_size(), sums
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.projection = part_of(3 * width, width, 0, pieces=3), part_of(width, width, 1)
        self.up, self.down = part_of(4 * width, width, 0), part_of(width, 4 * width, 1)

    def forward(self, x):
        qkv = ColumnForward.apply(self.norm_1(x), self.qkv, self.sums).unflatten(-1, (3, self.heads, -1))
        q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + RowForward.apply(attended.transpose(1, 2).flatten(2), self.projection)
        up = ColumnForward.apply(self.norm_2(x), self.up, self.sums)
        return x + RowForward.apply(F.gelu(up), self.down)


def main():
    options = options_of(__doc__, "02_tensor_parallel")
    options.add_argument("--sums", choices=["hidden", "awaited", "forgotten"], default="hidden")
    options.add_argument("--width", type=int, default=4096)
    options.add_argument("--connections", type=int, default=1)
    args = options.parse_args()

    os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = str(args.connections)     # before CUDA is used
    rank = start()
    head = 32 if args.width < 1024 else 128
    with torch.device("cuda"):
        blocks = [Block(args.width, args.width // head, args.sums) for _ in range(BLOCKS)]
        model = nn.Sequential(nn.Embedding(WORDS, args.width), *blocks, nn.LayerNorm(args.width), nn.Linear(args.width, WORDS))
        tokens = torch.randint(WORDS, (4, 1025))               # the same on every rank
    model.bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def step():
        loss = F.cross_entropy(model(tokens[:, :-1]).float().flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    name = args.sums + (f"-width{args.width}" if args.width != 4096 else "") + (f"-connections{args.connections}" if args.connections != 1 else "")
    measure_and_trace(step, name, rank, args)


if __name__ == "__main__":
    main()
