#!/usr/bin/env python3
"""What do fused kernels give a step? Each row of options is trained several times, in turn, so that a GPU that warms up or a
neighbour does not favour one; prints every median, and the median of medians.

    experiments/speed/fused.py [--program build/gpu/shardbook] [--times 3] [--steps 24] [--common "--model gpt-1.3b ..."] ROW...

A row is options beside the common ones, "name=--set kernels.fused=all"; without rows, those of the table.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMON = "--device cuda --model gpt-1.3b --data synthetic --tp 1 --fsdp 2 --sequences 16"
ROWS = ["apart=", "gelu=--set kernels.fused=gelu", "biases=--set kernels.fused=biases", "norms=--set kernels.fused=norms",
        "loss=--set kernels.fused=loss", "all=--set kernels.fused=all", "flash=--attention flash", "flash, all=--attention flash --set kernels.fused=all"]


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("--program", default=str(ROOT / "build/gpu/shardbook"))
    parse.add_argument("--times", type=int, default=3)
    parse.add_argument("--steps", type=int, default=24)
    parse.add_argument("--common", default=COMMON)
    parse.add_argument("rows", nargs="*")
    args = parse.parse_args()
    rows = [row.partition("=")[::2] for row in (args.rows or ROWS)]
    found = {name: [] for name, _ in rows}
    for turn in range(args.times):
        for name, options in rows:
            words = [args.program, "train", *args.common.split(), "--steps", str(args.steps), "--trace-steps", "0:0", "--progress", "0",
                     "--json", "--out", f"/tmp/fused-{os.getpid()}-{turn}-{len(found)}-{name.replace(' ', '')}", *options.split()]
            ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env={**os.environ, "SHARDBOOK_ROOT": str(ROOT)})
            if ended.returncode != 0:
                print(f"{name}: ended with {ended.returncode}: {ended.stderr[-600:]}", flush=True)
                continue
            said = json.loads(ended.stdout)
            found[name].append(said["step_ns"] / 1e6)
            print(f"{name}: {said['step_ns'] / 1e6:.2f} ms, losses {said['losses'][:2]} ... {said['losses'][-1:]}", flush=True)
    for name, steps in found.items():
        if steps:
            print(f"| {name} | {' '.join(f'{ms:.1f}' for ms in steps)} | {statistics.median(steps):.1f} ms |")
    return 0 if all(found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
