#!/usr/bin/env python3
"""Do 200 steps of text on GPUs follow those of the host? Ranks of the host that sum in other orders (layouts, micro-batches) differ by what
rounding does; the range of their losses is the envelope. A run on GPUs follows them where it lies, at each step, no further outside that
range than the bound: four times the widest range until then. (Four: as much as the host's own runs are allowed to be off in tests.)

fp32 on GPUs is held against fp32 on the host. bf16 rounds otherwise, and its pieces round otherwise than each other: a form follows where it
lies no further outside the host's range than twice as far as a layout of the plain form, in bf16, has lain until then (or in ten steps).

That bound is made of six plain layouts. Nine more (the control) are held to it as the forms are: plain layouts round as the plain form
does, so as often as they lie outside the bound is too narrow, and not a form wrong. The forms are said to stray more than the plain form
does if they lie outside more often than the control by Fisher's exact test (one-sided, 5 %), over all seeds.

Exit code 1 where there is something to look at: a run without losses, or a form outside, in bf16 too; what it means there the test says.

    python3 experiments/losses/losses.py FOLDER [--program build/cuda/shardbook] [--gpus 2] [--at-once 8] [--gpu-at-once 4] [--steps 200] [--lr 0.001] [--seeds 1234] [--model llama] [--only host]

Writes FOLDER/losses.json, and says a line for each run. Runs that are there already are not made again. Python alone.
"""
import argparse
import concurrent.futures
import json
import math
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = {"gpt": ["--model", "grammar-tutor", "--vocab", "256"], "llama": ["--model", "llama-tutor", "--vocab", "256"]}
CUT = ["--set", "tensor_parallel.sequence=cut"]
HOST = [("1 x 1", 1, 1, []), ("1 x 2", 1, 2, []), ("2 x 1", 2, 1, []), ("2 x 2", 2, 2, []), ("1 x 4", 1, 4, []), ("4 x 1", 4, 1, []),
        ("2 x 1, tokens cut", 2, 1, CUT), ("1 x 2, 2 micro-batches", 1, 2, ["--micro-batches", "2"])]
SPREAD = [("1 x 1", 1, 1, []), ("1 x 1, 2 micro-batches", 1, 1, ["--micro-batches", "2"]), ("1 x 2", 1, 2, []), ("2 x 1", 2, 1, []), ("2 x 1, tokens cut", 2, 1, CUT), ("1 x 2, 2 micro-batches", 1, 2, ["--micro-batches", "2"])]
CONTROL = [(f"{tp} x {fsdp}{', tokens cut' if cut else ''}, {count} micro-batches", tp, fsdp, cut + ["--micro-batches", str(count)])
           for tp, fsdp, cut, counts in ((1, 1, [], (4, 8, 16)), (1, 2, [], (4, 8)), (2, 1, [], (2, 4)), (2, 1, CUT, (2, 4))) for count in counts]
FUSED = ["--set", "loss.kernel=fused"]
GELU = ["--set", "gelu.kernel=in_matmuls"]
MERGED = ["--set", "fsdp.gradient_memory=lent", "--set", "fsdp.update=by_unit"]


def forms(model, precision):
    """Of two GPUs at most: name, tp, fsdp, options."""
    gelu = GELU if model == "gpt" else []
    rows = [("1 x 1, loss in one", 1, 1, FUSED), ("1 x 2, loss in one, by unit", 1, 2, FUSED + gelu + MERGED), ("2 x 1, in pieces", 2, 1, CUT + ["--set", "tensor_parallel.overlap=pieces"]),
            ("2 x 1, as a graph", 2, 1, ["--set", "host.graph=on"])]
    if model == "gpt":
        rows += [("1 x 1, GELU in the matmuls", 1, 1, GELU)]
    if precision == "bf16":
        rows += [(f"{tp} x {fsdp}, {kernel}", tp, fsdp, ["--attention", kernel]) for kernel in ("flash", "cudnn") for tp, fsdp in ((1, 1), (1, 2), (2, 1))]
        rows += [("1 x 2, all of them", 1, 2, ["--attention", "cudnn", "--set", "nccl.buffers=windows"] + FUSED + gelu + MERGED)]
    return rows


def text(folder):
    """The project's own texts, as one file of bytes."""
    out = folder / "text.txt"
    names = sorted(path for top in ("notes", "labs", "solutions") for path in (ROOT / top).rglob("*.md"))
    if not out.exists():   # runs that are there already read it
        out.write_bytes(b"".join(path.read_bytes() for path in names))
    return out


def losses_of(args, data, model, seed, device, precision, tp, fsdp, options):
    name = "-".join([model, device, precision, str(tp), str(fsdp), f"lr{args.lr:g}", f"seed{seed}"] + [word.replace("=", "_").replace("/", "_") for word in options if word not in ("--set",)])
    run = args.folder / name
    if not (run / "run.json").exists():
        words = [str(args.program), "train", *MODELS[model], "--device", device, "--precision", precision, "--tp", str(tp), "--fsdp", str(fsdp), "--data", str(data),
                 "--seed", str(seed), "--steps", str(args.steps), "--lr", str(args.lr), "--trace-steps", "0:0", "--progress", "0", "--out", str(run), *options]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit code {done.returncode}"
    losses = json.loads((run / "run.json").read_text())["results"]["losses"]
    return losses if len(losses) == args.steps else f"{run} has {len(losses)} steps and not {args.steps}: give another folder"


def held(name, losses, low, high, bound):
    """A line; whether every loss lies within the bound of the range, and the most of it that one uses."""
    if isinstance(losses, str):
        print(f"  {name:36} no losses: {losses}")
        return False, None
    outside = outside_of(losses, low, high)
    worst = max(range(len(losses)), key=lambda step: outside[step] / bound[step])
    print(f"  {name:36} first {losses[0]:.7f} last {losses[-1]:.7f}; outside by {max(outside):.2e} at most; nearest to what is allowed at step {worst}, {outside[worst]:.2e} of {bound[worst]:.2e}")
    return all(off <= allowed for off, allowed in zip(outside, bound)), outside[worst] / bound[worst]


def outside_of(losses, low, high):
    return [max(least - loss, loss - most, 0.0) for loss, least, most in zip(losses, low, high)]


def as_far_as(all_losses, low, high, times=2, at_least_of=10):
    """The bound, by step, of what rounds as coarsely: so many times the furthest that these have lain outside."""
    furthest = [max(step) for step in zip(*(outside_of(losses, low, high) for losses in all_losses))]
    return [times * max(furthest[: max(step + 1, at_least_of)]) for step in range(len(furthest))]


def envelope(all_losses):
    low, high = [min(step) for step in zip(*all_losses)], [max(step) for step in zip(*all_losses)]
    bound, widest = [], 0.0
    for least, most in zip(low, high):
        widest = max(widest, most - least, most * 2.0**-23)
        bound.append(4 * widest)
    return low, high, bound


def more_often(those, of_those, these, of_these):
    """Fisher's exact test, one-sided: how likely as many or more of those as lay outside do where they are drawn as these are."""
    outside, all_of_them = those + these, of_those + of_these
    ways = [math.comb(of_those, k) * math.comb(of_these, outside - k) for k in range(those, min(of_those, outside) + 1)]
    return sum(ways) / math.comb(all_of_them, outside)


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("folder", type=pathlib.Path)
    parse.add_argument("--program", type=pathlib.Path, default=ROOT / "build/cuda/shardbook")
    parse.add_argument("--gpus", type=int, default=2)
    parse.add_argument("--at-once", type=int, default=8, help="runs on the host")
    parse.add_argument("--gpu-at-once", type=int, default=4, help="runs that share the GPUs")
    parse.add_argument("--steps", type=int, default=200)
    parse.add_argument("--lr", type=float, default=0.001, help="half of the tutors' own, with which losses jump now and then, and a jump widens every bound behind it")
    parse.add_argument("--seeds", type=int, nargs="+", default=[1234], help="of weights and data's order: each is held against its own envelope")
    parse.add_argument("--model", choices=sorted(MODELS), help="instead of both")
    parse.add_argument("--only", choices=["host", "bf16"], help="the envelope alone, or what is in bf16")
    args = parse.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    args.folder, args.program = args.folder.resolve(), args.program.resolve()
    data = text(args.folder)
    out = {"steps": args.steps, "text_bytes": data.stat().st_size, "runs": []}

    def all_of(model, seed, where, precision, rows):
        with concurrent.futures.ThreadPoolExecutor(args.at_once if where == "host" else args.gpu_at_once) as pool:
            return list(pool.map(lambda row: losses_of(args, data, model, seed, where, precision, *row[1:]), rows))

    def base_of(model, seed, where, precision, rows):
        found = all_of(model, seed, where, precision, rows)
        for row, losses in zip(rows, found):
            if isinstance(losses, str):
                sys.exit(f"{model}, {precision} on {where}, {row[0]}: {losses}")
        return found

    def compared(model, seed, precision, what, rows, low, high, bound):
        for (name, *_), losses in zip(rows, all_of(model, seed, "cuda", precision, rows)):
            within, used = held(name, losses, low, high, bound)
            out["runs"].append({"model": model, "seed": seed, "precision": precision, "what": what, "run": name, "within": within, "used": used,
                                "losses": losses if isinstance(losses, str) else losses[:: max(1, args.steps // 10)]})

    def fit(rows):
        return [row for row in rows if row[1] * row[2] <= args.gpus]

    models = [args.model] if args.model else list(MODELS)
    for model, seed in ((model, seed) for model in models for seed in args.seeds):
        host = base_of(model, seed, "host", "fp32", [row for row in HOST if model == "gpt" or row[1] <= 2])   # llama's heads share two of keys and values
        low, high, bound = envelope(host)
        print(f"{model}, seed {seed}, fp32 on the host: {len(host)} runs, losses {low[0]:.4f} to {low[-1]:.4f}, at most {max(most - least for least, most in zip(low, high)):.2e} apart")
        for step in range(0, args.steps, max(1, args.steps // 20)):
            print(f"  step {step:3}: {low[step]:.5f}, {high[step] - low[step]:.1e} apart")
        if args.only == "host":
            continue
        if args.only != "bf16":
            compared(model, seed, "fp32", "form", fit(SPREAD + forms(model, "fp32")), low, high, bound)
        coarse = as_far_as(base_of(model, seed, "cuda", "bf16", fit(SPREAD)), low, high)
        print(f"{model}, seed {seed}, bf16: layouts of the plain form lie up to {coarse[-1] / 2:.2e} outside, {coarse[0] / 2:.2e} in the first ten steps")
        compared(model, seed, "bf16", "form", fit(forms(model, "bf16")), low, high, coarse)
        print(f"{model}, seed {seed}, bf16, control: more layouts of the plain form")
        compared(model, seed, "bf16", "control", fit(CONTROL), low, high, coarse)
    runs = out["runs"]
    for model in models if args.only != "host" else []:
        ended = {what: [run for run in runs if (run["model"], run["precision"], run["what"]) == (model, "bf16", what) and run["used"] is not None] for what in ("form", "control")}
        if not all(ended.values()):
            print(f"{model}, bf16: no verdict, for no run of forms or none of the control has losses")
            continue
        counts = [number for of in ended.values() for number in (sum(not run["within"] for run in of), len(of))]
        used = [statistics.median(run["used"] for run in of) for of in ended.values()]
        chance = more_often(*counts)
        out[f"{model}, bf16, forms stray by chance alone"] = chance
        print(f"{model}, bf16: {counts[0]} of {counts[1]} forms outside, {counts[2]} of {counts[3]} plain layouts of the control; as many forms or more by chance: {chance:.2f}; of the bound they use {used[0]:.2f} and {used[1]:.2f} at the median")
    (args.folder / "losses.json").write_text(json.dumps(out, indent=1) + "\n")
    without = sum(run["used"] is None for run in runs)
    outside = {what: sum(not run["within"] for run in runs if run["what"] == what and run["used"] is not None) for what in ("form", "control")}
    print(f"{len(runs)} runs, {without} without losses; outside: {outside['form']} forms, {outside['control']} of the control" if runs else "nothing was held against the host")
    sys.exit(1 if without or outside["form"] else 0)


if __name__ == "__main__":
    main()
