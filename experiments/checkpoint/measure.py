#!/usr/bin/env python3
"""What does saving cost a run, how fast does it write beside dd, and does a GPU's run go on as if it had not been interrupted?

    python3 experiments/checkpoint/measure.py --folder DIR [--every 20] [--steps 101] [--pairs 2] [--budget SECONDS] [--only cost|once|resume] [--out measured.json] [-- OPTIONS of train]

OPTIONS are `--model gpt-1.3b --device cuda` where none stand there. DIR is where checkpoints go: a disk, or /dev/shm to see
what is left when the disk is not what one waits for. Three things are measured:

    cost     runs without and with --checkpoint in turns: wall time of all steps but the first, by their run.json; and what
             the run itself says of writing and waiting. A step waits where a checkpoint is not written yet when the next one
             is due: what is left of the cost without those waits is said beside it, and what a disk must write a second so
             that no step waits
    once     (where it is asked for by --only) the same of a single run, where a large model takes long to begin: its steps
             before the first save beside those after, by when their progress lines come
    dd       as many bytes by as many `dd conv=fsync` at once as the run has ranks, into the same folder
    resume   a run of 24 steps that saves after 12, and one that goes on from there: each loss and norm must be equal to the
             bit; then one whose processes are killed by signal 9 at three moments, and gone on from each time

What does not fit into --budget is left out, and said to be. Needs only the standard library. `./shardbook` is built first
where it is not.
"""
import argparse
import datetime
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PROGRAM = os.environ.get("SHARDBOOK_PROGRAM", os.path.join(ROOT, "shardbook"))


DEADLINE = float("inf")


class Failed(Exception):
    pass


def time_left():
    return DEADLINE - time.monotonic()


def train(options, out):
    """A run; its results by run.json."""
    words = [PROGRAM, "train", *options, "--out", out, "--progress", "0"]
    try:
        ran = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=max(1, time_left()))
    except subprocess.TimeoutExpired:
        raise Failed("no time was left for " + " ".join(words)) from None
    if ran.returncode != 0:
        raise Failed(" ".join(words) + ": " + ran.stderr.strip()[-400:])
    with open(os.path.join(out, "run.json")) as file:
        return json.load(file)


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def cost(args, work):
    """Mean step without and with saves, in turns."""
    saved = os.path.join(args.folder, "shardbook-measure")
    plain, saving, saves = [], [], []
    base = [*args.options, "--steps", str(args.steps), "--trace-steps", "0:0"]
    for pair in range(args.pairs):
        run = train(base, os.path.join(work, f"plain{pair}"))
        plain.append(run["results"]["steps_wall_ns"] / (args.steps - 1))
        run = train([*base, "--checkpoint", fresh(saved), "--save-every", str(args.every), "--keep-checkpoints", "1"], os.path.join(work, f"saving{pair}"))
        saving.append(run["results"]["steps_wall_ns"] / (args.steps - 1))
        saves.append(run["results"]["saves"])
        if pair > 0 and time_left() < 20:
            break
    verified = None
    if time_left() > 5 + 2 * saves[-1]["bytes"] / 1e9:
        verified = subprocess.run([PROGRAM, "checkpoint", saved, "--verify"], capture_output=True, text=True, cwd=ROOT).returncode == 0
    fresh(saved)
    if verified is False:
        raise Failed("the checkpoint does not verify")
    best = min(range(len(saving)), key=lambda pair: saving[pair])
    best_plain, best_saving, last = min(plain), saving[best], saves[best]
    waited = last["waited_ns"] / (args.steps - 1)
    return {
        "device": run["hardware"]["device"], "ranks": run["hardware"]["ranks"], "options": args.options, "every": args.every, "steps": args.steps,
        "plain_step_ms": [ns / 1e6 for ns in plain], "saving_step_ms": [ns / 1e6 for ns in saving],
        "cost_percent": 100 * (best_saving / best_plain - 1), "cost_without_waiting_percent": 100 * ((best_saving - waited) / best_plain - 1),
        "checkpoint_gb": last["bytes"] / 1e9, "verified": verified, "gb_per_s_so_that_no_step_waits": last["bytes"] / (args.every * best_plain),
        "write_gb_per_s": statistics.median(one["bytes"] * one["count"] / one["writing_ns"] for one in saves),
        "waited_s_a_run": [one["waited_ns"] / 1e9 for one in saves],
    }


def once(args, work):
    """Steps of one run before its first save, and after."""
    saved, out = os.path.join(args.folder, "shardbook-measure"), os.path.join(work, "once")
    words = [PROGRAM, "train", *args.options, "--steps", str(args.steps), "--trace-steps", "0:0", "--checkpoint", fresh(saved), "--save-every", str(args.every), "--keep-checkpoints", "1",
             "--progress", "1", "--out", out]
    run = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    killer = threading.Timer(max(1, min(time_left(), 1e6)), run.kill)
    killer.start()
    done, said = {}, ""
    for line in run.stdout:
        said = line if line.strip() else said
        if found := re.match(r"step (\d+) ", line):
            done[int(found.group(1))] = time.monotonic()
    killer.cancel()
    if run.wait() != 0:
        fresh(saved)
        raise Failed(f"the run ended with code {run.returncode} after {len(done)} steps: {said.strip()[-300:]}")
    with open(os.path.join(out, "run.json")) as file:
        ran = json.load(file)
    fresh(saved)
    saves = ran["results"]["saves"]
    # The first steps warm up; step `every` - 1 is the last before the first save, and after the last step nothing is written beside one.
    plain = (done[args.every - 1] - done[args.every // 4]) / (args.every - 1 - args.every // 4)
    last = (args.steps - 1) // args.every * args.every - 1
    saving = (done[last] - done[args.every - 1]) / (last - args.every + 1)
    return {
        "device": ran["hardware"]["device"], "ranks": ran["hardware"]["ranks"], "options": args.options, "every": args.every, "steps": args.steps,
        "plain_step_ms": [1e3 * plain], "saving_step_ms": [1e3 * saving], "cost_percent": 100 * (saving / plain - 1),
        "checkpoint_gb": saves["bytes"] / 1e9, "saves": saves["count"], "gb_per_s_so_that_no_step_waits": saves["bytes"] / 1e9 / (args.every * plain),
        "write_gb_per_s": saves["bytes"] * saves["count"] / saves["writing_ns"], "waited_s_with_the_end_of_the_run": [saves["waited_ns"] / 1e9],
    }


def dd(args, ranks, total):
    """GB/s of as many dd at once as there are ranks."""
    if time_left() < 10:
        raise Failed("no time was left for dd")
    megabytes = max(1, int(min(total, args.dd_gb * 1e9) / ranks / 1e6))
    names = [os.path.join(args.folder, f"shardbook-dd{rank}") for rank in range(ranks)]
    begun = time.monotonic()
    writers = [subprocess.Popen(["dd", "if=/dev/zero", "of=" + name, "bs=1000000", f"count={megabytes}", "conv=fsync"], stderr=subprocess.DEVNULL) for name in names]
    codes = [writer.wait() for writer in writers]
    took = time.monotonic() - begun
    for name in names:
        if os.path.exists(name):
            os.remove(name)
    if any(codes):
        raise Failed("dd could not write: is the folder full?")
    return {"dd_gb": ranks * megabytes / 1e3, "dd_gb_per_s": ranks * megabytes / 1e3 / took}


def numbers(run):
    return list(zip(run["results"]["losses"], run["results"]["gradient_norms"]))


def resume(args, work):
    saved = os.path.join(args.folder, "shardbook-resume")
    steps = 24
    base = [*args.options, "--steps", str(steps), "--trace-steps", "0:0", "--hidden-dropout", "0.1"]
    whole = numbers(train([*base, "--checkpoint", fresh(saved), "--save-every", "12", "--keep-checkpoints", "0"], os.path.join(work, "whole")))
    later = numbers(train([*base, "--resume", os.path.join(saved, "step-00000012")], os.path.join(work, "later")))
    equal = later == whole[12:]

    # Killed at three moments of its life
    chance = random.Random(7)
    fresh(saved)
    kills, first = 0, 0
    begun = time.monotonic()
    train([*base, "--checkpoint", saved, "--save-every", "4"], os.path.join(work, "timed"))
    longest = time.monotonic() - begun
    fresh(saved)
    options = [*base, "--checkpoint", saved, "--save-every", "4"]
    for life in range(3):
        words = [PROGRAM, "train", *options, "--out", os.path.join(work, f"killed{life}")]
        child = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            child.wait(timeout=longest * (0.4 + 0.6 * chance.random()))
            break
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            kills += 1
        if "--resume" not in options and any(name.startswith("step-") for name in (os.listdir(saved) if os.path.isdir(saved) else [])):
            options += ["--resume", saved]
    done = sorted(name for name in os.listdir(saved) if name.startswith("step-"))
    killed_equal = None
    if done and int(done[-1][5:]) < steps:
        first = int(done[-1][5:])
        killed_equal = numbers(train(options if "--resume" in options else [*options, "--resume", saved], os.path.join(work, "after"))) == whole[first:]
    fresh(saved)
    return {"resume_equal": equal, "kills": kills, "went_on_from": first, "after_kills_equal": killed_equal}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--steps", type=int, default=101)
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--out")
    parser.add_argument("--budget", type=float, default=float("inf"), help="seconds in all")
    parser.add_argument("--dd-gb", type=float, default=float("inf"), help="dd writes so much at most")
    parser.add_argument("--only", choices=["cost", "once", "resume"])
    parser.add_argument("options", nargs="*")
    args = parser.parse_args()
    global DEADLINE
    DEADLINE = time.monotonic() + args.budget
    args.options = args.options or ["--model", "gpt-1.3b", "--device", "cuda"]
    os.makedirs(args.folder, exist_ok=True)
    result = {"date": datetime.date.today().isoformat(), "folder_kind": subprocess.run(["stat", "-f", "-c", "%T", args.folder], capture_output=True, text=True).stdout.strip()}
    with tempfile.TemporaryDirectory() as work:
        for part in (cost, once, resume):
            if part.__name__ != args.only if args.only else part is once:
                continue
            try:
                result.update(part(args, work))
                if part in (cost, once):
                    result.update(dd(args, result["ranks"], result["checkpoint_gb"] * 1e9))
                    result["write_percent_of_dd"] = 100 * result["write_gb_per_s"] / result["dd_gb_per_s"]
            except Failed as failure:
                result[part.__name__ + "_failed"] = str(failure)
    text = json.dumps(result, indent=1)
    print(text)
    if args.out:
        with open(args.out, "w") as file:
            file.write(text + "\n")
    return 1 if any(key.endswith("_failed") for key in result) or result.get("resume_equal") is False or result.get("after_kills_equal") is False else 0


if __name__ == "__main__":
    sys.exit(main())
