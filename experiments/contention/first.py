#!/usr/bin/env python3
"""Who came first, the sum of an input gradient over ranks or the weight gradient that became ready with it?

    ./shardbook train --device cuda --data synthetic --model gpt-1.3b --tp 2 --fsdp 1 --sequences 4 --steps 14 --trace-steps 9:13 --out RUN
    python3 experiments/contention/first.py RUN

Of each rank and each column-parallel linear: in which part of the cases the sum had ended when the weight gradient issued behind it had not, and
one digit for each, in the order in which they ran. That is right where the weight gradient holds all multiprocessors, or leaves none for it to
end first: of large models. Where the sum's span begins tells nothing, for its wait for room is part of it. Python alone.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "speed"))
import kernels  # noqa: E402

LINEARS = ("qkv", "up")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    run = pathlib.Path(sys.argv[1])
    ranks = len(list(run.glob("rank*.json")))
    if ranks == 0:
        sys.exit(f"{run} has no rank0.json: give the folder of a run")
    for rank in range(ranks):
        issued = sorted((event for event in kernels.trace_of(run, rank) if event.get("ph") == "X" and event.get("cat") == "kernel"), key=lambda event: event["args"]["correlation"])
        found = {linear: [] for linear in LINEARS}
        last_sum = None
        for event in issued:
            args = event["args"]
            end = event["ts"] + event["dur"]
            if args["op"] == "all_reduce" and args.get("phase") == "backward" and args.get("Process Group Name") == "tp":
                last_sum = args.get("layer"), end
            if args["op"] == "linear_weight_gradient" and args.get("part") in LINEARS and last_sum is not None and last_sum[0] == args.get("layer"):
                found[args["part"]].append((event["ts"], int(last_sum[1] < end)))
        if not any(found.values()):
            sys.exit(f"{run} has no sum of an input gradient over ranks: it is not a run with --tp of 2 or more")
        for linear, cases in found.items():
            first = "".join(str(one) for _, one in sorted(cases))
            print(f"rank {rank}, {linear}: the sum first in {100 * first.count('1') / max(1, len(first)):.0f} % of {len(first)}: {first}")


if __name__ == "__main__":
    main()
