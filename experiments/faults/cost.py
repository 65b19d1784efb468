#!/usr/bin/env python3
"""What does an option cost a step, and the host that issues it? Runs with and without it, in turns.

    python3 experiments/faults/cost.py [--turns 5] [--budget 60] [--steps 400] [--share] [--with "--comm-timeout 600"] [--without "--comm-timeout 0"] [-- OPTIONS of train]

OPTIONS are `--device cuda --tp 1 --fsdp 1` where none stand there. With --share two ranks are on one GPU (share_gpu.py): what the
host does is real then, and how long a step takes is not, so that is not printed.

    step     the median of the steps that are not traced, by run.json, of the turn that is the median
    issue    of traced steps: from the host's first op to the end of its last one
    call     of traced steps: what the host was in one collective
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
COLLECTIVES = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send", "recv", "shift"}


def program():
    asked = os.environ.get("SHARDBOOK_PROGRAM")
    return asked or next((path for preset in ("gpu", "test", "release", "cuda") if os.path.isfile(path := os.path.join(ROOT, "build", preset, "shardbook"))), os.path.join(ROOT, "shardbook"))


def issued(trace):
    """Of each traced step: the host's time from first to last op, and that in collectives, each, in us."""
    with open(trace) as file:
        events = json.load(file)["traceEvents"]
    calls = [one for one in events if one.get("cat") == "cuda_runtime" and one.get("ph") == "X" and "op" in one.get("args", {})]
    steps = {}
    for one in calls:
        steps.setdefault(one["args"]["step"], []).append(one)
    whole = [max(one["ts"] + one["dur"] for one in step) - min(one["ts"] for one in step) for step in steps.values()]
    return whole, [one["dur"] for one in calls if one["args"]["op"] in COLLECTIVES], sum(one["args"]["op"] in COLLECTIVES for one in calls) / max(1, len(steps))


def run(args, extra, folder):
    words = [program(), "train", *args.options, *shlex.split(extra), "--steps", str(args.steps), "--trace-steps", f"10:{10 + args.traced}", "--progress", "0", "--out", folder]
    if args.share:
        words = [sys.executable, os.path.join(HERE, "share_gpu.py"), "--", *words]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=90, env=dict(os.environ, SHARDBOOK_ROOT=ROOT))
    if ran.returncode != 0:
        raise RuntimeError((ran.stderr or ran.stdout).strip()[-300:])
    with open(os.path.join(folder, "run.json")) as file:
        results = json.load(file)["results"]
    whole, calls, count = issued(os.path.join(folder, "rank0.json"))
    return {"step": results["step_ns"] / 1e6, "issue": statistics.median(whole), "call": statistics.median(calls) if calls else None, "calls": count}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--budget", type=float, default=60, help="seconds; no turn begins that would not fit")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--traced", type=int, default=20)
    parser.add_argument("--share", action="store_true")
    parser.add_argument("--with", dest="on", default="--comm-timeout 600")
    parser.add_argument("--without", dest="off", default="--comm-timeout 0")
    parser.add_argument("options", nargs="*")
    args = parser.parse_args()
    args.options = args.options or ["--device", "cuda", "--tp", "1", "--fsdp", "1"]
    found, begin, longest = {"without": [], "with": []}, time.monotonic(), 0
    with tempfile.TemporaryDirectory() as work:
        for turn in range(args.turns):
            if time.monotonic() - begin + longest > args.budget:
                break
            begun = time.monotonic()
            # Who goes first changes, so that a drift of the machine is nobody's
            for name in ("without", "with") if turn % 2 == 0 else ("with", "without"):
                found[name].append(run(args, args.on if name == "with" else args.off, os.path.join(work, f"{name}{turn}")))
            longest = max(longest, time.monotonic() - begun)
    turns = len(found["with"])
    print(f"{' '.join(args.options)}, {turns} turns, '{args.on}' beside '{args.off}':")
    for what, unit, digits in (("step", "ms", 4), ("issue", "us", 1), ("call", "us", 2)):
        values = {name: sorted(one[what] for one in all if one[what] is not None) for name, all in found.items()}
        if not values["with"] or (what == "step" and args.share):
            continue
        off, on = (statistics.median(values[name]) for name in ("without", "with"))
        pairs = sorted(b[what] - a[what] for a, b in zip(found["without"], found["with"]))
        print(f"  {what:5} {off:.{digits}f} -> {on:.{digits}f} {unit}, {100 * (on / off - 1):+.2f} %; difference of a turn {pairs[0]:+.{digits}f} to {pairs[-1]:+.{digits}f} {unit}"
              + (f"; {found['with'][0]['calls']:.0f} collectives a step" if what == "call" else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
