#!/usr/bin/env python3
"""Does a long run stay as it was: memory flat, steps as fast, the record bounded?

    python3 experiments/soak/soak.py --minutes 10 --device host [--every 5] [--json FILE] [-- OPTIONS of train]

Ranks are processes. Every few seconds their resident memory is read (/proc/PID/status), on cuda the device's used memory,
too (nvidia-smi), and how far the run is (its progress lines). At the end the run is asked to stop (SIGINT), as Ctrl-C does.
What comes before a tenth of the time is warm-up. Then, of ten windows of equal length:

    memory     the mean of the last two windows above that of the first two: at most 1 %, of each rank, and of each device
    step time  the slope of the windows' step times over the whole, against their spread: a drift is one that is above 2 %
               and above twice its standard error. On the host it is the processors' time that all ranks took for a step
               that is judged, and the wall's is printed beside it: that one is of whatever else the machine does.
    record     bytes of a rank's journal a step, and of its program at the end: as far as they grow, linear and named

Exit code 0 where all hold. Needs only the standard library. `./shardbook` is built first where it is not.
"""
import argparse
import json
import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("SHARDBOOK_PROGRAM", os.path.join(ROOT, "shardbook"))
LIMIT_MEMORY, LIMIT_DRIFT, LIMIT_JOURNAL = 0.01, 0.02, 100
# Steps of some tens of milliseconds on each device: many, but not so many that the list of losses (60 bytes a step) shows.
USUAL = {
    "host": "--tp 2 --fsdp 2 --launch processes --layers 4 --width 256 --heads 4 --sequence 64 --sequences 16",
    "cuda": "--model gpt-124m --fsdp 2 --sequences 16",
}
WINDOWS = 10


def ranks_of(parent):
    """Processes that the run started, in order; itself where it started none."""
    try:
        with open(f"/proc/{parent}/task/{parent}/children") as file:
            children = [int(pid) for pid in file.read().split()]
    except OSError:
        return []
    return children or [parent]


def resident_kib(pid):
    try:
        with open(f"/proc/{pid}/status") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))
    except (OSError, AttributeError):
        return None


def cpu_seconds(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return None


def device_mib():
    asked = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True)
    return [int(line) for line in asked.stdout.split()] if asked.returncode == 0 else []


def journal_bytes(folder):
    try:
        return os.path.getsize(os.path.join(folder, "rank0.partial"))
    except OSError:
        return None


class Follower(threading.Thread):
    """Reads the progress lines: at which wall second which step was done."""

    def __init__(self, pipe):
        super().__init__(daemon=True)
        self.pipe, self.steps = pipe, []

    def run(self):
        for line in self.pipe:
            found = re.search(r"^step (\d+) .*wall ([0-9.]+) s", line)
            if found:
                self.steps.append((time.monotonic(), int(found.group(1))))


def watch(args, folder):
    words = [PROGRAM, "train", "--device", args.device, *args.options, "--steps", "100000000", "--progress", str(args.progress), "--trace-steps", "1:4", "--out", folder]
    run = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    follower = Follower(run.stdout)
    follower.start()
    begin = time.monotonic()
    while not follower.steps and run.poll() is None and time.monotonic() - begin < 600:
        time.sleep(0.2)
    samples, begin = [], time.monotonic()
    while run.poll() is None and time.monotonic() - begin < 60 * args.minutes:
        time.sleep(args.every)
        step = follower.steps[-1][1] if follower.steps else 0
        samples.append({"at": time.monotonic(), "step": step, "cpu": [cpu_seconds(pid) for pid in ranks_of(run.pid)], "rss": [resident_kib(pid) for pid in ranks_of(run.pid)],
                        "device": device_mib() if args.device == "cuda" else [], "journal": journal_bytes(folder)})
    died = run.poll() is not None
    if not died:
        # The parent passes it on to its ranks.
        run.send_signal(signal.SIGINT)
        try:
            run.wait(60)
        except subprocess.TimeoutExpired:
            died = True
            run.kill()
            run.wait()
    return samples, follower.steps, died, run.returncode


def growth(series):
    """By how much the last two windows are above the first two, as a share."""
    parts = [series[len(series) * i // WINDOWS:len(series) * (i + 1) // WINDOWS] for i in range(WINDOWS)]
    first, last = statistics.fmean(parts[0] + parts[1]), statistics.fmean(parts[-2] + parts[-1])
    return last / first - 1, first, last


def drift(steps, begin, end):
    """Of (time, step), step time by window; its slope over the whole as a share, and the standard error of that."""
    times = []
    for i in range(WINDOWS):
        low, high = begin + (end - begin) * i / WINDOWS, begin + (end - begin) * (i + 1) / WINDOWS
        inside = [(at, step) for at, step in steps if low <= at <= high]
        if len(inside) < 2:
            raise SystemExit(f"only {len(inside)} progress lines in window {i + 1} of {WINDOWS}: take more --minutes, or a smaller --progress")
        times.append((inside[-1][0] - inside[0][0]) / (inside[-1][1] - inside[0][1]))
    return times, *slope_of(times)


def slope_of(times):
    mean_x, mean = (WINDOWS - 1) / 2, statistics.fmean(times)
    over_x = sum((x - mean_x) ** 2 for x in range(WINDOWS))
    slope = sum((x - mean_x) * (t - mean) for x, t in enumerate(times)) / over_x
    rest = sum((t - mean - slope * (x - mean_x)) ** 2 for x, t in enumerate(times))
    error = math.sqrt(rest / (WINDOWS - 2) / over_x)
    return slope * (WINDOWS - 1) / mean, error * (WINDOWS - 1) / mean


def cpu_drift(samples):
    """The same of the processors' time that all ranks took for a step."""
    times = []
    for i in range(WINDOWS):
        inside = samples[len(samples) * i // WINDOWS:max(len(samples) * (i + 1) // WINDOWS + 1, len(samples) * i // WINDOWS + 2)]
        taken, steps = sum(inside[-1]["cpu"]) - sum(inside[0]["cpu"]), inside[-1]["step"] - inside[0]["step"]
        if steps < 1:
            raise SystemExit(f"no step in window {i + 1} of {WINDOWS}: take more --minutes")
        times.append(taken / steps)
    return times, *slope_of(times)


def judge(samples, steps, folder, on_host):
    begin, end = samples[0]["at"], samples[-1]["at"]
    begin += (end - begin) / 10
    samples = [one for one in samples if one["at"] >= begin]
    rows, holds = [], True

    def row(name, value, ok):
        nonlocal holds
        holds &= ok
        rows.append((name, value, "holds" if ok else "DOES NOT HOLD"))

    for kind, unit, scale in (("rss", "MiB", 1024), ("device", "MiB", 1)):
        for index in range(len(samples[0][kind])):
            series = [one[kind][index] / scale for one in samples if index < len(one[kind]) and one[kind][index]]
            share, first, last = growth(series)
            row(f"{'memory of rank' if kind == 'rss' else 'memory of GPU'} {index}", f"{first:.1f} to {last:.1f} {unit} ({share:+.2%})", share <= LIMIT_MEMORY)
    times, share, error = drift(steps, begin, end)
    said = lambda times, share, error: f"{1e3 * times[0]:.2f} to {1e3 * times[-1]:.2f} ms by window, slope {share:+.2%} ± {error:.2%}"
    steady = lambda share, error: abs(share) <= max(LIMIT_DRIFT, 2 * error)
    if on_host:
        rows.append(("step time, wall", said(times, share, error), "not judged: of the machine's other work, too"))
        times, share, error = cpu_drift(samples)
    row("step time, processors" if on_host else "step time", said(times, share, error), steady(share, error))
    journals = [(one["step"], one["journal"]) for one in samples if one["journal"] is not None]
    if len(journals) > 1 and journals[-1][0] > journals[0][0]:
        each = (journals[-1][1] - journals[0][1]) / (journals[-1][0] - journals[0][0])
        row("journal", f"{each:.0f} bytes a step", each <= LIMIT_JOURNAL)
    record = os.path.join(folder, "rank0.program")
    row("record", f"{os.path.getsize(record) / 1e6:.2f} MB at the end" if os.path.exists(record) else "is missing: the run did not end whole", os.path.exists(record))
    return rows, holds, {"samples": samples, "step_s": times, "steps": steps[-1][1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--device", choices=("host", "cuda"), default="host")
    parser.add_argument("--every", type=float, default=2, help="seconds between samples")
    parser.add_argument("--progress", type=int, default=1, help="steps between progress lines")
    parser.add_argument("--json", help="keeps what was measured there")
    parser.add_argument("options", nargs="*")
    args = parser.parse_args()
    args.options = args.options or USUAL[args.device].split()

    work = tempfile.mkdtemp(prefix="shardbook-soak-")
    try:
        folder = os.path.join(work, "run")
        samples, steps, died, code = watch(args, folder)
        if died or len(samples) < 2 * WINDOWS:
            raise SystemExit(f"the run ended by itself, with exit code {code}, after {len(samples)} samples: nothing to judge")
        rows, holds, measured = judge(samples, steps, folder, args.device == "host")
        print(f"{args.minutes:g} minutes on {args.device}, {measured['steps']} steps: {' '.join(args.options)}")
        width = max(len(name) for name, _, _ in rows)
        for name, value, verdict in rows:
            print(f"  {name:{width}}  {value}: {verdict}")
        print("verdict: " + ("it stays as it was" if holds else "it does not stay as it was"))
        if args.json:
            with open(args.json, "w") as file:
                json.dump({"options": args.options, "device": args.device, "minutes": args.minutes, "rows": rows, "step_ms": [1e3 * t for t in measured["step_s"]], "steps": measured["steps"]}, file, indent=1)
        return 0 if holds else 1
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
