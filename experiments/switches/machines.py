#!/usr/bin/env python3
"""The labs' machines on two GPUs: measured, foretold by whatif from the run without, and modelled; and mistakes, found.

    experiments/switches/machines.py OUT [PROGRAM]      prints a table, and leaves runs and figures.json under OUT

Each configuration runs as it is and with each switch, 48 steps, three of them traced, after the GPUs have found their clock. `foretold` is what
`whatif BASE --set SWITCH` says of the base's traced step, without the run it is compared with.
"""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARDBOOK = sys.argv[2] if len(sys.argv) > 2 else str(ROOT / "shardbook")
CONFIGURATIONS = {
    "gpt-1.3b, tp 2, 8 sequences": "--model gpt-1.3b --tp 2 --fsdp 1 --sequences 8 --data synthetic",
    "gpt-1.3b, fsdp 2, 8 sequences": "--model gpt-1.3b --tp 1 --fsdp 2 --sequences 8 --data synthetic",
    "gpt-124m, tp 2, 4 sequences": "--model gpt-124m --tp 2 --fsdp 1 --sequences 4 --data synthetic",
    "gpt-124m, fsdp 2, 4 sequences": "--model gpt-124m --tp 1 --fsdp 2 --sequences 4 --data synthetic",
}
SWITCHES = ["network=ideal", "host.delay=10", "rank.slow=1:20"]
STEPS = "--steps 48 --warmup-steps 2 --trace-steps 40:43 --progress 0"
MISTAKES = {
    "tensor_parallel.conjugates=both_ways": "--tp 2 --fsdp 1",
    "tensor_parallel.row_bias=before_the_sum": "--tp 2 --fsdp 1",
    "initialization.slices=alike": "--tp 2 --fsdp 1",
    "loss.divisor=own_tokens": "--tp 1 --fsdp 2",
}


def said(*words):
    ended = subprocess.run([SHARDBOOK, *words], capture_output=True, text=True)
    return ended.returncode, ended.stdout, ended.stderr


def figures(*words):
    code, out, err = said(*words, "--json")
    if code not in (0, 1):
        raise SystemExit(f"{' '.join(words)}\n{err}")
    return json.loads(out)


def train(folder, device, options):
    figures("train", "--device", device, *options.split(), *STEPS.split(), "--out", str(folder))
    return json.loads((folder / "run.json").read_text())["results"]


def machines(out):
    rows = []
    for at, (name, options) in enumerate(CONFIGURATIONS.items()):
        base_folder = out / f"{at}-base"
        base, base_model = train(base_folder, "cuda", options), train(out / f"{at}-base-meta", "meta", options)
        unchanged = figures("whatif", str(base_folder), "--set", "host.synchronize=never")
        for switch in SWITCHES:
            folder = out / f"{at}-{switch.replace(':', '_').replace('=', '_')}"
            run = train(folder, "cuda", f"{options} --set {switch}")
            model = train(out / f"{folder.name}-meta", "meta", f"{options} --set {switch}")
            foretold = figures("whatif", str(base_folder), "--set", switch)
            rows.append({
                "configuration": name, "switch": switch,
                "base_ms": base["step_ns"] / 1e6, "step_ms": run["step_ns"] / 1e6,
                "base_traced_ms": unchanged["step_ns"] / 1e6, "unchanged_ms": unchanged["would_be_ns"] / 1e6,
                "foretold_ms": foretold["would_be_ns"] / 1e6,
                "traced_ms": figures("whatif", str(folder), "--set", "host.synchronize=never")["step_ns"] / 1e6,
                "model_base_ms": base_model["step_ns"] / 1e6, "model_ms": model["step_ns"] / 1e6,
                "why": figures("why", str(folder))["sentence"],
            })
            row = rows[-1]
            change = lambda a, b: f"{100 * (b / a - 1):+.1f} %"
            print(f"| `{switch}` | {name} | {row['base_ms']:.2f} → {row['step_ms']:.2f} | {change(row['base_ms'], row['step_ms'])} "
                  f"| {row['base_traced_ms']:.2f} → {row['traced_ms']:.2f} | {row['foretold_ms']:.2f} | {change(row['traced_ms'], row['foretold_ms'])} "
                  f"| {row['model_base_ms']:.2f} → {row['model_ms']:.2f} | {change(row['model_base_ms'], row['model_ms'])} |", flush=True)
            print("    why:", row["why"], f"(nothing changed: {change(row['base_traced_ms'], row['unchanged_ms'])})", flush=True)
    return rows


def mistakes(out):
    common = "train --device cuda --model grammar-tutor --sequences 16 --steps 8 --warmup-steps 0 --trace-steps 0:0 --progress 0 --precision fp32"
    one = out / "one"
    said(*common.split(), "--tp", "1", "--fsdp", "1", "--out", str(one))
    rows = []
    for mistake, layout in {"": "--tp 2 --fsdp 1", **MISTAKES}.items():
        folder = out / (mistake or "right").replace("=", "_")
        said(*common.split(), *layout.split(), *(["--wrong", mistake] if mistake else []), "--out", str(folder))
        found = figures("verify", str(folder), "--against", str(one))["numbers"]
        rows.append({"mistake": mistake, "found": found})
        print(f"{mistake or 'no mistake'}: {found or 'nothing found'}", flush=True)
    return rows


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    (folder / "machines").mkdir(parents=True)
    (folder / "mistakes").mkdir()
    told = {"machines": machines(folder / "machines"), "mistakes": mistakes(folder / "mistakes")}
    (folder / "figures.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")
