#!/usr/bin/env python3
"""A fault between two ranks: after how many seconds is it named, and as what? Ours beside PyTorch's.

    python3 experiments/faults/faults.py [--timeout 4] [--budget 230] [--device cuda|cuda-shared|host] [--only ours|train|torch] [--set host.graph=on] [--faults killed,stopped,...] [--out measured.json]
    python3 experiments/faults/faults.py --each-collective [--at-once 3] [--timeout 4] [--device cuda|cuda-shared|host]

cuda-shared is two ranks on one GPU, as share_gpu.py says. Both sides step through an all-gather, a reduce-scatter and an all-reduce
over two ranks, twenty times; then rank 1 goes wrong. Ours is tests/faults/faulty_ranks.cpp (cmake --build ... --target faulty_ranks),
PyTorch's is torch_ranks.py under torchrun, with its watchdog, its flight recorder and its analyser. The time limit of a collective is
the same on both sides. --each-collective is of ours alone: five faults in each of six collectives, several runs at once.

Two rows more are of training (shardbook train), whose rank 1 gets the signal from here: the run that is left must open.

    fault to word    from the fault to the first line that names a cause
    fault to end     from the fault to the end of all processes; what still runs then is said
    named            what was said

A row that fails, hangs (killed after 30 s beyond the time limit) or no longer fits into the budget does not stop the rest.
Needs python3 and, for that side, torch with NCCL. Exit code 0 if ours named every fault that is one and no other.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
FAULTS = ["killed", "stopped", "missing", "left_out", "size", "swapped", "behind", "slow"]
# What the word for each must hold on our side: who, and what was done
OURS = {"none": None, "killed": r"rank 1 .*(killed|without a word)", "stopped": r"rank 1 .*(is stopped|silent)", "missing": r"rank 1 .*has not called it", "left_out": r"rank 1 .*leaves out|rank 1 .*calls",
        "size": r"(another size|ranks disagree)", "dtype": r"another type", "swapped": r"(another order|another kind|ranks disagree)", "behind": r"though all its ranks have called it|has not ended", "slow": None}
COLLECTIVES = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send"]
IN_EACH = ["missing", "left_out", "size", "dtype", "swapped"]
# Of a send that is left out or in another place: on the host that is found as a deadlock, of which all calls are named
OURS_OF_PAIRS = {name: f"{OURS[name]}|a deadlock.*rank 0 in .*rank 1 in " for name in ("left_out", "swapped")}
# What PyTorch says first of a collective that hangs, or of a process that ends
TORCH_WORD = re.compile(r"Watchdog caught collective operation timeout|failed \(exitcode|Signal \d+|timed out|Timeout at NCCL work|collective operation mismatch|Terminating|RuntimeError|DistBackendError|desync")


def built(name):
    found = [path for path in glob.glob(os.path.join(ROOT, "build", "**", name), recursive=True) if os.path.isfile(path) and os.access(path, os.X_OK)]
    return found[0] if found else None


def program(asked):
    if asked:
        return asked
    return built("faulty_ranks")


def descendants(pid):
    """Processes below this one."""
    out, todo = [], [pid]
    while todo:
        try:
            with open(f"/proc/{todo[-1]}/task/{todo.pop()}/children") as file:
                children = [int(child) for child in file.read().split()]
        except OSError:
            continue
        out += children
        todo += children
    return out


def alive(pids):
    out = []
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().rsplit(")", 1)[1].split()[0] != "Z":
                    out.append(pid)
        except OSError:
            pass
    return out


def rank_1_of(pids):
    """Of these processes the one that is rank 1, by its variables."""
    for pid in pids:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if any(one in (b"RANK=1", b"SHARDBOOK_RANK=1") for one in file.read().split(b"\0")):
                    return pid
        except OSError:
            pass
    return None


def run(words, limit, word, env=None, sent=None):
    """Runs it; when the fault was made, when the first line that `word` finds came, when all ended, and all lines. The fault is made
    by the program, which says so, or is signal `sent` to rank 1 once step 5 has been reported."""
    lines, known = [], set()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=env, start_new_session=True)

    def read():
        for line in process.stdout:
            lines.append((time.monotonic(), line.rstrip("\n")))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    fault, begin, hung = None, time.monotonic(), False
    while process.poll() is None:
        known.update(descendants(process.pid))
        if fault is None and sent is not None and any(re.match(r"step 5 ", line) for _, line in list(lines)) and (victim := rank_1_of(known)):
            fault = time.monotonic()
            os.kill(victim, sent)
        if fault is None:
            found = next((re.search(r"FAULT ([0-9.]+)", line) for _, line in list(lines) if "FAULT" in line), None)
            fault = float(found.group(1)) if found else None
        now = time.monotonic()
        if now - (fault if fault is not None else begin + 60) > limit:
            hung = True
            break
        time.sleep(0.05)
    end = time.monotonic()
    left = alive(known)
    for pid in left + ([process.pid] if process.poll() is None else []):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    process.wait()
    reader.join(2)
    if fault is None:
        found = next((re.search(r"FAULT ([0-9.]+)", line) for _, line in lines if "FAULT" in line), None)
        fault = float(found.group(1)) if found else None
    first = next((at for at, line in lines if fault is not None and at >= fault and word.search(line)), None)
    return {"fault": fault, "to_word": first - fault if first and fault else None, "to_end": end - fault if fault else None, "code": process.returncode, "hung": hung, "left": len(left),
            "lines": [line for _, line in lines]}


def ours(args, name, collective="all_reduce"):
    path = program(args.program)
    if path is None:
        return {"error": "there is no faulty_ranks: cmake --build build/test --target faulty_ranks"}
    got = run([path, args.device, name, str(args.timeout), collective], args.timeout + 30, re.compile(r"^CAUSE |Where each rank is"))
    cause = next((line[6:] for line in got["lines"] if line.startswith("CAUSE ")), "")
    got["named"] = cause
    expected = OURS_OF_PAIRS.get(name, OURS[name]) if collective == "send" else OURS[name]
    got["right"] = not got["hung"] and got["left"] == 0 and (bool(re.search(expected, cause)) and got["code"] != 0 if expected else cause == "" and got["code"] == 0)
    return got


def trained(args, name):
    """A run of training whose rank 1 is killed or stopped after step 5: named, and what was traced by then opens."""
    shardbook = built("shardbook")
    if shardbook is None:
        return {"error": "there is no shardbook: cmake --build build/test --target shardbook_main"}
    folder = tempfile.mkdtemp(prefix="faulty-run-")
    try:
        out = os.path.join(folder, "run")
        words = [shardbook, "train", "--device", "host" if args.device == "host" else "cuda", "--tp", "1", "--fsdp", "2", "--launch", "processes", "--steps", "100000", "--trace-steps", "1:3",
                 "--comm-timeout", str(args.timeout), "--progress", "1", "--out", out, *(["--set", args.set] if args.set else [])]
        env = dict(os.environ, SHARDBOOK_ROOT=ROOT)
        if args.device == "cuda-shared":
            words = [sys.executable, os.path.join(HERE, "share_gpu.py"), "--", *words]
        got = run(words, args.timeout + 30, re.compile(r"rank \d .*(killed|stopped|without a word|silent|has not)|Where each rank is"), env, signal.SIGKILL if name == "killed" else signal.SIGSTOP)
        got["named"] = next((line for line in got["lines"] if re.search(OURS[name], line)), "")
        opened = subprocess.run([shardbook, "metrics", out], capture_output=True, text=True, env=env, timeout=30)
        got["opens"] = opened.returncode == 0
        got["right"] = not got["hung"] and got["left"] == 0 and got["code"] != 0 and bool(re.search(OURS[name], got["named"])) and got["opens"]
        got["named"] += " | the run opens" if got["opens"] else " | THE RUN DOES NOT OPEN: " + (opened.stderr or opened.stdout)[-200:]
        return got
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def analysed(folder):
    """What the analyser of the flight recorder says of the ranks' dumps."""
    for words in (["torchfrtrace", folder, "-p", "fr_rank"], [sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", folder, "-p", "fr_rank"]):
        try:
            ran = subprocess.run(words, capture_output=True, text=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            continue
        said = [line for line in (ran.stdout + ran.stderr).splitlines() if re.search(r"mismatch|missing|not joined|Culprit|error|Collective", line, re.I)]
        if said:
            return " / ".join(said[:3])[:400]
    return ""


def torch(args, name):
    folder = tempfile.mkdtemp(prefix="fr-")
    try:
        env = dict(os.environ, TORCH_NCCL_TRACE_BUFFER_SIZE="2000", TORCH_FR_BUFFER_SIZE="2000", TORCH_NCCL_DUMP_ON_TIMEOUT="1", TORCH_FR_DUMP_ON_TIMEOUT="1",
                   TORCH_NCCL_DEBUG_INFO_TEMP_FILE=os.path.join(folder, "fr_rank"), TORCH_FR_DUMP_TEMP_FILE=os.path.join(folder, "fr_rank"), TORCH_NCCL_DESYNC_DEBUG="1",
                   TORCH_NCCL_ENABLE_MONITORING="1", TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC=str(max(4, int(args.timeout))), TORCH_NCCL_ASYNC_ERROR_HANDLING="1",
                   TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC="1000", TORCH_NCCL_PROPAGATE_ERROR="1", OMP_NUM_THREADS="1")
        words = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29541", os.path.join(HERE, "torch_ranks.py"), name, str(args.timeout), args.device]
        got = run(words, args.timeout + 30, TORCH_WORD, env)
        after = [line for line in got["lines"] if TORCH_WORD.search(line)]
        got["named"] = re.sub(r"\s+", " ", after[0])[:400] if after else ""
        dumps = sorted(os.listdir(folder))
        got["dumps"] = len(dumps)
        got["analyser"] = analysed(folder) if dumps else ""
        return got
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def each_collective(args):
    """Every fault in every collective, and none: the rows, in order, as they come."""
    asked = [(name, collective) for collective in COLLECTIVES for name in ["none", *IN_EACH]]
    rows = []
    with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
        for (name, collective), got in zip(asked, pool.map(lambda one: ours(args, *one), asked)):
            if "error" in got:
                sys.exit(got["error"])
            rows.append({"side": "ours", "fault_made": name, "collective": collective, **got})
            to_word, to_end = ("-" if got[key] is None else f"{got[key]:.1f} s" for key in ("to_word", "to_end"))
            print(f"{collective:14} {name:9} to word {to_word:>7}, to end {to_end:>7}, exit code {got['code']}{'' if got['right'] else ' NOT AS IT SHOULD'}\n      {got['named'] or 'nothing was named'}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--timeout", type=float, default=4)
    parser.add_argument("--budget", type=float, default=230, help="seconds in all")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cuda-shared", "host"))
    parser.add_argument("--only", choices=("ours", "train", "torch"))
    parser.add_argument("--faults", default=",".join(FAULTS))
    parser.add_argument("--set", help="a switch of the runs of training: host.graph=on for steps that are one launch each")
    parser.add_argument("--program", help="faulty_ranks; else the one below build/")
    parser.add_argument("--each-collective", action="store_true", help="ours alone: five faults in each of six collectives, and none in each")
    parser.add_argument("--at-once", type=int, default=1, help="runs of --each-collective at the same time")
    parser.add_argument("--out", help="keeps all that was said there")
    args = parser.parse_args()
    begin, rows, all_right = time.monotonic(), [], True
    if args.each_collective:
        rows = each_collective(args)
        all_right = all(row["right"] for row in rows)
    seconds = lambda value: "-" if value is None else f"{value:.1f} s"
    sides = {"ours": ours, "train": trained, "torch": torch}
    for side, measure in ({} if args.each_collective else sides).items():
        if args.only is not None and side not in {"ours": ("ours", "train"), "train": ("train",), "torch": ("torch",)}[args.only]:
            continue
        for name in args.faults.split(","):
            if side == "train" and name not in ("killed", "stopped"):
                continue
            # Room for its start, its time limit, and its end
            if time.monotonic() - begin + args.timeout + 15 > args.budget:
                got = {"error": "no time is left in the budget"}
            else:
                try:
                    got = measure(args, name)
                except Exception as problem:  # a row that fails does not stop the rest
                    got = {"error": f"{type(problem).__name__}: {problem}"}
            rows.append({"side": side, "fault_made": name, **got})
            if "error" in got:
                print(f"{side:5} {name:9} not measured: {got['error']}", flush=True)
                all_right &= side == "torch"
                continue
            if side != "torch":
                all_right &= got["right"]
            notes = (" HUNG: killed by this script" if got["hung"] else "") + (f" {got['left']} process(es) left running" if got["left"] else "") + (" NOT AS IT SHOULD" if side != "torch" and not got["right"] else "")
            print(f"{side:5} {name:9} to word {seconds(got['to_word']):>7}, to end {seconds(got['to_end']):>7}, exit code {got['code']}{notes}\n      {got['named'] or 'nothing was named'}", flush=True)
            if got["fault"] is None:
                print("      the fault was never made; last lines: " + " / ".join(got["lines"][-3:])[:600], flush=True)
            if got.get("analyser"):
                print(f"      its analyser, of {got['dumps']} dumps: {got['analyser']}", flush=True)
    print(f"{time.monotonic() - begin:.0f} s in all; ours named {'every fault that is one, and no other' if all_right else 'not all as it should'}")
    if args.out:
        with open(args.out, "w") as file:
            json.dump({"timeout_s": args.timeout, "device": args.device, "rows": rows}, file, indent=1)
    return 0 if all_right else 1


if __name__ == "__main__":
    sys.exit(main())
