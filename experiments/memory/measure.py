#!/usr/bin/env python3
"""Does a GPU hold what the formulas of notes/06_memory.md say? Predicted beside allocated.

For each way of cutting a model over two GPUs: what `./shardbook plan` predicts by formula, kind by kind, before anything
runs; what a run of a few steps asks its device for; and by how much the GPU's own count of used memory rises meanwhile,
less what it rises by for a tiny model under the same layout (that is CUDA, NCCL and cuBLAS). Writes measured.json.

    python3 experiments/memory/measure.py [--device meta] [--seconds 220] [--out FILE]
    python3 experiments/memory/measure.py --table measured.json     puts the table into README.md

With `--device meta` nothing runs, and only the first two are there. A row that fails, or for which no time is left, says so
and keeps the others.
"""
import argparse
import ctypes
import datetime
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

BATCH = "--sequences 16 --micro-batches 2"
LAYOUTS = [
    ("DDP", "--dp 2 --fsdp 1 --tp 1"),
    ("ZeRO-1", "--fsdp 2 --tp 1 --reshard false --set accumulate.reduce=last"),
    ("ZeRO-2", "--fsdp 2 --tp 1 --reshard false"),
    ("ZeRO-3", "--fsdp 2 --tp 1"),
    ("ZeRO-3, recompute selective", "--fsdp 2 --tp 1 --set activations.recompute=selective"),
    ("ZeRO-3, recompute full", "--fsdp 2 --tp 1 --set activations.recompute=full"),
    ("ZeRO-3, flash attention", "--fsdp 2 --tp 1 --attention flash"),
    ("tp 2", "--tp 2 --fsdp 1"),
    ("tp 2, recompute selective", "--tp 2 --fsdp 1 --set activations.recompute=selective"),
    ("tp 2, recompute full", "--tp 2 --fsdp 1 --set activations.recompute=full"),
    ("tp 2, sequence cut", "--tp 2 --fsdp 1 --set tensor_parallel.sequence=cut"),
]
MODELS = ["gpt-124m", "gpt-1.3b"]
KINDS = ["parameter", "gathered", "gradient", "optimizer", "activation"]


class Failed(Exception):
    pass


# --- The GPU's own count ------------------------------------------------------------------------------

class Nvml:
    """Used bytes of each GPU, by the driver's library; without it, by nvidia-smi."""

    class Memory(ctypes.Structure):
        _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
            count = ctypes.c_uint()
            if self.library.nvmlInit_v2() != 0 or self.library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
                raise OSError("NVML does not answer")
            self.handles = [ctypes.c_void_p() for _ in range(count.value)]
            for place, handle in enumerate(self.handles):
                if self.library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(place), ctypes.byref(handle)) != 0:
                    raise OSError("NVML hides GPU %d" % place)
        except (OSError, AttributeError):
            self.library = None

    def used(self):
        if self.library is None:
            done = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=20)
            return [int(line) << 20 for line in done.stdout.split()]
        all_used = []
        for handle in self.handles:
            memory = self.Memory()
            self.library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
            all_used.append(memory.used)
        return all_used


class Watch:
    """By how many bytes the use of a GPU rises at most while this is open: on both GPUs, so that a stranger on one does not count."""

    def __init__(self, nvml):
        self.nvml, self.rises = nvml, {}
        self.ended = threading.Event()

    def __enter__(self):
        self.before = self.nvml.used()
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        return self

    def look(self):
        while not self.ended.wait(0.02 if self.nvml.library else 0.2):
            try:
                for gpu, (before, now) in enumerate(zip(self.before, self.nvml.used())):
                    self.rises[gpu] = max(self.rises.get(gpu, 0), now - before)
            except (OSError, ValueError, subprocess.SubprocessError) as problem:   # a count that fails once is no reason to end the run
                print("memory was not read: %s" % problem, file=sys.stderr)

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def rise(self):
        rises = sorted(self.rises.values())
        return rises[-2] if len(rises) > 1 else sum(rises)


# --- A row --------------------------------------------------------------------------------------------

def called(program, words, seconds):
    try:
        done = subprocess.run([program] + words, cwd=ROOT, capture_output=True, text=True, timeout=max(5, seconds))
        return json.loads(done.stdout[done.stdout.index("{"):])
    except subprocess.TimeoutExpired:
        raise Failed("took more than %.0f s" % max(5, seconds))
    except ValueError:
        raise Failed((done.stderr.strip() or done.stdout.strip() or "no answer")[-200:].replace("\n", " "))


def predicted(program, options):
    plan = called(program, ["plan", "--device", "meta", "--json"] + options, 120)
    by_kind = {}
    for line in plan["memory"]["lines"]:
        by_kind[line["kind"]] = by_kind.get(line["kind"], 0) + line["bytes"]
    return {"predicted": by_kind, "predicted_bytes": plan["memory"]["bytes"], "laid_out_bytes": sum(plan["buffers_bytes"].values())}


def allocated(program, options, nvml, seconds):
    with tempfile.TemporaryDirectory() as folder, Watch(nvml) as watch:
        run = called(program, ["train", "--device", "cuda", "--json", "--progress", "0", "--steps", "5", "--warmup-steps", "1", "--trace-steps", "0:0",
                               "--out", os.path.join(folder, "run")] + options, seconds)
    if run.get("failure") or not run.get("allocated_bytes"):
        raise Failed(run.get("failure") or "the run says nothing of memory")
    return {"allocated_bytes": int(run["allocated_bytes"]), "rise_bytes": watch.rise(), "step_ns": run["step_ns"]}


def knows(program, layout):
    """Whether all switches of a layout are there: some are younger than this script."""
    words = layout.split()
    keys = [words[at + 1].split("=")[0] for at, word in enumerate(words) if word == "--set"]
    return all(subprocess.run([program, "switches", key], cwd=ROOT, capture_output=True).returncode == 0 for key in keys)


def layout_of(options):
    words = options.split()
    return "".join("%s %s " % (word[2:], words[at + 1]) for at, word in enumerate(words) if word in ("--tp", "--fsdp", "--dp") and words[at + 1] != "1").strip()


def measure(asked):
    end = time.monotonic() + asked.seconds
    on_gpu = asked.device == "cuda"
    nvml = Nvml() if on_gpu else None
    kept = {"date": datetime.date.today().isoformat(), "device": asked.device, "batch": BATCH, "beside": {}, "rows": []}
    if on_gpu:
        try:
            nvml.used()
            names = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True, timeout=30).stdout.strip().split("\n")
        except (OSError, ValueError, subprocess.SubprocessError) as problem:
            return "no GPU answers (%s): try --device meta" % problem
        kept["machine"] = "%d × %s" % (len(names), names[0])

    def save():
        with open(asked.out, "w", encoding="utf-8") as file:
            json.dump(kept, file, indent=1)
            file.write("\n")

    # What every process has beside its buffers: the same layout with a model of no size
    for layout in ("--dp 2 --fsdp 1 --tp 1", "--fsdp 2 --tp 1", "--tp 2 --fsdp 1"):
        if not on_gpu:
            break
        options = layout.split() + ["--sequences", "4"]
        try:
            tiny = allocated(asked.program, options, nvml, min(60, end - time.monotonic()))
            kept["beside"][layout_of(layout)] = tiny["rise_bytes"] - predicted(asked.program, options)["predicted_bytes"]
        except Failed as problem:
            print("%s, a tiny model: %s" % (layout, problem), file=sys.stderr)
    for model in MODELS:
        for name, layout in LAYOUTS:
            if not knows(asked.program, layout):
                continue
            options = ("--model %s %s %s" % (model, BATCH, layout)).split()
            row = {"model": model, "name": name, "options": " ".join(options)}
            kept["rows"].append(row)
            try:
                row.update(predicted(asked.program, options))
                if on_gpu:
                    left = end - time.monotonic()
                    if left < 5:
                        raise Failed("no time was left")
                    row.update(allocated(asked.program, options, nvml, min(60, left)))
                    beside = kept["beside"].get(layout_of(layout))
                    if beside is not None:
                        row["by_gpu_bytes"] = row["rise_bytes"] - beside
            except Failed as problem:
                row["problem"] = "failed: %s" % problem
            print(line_of(row), flush=True)
            save()
    save()


# --- The table ----------------------------------------------------------------------------------------

def gb(count):
    return "%.3f" % (count / 1e9)


def apart(row, key):
    return "" if key not in row else "%s (%+.2f %%)" % (gb(row[key]), 100 * (row["predicted_bytes"] / row[key] - 1))


def line_of(row):
    if "predicted" not in row:
        return "| %s | %s | %s |" % (row["model"], row["name"], row["problem"])
    kinds = [gb(row["predicted"].get(kind, 0)) for kind in KINDS]
    rest = sum(count for kind, count in row["predicted"].items() if kind not in KINDS)
    told = [apart(row, "allocated_bytes") or row.get("problem", "–"), apart(row, "by_gpu_bytes") or "–"]
    return "| " + " | ".join([row["model"], row["name"]] + kinds + [gb(rest), "**%s**" % gb(row["predicted_bytes"])] + told) + " |"


def table_of(kept):
    heads = ["", "", "parameters", "gathered", "gradients", "optimizer", "activations", "rest", "predicted", "asked of the device", "by the GPU's count"]
    lines = ["| " + " | ".join(heads) + " |", "|---|---" + "|--:" * (len(heads) - 2) + "|"] + [line_of(row) for row in kept["rows"]]
    head = "%s, %s." % (kept["machine"], kept["date"]) if kept.get("machine") else "No GPU yet: predicted only, %s." % kept["date"]
    beside = ", ".join("%s GB with %s" % (gb(count), layout) for layout, count in kept["beside"].items())
    tail = ["", "Taken off the GPU's count, for what a process has beside its buffers: %s." % beside] if beside else []
    return "\n".join(["%s GB a rank (10⁹ bytes); in brackets by how much the prediction is off." % head, ""] + lines + tail) + "\n"


def put_table(file):
    file = file if os.path.exists(file) else os.path.join(HERE, file)
    with open(file, encoding="utf-8") as source:
        table = table_of(json.load(source))
    readme = os.path.join(HERE, "README.md")
    with open(readme, encoding="utf-8") as source:
        text = source.read()
    begin, end = "<!-- table: measure.py --table writes it -->\n", "<!-- end of table -->"
    at, to = text.index(begin) + len(begin), text.index(end)
    with open(readme, "w", encoding="utf-8") as target:
        target.write(text[:at] + table + text[to:])
    print(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cuda", "meta"], default="cuda")
    parser.add_argument("--seconds", type=float, default=220, help="after so long no further run begins")
    parser.add_argument("--out", default=os.path.join(HERE, "measured.json"))
    parser.add_argument("--program", default=os.path.join(ROOT, "shardbook"))
    parser.add_argument("--table", metavar="FILE", help="put the table of FILE into README.md, and run nothing")
    asked = parser.parse_args()
    if asked.table:
        return put_table(asked.table)
    return measure(asked)


if __name__ == "__main__":
    sys.exit(main())
