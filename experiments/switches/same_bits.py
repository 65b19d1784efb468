#!/usr/bin/env python3
"""Every switch that promises the same bits: ten steps as they are, ten with each of its values; are losses and gradient norms
equal to the last digit? Made from the table itself (`shardbook switches --json`): rows, values, what they need and exclude.

    experiments/switches/same_bits.py [--device cuda|host] [--ranks 2] [--only KEY] [--at-once 4] [--out FILE.json]

A loss is what forward made, a norm what backward made; ten steps of both hold the updates between them, too. Rows that promise
a bound because they sum the norm in another order are compared without clipping, by their losses alone: then nothing else may
change. What recomputes is tried with dropout as well. Runs may share the GPUs (--at-once): nothing here is timed. Prints a table;
ends with 1 where a promise does not hold.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Of whole numbers, and of what has a form of its own, a few
VALUES = {"data_parallel.bucket_mib": ["1", "4096"], "fsdp.blocks_a_unit": ["2", "4"], "fsdp.limit_all_gathers": ["1", "2"],
          "fsdp.min_num_params": ["1"], "fsdp.prefetch": ["0", "2", "3"], "fsdp.reshard_group": ["2"], "host.connections": ["1"],
          "host.delay": ["10"], "rank.slow": ["1:20"]}
NORM_ALONE = {"fsdp.blocks_a_unit", "fsdp.min_num_params", "fsdp.sharding"}
DROPOUT = " --hidden-dropout 0.1 --attention-dropout 0.1"
UNDER_DROPOUT = {"activations.recompute", "fsdp.offload"}


def layouts(ranks):
    """By name: the sizes of its axes."""
    return {f"{axis} {ranks}": {"tp": 1, "fsdp": 1, "dp": 1, axis: ranks} for axis in ("tp", "fsdp", "dp")}


def options_of(sizes, row):
    several = sizes["fsdp"] > 1 and "micro-batches = 1" not in row["needs"]
    return " ".join(f"--{axis} {size}" for axis, size in sizes.items()) + (" --micro-batches 2" if several else "")


def holds(condition, sizes):
    """Of a condition on a size of the layout; of any other, None."""
    found = re.fullmatch(r"(tp|fsdp|dp|ranks) > (\d+)", condition)
    if not found:
        return None
    ranks = sizes["tp"] * sizes["fsdp"] * sizes["dp"]
    return {**sizes, "ranks": ranks}[found[1]] > int(found[2])


def may(row, value, sizes, device):
    if "device = cuda" in row["needs"] and device != "cuda":
        return False
    if any(holds(need, sizes) is False for need in row["needs"]):
        return False
    excluded = [(of or value, what) for of, what in (re.fullmatch(r"(?:(.*): )?(.*)", one).groups() for one in row["excludes"])]
    return not any(of == value and holds(what, sizes) for of, what in excluded)


def trained(program, device, model, options):
    folder = tempfile.mkdtemp()
    try:
        words = [program, "train", "--device", device, "--steps", "10", "--progress", "0", "--trace-steps", "0:0",
                 "--out", folder + "/run", *model.split(), *options.split()]
        ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
        if ended.returncode:
            return None, ended.stderr.strip()[-200:]
        results = json.loads((pathlib.Path(folder) / "run/run.json").read_text())["results"]
        return (results["losses"], results["gradient_norms"]), ""
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def tries(rows, ranks, device):
    """Row, layout, options of both runs, values, and whether norms count."""
    for row in rows:
        if row["promise"] != "same bits" and row["key"] not in NORM_ALONE:
            continue
        all_values = VALUES.get(row["key"]) or [value for value in row["values"] if value != row["default"]]
        for name, sizes in layouts(ranks).items():
            values = [value for value in all_values if may(row, value, sizes, device)]
            if not values:
                continue
            if row["key"] in NORM_ALONE:
                yield row, name + ", no clipping", options_of(sizes, row) + " --clip 0", values, False
                continue
            yield row, name, options_of(sizes, row), values, True
            if row["key"] in UNDER_DROPOUT:
                yield row, name + ", dropout", options_of(sizes, row) + DROPOUT, values, True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--ranks", type=int, default=2, help="of each layout; rows that need more are left out")
    parser.add_argument("--model", default="--model grammar-tutor")
    parser.add_argument("--program", default=str(ROOT / "shardbook"))
    parser.add_argument("--only", metavar="KEY", help="this switch alone")
    parser.add_argument("--at-once", type=int, default=1, help="runs at the same time")
    parser.add_argument("--out")
    asked = parser.parse_args()
    rows = json.loads(subprocess.run([asked.program, "switches", "--json"], cwd=ROOT, capture_output=True, text=True).stdout)
    if asked.only:
        rows = [row for row in rows if row["key"] == asked.only]
    found, broken = [], 0
    listed = list(tries(rows, asked.ranks, asked.device))
    with concurrent.futures.ThreadPoolExecutor(asked.at_once) as pool:
        # Each once: what several rows are compared with is one run
        runs = {}

        def begun(options):
            if options not in runs:
                runs[options] = pool.submit(trained, asked.program, asked.device, asked.model, options)
            return runs[options]

        for row, _, options, values, _ in listed:
            for words in (options, *(f"{options} --set {row['key']}={value}" for value in values)):
                begun(words)
        print("| switch | layout | values beside the default | losses and norms of ten steps |\n|---|---|---|---|")
        for row, name, options, values, norms in listed:
            base, problem = begun(options).result()
            if base is None:
                pool.shutdown(cancel_futures=True)
                sys.exit(f"{name}: {problem}")
            said = []
            for value in values:
                run, problem = begun(f"{options} --set {row['key']}={value}").result()
                same = run is not None and run[: 1 + norms] == base[: 1 + norms]
                verdict = problem if run is None else "equal" if same else "DIFFERENT"
                broken += verdict != "equal"
                said.append(verdict)
                found.append({"key": row["key"], "value": value, "layout": name, "verdict": verdict})
            print(f"| `{row['key']}` | {name} | {', '.join(values)} | {'equal' if set(said) == {'equal'} else '; '.join(said)} |", flush=True)
    left = sorted({row["key"] for row in rows if row["promise"] == "same bits"} - {one["key"] for one in found})
    if left:
        print(f"\nNot tried with {asked.ranks} ranks: {', '.join(left)}")
    if asked.out:
        pathlib.Path(asked.out).write_text(json.dumps({"device": asked.device, "ranks": asked.ranks, "steps": 10, "rows": found}, indent=1) + "\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
