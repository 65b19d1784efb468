#!/usr/bin/env python3
"""Every switch that promises the same bits, on two ranks: ten steps as they are, ten with each of its values; are losses and
gradient norms equal to the last digit? Made from the table itself (`shardbook switches --json`).

    experiments/switches/same_bits.py [--device cuda|host] [--out FILE.json]

A loss is what forward made, a norm what backward made; ten steps of both hold the updates between them, too. Prints a table;
ends with 1 where a promise does not hold.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
VALUES = {"data_parallel.bucket_mib": ["1", "4096"], "fsdp.limit_all_gathers": ["1", "2"], "fsdp.prefetch": ["0", "2", "3"],
          "host.delay": ["10"], "rank.slow": ["1:20"]}


def layouts_of(row):
    needs = row.get("needs", [])
    layouts = {"tp 2": "--tp 2 --fsdp 1", "fsdp 2": "--tp 1 --fsdp 2 --micro-batches 2", "dp 2": "--tp 1 --fsdp 1 --dp 2"}
    for name, layout in layouts.items():
        axis = name.split()[0]
        if any(need == f"{other} > 1" for need in needs for other in ("tp", "fsdp", "dp") if other != axis):
            continue
        yield name, layout


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--model", default="--model grammar-tutor")
    parser.add_argument("--program", default=str(ROOT / "shardbook"))
    parser.add_argument("--only", metavar="KEY", help="this switch alone")
    parser.add_argument("--out")
    asked = parser.parse_args()
    rows = json.loads(subprocess.run([asked.program, "switches", "--json"], cwd=ROOT, capture_output=True, text=True).stdout)
    base, found, broken = {}, [], 0
    print("| switch | layout | values beside the default | losses and norms of ten steps |\n|---|---|---|---|")
    for row in rows:
        if row["promise"] != "same bits" or (asked.only and row["key"] != asked.only):
            continue
        for name, layout in layouts_of(row):
            if layout not in base:
                base[layout], problem = trained(asked.program, asked.device, asked.model, layout)
                if base[layout] is None:
                    sys.exit(f"{name}: {problem}")
            values = VALUES.get(row["key"]) or [value for value in row["values"] if value != row["default"]]
            said = []
            for value in values:
                run, problem = trained(asked.program, asked.device, asked.model, f"{layout} --set {row['key']}={value}")
                verdict = problem if run is None else "equal" if run == base[layout] else "DIFFERENT"
                broken += verdict != "equal"
                said.append(verdict)
                found.append({"key": row["key"], "value": value, "layout": name, "verdict": verdict})
            print(f"| `{row['key']}` | {name} | {', '.join(values)} | {'equal' if set(said) == {'equal'} else '; '.join(said)} |", flush=True)
    if asked.out:
        pathlib.Path(asked.out).write_text(json.dumps({"device": asked.device, "steps": 10, "rows": found}, indent=1) + "\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
