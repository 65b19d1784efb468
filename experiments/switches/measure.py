#!/usr/bin/env python3
"""Does each switch do to a measured step what the model says? Every row of the table that these GPUs can hold, in its own configurations.

    experiments/switches/measure.py OUT.json [--gpus 2] [--turns 2] [--minutes 9] [--only KEY ...] [--trials] [--modelled] [--program ./shardbook]

Rows, values and configurations are the table's (`shardbook switches --json`). A configuration of more GPUs than there are is cut
down along its largest axis, a GPU's sequences left as they are. Each runs as it is and with each value, in turns. A figure is the
median of a run's untraced steps, and over turns their median; exposed is of one traced step. Beside it stands what the same
options give with --device meta, which also says beforehand whether the run fits: with --modelled that is all that is done, so that
GPUs need not wait for it. OUT.json is written after each run, and what it has is not made again, so a table may be made in several
goes. --trials leaves out the values that a row has beside those of its two configurations. Prints Markdown; ends with 1 where a run failed.
"""
import argparse
import concurrent.futures
import json
import math
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
AXES = ("tp", "fsdp", "dp")
# Whole numbers besides those of a row's two configurations
MORE_VALUES = {"fsdp.blocks_a_unit": ["2", "4"], "fsdp.prefetch": ["2"], "loss.chunks": ["2"], "matmul.sms_beside": ["16"], "nccl.last_ctas": ["16"], "nccl.max_ctas": ["4"]}
LARGEST = 125 << 30  # bytes of a GPU: what is left of an H200's to this process


class Cannot(Exception):
    pass


def cut(options, gpus):
    """The options on so many GPUs and the layout's sizes, or Cannot."""
    sizes = {axis: int(found[1]) if (found := re.search(rf"--{axis} (\d+)", options)) else 1 for axis in AXES}
    rest = re.sub(r" ?--(?:tp|fsdp|dp) \d+", "", options).strip()
    ranks = sizes["tp"] * sizes["fsdp"] * sizes["dp"]
    if ranks > gpus:
        largest = max(AXES, key=lambda axis: sizes[axis])
        others = ranks // sizes[largest]
        if gpus % others:
            raise Cannot(f"needs {ranks} GPUs")
        fewer = gpus // others
        if largest != "tp" and (found := re.search(r"--sequences (\d+)", rest)):
            sequences = max(fewer, int(found[1]) * fewer // sizes[largest])
            rest = rest.replace(found[0], f"--sequences {sequences}")
        sizes[largest] = fewer
    return " ".join([rest, *(f"--{axis} {size}" for axis, size in sizes.items())]), sizes


def missed(needs, sizes):
    """The first need of a row that such a layout has not; what is no size of a layout is the run's to say."""
    sizes = {**sizes, "ranks": sizes["tp"] * sizes["fsdp"] * sizes["dp"]}
    for need in needs:
        if (found := re.fullmatch(r"(tp|fsdp|dp|ranks) > (\d+)", need)) and sizes[found[1]] <= int(found[2]):
            return need
    return None


class Program:
    def __init__(self, path, folder):
        self.path, self.folder, self.runs = path, pathlib.Path(folder), 0

    def figures(self, *words):
        ended = subprocess.run([self.path, *words, "--json"], cwd=ROOT, capture_output=True, text=True)
        if ended.returncode:
            raise Cannot((ended.stderr.strip().splitlines() or ["no word"])[-1])
        return json.loads(ended.stdout[ended.stdout.index("{" if words[0] != "switches" else "["):])

    def train(self, device, options, how=""):
        """The folder of a run."""
        self.runs += 1
        out = self.folder / f"run{self.runs}"
        data = "" if "grammar-tutor" in options else "--data synthetic"
        self.figures("train", "--device", device, *options.split(), *data.split(), *how.split(), "--out", str(out))
        return out

    def read(self, out, which=()):
        """Of a run: step in ms (median, least, most), its exposed share in per cent, GiB allocated. The folder goes."""
        results = json.loads((out / "run.json").read_text())["results"]
        ranks = self.figures("metrics", str(out), *which)["tables"][0]["ranks"]
        exposed = statistics.mean(100 * one["exposed_communication_ns"] / one["window_ns"] for one in ranks)
        shutil.rmtree(out, ignore_errors=True)
        return {"step_ms": results["step_ns"] / 1e6, "least_ms": results["step_min_ns"] / 1e6, "most_ms": results["step_max_ns"] / 1e6,
                "exposed": exposed, "gib": results["allocated_bytes"] / 2**30}

    def modelled(self, options):
        # What only a device has is not asked of the model.
        return self.read(self.train("meta", re.sub(r" --set (?:host\.connections|matmul\.sms_beside|nccl\.\w+)=\S+", "", options)))

    def measured(self, options, modelled, reader):
        """What becomes the figures of a run: it is read beside the next one."""
        # One step is traced, near the end: a GPU has found its clock by then, after two to three seconds. Of steps that a host
        # takes longest for there are more, for they lie further apart.
        steps = max(8, min(400 if modelled["step_ms"] < 5 else 24, round(4000 / modelled["step_ms"])))
        out = self.train("cuda", options, f"--steps {steps} --warmup-steps 2 --trace-steps {steps - 2}:{steps - 1} --progress 0")
        return reader.submit(self.read, out, ["--step", str(steps - 2)])


def tries(rows, gpus, say=lambda text: None, trials=False):
    """(options, key, value), the default's value None, each once and in the table's order."""
    seen = set()
    for row in rows:
        if row["promise"] == "wrong":
            continue
        for which in ("moves", "still"):
            trial = row[which]
            if not trial:
                continue
            values = [trial["value"]]
            if which == "moves" and not trials:
                values += [value for value in [*row["values"], *MORE_VALUES.get(row["key"], [])] if value not in (row["default"], trial["value"])]
            try:
                options, sizes = cut(trial["options"], gpus)
                if need := missed(row["needs"], sizes):
                    raise Cannot(f"needs {need}")
            except Cannot as why:
                say(f"`{row['key']}`, {trial['options']}: left out, {why}")
                continue
            for value in [None, *values]:
                one = (options, row["key"] if value else None, value)
                if one not in seen:
                    seen.add(one)
                    yield one


def with_value(options, key, value):
    return f"{options} --set {key}={value}" if key else options


def measure(program, asked, rows, known, save):
    """Fills known[options with the switch] with what the model says, and with turns; True if nothing failed."""
    whole, begun = True, time.monotonic()
    # What is compared is run one after the other.
    ordered = list(tries(rows, asked.gpus, lambda text: print(text, file=sys.stderr), asked.trials))
    first = {}
    for at, one in enumerate(ordered):
        first.setdefault(one[0], at)
    ordered = list(dict.fromkeys(with_value(*one) for one in sorted(ordered, key=lambda one: first[one[0]])))

    def model_of(options):
        entry = known.setdefault(options, {"turns": []})
        if "modelled" not in entry and "left_out" not in entry:
            try:
                entry["modelled"] = program.modelled(options)
                if entry["modelled"]["gib"] * 2**30 > LARGEST:
                    entry["left_out"] = f"{entry['modelled']['gib']:.0f} GiB"
            except Cannot as why:
                # Where no model can be made, or a need is not there, nothing failed that was promised.
                entry["left_out"] = str(why)
                print(f"{options}: {why}", file=sys.stderr)
            save()
        return entry

    if asked.modelled:
        for options in ordered:
            model_of(options)
        return True
    for turn in range(asked.turns):
        reading = []
        with concurrent.futures.ThreadPoolExecutor(2) as reader:
            for options in ordered:
                if len(known.get(options, {"turns": []})["turns"]) > turn:   # what failed is tried again
                    continue
                if time.monotonic() - begun > 60 * asked.minutes:
                    print("time is up: the same command goes on", file=sys.stderr)
                    break
                entry = model_of(options)
                if "left_out" in entry:
                    continue
                try:
                    reading.append((entry, program.measured(options, entry["modelled"], reader)))
                except Cannot as why:
                    print(f"{options}: {why}", file=sys.stderr)
                    whole = False
        for entry, figures in reading:
            try:
                entry["turns"].append(figures.result())
            except Cannot as why:
                print(why, file=sys.stderr)
                whole = False
        save()
    return whole


def spread(entry):
    """The least and the most of the runs' steps."""
    least, most = (of(turn.get(what, turn["step_ms"]) for turn in entry["turns"]) for of, what in ((min, "least_ms"), (max, "most_ms")))
    return f"{least:.2f} to {most:.2f}"


def middle(entry, what):
    """Of the turns that have it: a run that was made by hand (`by` says how) may have no exposed share."""
    return statistics.median([turn[what] for turn in entry["turns"] if what in turn] or [float("nan")])


def table(asked, rows, known):
    print("| switch | configuration | measured, ms | | steps of a run | turns apart | modelled, ms | | exposed, % | allocated, GiB |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    right = moved = 0
    for options, key, value in tries(rows, asked.gpus, trials=asked.trials):
        entry, base = known.get(with_value(options, key, value), {}), known.get(options, {})
        if not key or not entry.get("turns") or not base.get("turns"):
            continue
        before, after = middle(base, "step_ms"), middle(entry, "step_ms")
        has_model = not re.match(r"host\.connections|matmul\.sms|nccl\.", key)
        modelled = [one["modelled"]["step_ms"] if has_model else math.nan for one in (base, entry)]
        change, said = 100 * (after / before - 1), 100 * (modelled[1] / modelled[0] - 1)
        several = len(base["turns"]) > 1 and len(entry["turns"]) > 1
        apart = max(100 * (max(t["step_ms"] for t in one["turns"]) / min(t["step_ms"] for t in one["turns"]) - 1) for one in (base, entry))
        if has_model and max(abs(change), abs(said)) > 1:
            moved += 1
            right += change * said > 0
        where = re.sub(r" (?:tp|fsdp|dp) 1\b", "", options.replace("--", "")).removeprefix("model ")
        exposed = [middle(one, "exposed") for one in (base, entry)]
        print(f"| `{key}={value}` | {where} | {before:.2f} → {after:.2f} | {change:+.1f} % | {spread(entry)} | {f'{apart:.1f} %' if several else ''} "
              + (f"| {modelled[0]:.2f} → {modelled[1]:.2f} | {said:+.1f} % " if has_model else "| no model | ")
              + ("| " if math.isnan(sum(exposed)) else f"| {exposed[0]:.1f} → {exposed[1]:.1f} ")
              + f"| {middle(base, 'gib'):.1f} → {middle(entry, 'gib'):.1f} |")
    if moved:
        print(f"\nOf {moved} that move the step by more than 1 %, measured or modelled, {right} move it the same way in both.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=9, help="then it stops, and the same command goes on")
    parser.add_argument("--only", nargs="+", metavar="KEY")
    parser.add_argument("--trials", action="store_true", help="the values of the two configurations alone")
    parser.add_argument("--modelled", action="store_true", help="what the model says, and no more")
    parser.add_argument("--program", default=str(ROOT / "shardbook"))
    asked = parser.parse_args()
    known = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        program = Program(asked.program, folder)
        rows = [row for row in program.figures("switches") if not asked.only or row["key"] in asked.only]
        whole = measure(program, asked, rows, known, lambda: asked.out.write_text(json.dumps(known, indent=1) + "\n"))
    if not asked.modelled:
        table(asked, rows, known)
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
