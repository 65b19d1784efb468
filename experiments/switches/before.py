#!/usr/bin/env python3
"""Two programs in turn on two GPUs: how long a step takes, and how long the host needs to issue it.

    experiments/switches/before.py BEFORE NOW [--turns 2] [--minutes 3]      two built `shardbook`

A step is the median of a run's untraced ones; issuing is from the first call of a traced step to the end of the last, of rank 0, the
median of a run's traced steps. A small program's step is its host's, and hosts differ from run to run: it gets more steps.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

RUNS = {
    "gpt-1.3b, fsdp 2, 16 sequences": "--model gpt-1.3b --data synthetic --tp 1 --fsdp 2 --sequences 16 --steps 24 --trace-steps 20:22",
    "gpt-1.3b, tp 2, 8 sequences": "--model gpt-1.3b --data synthetic --tp 2 --fsdp 1 --sequences 8 --steps 24 --trace-steps 20:22",
    "gpt-124m, fsdp 2, 16 sequences": "--model gpt-124m --data synthetic --tp 1 --fsdp 2 --sequences 16 --steps 60 --trace-steps 52:56",
    "grammar tutor, tp 2": "--model grammar-tutor --tp 2 --fsdp 1 --steps 300 --trace-steps 280:290",
}


def issued_ms(folder):
    """Of each traced step."""
    calls = {}
    for event in json.loads((folder / "rank0.json").read_text())["traceEvents"]:
        if event.get("ph") == "X" and event.get("cat") == "cuda_runtime":
            begin, end = event["ts"], event["ts"] + event["dur"]
            first, last = calls.get(event["args"].get("step"), (begin, end))
            calls[event["args"].get("step")] = (min(first, begin), max(last, end))
    return [(last - first) / 1e3 for first, last in calls.values()]


def run(program, options):
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work) / "run"
        subprocess.run([program, "train", "--device", "cuda", *options.split(), "--warmup-steps", "2", "--progress", "0", "--out", str(folder)], check=True, capture_output=True)
        results = json.loads((folder / "run.json").read_text())["results"]
        return results["step_ns"] / 1e6, statistics.median(issued_ms(folder)), results["losses"][-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before")
    parser.add_argument("now")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="then no further turn begins")
    asked = parser.parse_args()
    began, found, whole = time.monotonic(), {name: ([], []) for name in RUNS}, True
    for _ in range(asked.turns):
        for name, options in RUNS.items():
            if time.monotonic() - began > 60 * asked.minutes:
                continue
            for program, side in zip((asked.before, asked.now), found[name]):
                try:
                    side.append(run(program, options))
                except subprocess.CalledProcessError as problem:
                    print(f"{name}, {program}: {problem.stderr.decode()[-200:]}", file=sys.stderr)
                    whole = False
    print("| run | step, ms: before | now | | issued in, ms: before | now | | last losses |\n|---|--:|--:|--:|--:|--:|--:|---|")
    for name, (before, now) in found.items():
        if not before or not now:
            continue
        cells = []
        for which in (0, 1):
            old, new = ([one[which] for one in side] for side in (before, now))
            cells += [", ".join(f"{one:.3g}" for one in side) for side in (old, new)] + [f"{statistics.median(new) / statistics.median(old):.3f}"]
        same = "equal" if before[0][2] == now[0][2] else f"{before[0][2]:.6f}, {now[0][2]:.6f}"
        print(f"| {name} | {' | '.join(cells)} | {same} |")
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
