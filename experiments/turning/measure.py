#!/usr/bin/env python3
"""Where do two GPUs begin to win, and from which batch on do gathers hide? Measured beside modelled.

Runs each line of the tables of labs 01, 02 and 04 with `./shardbook train` on the GPUs of this node (tracing off; the
run's own median step), in turns, and the same line with `--device meta`. Prints Markdown, and writes turning.json.

    python3 experiments/turning/measure.py [--turns 2] [--out FOLDER] [--only lab02]

`--only hide` finds the batch at which FSDP's gathers hide on two GPUs (lab 04b): traced runs in steps of 256 tokens, the
part of the gathers' time that lies open, and beside it the batch that the lab's rule predicts from what one block costs.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("SHARDBOOK_PROGRAM", "./shardbook")

# Title, option that is turned, its values, then the lines that are compared.
WIDTHS = [128, 256, 512, 640, 704, 768, 832, 896, 1024, 1280]
TABLES = {
    "lab02": ("The grammar tutor at other widths, 2048 tokens: one GPU and two",
              [("width %d" % w, ["--width %d --heads %d --tp 1 --fsdp 1" % (w, w // 32), "--width %d --heads %d --tp 2 --fsdp 1" % (w, w // 32)]) for w in WIDTHS],
              ["tp 1", "tp 2"]),
    "lab02graphs": ("The same as graphs",
                    [("width %d" % w, ["--width %d --heads %d --tp %d --fsdp 1 --set host.graph=on" % (w, w // 32, tp) for tp in (1, 2)]) for w in (128, 704, 768, 832, 896, 1024)],
                    ["tp 1", "tp 2"]),
    "lab02tokens": ("The grammar tutor at larger batches, one micro-batch: one GPU and two",
                    [("%d tokens" % (128 * s), ["--sequences %d --micro-batches 1 --tp %d --fsdp 1" % (s, tp) for tp in (1, 2)]) for s in (512, 1024, 1280, 1408, 1536, 1792, 2048, 3072)],
                    ["tp 1", "tp 2"]),
    "lab02batch": ("The grammar tutor on one GPU, its batch and four times that",
                   [("16 sequences", ["--tp 1 --fsdp 1"]), ("64 sequences", ["--tp 1 --fsdp 1 --sequences 64 --micro-batches 1"])], ["step"]),
    "lab04": ("gpt-1.3b, fsdp 2, by the tokens on each GPU",
              [("%d tokens" % (1024 * s), ["--model gpt-1.3b --fsdp 2 --tp 1 --sequences %d" % (2 * s), "--model gpt-1.3b --fsdp 2 --tp 1 --sequences %d --prefetch 0" % (2 * s)])
               for s in (1, 2, 3, 4, 8)], ["prefetch 1", "prefetch 0"]),
    "lab01": ("gpt-124m, dp 2, a sequence on each GPU",
              [("gradients", ["--model gpt-124m --dp 2 --tp 1 --fsdp 1 --sequences 2 --set data_parallel.reduce=%s" % how for how in ("naive", "flat", "bucketed")])],
              ["naive", "flat", "bucketed"]),
}


def step_ms(options, device):
    """Median step of one run, ms; None and a sentence on stderr where it failed."""
    with tempfile.TemporaryDirectory() as folder:
        words = [PROGRAM, "train", "--device", device, "--json", "--progress", "0", "--out", os.path.join(folder, "run")]
        if device == "cuda":
            words += ["--steps", "24", "--warmup-steps", "2", "--trace-steps", "0:0"]
        done = subprocess.run(words + options.split(), cwd=ROOT, capture_output=True, text=True, timeout=300)
        try:
            return json.loads(done.stdout[done.stdout.index("{"):])["step_ns"] / 1e6
        except (ValueError, KeyError):
            print("failed:", options, (done.stderr or done.stdout)[-300:], file=sys.stderr)
            return None


# --- Lab 04b: from how many tokens on do gathers hide? -----------------------------------------------------------------------

BLOCK = 12           # any block but the first and the last
TOKENS = range(1024, 3328, 256)


def spans_of(options, device):
    """Device spans of rank 0's last traced step, as (op, phase, layer, start, end) in us."""
    with tempfile.TemporaryDirectory() as folder:
        words = [PROGRAM, "train", "--device", device, "--model", "gpt-1.3b", "--tp", "1", "--micro-batches", "1", "--sequence", "256",
                 "--progress", "0", "--out", os.path.join(folder, "run")]
        if device == "cuda":
            words += ["--steps", "16", "--warmup-steps", "2", "--trace-steps", "14:15"]
        subprocess.run(words + options.split(), cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)
        with open(os.path.join(folder, "run", "rank0.json"), encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
    kernels = [one for one in events if one.get("ph") == "X" and one.get("cat") == "kernel"]
    return [(k["args"]["op"], k["args"]["phase"], k["args"].get("layer", -1), k["ts"], k["ts"] + k["dur"]) for k in kernels]


def open_share(tokens, device):
    """The part of the gathers' time beside which nothing computes; the first gather has nothing to hide behind and is left out."""
    spans = spans_of("--fsdp 2 --sequences %d" % (2 * tokens // 256), device)
    moving = ("all_gather", "reduce_scatter", "all_reduce")
    busy = []
    for start, end in sorted((s, e) for op, _, _, s, e in spans if op not in moving):
        if busy and start <= busy[-1][1]:
            busy[-1][1] = max(busy[-1][1], end)
        else:
            busy.append([start, end])
    gathers = [(s, e) for op, phase, layer, s, e in spans if op == "all_gather" and layer >= 0 and not (layer == 0 and phase == "forward")]
    covered = sum(max(0, min(e, b) - max(s, a)) for s, e in gathers for a, b in busy)
    whole = sum(e - s for s, e in gathers)
    return 1 - covered / whole


def predicted_tokens():
    """The lab's rule, from one block alone: the larger of gather / forward and (gather + reduce) / backward."""
    alone = spans_of("--fsdp 2 --sequences 8 --prefetch 0", "meta")
    gather = next(e - s for op, phase, layer, s, e in alone if op == "all_gather" and phase == "forward" and layer == BLOCK)
    reduce = next(e - s for op, _, layer, s, e in alone if op == "reduce_scatter" and layer == 0)   # the last: nothing runs beside it
    compute = spans_of("--fsdp 1 --sequences 16", "meta")
    a_token = {phase: sum(e - s for _, p, layer, s, e in compute if p == phase and layer == BLOCK) / 4096 for phase in ("forward", "backward")}
    return max(gather / a_token["forward"], (gather + reduce) / a_token["backward"])


def hide(asked):
    predicted = predicted_tokens()
    rows, found = [], {}
    print("\nThe rule predicts %.0f tokens a GPU.\n\n| tokens a GPU | gathers open, measured | modelled |\n|---|---|---|" % predicted)
    for tokens in TOKENS:
        measured = [open_share(tokens, "cuda") for _ in range(asked.turns)]
        modelled = open_share(tokens, "meta")
        rows.append({"tokens": tokens, "measured": measured, "modelled": modelled})
        print("| %d | %s %% | %.1f %% |" % (tokens, " to ".join("%.1f" % (100 * one) for one in sorted(measured)), 100 * modelled), flush=True)
        for clock, value in (("measured", statistics.median(measured)), ("modelled", modelled)):
            if value <= 0.1:
                found.setdefault(clock, tokens)
    print("\nA tenth or less from: " + ", ".join("%d %s" % (tokens, clock) for clock, tokens in found.items()))
    with open(os.path.join(asked.out, "hide.json"), "w", encoding="utf-8") as file:
        json.dump({"predicted": predicted, "rows": rows, "found": found}, file, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--out", default=".")
    parser.add_argument("--only", choices=sorted(TABLES) + ["hide"])
    asked = parser.parse_args()
    os.makedirs(asked.out, exist_ok=True)
    if asked.only == "hide":
        return hide(asked)
    kept = {}
    for name, (title, rows, heads) in TABLES.items():
        if asked.only and asked.only != name:
            continue
        print("\n" + title + "\n")
        print("| | " + " | ".join("%s, measured" % head for head in heads) + " | " + " | ".join("%s, modelled" % head for head in heads) + " |")
        print("|---" * (1 + 2 * len(heads)) + "|")
        for label, lines in rows:
            turns = [[] for _ in lines]
            for _ in range(asked.turns):
                for place, line in enumerate(lines):
                    ms = step_ms(line, "cuda")
                    if ms is not None:
                        turns[place].append(ms)
            modelled = [step_ms(line, "meta") for line in lines]
            cells = ["%.3f (%.3f to %.3f)" % (statistics.median(t), min(t), max(t)) if t else "failed" for t in turns]
            print("| %s | " % label + " | ".join(cells) + " | " + " | ".join("%.3f" % m if m else "failed" for m in modelled) + " |", flush=True)
            kept[name + "/" + label] = {"lines": lines, "measured_ms": turns, "modelled_ms": modelled}
            with open(os.path.join(asked.out, "turning.json"), "w", encoding="utf-8") as file:
                json.dump(kept, file, indent=1)


if __name__ == "__main__":
    main()
