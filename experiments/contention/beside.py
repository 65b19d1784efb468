#!/usr/bin/env python3
"""What does running together cost a real step? Compares two captured runs, op by op.

   beside.py WITH.tar.gz WITHOUT.tar.gz [--step N]

WITH has gathers ahead of their use, WITHOUT has none (--prefetch 0), all else is equal. Each kernel of WITH is set beside
the same one of WITHOUT (by phase, layer, part, op and number). Those that run beside no collective in either say what the
clock does; of the others
    factor = overlap / (time without · clock − (time with − overlap))
is by how much a kernel is slower while a collective runs. Python 3 alone.
"""
import argparse
import collections
import json
import statistics
import sys
import tarfile

COLLECTIVES = {"all_gather", "reduce_scatter", "all_reduce"}
MATMULS = ("linear_", "attention_scores", "attention_context", "attention_query", "attention_key", "attention_value", "attention_probability")


def kernels_of(pack, rank, step):
    """(begin, end, what it is) of a rank's kernels in a step, in us: compute, and collectives."""
    with tarfile.open(pack) as files:
        name = next((n for n in files.getnames() if n.endswith(f"run/rank{rank}.json")), None)
        if name is None:
            sys.exit(f"{pack} has no rank {rank}: say how many there are with --ranks")
        events = json.load(files.extractfile(name))["traceEvents"]
    traced = sorted({e["args"]["step"] for e in events if e.get("cat") == "kernel" and "step" in e.get("args", {})})
    if step not in traced:
        sys.exit(f"{pack} has no step {step}: name one of {traced} with --step")
    mine = [(e["ts"], e["ts"] + e["dur"], e["args"]) for e in events
            if e.get("ph") == "X" and e.get("cat") == "kernel" and e["args"].get("step") == step]
    return [k for k in mine if k[2]["op"] not in COLLECTIVES], [k for k in mine if k[2]["op"] in COLLECTIVES]


def name_of(what):
    return tuple(what.get(part) for part in ("phase", "micro_batch", "layer", "part", "op", "n"))


def overlap(kernel, others):
    return sum(max(0.0, min(kernel[1], o[1]) - max(kernel[0], o[0])) for o in others)


def is_matmul(what):
    return what["op"].startswith(MATMULS)


def moving(collectives, kernels):
    """The collectives without what they wait for room: until the end of a matmul that began before them. And that wait in all, us."""
    out, waited = [], 0.0
    for begin, end, what in collectives:
        wait = max((min(k[1], end) - begin for k in kernels if is_matmul(k[2]) and k[0] < begin < k[1]), default=0.0)
        waited += wait
        out.append((begin + wait, end, what))
    return out, waited


def by_kind(with_pack, without_pack, ranks, step):
    """Of each matmul that collectives cover for nine tenths: how many times as long it takes, where it stands in a block."""
    factors = collections.defaultdict(list)
    spans = collections.Counter()
    for rank in range(ranks):
        beside, gathers = kernels_of(with_pack, rank, step)
        alone, gathers_alone = kernels_of(without_pack, rank, step)
        same = {name_of(k[2]): k for k in alone}
        pairs = [(k, same[name_of(k[2])]) for k in beside if is_matmul(k[2]) and name_of(k[2]) in same]
        pairs = [(k, other) for k, other in pairs if overlap(other, gathers_alone) == 0]
        free = [(k, other) for k, other in pairs if overlap(k, gathers) == 0]
        clock = sum(k[1] - k[0] for k, _ in free) / sum(other[1] - other[0] for _, other in free)
        moved, _ = moving(gathers, beside)
        for kernel, other in pairs:
            time = kernel[1] - kernel[0]
            if overlap(kernel, moved) >= 0.9 * time:
                factors[(kernel[2]["op"], kernel[2].get("part"))].append(time / ((other[1] - other[0]) * clock))
        scatters = [c for c in gathers if c[2]["op"] == "reduce_scatter" and c[2]["phase"] == "backward"]
        spans["span"] += sum(c[1] - c[0] for c in scatters)
        spans["room"] += moving(scatters, beside)[1]
    print("matmuls that collectives cover, over their time beside nothing at the same clock:")
    for (op, part), values in sorted(factors.items()):
        print(f"  {op} {part}: {statistics.median(values):.2f} times ({min(values):.2f} to {max(values):.2f}, {len(values)} of them)")
    if spans["span"] > 0:
        print(f"reduce-scatters in backward wait for room for {spans['room'] / 1e3 / ranks:.1f} of their {spans['span'] / 1e3 / ranks:.1f} ms a rank")


def compare(with_pack, without_pack, rank, step):
    beside, gathers = kernels_of(with_pack, rank, step)
    alone, gathers_alone = kernels_of(without_pack, rank, step)
    same = {name_of(k[2]): k for k in alone}
    print(f"rank {rank}: compute {sum(k[1] - k[0] for k in beside) / 1e3:.1f} ms with, {sum(k[1] - k[0] for k in alone) / 1e3:.1f} without")
    for kind, chosen in (("matmuls", True), ("other kernels", False)):
        free, covered = [0.0, 0.0], [0.0, 0.0, 0.0]
        for kernel in beside:
            other = same.get(name_of(kernel[2]))
            if other is None or is_matmul(kernel[2]) != chosen or overlap(other, gathers_alone) > 0:
                continue
            time, time_alone, over = kernel[1] - kernel[0], other[1] - other[0], overlap(kernel, gathers)
            into = free if over == 0 else covered
            into[0] += time
            into[1] += time_alone
            if over > 0:
                covered[2] += over
        clock = free[0] / free[1]
        factor = covered[2] / (covered[1] * clock - (covered[0] - covered[2]))
        print(f"  {kind}: beside nothing {clock:.3f} times as long; for {covered[2] / 1e3:.1f} ms beside a collective, and there {factor:.3f} times")
    for op in sorted(COLLECTIVES):
        for phase in ("forward", "backward"):
            times = [[k[1] - k[0] for k in found if k[2]["op"] == op and k[2]["phase"] == phase] for found in (gathers, gathers_alone)]
            if all(len(t) > 4 for t in times):
                middle = [statistics.median(t) for t in times]
                print(f"  {op} in {phase}: {middle[0]:.0f} us with, {middle[1]:.0f} without, {middle[0] / middle[1]:.2f} times ({len(times[0])})")


def main():
    line = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    line.add_argument("with_pack")
    line.add_argument("without_pack")
    line.add_argument("--step", type=int, default=10)
    line.add_argument("--ranks", type=int, default=4)
    asked = line.parse_args()
    for rank in range(asked.ranks):
        compare(asked.with_pack, asked.without_pack, rank, asked.step)
    by_kind(asked.with_pack, asked.without_pack, asked.ranks, asked.step)


if __name__ == "__main__":
    main()
