#!/usr/bin/env python3
"""Who came first, the sum of an input gradient over ranks or the weight gradient that became ready with it?

    ./shardbook train --device cuda --data synthetic --model gpt-1.3b --tp 2 --fsdp 1 --sequences 4 --steps 14 --trace-steps 9:13 --out RUN
    python3 experiments/contention/first.py RUN

Of each rank and each column-parallel linear: in which part of the cases the weight gradient took more than 1.4 times as long as its fastest, as
it does where the sum had room before it; and one digit for each, in the order in which they ran. If all were slowed, or none, it says 0. Python alone.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "speed"))
import kernels  # noqa: E402

SLOWED = 1.4


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    run = pathlib.Path(sys.argv[1])
    ranks = len(list(run.glob("rank*.json")))
    if ranks == 0:
        sys.exit(f"{run} has no rank0.json: give the folder of a run")
    for rank in range(ranks):
        spans = {}
        for event in kernels.trace_of(run, rank):
            if event.get("ph") == "X" and event.get("cat") == "kernel" and event["name"] in ("linear_weight_gradient up", "linear_weight_gradient qkv"):
                spans.setdefault(event["name"], []).append((event["ts"], event["dur"]))
        for name, all_spans in sorted(spans.items()):
            took = [dur for _, dur in sorted(all_spans)]
            slowed = "".join(str(int(dur > SLOWED * min(took))) for dur in took)
            print(f"rank {rank}, {name}: {min(took):.1f} to {max(took):.1f} us, the sum first in {100 * slowed.count('1') / len(slowed):.0f} % of {len(slowed)}: {slowed}")


if __name__ == "__main__":
    main()
