#!/usr/bin/env python3
"""Where are the milliseconds of a step? What computes on one rank, by what it is for and then op by op: time, TFLOP/s, TB/s, and
the part of its time in which a collective ran as well. Of all traced steps, per step. Python alone.

    python3 experiments/speed/kernels.py experiments/captured/gpt-1.3b-fsdp4.tar.gz [--rank 0]
    python3 experiments/speed/kernels.py RUN
"""
import argparse
import collections
import gzip
import json
import pathlib
import tarfile

COLLECTIVES = {"all_gather", "reduce_scatter", "all_reduce", "broadcast", "send", "recv", "shift"}
# By the first of these that begins an op's name
KINDS = [("linear_", "matmuls of linears"), ("attention_", "attention"), ("flash_", "attention"), ("cudnn_attention", "attention"), ("causal_", "attention"), ("split_heads", "attention"),
         ("merge_heads", "attention"), ("rotate", "attention"), ("sum_parts", "sums of parts"), ("gelu_", "GELU"), ("swiglu_", "SwiGLU"), ("bias_gradient", "gradients of biases"), ("layer_norm", "norms"),
         ("rms_norm", "norms"), ("add_bias_residual", "bias and residual"), ("bias_dropout", "bias and residual"), ("cross_entropy", "loss"), ("sum_of", "norm of the gradient"),
         ("clip", "norm of the gradient"), ("adam_w", "AdamW"), ("sum", "loss"), ("embedding", "tables"), ("position", "tables")]


def trace_of(path, rank):
    """The events of one rank, from a run's folder or from an archive of one."""
    name = f"rank{rank}.json"
    if path.is_dir():
        found = path / name
        data = found.read_bytes() if found.exists() else gzip.decompress((path / (name + ".gz")).read_bytes())
    else:
        with tarfile.open(path) as archive:
            member = next(one for one in archive.getmembers() if one.name.endswith((name, name + ".gz")))
            data = archive.extractfile(member).read()
            data = gzip.decompress(data) if member.name.endswith(".gz") else data
    return json.loads(data)["traceEvents"]


def covered(begin, end, spans):
    """How much of [begin, end) lies in sorted spans that do not overlap."""
    return sum(max(0, min(end, stop) - max(begin, start)) for start, stop in spans if start < end and stop > begin)


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("run", type=pathlib.Path)
    parse.add_argument("--rank", type=int, default=0)
    args = parse.parse_args()
    ops = [event for event in trace_of(args.run, args.rank) if event.get("cat") in ("kernel", "gpu_memcpy")]
    steps = len({op["args"]["step"] for op in ops})
    spans = sorted((op["ts"], op["ts"] + op["dur"]) for op in ops if op["args"]["op"] in COLLECTIVES)
    streams = {op["tid"] for op in ops if op["args"]["op"] in COLLECTIVES}
    rows, kinds = collections.defaultdict(lambda: [0, 0.0, 0, 0, 0.0]), collections.Counter()
    for op in ops:
        what = op["args"]
        # A rank's own rows are copied on the stream of the collectives that bring the others'
        if what["op"] in COLLECTIVES or (what["op"] == "copy" and op["tid"] in streams):
            continue
        kinds[next((kind for begins, kind in KINDS if what["op"].startswith(begins)), "other")] += op["dur"]
        row = rows[what["op"], what.get("part", "")]
        near = [span for span in spans if span[0] < op["ts"] + op["dur"] and span[1] > op["ts"]]
        for at, value in enumerate((1, op["dur"], what.get("flops", 0), what.get("bytes", 0), covered(op["ts"], op["ts"] + op["dur"], near))):
            row[at] += value
    print(f"{args.run.name}, rank {args.rank}, {steps} traced steps; ms a step\n")
    for kind, us in kinds.most_common():
        print(f"{kind:24} {us / steps / 1e3:8.2f}")
    print(f"{'all that computes':24} {sum(kinds.values()) / steps / 1e3:8.2f}\n")
    print(f"{'op':32} {'of':16} {'times':>6} {'ms':>8} {'TFLOP/s':>8} {'TB/s':>6} {'beside a collective':>20}")
    for (name, part), (count, us, flops, size, beside) in sorted(rows.items(), key=lambda row: -row[1][1]):
        print(f"{name:32} {part:16} {count / steps:6.0f} {us / steps / 1e3:8.3f} {flops / us / 1e6:8.0f} {size / us / 1e6:6.2f} {100 * beside / us:18.0f} %")


if __name__ == "__main__":
    main()
