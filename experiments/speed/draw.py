#!/usr/bin/env python3
"""Draws the timelines of notes/07_speed.md, each step before and after, from packs of measured runs, or of runs that it models.

    python3 experiments/speed/draw.py [--only NAME] [--svg]      (PNGs into notes/pictures; that needs rsvg-convert)

A panel has the spans of some layers and one phase of rank 0 ("backward 1": of the second micro-batch), in one step, or what follows
its backward: those of the run before above those of the run after, on one scale of milliseconds that begins where the kernel before
them ended. Nothing is moved: gaps are the GPU's. A run of "cupti:" is a step as CUPTI saw it, for what is launched as a graph has no
timeline (experiments/cupti/graph.py --keep); what ran beside an earlier kernel is drawn below it. A title says of modelled runs that
they are (`shardbook train --device meta`, with the words of the panel).
"""
import argparse
import json
import os
import pathlib
import subprocess
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CAPTURED, PICTURES = ROOT / "experiments/captured", ROOT / "notes/pictures"
INK, WIDTH, LEFT, LANE = "#222222", 1240, 130, 30
KINDS = {  # colour: words of an op
    "#2f6fae": ("linear_", "attention_scores", "attention_values", "matmul"), "#c8791e": ("attention", "softmax", "heads"), "#5b9b57": ("norm",),
    "#8d6bb3": ("gelu", "activation"), "#7f8790": ("bias", "residual", "sum_parts"), "#4d9aa3": ("adam_w", "sum_of_squares", "clip_factor"), "#b3475c": ("cross_entropy", "loss", "sum"),
    "#c8501e": ("all_gather", "reduce_scatter", "all_reduce", "shift")}
NAMES = {"#2f6fae": "matmuls", "#c8791e": "attention", "#5b9b57": "norms", "#8d6bb3": "GELU", "#7f8790": "biases, residuals, copies", "#4d9aa3": "norm of gradients, AdamW", "#b3475c": "loss",
         "#a89032": "sums over tokens", "#b9bec4": "GELU, biases, tables, copies", "#c8501e": "collectives"}
MODELLED = "--model gpt-1.3b --data synthetic --attention cudnn --micro-batches 1 --steps 3 "
TP, FSDP = MODELLED + "--tp 2 --fsdp 1 --sequences 8", MODELLED + "--tp 1 --fsdp 2 --sequences 16 --set loss.kernel=fused"
PIECES = [("all-reduces", TP), ("in pieces", TP + " --set tensor_parallel.sequence=cut --set tensor_parallel.overlap=pieces")]
ADDED = MODELLED.replace("--micro-batches 1", "--micro-batches 4") + "--tp 1 --fsdp 2 --sequences 16 --set loss.kernel=fused --set accumulate.reduce=last"
# The profile that ships was measured without windows
WINDOWS = FSDP + f" --set gelu.kernel=in_matmuls --profile {ROOT}/experiments/speed/refit/19/fitted.json --set nccl.buffers="
# Name of the picture: panels of a title, a phase, its first and last layer, and the runs with what they are called: a pack, or the
# options of one that is modelled
PANELS = {
    "speed-gathers": [("Forward of blocks 8 to 10, on each of four GPUs", "forward", 8, 10, [("gathered when needed", "gpt-1.3b-fsdp4-no-prefetch"), ("gathered ahead", "gpt-1.3b-fsdp4")])],
    "speed-graph": [("A step of the grammar tutor on one GPU, as CUPTI saw it", "step", -1, -1, [("one by one", "cupti:one by one"), ("as a graph", "cupti:as a graph")])],
    "speed-added": [("Modelled: backward of block 12, the second of four micro-batches", "backward 1", 12, 12,
                     [("made, then added", ADDED + " --set accumulate.weight_gradient=apart"), ("by the matmul", ADDED)])],
    "speed-windows": [("Modelled: forward of blocks 10 to 12, sharded over two GPUs", "forward", 10, 12, [("plain buffers", WINDOWS + "plain"), ("as windows", WINDOWS + "windows")]),
                      ("Modelled: backward of block 12", "backward", 12, 12, [("plain buffers", WINDOWS + "plain"), ("as windows", WINDOWS + "windows")])],
    "speed-tiles": [
        ("Forward of block 12", "forward", 12, 12, [("with the square", "gpt-1.3b-one-gpu"), ("by tiles", "gpt-1.3b-one-gpu-tiles")]),
        ("Backward of block 12", "backward", 12, 12, [("with the square", "gpt-1.3b-one-gpu"), ("by tiles", "gpt-1.3b-one-gpu-tiles")])],
    "speed-gelu": [
        ("Forward of block 12", "forward", 12, 12, [("GELU apart", "gpt-1.3b-one-gpu-apart"), ("in the matmuls", "gpt-1.3b-one-gpu-gelu")]),
        ("Backward of block 12", "backward", 12, 12, [("GELU apart", "gpt-1.3b-one-gpu-apart"), ("in the matmuls", "gpt-1.3b-one-gpu-gelu")])],
    "speed-attention": [
        ("Forward of block 12", "forward", 12, 12, [("with the square", "gpt-1.3b-one-gpu"), ("cuDNN", "gpt-1.3b-one-gpu-fast")]),
        ("Backward of block 12", "backward", 12, 12, [("with the square", "gpt-1.3b-one-gpu"), ("cuDNN", "gpt-1.3b-one-gpu-fast")])],
    "speed-loss": [("The head and the loss", "head", -1, -1, [("apart", "gpt-1.3b-one-gpu"), ("in one kernel", "gpt-1.3b-one-gpu-fast")])],
    "speed-pieces": [("Modelled: forward of block 12, cut over two GPUs", "forward", 12, 12, PIECES),
                     ("Modelled: backward of block 12", "backward", 12, 12, PIECES)],
    "speed-ends": [("Modelled: behind backward, sharded over two GPUs", "end", -1, -1,
                    [("at once", FSDP), ("unit by unit", FSDP + " --set fsdp.update=by_unit")])],
}


def kernels_of(name):
    """As spans are, but of a kind and not of an op: so with a colour."""
    step = json.loads((ROOT / "experiments/cupti/graph_steps.json").read_text())[name]
    colours = {words: colour for colour, words in NAMES.items()} | {"update and norm of the gradient": "#4d9aa3"}
    return [{"ts": begin / 1e3, "dur": length / 1e3, "args": {"op": kind}, "colour": colours.get(kind, "#b9bec4")} for begin, length, kind in step["kernels"]]


def events_of(run):
    if run.startswith("--"):
        with tempfile.TemporaryDirectory() as folder:
            program = os.environ.get("SHARDBOOK_PROGRAM", ROOT / "shardbook")
            subprocess.run([program, "train", "--device", "meta", *run.split(), "--out", f"{folder}/run"], check=True, stdout=subprocess.DEVNULL)
            return json.loads(pathlib.Path(folder, "run/rank0.json").read_text())["traceEvents"]
    with tarfile.open(CAPTURED / f"{run}.tar.gz") as pack:
        name = next(one for one in pack.getnames() if one.endswith("/rank0.json"))
        return json.load(pack.extractfile(name))["traceEvents"]


def spans_of(run):
    """Device work of rank 0 in its first traced step, in us."""
    if run.startswith("cupti:"):
        return kernels_of(run.removeprefix("cupti:"))
    events = events_of(run)
    spans = [one for one in events if one.get("ph") == "X" and one.get("cat") in ("kernel", "gpu_memcpy") and one["args"].get("op")]
    step = min(one["args"]["step"] for one in spans)
    return sorted((one for one in spans if one["args"]["step"] == step), key=lambda one: one["ts"])


def is_collective(span):
    return any(word in span["args"]["op"] for word in KINDS["#c8501e"])


def part_of(spans, phase, first, last):
    if phase == "step":
        chosen, beside, until = [], [], 0.0
        for one in spans:
            (beside if one["ts"] < until else chosen).append(one)
            until = max(until, one["ts"] + one["dur"])
        return 0.0, until, chosen, beside
    if phase == "end":
        after = max(one["ts"] + one["dur"] for one in spans if one["args"]["phase"] == "backward" and not is_collective(one))
        chosen = [one for one in spans if one["ts"] >= after and one["cat"] == "kernel" and not is_collective(one)]
    elif phase == "head":
        chosen = [one for one in spans if one["args"].get("part") in ("head", "cross_entropy", "loss")]
    else:
        phase, _, micro_batch = phase.partition(" ")
        chosen = [one for one in spans if one["args"]["phase"] == phase and one["args"].get("micro_batch", 0) == int(micro_batch or 0) and first <= one["args"].get("layer", -1) <= last and not is_collective(one)]
    end = max(one["ts"] + one["dur"] for one in chosen)
    # What it waited for belongs to it.
    begin = max((one["ts"] + one["dur"] for one in spans if one["ts"] < chosen[0]["ts"] and not is_collective(one)), default=chosen[0]["ts"])
    beside = [one for one in spans if is_collective(one) and one["ts"] < end and one["ts"] + one["dur"] > begin]
    return begin, end, chosen, beside


def colour_of(span):
    if "colour" in span:
        return span["colour"]
    op = span["args"]["op"]
    if is_collective(span):
        return "#c8501e"
    if span["args"].get("part") == "attention" and "linear" not in op:
        return "#c8791e"
    return next((colour for colour, words in KINDS.items() if any(word in op for word in words)), "#7f8790")


def text(x, y, words, size=14, anchor="start", bold=False, colour=INK):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-family="DejaVu Sans" font-size="{size}" fill="{colour}" text-anchor="{anchor}"'
            + (' font-weight="bold"' if bold else "") + f">{words}</text>")


def role_of(span):
    op, part = span["args"]["op"], span["args"].get("part", "")
    if is_collective(span):
        return op.replace("_", "-")
    if op.startswith("linear"):
        return part + {"linear_forward": "", "linear_input_gradient": ", input", "linear_weight_gradient": ", weight"}[op.removesuffix("_gelu")] + (" + GELU" if op.endswith("_gelu") else "")
    return {"cudnn_attention_forward": "attention", "cudnn_attention_backward": "attention"}.get(op, op.replace("_", " "))


def lane(spans, begin, scale, y):
    out = []
    for one in spans:
        x, wide = LEFT + (one["ts"] - begin) / 1e3 * scale, max(one["dur"] / 1e3 * scale, 0.6)
        if x < LEFT:
            x, wide = LEFT, wide - (LEFT - x)
        wide = min(wide, WIDTH - 20 - x)
        out.append(f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{LANE - 6}" fill="{colour_of(one)}"><title>{role_of(one)}</title></rect>')
        if wide > 7.4 * len(role_of(one)) + 6:
            out.append(text(x + wide / 2, y + 17, role_of(one), 12, "middle", colour="white"))
    return "".join(out)


def panel(title, phase, first, last, runs, top):
    parts = [(words, *part_of(spans_of(run), phase, first, last)) for words, run in runs]
    longest = max(end - begin for _, begin, end, _, _ in parts) / 1e3
    scale = (WIDTH - 20 - LEFT) / longest
    out, y = [text(20, top + 20, title, 17, bold=True)], top + 34
    for words, begin, end, chosen, beside in parts:
        out.append(text(LEFT - 10, y + 17, words if len(words) < 17 else words.split()[0], 12, "end"))
        if len(words) >= 17:
            out.append(text(LEFT - 10, y + 31, " ".join(words.split()[1:]), 12, "end"))
        out.append(lane(chosen, begin, scale, y))
        if beside:
            y += LANE
            out.append(lane(beside, begin, scale, y))
        y += LANE + 8
    step = next(one for one in (0.1, 0.2, 0.5, 1, 2, 5) if longest / one <= 12)
    for tick in range(int(longest / step) + 1):
        x = LEFT + tick * step * scale
        out.append(f'<line x1="{x:.1f}" y1="{y - 4}" x2="{x:.1f}" y2="{y + 2}" stroke="{INK}"/>' + text(x, y + 16, f"{tick * step:g}" + (" ms" if tick == 0 else ""), 12, "middle"))
    lengths = " → ".join(f"{(end - begin) / 1e3:.2f}" for _, begin, end, _, _ in parts)
    out.append(text(WIDTH - 20, top + 20, f"{lengths} ms", 15, "end", bold=True))
    return "".join(out), y + 30, {colour_of(one) for _, _, _, chosen, beside in parts for one in [*chosen, *beside]}


def svg(panels):
    body, y, colours = "", 0, set()
    for one in panels:
        drawn, y, used = panel(*one, y)
        body, colours = body + drawn, colours | used
    x = LEFT
    for colour, words in NAMES.items():
        if colour in colours:
            body += f'<rect x="{x}" y="{y}" width="14" height="14" fill="{colour}"/>' + text(x + 20, y + 12, words, 13)
            x += 40 + 9 * len(words)
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 26}"><rect width="{WIDTH}" height="{y + 26}" fill="white"/>{body}</svg>\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=sorted(PANELS))
    parser.add_argument("--svg", action="store_true", help="writes NAME.svg here instead")
    asked = parser.parse_args()
    for name, panels in PANELS.items():
        if asked.only in (None, name):
            drawing = svg(panels)
            if asked.svg:
                pathlib.Path(f"{name}.svg").write_text(drawing)
            else:
                subprocess.run(["rsvg-convert", "--output", str(PICTURES / f"{name}.png")], input=drawing.encode(), check=True)


if __name__ == "__main__":
    main()
