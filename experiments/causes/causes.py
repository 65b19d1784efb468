#!/usr/bin/env python3
"""Is the step as much shorter without its cause as `why` says, and as `whatif` says? Each fault beside the same run without it, on GPUs.

    experiments/causes/causes.py OUT [--program build/gpu/shardbook] [--gpus 2] [--turns 2] [--minutes 9] [--only ROW ...]      (OUT is relative to here)

Each run is made once a turn, whatever rows it stands in, in the order of the rows; the next begins while the last is read. *Said* is
what `why` gives its first cause, of each traced step, and a step in which that is another than the planted one is told; *foretold* what `whatif` makes of the traced step with the row's switch set;
*gained* is with the cause less without: of rank 0's traced steps, and of the ten untraced ones nearest to them. Prints two tables,
and leaves under OUT the runs, packs of the first of each row, and causes.json. Ends with 1 where a run failed or no time was left.
"""
import argparse
import concurrent.futures
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import time

# A GPU at its power limit takes two to three seconds to find its clock: what counts comes after that.
TRACED = 4
BEFORE = {"gpt-1.3b": 100, "gpt-124m": 300, "grammar-tutor": 300}
FSDP, TP = "--model gpt-1.3b --tp 1 --fsdp 2 --sequences", "--model gpt-1.3b --tp 2 --fsdp 1 --sequences 8"
FSDP4 = "--model gpt-1.3b --tp 1 --fsdp 4 --sequences"
SMALL_TP, SMALL_FSDP = "--model gpt-124m --tp 2 --fsdp 1 --sequences 8", "--model gpt-124m --tp 1 --fsdp 2 --sequences 4"
IDEAL = "network=ideal"
LATE, SUMS = "all-gathers wait that nothing hides", "all-reduces of tp stand between kernels"
# name: the layout, what is planted, what takes the cause away again, and words of the cause that must come first; a row without
# a cause has none of them
ROWS = {
    "no-problem": (f"{FSDP} 16", "", "", ""),
    "no-prefetch": (f"{FSDP} 8", "fsdp.prefetch=0", "fsdp.prefetch=1", LATE),
    "sums": (TP, "", IDEAL, SUMS),
    "slow-rank": (f"{FSDP} 8", "rank.slow=1:20", "rank.slow=none", "wait for rank 1"),
    "slow-rank-tp": (TP, "rank.slow=1:20", "rank.slow=none", "wait for rank 1"),
    "fsdp": (f"{FSDP} 8", "", IDEAL, ""),
    "sums-small": (SMALL_TP, "", IDEAL, SUMS),
    "fsdp-small": (SMALL_FSDP, "", IDEAL, ""),
    "no-prefetch-16": (f"{FSDP} 16", "fsdp.prefetch=0", "fsdp.prefetch=1", LATE),
    "no-backward-prefetch": (f"{FSDP} 8", "fsdp.backward_prefetch=none", "fsdp.backward_prefetch=pre", LATE),
    "each-micro-batch": (f"{FSDP} 16 --micro-batches 4", "", "accumulate.reduce=last", "reduce-scatters of dp_shard slow the kernels"),
    "host": ("--model grammar-tutor --tp 2 --fsdp 1", "", "host.graph=on", "host"),
    "naive": ("--model gpt-124m --tp 1 --fsdp 1 --dp 2 --sequences 4", "data_parallel.reduce=naive", "data_parallel.reduce=bucketed", "only when backward is over"),
    "synchronized": ("--model gpt-124m --tp 1 --fsdp 2 --sequences 2", "host.synchronize=layer", "host.synchronize=never", "host waits for the device"),
    "copies": (f"{FSDP} 16", "fsdp.offload=optimizer", "fsdp.offload=none", "copies between host memory"),
    # What experiments/captured has, over four GPUs
    "fsdp-4": (f"{FSDP4} 32", "", IDEAL, ""),
    "no-prefetch-4": (f"{FSDP4} 32", "fsdp.prefetch=0", "fsdp.prefetch=1", LATE),
    "sums-4": ("--model gpt-1.3b --tp 4 --fsdp 1 --sequences 8", "", IDEAL, SUMS),
    "both-4": ("--model gpt-1.3b --tp 2 --fsdp 2 --sequences 16", "", IDEAL, SUMS),
    "host-4": ("--model grammar-tutor --tp 2 --fsdp 2", "", "host.graph=on", "host"),
    "slow-rank-4": (f"{FSDP4} 32", "rank.slow=2:20", "rank.slow=none", "wait for rank 2"),
}
# A switch set to what it is: the step must come back.
UNCHANGED = "host.delay=0"


def gpus_of(layout):
    return math.prod(int(ranks) for ranks in re.findall(r"--(?:tp|fsdp|dp) (\d+)", layout))


def options_of(layout, switch):
    """What a run is asked for. A value that is the default is not named: so the same run has the same options in all rows."""
    at_default = switch in {"fsdp.prefetch=1", "rank.slow=none", "data_parallel.reduce=bucketed", "host.synchronize=never", "fsdp.offload=none", "fsdp.backward_prefetch=pre"}
    data = "" if "grammar-tutor" in layout else " --data synthetic"
    return layout + data + (f" --set {switch}" if switch and not at_default else "")


def before(options):
    """The steps that are not traced."""
    return BEFORE[re.search(r"--model (\S+)", options)[1]]


class Program:
    def __init__(self, path):
        self.path = path

    def figures(self, *words):
        ended = subprocess.run([self.path, *words, "--json"], capture_output=True, text=True)
        if ended.returncode not in (0, 1) or not ended.stdout.startswith("{"):
            raise RuntimeError(f"{' '.join(words)}: {(ended.stderr.strip().splitlines() or ['no word'])[-1]}")
        return json.loads(ended.stdout)

    def train(self, device, folder, options):
        first = before(options)
        steps = f"--steps {first + TRACED} --warmup-steps 2 --trace-steps {first}:{first + TRACED} --progress 0"
        self.figures("train", "--device", device, *options.split(), *steps.split(), "--out", str(folder))
        return json.loads((folder / "run.json").read_text())["results"]

    def read(self, folder, options, results, switches):
        """All that is asked of a run: its steps, and what why and whatif say of it."""
        ideal = IDEAL in options
        first = before(options)
        said = [] if ideal else [self.figures("why", str(folder), "--step", str(step)) for step in range(first, first + TRACED)]
        unchanged = self.figures("whatif", str(folder), "--set", UNCHANGED)
        return {
            "options": options, "step_ms": results["near_traced_ns"] / 1e6,
            "traced_ms": [results["traced_step_ns"] / 1e6],
            "said_ms": [one["causes"][0]["gain_ns"] / 1e6 for one in said if one["causes"] and "no problem" not in one["sentence"]],
            "first_causes": [one["causes"][0]["what"] if one["causes"] else "" for one in said],
            "sentence": said[0]["sentence"] if said else "",
            "unchanged": [unchanged["step_ns"] / 1e6, unchanged["would_be_ns"] / 1e6],
            "foretold": {switch: self.foretold(folder, switch) for switch in switches},
        }

    def foretold(self, folder, switch):
        """The traced step and what it would be, in ms; None where whatif refuses."""
        try:
            figures = self.figures("whatif", str(folder), "--set", switch)
        except RuntimeError:
            return None
        return [figures["step_ns"] / 1e6, figures["would_be_ns"] / 1e6]


def pairs(name):
    """Of a row, the options of its run with the cause, and of the one without (None: nothing is taken away)."""
    layout, planted, removed, _ = ROWS[name]
    return options_of(layout, planted), options_of(layout, removed) if removed else None


def measure(program, asked, names):
    """Per options, a list over turns of what was read of the run; and what failed."""
    asked_of, begun = {}, time.monotonic()
    for name in names:
        with_cause, _ = pairs(name)
        asked_of.setdefault(with_cause, set()).update({ROWS[name][2]} - {""})
    ordered = list(dict.fromkeys(options for name in names for options in pairs(name) if options))
    runs, failed = {options: [] for options in ordered}, []
    with concurrent.futures.ThreadPoolExecutor(4) as readers:
        reading = []
        for turn in range(asked.turns):
            for at, options in enumerate(ordered):
                if time.monotonic() - begun > 60 * asked.minutes:
                    failed.append(f"turn {turn}: {options}: no time was left")
                    continue
                folder = asked.out / f"{at:02}-{turn}-{re.sub(r'[^a-z0-9.]+', '-', options.lower()).strip('-')}"
                try:
                    results = program.train(asked.device, folder, options)
                except (RuntimeError, KeyError) as problem:
                    failed.append(str(problem))
                    continue
                reading.append((options, folder, readers.submit(program.read, folder, options, results, sorted(asked_of.get(options, ())))))
        for options, folder, read in reading:
            try:
                runs[options].append({"folder": str(folder), **read.result()})
            except (RuntimeError, KeyError, json.JSONDecodeError) as problem:
                failed.append(str(problem))
    return runs, failed


def mean(runs, key):
    values = [value for run in runs for value in (run[key] if isinstance(run[key], list) else [run[key]])]
    return statistics.mean(values) if values else 0


def off(said, found):
    return f"{said:.2f} ({100 * (said / found - 1):+.0f} %)"


def print_tables(names, runs):
    print("| run | untraced, ms | traced, ms | gained, untraced | gained, traced | `why` said | of the traced | `whatif` foretold | of the step |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name in names:
        (with_cause, without), switch = pairs(name), ROWS[name][2]
        ones, others = runs[with_cause], runs.get(without, [])
        if not ones or (without and not others):
            continue
        step, traced, said = (mean(ones, key) for key in ("step_ms", "traced_ms", "said_ms"))
        cells = [name, f"{step:.2f}", f"{traced:.2f}", *[""] * 6]
        if without:
            gained, of_traced = step - mean(others, "step_ms"), traced - mean(others, "traced_ms")
            cells[3:5] = f"{gained:.2f}", f"{of_traced:.2f}"
            if said:
                cells[5:7] = off(said, gained), off(said, of_traced)
            if all(run["foretold"][switch] for run in ones):
                foretold = statistics.mean(would_be / of * run["step_ms"] for run in ones for of, would_be in [run["foretold"][switch]])
                cells[7:9] = f"{foretold:.2f} for {mean(others, 'step_ms'):.2f}", f"{100 * (foretold / mean(others, 'step_ms') - 1):+.1f} %"
        print("| " + " | ".join(cells) + " |\n    " + ones[0]["sentence"], flush=True)
        unnamed = [what for run in ones for what in run["first_causes"] if ROWS[name][3] and ROWS[name][3] not in what]
        if unnamed:
            print(f"    NOT NAMED in {len(unnamed)} of {sum(len(run['first_causes']) for run in ones)} steps: " + "; ".join(sorted(set(unnamed))))
    worst = max((abs(would_be / of - 1) for all_turns in runs.values() for run in all_turns for of, would_be in [run["unchanged"]]), default=0)
    print(f"\nWith nothing changed `whatif` gives each traced step back within {100 * worst:.2f} %.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--program", default="./shardbook")
    parser.add_argument("--device", default="cuda", help="meta: what the model says of all this, without a GPU")
    parser.add_argument("--gpus", type=int, default=2, help="the rows of so many")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="then no further run begins")
    parser.add_argument("--only", choices=sorted(ROWS), nargs="+")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True)
    names = [name for name in ROWS if (name in asked.only if asked.only else gpus_of(ROWS[name][0]) == asked.gpus)]
    program = Program(asked.program)
    runs, failed = measure(program, asked, names)
    (asked.out / "causes.json").write_text(json.dumps({"runs": runs, "failed": failed}, indent=1, ensure_ascii=False) + "\n")
    print_tables(names, runs)
    for problem in failed:
        print(problem, file=sys.stderr)
    for name in names:
        for suffix, options in zip(("", "-removed"), pairs(name)):
            if options and runs[options]:
                subprocess.run([asked.program, "pack", runs[options][0]["folder"], "--out", str(asked.out / f"{name}{suffix}.tar.gz")], capture_output=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
