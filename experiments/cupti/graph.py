#!/usr/bin/env python3
"""Where is the time of a step that is launched as a graph? No timeline tells: such a step is not traced. CUPTI sees its kernels, too.
For each kind of kernel how many a step has, what they take, what the GPU idled right before them, and how much of them ran while
another ran; then the part of the step in which a collective ran and nothing else (exposed); the mean over all steps of the file but the
first three and the last. Python alone. --keep FILE NAME adds the kernels of one step, the one of median length, to FILE, for a picture.

    CUDA_INJECTION64_PATH=$PWD/watch.so SPANS_OUT=spans ./shardbook train --device cuda --model grammar-tutor --tp 2 --fsdp 1 --attention flash --set host.graph=on --steps 200 --trace-steps 0:0
    python3 experiments/cupti/graph.py [--keep FILE NAME] spans.*
"""
import argparse
import collections
import json
import pathlib

# By the first of these that a kernel's name holds
KINDS = [("AllReduce", "all-reduces"), ("AllGather", "gathers"), ("ReduceScatter", "scatters"), ("nvjet", "matmuls"), ("cutlass", "matmuls"), ("gemm", "matmuls"),
         ("row_block_kernel", "sums over tokens"), ("final_kernel", "sums over tokens"), ("query_kernel", "attention"), ("key_value_kernel", "attention"),
         ("forward_kernelILi", "attention"), ("attention", "attention"), ("sdpa", "attention"), ("softmax", "attention"), ("heads", "attention"), ("fusion", "attention"),
         ("input_gradient_kernel", "norms"), ("forward_kernel", "norms"), ("max_kernel", "loss"), ("sums_kernel", "loss"), ("gradient_kernel", "loss"),
         ("Embedding", "tables"), ("embedding", "tables"), ("Position", "tables"), ("AdamW", "update and norm of the gradient"), ("squares", "update and norm of the gradient"),
         ("clip", "update and norm of the gradient"), ("sum_kernel", "update and norm of the gradient"), ("copy", "copies")]
FIRST = "EmbeddingForwa"   # the kernel that a step has once, near its begin
MOVING = ("AllReduce", "AllGather", "ReduceScatter")


def kernels_of(path):
    rows = []
    for line in open(path):
        words = line.rstrip("\n").split(" ", 4)
        if len(words) == 5 and words[2].isdigit() and words[3].isdigit():
            rows.append((int(words[2]), int(words[3]), words[4]))
    return sorted(rows)


def alone(rows):
    """For how long a collective ran and no other kernel."""
    edges = sorted(edge for begin, end, name in rows for edge in ((begin, 1, is_moving(name)), (end, -1, is_moving(name))))
    running, total, before = [0, 0], 0, edges[0][0]   # others, collectives
    for at, step, moving in edges:
        if running[1] > 0 and running[0] == 0:
            total += at - before
        running[moving] += step
        before = at
    return total


def is_moving(name):
    return any(part in name for part in MOVING)


def kind_of(name):
    return next((kind for part, kind in KINDS if part in name), "pointwise")


def keep(path, name, rows, begins):
    """begin and length in ns, and kind, of the kernels of one step; it begins with its first."""
    by_length = sorted(zip(begins, begins[1:]), key=lambda step: rows[step[1]][0] - rows[step[0]][0])
    first, end = by_length[len(by_length) // 2]
    at = rows[first][0]
    kept = json.loads(path.read_text()) if path.exists() else {}
    kept[name] = {"step_ns": rows[end][0] - at, "kernels": [[begin - at, until - begin, kind_of(kernel)] for begin, until, kernel in rows[first:end]]}
    path.write_text(json.dumps(kept, ensure_ascii=False).replace("], [", "],\n[") + "\n")


def main():
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("spans", nargs="+")
    parse.add_argument("--keep", nargs=2, metavar=("FILE", "NAME"))
    asked = parse.parse_args()
    if asked.keep and len(asked.spans) > 1:
        parse.error("--keep is of one process: name its file alone")
    for path in asked.spans:
        rows = kernels_of(path)
        begins = [at for at, row in enumerate(rows) if FIRST in row[2]]
        if len(begins) < 6:
            continue   # the process that started the ranks
        first, last = begins[3], begins[-2]   # the first three are issued one by one, or captured
        steps = len(begins) - 5
        if asked.keep:
            keep(pathlib.Path(asked.keep[0]), asked.keep[1], rows, begins[3:-1])
        kinds = collections.defaultdict(lambda: [0, 0, 0, 0])
        until = max(end for _, end, _ in rows[max(0, first - 50):first])
        for begin, end, name in rows[first:last]:
            kind = kinds[kind_of(name)]
            kind[0] += 1
            kind[1] += end - begin
            kind[2] += max(0, begin - until)
            kind[3] += max(0, min(end, until) - begin)
            until = max(until, end)
        step = (rows[last][0] - rows[first][0]) / steps / 1e3
        print(f"{path}: {steps} steps of {step:.1f} us, {(last - first) / steps:.0f} kernels and copies each\n")
        print(f"{'':32} {'times':>6} {'us':>8} {'each':>6} {'idle before':>12} {'beside another':>15}")
        total = [0, 0, 0, 0]
        for name, values in sorted(kinds.items(), key=lambda item: -item[1][1] - item[1][2]):
            total = [one + other for one, other in zip(total, values)]
            print(f"{name:32} {values[0] / steps:6.0f} {values[1] / steps / 1e3:8.1f} {values[1] / values[0] / 1e3:6.2f} {values[2] / steps / 1e3:12.1f} {values[3] / steps / 1e3:15.1f}")
        print(f"{'all':32} {total[0] / steps:6.0f} {total[1] / steps / 1e3:8.1f} {'':6} {total[2] / steps / 1e3:12.1f} {total[3] / steps / 1e3:15.1f}")
        print(f"exposed: {alone(rows[first:last]) / steps / 1e3:.1f} us, {100 * alone(rows[first:last]) / (rows[last][0] - rows[first][0]):.1f} % of the step\n")


if __name__ == "__main__":
    main()
