#!/usr/bin/env python3
"""How far is the modelled step from each that was measured?

    python3 experiments/speed/modelled.py [SHARDBOOK]

prints two tables: of runs, step, exposed share and overlap; of switches, what each does to the step. What was measured
stands below, from README.md here, experiments/switches and experiments/contention; what is modelled is run anew by SHARDBOOK (default: the
launcher of this checkout), with --device meta, which takes some ten seconds.
"""
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARDBOOK = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "shardbook")

# name, options, and measured: step in ms, exposed and overlap in %
RUNS = [
    ("gpt-1.3b, FSDP 4", "gpt-1.3b --tp 1 --fsdp 4 --sequences 32", 141.5, 1.7, 95.7),
    ("gpt-1.3b, TP 4", "gpt-1.3b --tp 4 --fsdp 1 --sequences 8", 56.7, 27.9, 23.5),
    ("gpt-1.3b, TP 2 × FSDP 2", "gpt-1.3b --tp 2 --fsdp 2 --sequences 16", 91.1, 14.5, 70.8),
    ("gpt-6.9b, FSDP 4", "gpt-6.9b --tp 1 --fsdp 4 --sequences 8", 369.9, 1.8, 97.0),
    ("grammar-tutor, TP 2", "grammar-tutor --tp 2 --fsdp 1", 1.33, 13.0, None),
    ("gpt-1.3b, TP 2", "gpt-1.3b --tp 2 --fsdp 1 --sequences 8", 86.6, 14.3, 44.4),
    ("gpt-1.3b, FSDP 2", "gpt-1.3b --tp 1 --fsdp 2 --sequences 16", 145, 1.3, 95.6),
    ("gpt-124m, TP 2", "gpt-124m --tp 2 --fsdp 1 --sequences 8", 15.2, 15.0, 37.3),
    ("gpt-124m, FSDP 2", "gpt-124m --tp 1 --fsdp 2 --sequences 16", 22.8, 2.9, 83.3),
    ("gpt-1.3b, FSDP 8", "gpt-1.3b --tp 1 --fsdp 8 --sequences 64", None, None, None),
    ("gpt-1.3b, TP 8", "gpt-1.3b --tp 8 --fsdp 1 --sequences 8", None, None, None),
    ("gpt-1.3b, TP 2 × FSDP 4", "gpt-1.3b --tp 2 --fsdp 4 --sequences 32", None, None, None),
]

# switch, options, and measured: the step without and with it, ms
B13, B124 = "gpt-1.3b --tp 1 --fsdp 2 --sequences ", "gpt-124m --tp 1 --fsdp 2 --sequences "
T13, T124 = "gpt-1.3b --tp 2 --fsdp 1 --sequences ", "gpt-124m --tp 2 --fsdp 1 --sequences "
D124 = "gpt-124m --tp 1 --fsdp 1 --dp 2 --sequences "
LAST = " --micro-batches 4 --set accumulate.reduce=last"
SWITCHES = [
    ("--prefetch 0", B13 + "16", 144.2, 152.7),
    ("--prefetch 0", B13 + "8", 81.9, 90.9),
    ("--prefetch 0", B13 + "4", 51.1, 64.3),
    ("fsdp.backward_prefetch=post", B13 + "8", 81.4, 81.3),
    ("fsdp.backward_prefetch=none", B13 + "8", 82.1, 87.4),
    ("fsdp.limit_all_gathers=1", B13 + "8", 81.4, 82.4),
    ("fsdp.limit_all_gathers=2", B13 + "8", 81.8, 82.1),
    ("--reshard false", B13 + "8", 80.7, 80.6),
    ("accumulate.reduce=last", B13 + "16 --micro-batches 4", 190.7, 171.8),
    ("activations.recompute=full", B13 + "16", 142.5, 180.5),
    ("activations.recompute=selective", B13 + "16", 145.0, 149.8),
    ("fsdp.reduce_dtype=bf16", B13 + "4", 50.9, 51.2),
    ("fsdp.reduce_dtype=bf16", B13 + "8", 81.3, 82.4),
    ("fsdp.reduce_dtype=bf16", B13 + "16", 142.2, 143.0),
    ("fsdp.reduce_dtype=bf16", B124 + "8", 13.5, 13.4),
    ("accumulate.weight_gradient=apart", B13 + "16" + LAST, 173.2, 183.6),
    ("accumulate.weight_gradient=apart", D124 + "16 --micro-batches 4", 28.5, 29.7),
    ("accumulate.weight_gradient=apart", D124 + "256 --micro-batches 2", 307.6, 307.6),
    ("fsdp.offload=optimizer", B13 + "16", 142.6, 359.4),
    ("fsdp.offload=optimizer", B124 + "256", 357.3, 375.2),
    ("fsdp.offload=parameters", B13 + "16", 141.7, 387.2),
    ("fsdp.offload=parameters", B124 + "256", 355.7, 388.4),
    ("data_parallel.reduce=naive", D124 + "4", 8.9, 11.1),
    ("data_parallel.reduce=flat", D124 + "4", 8.9, 9.2),
    ("data_parallel.bucket_mib=1", D124 + "4", 8.9, 8.9),
    ("host.synchronize=layer", B124 + "2", 6.5, 7.0),
    ("tensor_parallel.input_gradient_sum=awaited", T13 + "8", 85.6, 86.4),
    ("tensor_parallel.sequence=cut", T13 + "8", 85.5, 88.2),
    ("tensor_parallel.sequence=cut", T13 + "16 --micro-batches 1", 155.9, 161.9),
    ("fsdp.blocks_a_unit=2", B13 + "8", 79.9, 79.5),
    ("fsdp.blocks_a_unit=4", B13 + "8", 79.9, 80.0),
    ("fsdp.blocks_a_unit=24", B13 + "8", 79.9, 83.8),
    ("fsdp.sharding=per_parameter", B13 + "8", 79.9, 85.6),
    ("--hidden-dropout 0.1", T13 + "8", 85.0, 86.8),
    ("--attention-dropout 0.1", T13 + "8", 85.0, 91.0),
    ("--attention flash", B13 + "16", 145.7, 136.7),
    ("--attention flash", T13 + "8", 86.7, 80.5),
    ("--attention flash", B124 + "16", 22.7, 18.3),
    ("--attention flash", T13 + "8 --attention-dropout 0.1", 92.8, 87.1),
]
for options, row in {T13 + "8": (85.74, 72.04, 85.80, 101.09), B13 + "8": (81.24, 71.06, 81.60, 97.97),
                     T124 + "4": (9.45, 7.53, 9.49, 19.44), B124 + "4": (9.43, 7.17, 9.93, 20.41)}.items():
    for at, switch in enumerate(["network=ideal", "host.delay=10", "rank.slow=1:20"]):
        SWITCHES.append((switch, options, row[0], row[at + 1]))


def shares(run, program=SHARDBOOK):
    """Exposed communication in % of the time, and what of all communication ran under compute, over all ranks."""
    said = subprocess.run([program, "metrics", str(run), "--json"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    ranks = [rank for table in json.loads(said)["tables"] for rank in table["ranks"]]
    of = lambda key: sum(rank[key] for rank in ranks)
    return 100 * of("exposed_communication_ns") / of("window_ns"), 100 * of("overlapped_ns") / (of("communication_ns") or 1)


def modelled(options, folder, made={}):
    """Step in ms, exposed and overlap in %, each once."""
    if options not in made:
        out = pathlib.Path(folder) / str(len(made))
        words = ["train", "--device", "meta", "--progress", "0", "--out", str(out), "--model", *options.split()]
        if "grammar-tutor" not in options:
            words += ["--data", "synthetic"]
        ended = subprocess.run([SHARDBOOK, *words], cwd=ROOT, capture_output=True, text=True)
        if ended.returncode:
            raise SystemExit(f"{' '.join(words)}\n{ended.stderr}")
        results = json.loads((out / "run.json").read_text())["results"]
        exposed, overlap = shares(out)
        made[options] = (results["step_ns"] / 1e6, exposed, overlap)
    return made[options]


def main():
    with tempfile.TemporaryDirectory() as folder:
        ratios, points = [], []
        print("| run | modelled step | measured step | ratio | exposed, modelled | exposed, measured | overlap, modelled | overlap, measured |")
        print("|---|--:|--:|--:|--:|--:|--:|--:|")
        for name, options, step, exposed, overlap in RUNS:
            now = modelled(options, folder)
            cells = [f"{now[0]:.4g} ms", f"{step} ms" if step else "", f"{now[0] / step:.3f}" if step else "", f"{now[1]:.1f} %",
                     f"{exposed} %" if step else "", f"{now[2]:.1f} %", f"{overlap} %" if overlap else ""]
            print(f"| {name} | {' | '.join(cells)} |")
            if step:
                ratios.append(abs(now[0] / step - 1))
                points.append(abs(now[1] - exposed))
        print(f"\nsteps are off by {100 * statistics.mean(ratios):.1f} % on average, {100 * max(ratios):.1f} % at most; "
              f"exposed shares by {statistics.mean(points):.1f} points, {max(points):.1f} at most\n")

        off, moves = [], []
        change = lambda a, b: 100 * (b / a - 1)
        print("| switch | options | measured, ms | | modelled, ms | | step off by |")
        print("|---|---|--:|--:|--:|--:|--:|")
        for switch, options, without, measured in SWITCHES:
            base = modelled(options, folder)[0]
            step = modelled(f"{options} {'' if switch.startswith('--') else '--set '}{switch}", folder)[0]
            off.append(abs(change(without, base)))
            moves.append(abs(change(base, step) - change(without, measured)))
            print(f"| `{switch}` | {options} | {without} → {measured} | {change(without, measured):+.1f} % "
                  f"| {base:.4g} → {step:.4g} | {change(base, step):+.1f} % | {change(without, base):+.1f} % |")
        print(f"\nsteps without the switch are off by {statistics.mean(off):.1f} % on average; the change in per cent of the step is "
              f"off by {statistics.mean(moves):.1f} points on average, {statistics.median(moves):.1f} in the middle, {max(moves):.1f} at most")


if __name__ == "__main__":
    main()
