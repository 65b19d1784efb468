"""Lab 04 in PyTorch: FSDP2 over the GPUs in several orders, and a trace of each rank.

    torchrun --nproc-per-node 2 labs/04_fsdp/twin.py --prefetch 1
    ./shardbook check 04 --trace experiments/04_fsdp/twin/prefetch

--prefetch 1   in backward the next block is gathered before this one's gradients are reduced (FSDP2's own order)
--prefetch 0   each block is gathered when it is needed, behind the reduction of the block before
--reshard 0    blocks stay whole after forward: no gathers in backward, and the memory of the whole model
--sync         the host looks at each block's output, and so waits for it (part c)
--sequences N  of 1024 tokens, on each GPU (part b)

Needs PyTorch 2.6 or newer and NCCL.
"""
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "harness"))
from torch_twin import measure_and_trace, options_of, start

# Wide, so that the GPUs have more to do than the host has to issue, with a profiler that listens.
TOKENS, WIDTH, HEADS, BLOCKS, WORDS = 1024, 8192, 64, 6, 8192


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


class Model(nn.Module):
    def __init__(self, sync):
        super().__init__()
        self.sync = sync
        self.embedding, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
            if self.sync and not x.isfinite().all():          # the planted wait: the host must know
                raise FloatingPointError("not finite")
        return self.head(x)


def sharded(model, prefetch, reshard):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in model.blocks:
        fully_shard(block, mp_policy=policy, reshard_after_forward=reshard)
    fully_shard(model, mp_policy=policy)
    if not prefetch:
        for unit in [model, *model.blocks]:
            unit.set_modules_to_backward_prefetch([unit])      # which is whole already: nothing is gathered ahead
    return model


def main():
    options = options_of(__doc__, "04_fsdp")
    options.add_argument("--prefetch", type=int, choices=[0, 1], default=1)
    options.add_argument("--reshard", type=int, choices=[0, 1], default=1)
    options.add_argument("--sync", action="store_true")
    options.add_argument("--sequences", type=int, default=4)
    args = options.parse_args()

    rank = start()
    with torch.device("cuda"):
        model = Model(args.sync)
        torch.manual_seed(1 + rank)
        tokens = torch.randint(WORDS, (args.sequences, TOKENS + 1))
    model = sharded(model, args.prefetch, bool(args.reshard))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step():
        loss = F.cross_entropy(model(tokens[:, :-1]).float().flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    name = "prefetch" if args.prefetch else "no-prefetch"
    name += ("" if args.reshard else "-whole") + ("-sync" if args.sync else "") + (f"-sequences{args.sequences}" if args.sequences != 4 else "")
    measure_and_trace(step, name, rank, args)


if __name__ == "__main__":
    main()
