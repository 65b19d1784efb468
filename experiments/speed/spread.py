#!/usr/bin/env python3
"""By how much do profiles of several sittings differ, which `calibrate` made of machines that are to be equal?

    python3 experiments/speed/spread.py experiments/speed/refit/5 experiments/speed/refit/6 ...

Of each thing measured in all of them the largest over the least; a line for each kind of thing: how many, the median, the worst. Matmuls of
bf16 that take 15 us or more stand by themselves, those that multiply at 600 TFLOP/s or more, which need all the power there is, and the others. Python alone.
"""
import json
import pathlib
import statistics
import sys


def measured(profile):
    """Kind and name of each thing, and its ns."""
    for m, n, k, batch, ns, *_ in profile["gemm"]["bf16"]["points"]:
        if ns >= 15e3:
            yield "matmuls at 600 TFLOP/s or more" if 2e-3 * m * n * k * batch / ns >= 600 else "other matmuls of 15 us or more", f"{m} x {n} x {k} x {batch}", ns
    for name, points in profile["kernels"].items():
        for size, ns in points:
            if ns >= 15e3:
                yield "kernels of 15 us or more", f"{name} of {size}", ns
    for name, by_ranks in profile["collectives"].items():
        for ranks, points in by_ranks.items():
            for size, ns in points:
                yield "collectives", f"{name} of {size} over {ranks}", ns


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    profiles = [json.loads((pathlib.Path(folder) / "fitted.json").read_text()) for folder in sys.argv[1:]]
    by_kind, kinds = {}, {}
    for profile in profiles:
        for kind, name, ns in measured(profile):
            by_kind.setdefault(name, []).append(ns)
            kinds.setdefault(name, set()).add(kind)
    for kind in sorted({one for of in kinds.values() for one in of}):
        # What is of this kind in one of them is counted to it
        apart = {name: 100 * (max(ns) / min(ns) - 1) for name, ns in by_kind.items() if len(ns) == len(profiles) and sorted(kinds[name])[0] == kind}
        if apart:
            worst = max(apart, key=apart.get)
            print(f"{kind}: {len(apart)}, median {statistics.median(apart.values()):.1f} %, worst {apart[worst]:.1f} % ({worst})")


if __name__ == "__main__":
    main()
