#!/usr/bin/env python3
"""Does a long run stay as it was: memory flat, steps as fast, the record bounded?

    python3 experiments/soak/soak.py --minutes 10 --device host [--every 2] [--json FILE] [-- OPTIONS of train]

Ranks are processes. Every few seconds their resident memory is read (/proc/PID/status), on cuda the device's used memory,
too (nvidia-smi). When a progress line comes, and the last reading is long enough ago, the time and the processors' time that
all ranks have taken are read: so each interval is of whole steps. At the end the run is asked to stop (SIGINT), as Ctrl-C
does. What comes before a tenth of the time is warm-up. Then, of ten windows of equal length:

    memory     the mean of the last two windows above that of the first two: at most 1 %, of each rank, and of each device
    step       the slope of what a step takes over the windows, as a share of the whole: at most 2 % up. Where twice its standard
               error is more than that, nothing is decided, which does not hold either. On cuda it is the wall's time, of
               each window the tenth percentile of its intervals. On the host it is the processors' time, as a share of
               what a twin takes at the same time.
    record     bytes of a rank's journal a step, and of its program at the end: as far as they grow, linear and named

Why a twin: what else a machine does changes what a step takes, processors' time included, by far more than 2 % (it takes
caches and clock away, and who waits for a rank that is not let run burns less or more). So in each window another run of the
same options is begun and lives for four fifths of it, and a step of the old one is compared with a step of the young one, which
meets the same neighbours at the same time. What a run does to itself is in the one alone. A GPU's machine is alone, and
a twin would disturb it.

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
# Steps of some tens of milliseconds on each device: many, but not so many that the list of losses (60 bytes a step) shows. On
# the host the weights stay where they are: with what a model has learned a CPU takes longer for a step (README.md), and that
# is not what is asked here.
USUAL = {
    "host": "--tp 2 --fsdp 2 --launch processes --layers 4 --width 256 --heads 4 --sequence 64 --sequences 16 --lr 1e-12 --min-lr 1e-12 --weight-decay 0",
    "cuda": "--model gpt-124m --tp 1 --fsdp {gpus} --sequences {sequences}",
}
WINDOWS = 10           # each with a twin
LOW = 0.1              # which quantile of a window's intervals
TWIN_WARM_UP = 6       # steps, of which three are traced
LEAST_INTERVAL_S = 1   # of which ticks of 10 ms a process are little


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
    """Reads the progress lines: when which step was done, and what processors' time all ranks had taken by then."""

    def __init__(self, run):
        super().__init__(daemon=True)
        self.pid, self.pipe, self.marks, self.step, self.ranks = run.pid, run.stdout, [], None, 1

    def run(self):
        for line in self.pipe:
            found = re.search(r"^step (\d+) .*wall ([0-9.]+) s", line)
            if not found:
                continue
            self.step, now = int(found.group(1)), time.monotonic()
            if self.marks and now - self.marks[-1][0] < LEAST_INTERVAL_S:
                continue
            taken = [cpu_seconds(pid) for pid in ranks_of(self.pid)]
            self.ranks = max(self.ranks, len(taken))
            if len(taken) == self.ranks and None not in taken:
                self.marks.append((now, self.step, sum(taken)))


def begin_run(args, folder):
    words = [PROGRAM, "train", "--device", args.device, *args.options, "--steps", "100000000", "--progress", str(args.progress), "--trace-steps", "1:4", "--out", folder]
    run = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    follower = Follower(run)
    follower.start()
    return run, follower


def end_run(run):
    """As Ctrl-C does: the parent passes it on to its ranks. Whether it went."""
    if run.poll() is not None:
        return False
    run.send_signal(signal.SIGINT)
    try:
        run.wait(60)
        return True
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        return False


def watch(args, folder):
    """Samples, the run's marks, those of its twins, whether it ended by itself, its exit code."""
    run, follower = begin_run(args, folder)
    begin = time.monotonic()
    while not follower.marks and run.poll() is None and time.monotonic() - begin < 600:
        time.sleep(0.2)
    samples, begin, length = [], time.monotonic(), 60 * args.minutes
    twin, twins = None, []
    while run.poll() is None and time.monotonic() - begin < length:
        time.sleep(args.every)
        samples.append({"at": time.monotonic(), "step": follower.step or 0, "rss": [resident_kib(pid) for pid in ranks_of(run.pid)],
                        "device": device_mib() if args.device == "cuda" else [], "journal": journal_bytes(folder)})
        # In the middle of each window behind the warm-up
        at = ((time.monotonic() - begin) / length - 0.1) / 0.9 * WINDOWS - len(twins)
        if args.device == "host" and twin is None and 0.1 < at < 0.5:
            twin = begin_run(args, folder + f"-twin{len(twins)}")
        elif twin is not None and (at > 0.9 or run.poll() is not None):
            twins.append(list(twin[1].marks))   # before its ranks end, one after the other
            end_run(twin[0])
            twin = None
    if twin is not None:
        end_run(twin[0])
    went = end_run(run)
    return samples, follower.marks, twins, not went, run.returncode


def growth(series):
    """By how much the last two windows are above the first two, as a share."""
    parts = [series[len(series) * i // WINDOWS:len(series) * (i + 1) // WINDOWS] for i in range(WINDOWS)]
    first, last = statistics.fmean(parts[0] + parts[1]), statistics.fmean(parts[-2] + parts[-1])
    return last / first - 1, first, last


def drift(marks, what):
    """Of marks, the low quantile of seconds a step by window; its slope over the whole as a share, and the standard error of that."""
    times = []
    for i in range(WINDOWS):
        inside = marks[len(marks) * i // WINDOWS:len(marks) * (i + 1) // WINDOWS + 1]
        each = sorted((after[what] - before[what]) / (after[1] - before[1]) for before, after in zip(inside, inside[1:]) if after[1] > before[1])
        if len(each) < 3:
            raise SystemExit(f"only {len(each)} intervals in window {i + 1} of {WINDOWS}: take more --minutes, or a smaller --progress")
        times.append(each[int(LOW * len(each))])
    return times, *slope_of(times)


def beside_twins(marks, twins):
    """Of each twin's life, but its first steps: processors' time that a step of the run took, by that of the twin."""
    shares = []
    for young in twins:
        young = [one for one in young if one[1] >= TWIN_WARM_UP]
        old = [one for one in marks if young and young[0][0] <= one[0] <= young[-1][0]]
        if len(young) < 3 or len(old) < 3:
            raise SystemExit("a twin took too few steps: take more --minutes")
        each = lambda of: (of[-1][2] - of[0][2]) / (of[-1][1] - of[0][1])
        shares.append(each(old) / each(young))
    return shares, *slope_of(shares)


def slope_of(times):
    mean_x, mean = (WINDOWS - 1) / 2, statistics.fmean(times)
    over_x = sum((x - mean_x) ** 2 for x in range(WINDOWS))
    slope = sum((x - mean_x) * (t - mean) for x, t in enumerate(times)) / over_x
    rest = sum((t - mean - slope * (x - mean_x)) ** 2 for x, t in enumerate(times))
    error = math.sqrt(rest / (WINDOWS - 2) / over_x)
    return slope * (WINDOWS - 1) / mean, error * (WINDOWS - 1) / mean


def judge(samples, marks, twins, folder, on_host):
    begin, end = samples[0]["at"], samples[-1]["at"]
    begin += (end - begin) / 10
    samples = [one for one in samples if one["at"] >= begin]
    marks = [one for one in marks if begin <= one[0] <= end]
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
    found = {}
    for name, what in (("step, wall", 0), ("step, processors", 2), ("step, beside a twin's", None)):
        if what is None and not on_host:
            continue
        times, share, error = drift(marks, what) if what is not None else beside_twins(marks, twins)
        found[name] = times
        scale, unit, digits = (1e3, " ms", 2) if what is not None else (1, "", 3)
        said = f"{scale * times[0]:.{digits}f} to {scale * times[-1]:.{digits}f}{unit} by window, slope {share:+.2%} ± {error:.2%}"
        if (what is None) != on_host or (what is not None and what != 0):
            rows.append((name, said, "not judged"))
        elif 2 * error > LIMIT_DRIFT:
            row(name, said + ", too restless to decide", False)
        else:
            row(name, said, share <= LIMIT_DRIFT)
    journals = [(one["step"], one["journal"]) for one in samples if one["journal"] is not None]
    if len(journals) > 1 and journals[-1][0] > journals[0][0]:
        each = (journals[-1][1] - journals[0][1]) / (journals[-1][0] - journals[0][0])
        row("journal", f"{each:.0f} bytes a step", each <= LIMIT_JOURNAL)
    record = os.path.join(folder, "rank0.program")
    row("record", f"{os.path.getsize(record) / 1e6:.2f} MB at the end" if os.path.exists(record) else "is missing: the run did not end whole", os.path.exists(record))
    saves = None
    if os.path.exists(os.path.join(folder, "run.json")):
        with open(os.path.join(folder, "run.json")) as file:
            saves = json.load(file)["results"].get("saves")
    return rows, holds, {"by_window": found, "steps": marks[-1][1], "saves": saves, "marks": [[round(at, 3), step] for at, step, _ in marks]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--device", choices=("host", "cuda"), default="host")
    parser.add_argument("--every", type=float, default=2, help="seconds between samples")
    parser.add_argument("--progress", type=int, default=1, help="steps between progress lines")
    parser.add_argument("--json", help="keeps what was measured there")
    parser.add_argument("options", nargs="*")
    args = parser.parse_args()
    gpus = max(1, len(device_mib())) if args.device == "cuda" else 0
    args.options = args.options or USUAL[args.device].format(gpus=gpus, sequences=8 * gpus).split()

    work = tempfile.mkdtemp(prefix="shardbook-soak-")
    try:
        folder = os.path.join(work, "run")
        samples, marks, twins, died, code = watch(args, folder)
        if died or len(samples) < 2 * WINDOWS:
            raise SystemExit(f"the run ended by itself, with exit code {code}, after {len(samples)} samples: nothing to judge")
        rows, holds, measured = judge(samples, marks, twins, folder, args.device == "host")
        print(f"{args.minutes:g} minutes on {args.device}, {measured['steps']} steps: {' '.join(args.options)}")
        width = max(len(name) for name, _, _ in rows)
        for name, value, verdict in rows:
            print(f"  {name:{width}}  {value}: {verdict}")
        print("verdict: " + ("it stays as it was" if holds else "it does not stay as it was"))
        if args.json:
            with open(args.json, "w") as file:
                json.dump({"options": args.options, "device": args.device, "minutes": args.minutes, "rows": rows, **measured}, file)
        return 0 if holds else 1
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
