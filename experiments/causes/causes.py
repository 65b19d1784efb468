#!/usr/bin/env python3
"""Is the step as much shorter without its cause as `why` says? Two GPUs, each fault beside the same run without it.

    experiments/causes/causes.py OUT [--program build/gpu/shardbook] [--turns 2]      (OUT is relative to here)

Prints a table, and leaves under OUT the runs, packs of the first runs of each row, and causes.json. Turns are made in turn:
with the fault, without, with, without.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

# A GPU at its power limit takes two to three seconds to find its clock: the traced steps come after that.
STEPS = "--steps 60 --warmup-steps 2 --trace-steps 50:52 --progress 0 --data synthetic"
GPT = "--model gpt-1.3b --tp 1 --fsdp 2 --sequences"
# name: the layout, what is planted, and what takes the cause away again
ROWS = {
    "no-problem": (f"{GPT} 16", "", None),
    "no-prefetch": (f"{GPT} 8", "--prefetch 0", ""),
    "sums": ("--model gpt-1.3b --tp 2 --fsdp 1 --sequences 8", "", "--set network=ideal"),
    "sums-small": ("--model gpt-124m --tp 2 --fsdp 1 --sequences 8", "", "--set network=ideal"),
    "slow-rank": (f"{GPT} 8", "--set rank.slow=1:20", ""),
    "slow-rank-tp": ("--model gpt-1.3b --tp 2 --fsdp 1 --sequences 8", "--set rank.slow=1:20", ""),
    "copies": (f"{GPT} 16", "--set fsdp.offload=optimizer", ""),
    "no-prefetch-16": (f"{GPT} 16", "--prefetch 0", ""),
    "synchronized": ("--model gpt-124m --tp 1 --fsdp 2 --sequences 2", "--set host.synchronize=layer", ""),
    "naive": ("--model gpt-124m --tp 1 --fsdp 1 --dp 2 --sequences 4", "--set data_parallel.reduce=naive", ""),
    "host": ("--model grammar-tutor --tp 2 --fsdp 1", "", "--set network=ideal"),
}


class Program:
    def __init__(self, words):
        self.words = words

    def figures(self, *words):
        ended = subprocess.run([self.words, *words, "--json"], capture_output=True, text=True)
        if ended.returncode not in (0, 1):
            raise RuntimeError(f"{' '.join(words)}: {ended.stderr.strip()}")
        return json.loads(ended.stdout)

    def trained(self, folder, options):
        steps = STEPS.replace(" --data synthetic", "") if "grammar-tutor" in options else STEPS
        self.figures("train", "--device", "cuda", *options.split(), *steps.split(), "--out", str(folder))
        results = json.loads((folder / "run.json").read_text())["results"]
        # Of an ideal network's run there is no step of all ranks: only its own untraced steps say anything.
        said = [] if "network=ideal" in options else [self.figures("why", str(folder), "--step", str(step)) for step in (50, 51)]
        return {
            "step_ms": results["step_ns"] / 1e6,
            "traced_ms": [one["step_ns"] / 1e6 for one in said],
            "gain_ms": [one["causes"][0]["gain_ns"] / 1e6 if one["causes"] else 0 for one in said],
            "sentence": said[0]["sentence"] if said else "",
        }


def row_of(program, out, name, turns):
    layout, planted, removed = ROWS[name]
    runs = {"with": [], "without": []}
    for turn in range(turns):
        runs["with"].append(program.trained(out / f"{name}-{turn}", f"{layout} {planted}"))
        if removed is not None:
            runs["without"].append(program.trained(out / f"{name}-{turn}-removed", f"{layout} {removed}"))
    for suffix in ("", "-removed") if removed is not None else ("",):
        subprocess.run([program.words, "pack", str(out / f"{name}-0{suffix}"), "--out", str(out / f"{name}{suffix}.tar.gz")], check=True, capture_output=True)
    return {"name": name, "layout": layout, "planted": planted, "removed": removed, **runs}


def printed(row):
    mean = lambda runs, key: statistics.mean(value for run in runs for value in (run[key] if isinstance(run[key], list) else [run[key]]))
    steps, traced, said = (mean(row["with"], key) for key in ("step_ms", "traced_ms", "gain_ms"))
    if row["without"]:
        gained = [steps - mean(row["without"], "step_ms")]
        if row["without"][0]["traced_ms"]:
            gained.append(traced - mean(row["without"], "traced_ms"))
        beside = [f"{one:.2f} ({100 * (said / one - 1):+.0f} %)" for one in gained] + [""]
        print(f"| {row['name']} | {steps:.2f} | {traced:.2f} | {said:.2f} | {beside[0]} | {beside[1]} |", flush=True)
    else:
        print(f"| {row['name']} | {steps:.2f} | {traced:.2f} | {said:.2f} | | |", flush=True)
    print(f"    {row['with'][0]['sentence']}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--program", default="./shardbook")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--only", choices=sorted(ROWS), action="append")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True)
    rows, failed = [], 0
    print("| run | untraced, ms | traced, ms | said to gain | gained, untraced | gained, traced |\n|---|--:|--:|--:|--:|--:|")
    for name in asked.only or ROWS:
        try:
            rows.append(row_of(Program(asked.program), asked.out, name, asked.turns))
            printed(rows[-1])
        except (RuntimeError, ZeroDivisionError, KeyError) as problem:
            failed += 1
            print(f"{name}: {problem}", flush=True)
        (asked.out / "causes.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    return failed


if __name__ == "__main__":
    sys.exit(main())
