#!/usr/bin/env python3
"""What does this engine do on all GPUs of one host, beside what the model had said of it?

    python3 experiments/node/sitting.py said FOLDER [--gpus N] [--profile FILE]    what the model says, before any run
    python3 experiments/node/sitting.py runs FOLDER [--gpus N] [--minutes M] [--only WORD]
    python3 experiments/node/sitting.py starts FOLDER [--gpus N]       the same losses, started four ways
    python3 experiments/node/sitting.py packs FOLDER                   the runs that labs show, as files
    python3 experiments/node/sitting.py table FOLDER                   said beside measured

`said` writes FOLDER/said.json with the commit that said it, and refuses to say again what was said: a model that has seen its run
foretells nothing. `runs` begins a row only while its minutes last, keeps each in FOLDER/measured.json, and goes on where it stopped.
Exposed share and overlap are those of the traced steps, over all ranks; the step is the median of the untraced. N is 8 if nothing is
said. --device host instead of cuda tries the sitting itself, where there is no GPU. Python alone; the program is SHARDBOOK_PROGRAM,
or ./shardbook.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "experiments/speed"))
from modelled import shares  # noqa: E402

PROGRAM = os.environ.get("SHARDBOOK_PROGRAM", str(ROOT / "shardbook"))
FAST = ("--attention cudnn --set gelu.kernel=in_matmuls --set nccl.buffers=windows --set fsdp.gradient_memory=lent "
        "--set fsdp.update=by_unit --set loss.kernel=fused --set nccl.last_ctas=32")
LLAMA = FAST.replace(" --set gelu.kernel=in_matmuls", "")
PIECES = ("--attention cudnn --set tensor_parallel.sequence=cut --set tensor_parallel.overlap=pieces "
          "--set nccl.buffers=windows")
TUTOR = "--model grammar-tutor --heads 8 --progress 0"


def rows(n):
    """name -> (options, steps): of the form to read first, then of the fastest."""
    fsdp, tp = f"--tp 1 --fsdp {n} --sequences", f"--tp {n} --fsdp 1 --sequences"
    large = lambda model, rest: f"--model {model} --data synthetic --progress 0 {rest}"
    out = {
        f"gpt-1.3b, FSDP {n}": (large("gpt-1.3b", f"{fsdp} {8 * n}"), 60),
        f"gpt-1.3b, FSDP {n}, no prefetch": (large("gpt-1.3b", f"{fsdp} {8 * n} --prefetch 0"), 40),
        f"gpt-1.3b, TP {n}": (large("gpt-1.3b", f"{tp} 8"), 100),
        f"gpt-1.3b, TP 2 × FSDP {n // 2}": (large("gpt-1.3b", f"--tp 2 --fsdp {n // 2} --sequences {4 * n}"), 60),
        f"gpt-6.9b, FSDP {n}": (large("gpt-6.9b", f"{fsdp} {2 * n}"), 24),
        f"gpt-6.9b, TP {n}": (large("gpt-6.9b", f"{tp} 2"), 50),
        f"gpt-124m, FSDP {n}, cuDNN": (large("gpt-124m", f"{fsdp} {64 * n} --micro-batches 1 --attention cudnn"), 50),
        f"llama-8b, FSDP {n}, cuDNN": (large("llama-8b", f"{fsdp} {2 * n} --attention cudnn"), 16),
        f"grammar-tutor, TP {n}": (f"{TUTOR} --tp {n} --fsdp 1", 200),
        f"gpt-1.3b, FSDP {n}, fastest": (large("gpt-1.3b", f"{fsdp} {8 * n} {FAST}"), 60),
        f"gpt-6.9b, FSDP {n}, fastest": (large("gpt-6.9b", f"{fsdp} {2 * n} {FAST}"), 24),
        f"llama-8b, FSDP {n}, fastest": (large("llama-8b", f"{fsdp} {2 * n} {LLAMA}"), 16),
        f"gpt-1.3b, TP {n}, tokens cut, in pieces": (large("gpt-1.3b", f"{tp} 8 {PIECES}"), 100),
        f"grammar-tutor, TP {n}, as a graph": (f"{TUTOR} --tp {n} --fsdp 1 --set host.graph=on", 200),
    }
    return out if n > 2 else {name: row for name, row in out.items() if "×" not in name}   # TP 2 it would be


def profile_of(said):
    """By which it was said; before there was a choice, by the one that ships."""
    return said.get("profile", "h200x8")


def kept(folder, name):
    path = folder / name
    return json.loads(path.read_text()) if path.exists() else {}


def keep(folder, name, what):
    """Whole, or as before."""
    path = folder / (name + ".new")
    path.write_text(json.dumps(what, indent=1, ensure_ascii=False) + "\n")
    path.replace(folder / name)


def ran(words, **more):
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, **more)
    if ended.returncode:
        said = (ended.stderr.strip() or ended.stdout.strip() or f"code {ended.returncode}").splitlines()
        raise RuntimeError(said[-1])
    return ended.stdout


def figures(run):
    """Of a run's folder: times in ms, shares in %."""
    results = json.loads((run / "run.json").read_text())["results"]
    if "graph" in results:   # its traced steps were issued one by one, and are others
        exposed, overlap = 100 * results["graph"]["exposed_share"] if "exposed_share" in results["graph"] else None, None
    else:
        exposed, overlap = shares(run, PROGRAM)
    return {
        "step": results["step_ns"] / 1e6, "least": results["step_min_ns"] / 1e6, "most": results["step_max_ns"] / 1e6,
        "tokens_per_second": results["tokens_per_second"], "mfu": 100 * max(results["mfu"] or 0, 0), "tracing": 100 * (results["tracing_cost"] or 0),
        "exposed": exposed, "overlap": overlap,
        "gib": results["allocated_bytes"] / 2**30, "losses": results["losses"][-1:],
    }


def for_the_model(options):
    """As `bench` asks: how many blocks NCCL takes no model knows, and windows only one whose profile has them."""
    profile = re.search(r" --profile (\S+\.json)", options)
    knows = profile is not None and "windows" in json.loads(pathlib.Path(profile.group(1)).read_text())
    return re.sub(r" --set nccl\.last_ctas=\S+" if knows else r" --set nccl\.\S+", "", options)


def train(options, device, out):
    if device != "cuda":
        options = for_the_model(options)
    shutil.rmtree(out, ignore_errors=True)
    ran([PROGRAM, "train", "--device", device, "--out", str(out), *options.split()])
    return figures(out)


def commit():
    try:
        changed = ran(["git", "status", "--porcelain", "--untracked-files=no"]).strip()
        return ran(["git", "rev-parse", "--short", "HEAD"]).strip() + (" and changes to it" if changed else "")
    except (RuntimeError, OSError):
        return "unknown"


def say(args):
    said = kept(args.folder, "said.json")
    if kept(args.folder, "measured.json"):
        sys.exit(f"{args.folder} holds runs: what is said now would not be said before them")
    others = {profile_of(one) for one in said.values()} - {args.profile}
    if others:
        sys.exit(f"{args.folder} has what {others.pop()} says: take another folder for what {args.profile} does")
    for name, (options, _) in args.rows(args.gpus).items():
        if name not in said and args.only in name:
            try:
                said[name] = {**train(f"{options} --profile {args.profile}", "meta", args.folder / "said"), "options": options, "commit": commit(), "profile": args.profile}
            except RuntimeError as problem:
                sys.exit(f"{name}: {problem}")
            keep(args.folder, "said.json", said)
            print(f"{name}: {said[name]['step']:.4g} ms", flush=True)


def run_all(args):
    end, said, measured = time.monotonic() + 60 * args.minutes, kept(args.folder, "said.json"), kept(args.folder, "measured.json")
    failed = 0
    for name, (options, steps) in args.rows(args.gpus).items():
        if name in measured or args.only not in name:
            continue
        if name not in said:
            sys.exit(f"nothing was said of {name}: ask `said` first")
        began = time.monotonic()
        # What a row takes is known when it has run; a minute is what the longest has taken
        if end - began < 60:
            print(f"{name}: not begun, {end - began:.0f} s are left", flush=True)
            continue
        traced = f"--steps {steps} --warmup-steps 2 --trace-steps {steps - 7}:{steps - 3}"
        try:
            measured[name] = {**train(f"{options} {traced}", args.device, args.folder / "runs" / str(list(args.rows(args.gpus)).index(name))), "commit": commit()}
        except RuntimeError as problem:
            print(f"{name}: {problem}", flush=True)
            failed = 1
            continue
        keep(args.folder, "measured.json", measured)
        print(f"{name}: {measured[name]['step']:.4g} ms ({time.monotonic() - began:.0f} s)", flush=True)
    return failed


def starts(args):
    """The grammar tutor cut both ways, its losses from each start; a start whose launcher is not installed is named."""
    n, out = args.gpus, args.folder / "starts"
    shutil.rmtree(out, ignore_errors=True)
    halves = [",".join(map(str, range(n // 2))), ",".join(map(str, range(n // 2, n)))]
    words = lambda way: [PROGRAM, "train", "--device", args.device, *f"{TUTOR} --tp 2 --fsdp {n // 2} --steps 6 --sequences {8 * n}".split(), "--out", str(out / way)]
    ways = {
        "shardbook": words("shardbook"),
        "torchrun": ["torchrun", "--nproc-per-node", str(n), "--no-python", *words("torchrun")],
        "mpirun": ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(n), *words("mpirun")],
        "two nodes": words("two nodes"),
    }
    losses = {}
    for way, command in ways.items():
        if shutil.which(command[0]) is None:
            print(f"{way}: {command[0]} is not installed")
            continue
        try:
            ran(command, env={**os.environ, **({"SHARDBOOK_NODES": ";".join(halves)} if way == "two nodes" else {})}, timeout=120)
            losses[way] = json.loads((out / way / "run.json").read_text())["results"]["losses"]
            print(f"{way}: {', '.join(map(repr, losses[way]))}", flush=True)
        except (RuntimeError, subprocess.TimeoutExpired) as problem:
            print(f"{way}: {problem}", flush=True)
    keep(args.folder, "starts.json", losses)
    equal = len(losses) > 1 and all(one and one == losses["shardbook"] for one in losses.values())
    print(f"{len(losses)} of {len(ways)} starts, losses {'equal to the last digit' if equal else 'NOT equal'}")
    return 0 if equal and len(losses) == len(ways) else 1


def packs(args):
    names = list(args.rows(args.gpus))
    (args.folder / "packs").mkdir(exist_ok=True)
    for at, name in [(0, "fsdp"), (1, "fsdp-no-prefetch"), (2, "tp"), (3, "tp2-fsdp"), (9, "fsdp-fastest")]:
        run = args.folder / "runs" / str(at)
        if not run.exists():
            print(f"{names[at]}: has not run")
        else:
            to = args.folder / "packs" / f"gpt-1.3b-{args.gpus}-gpus-{name}.tar.gz"
            to.unlink(missing_ok=True)
            ran([PROGRAM, "pack", str(run), "--out", str(to)])
            print(f"{names[at]}: {to} ({to.stat().st_size / 1e6:.1f} MB)", flush=True)


def table(args):
    said, measured = kept(args.folder, "said.json"), kept(args.folder, "measured.json")
    print("| run | said, ms | measured, ms (least, most) | off by | exposed: said, measured | overlap: said, measured | tokens/s | MFU | tracing | GiB: foretold, allocated |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, one in said.items():
        ours = measured.get(name)
        both = lambda key, of="{:.1f}": ", ".join("–" if side[key] is None else of.format(side[key]) for side in (one, ours) if side)
        print(f"| {name} | {one['step']:.4g} | " + (f"{ours['step']:.4g} ({ours['least']:.3g}, {ours['most']:.3g}) | {100 * (one['step'] / ours['step'] - 1):+.1f} %" if ours else "| ")
              + f" | {both('exposed')} % | {both('overlap')} % | " + (f"{ours['tokens_per_second']:,.0f} | {ours['mfu']:.1f} % | {ours['tracing']:+.1f} %".replace(",", " ") if ours else "| | ")
              + f" | {both('gib')} |")
    print(f"\nsaid by {', '.join(sorted({one['commit'] + ' with ' + profile_of(one) for one in said.values()}))}" + (f"; measured with {', '.join(sorted({one['commit'] for one in measured.values()}))}" if measured else ""))


def main(rows=rows, description=__doc__, gpus=8, tasks=("said", "runs", "starts", "packs", "table"), profile="h200x8"):
    """With other rows, for other questions: `profile` None where one must be named."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    does = {"said": say, "runs": run_all, "starts": starts, "packs": packs, "table": table}
    parser.add_argument("task", choices=tasks)
    parser.add_argument("folder", type=lambda folder: pathlib.Path(folder).absolute())
    parser.add_argument("--gpus", type=int, default=gpus, metavar="N")
    parser.add_argument("--profile", default=profile, metavar="NAME|FILE", help="by which the model speaks")
    parser.add_argument("--minutes", type=float, default=9, metavar="M")
    parser.add_argument("--only", default="", metavar="WORD", help="rows whose name holds it")
    parser.add_argument("--device", choices=["cuda", "host"], default="cuda")
    args = parser.parse_args()
    args.rows = rows
    if args.task == "said" and args.profile is None:
        parser.error("said needs --profile: which profile speaks?")
    if args.profile and pathlib.Path(args.profile).is_file():
        args.profile = str(pathlib.Path(args.profile).resolve())   # the program runs elsewhere
    if args.gpus < 2 or args.gpus % 2:
        parser.error("--gpus is an even number")
    args.folder.mkdir(parents=True, exist_ok=True)
    sys.exit(does[args.task](args))


if __name__ == "__main__":
    main()
