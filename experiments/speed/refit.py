#!/usr/bin/env python3
"""Does a profile that `calibrate` alone made foretell runs on the GPUs that it was measured on?

    ./shardbook calibrate --gpus 2 --out FOLDER/fitted.json
    python3 experiments/speed/refit.py said FOLDER --profile FOLDER/fitted.json     before any run
    python3 experiments/speed/refit.py runs FOLDER [--minutes M] [--only WORD]
    python3 experiments/speed/refit.py table FOLDER

FOLDERs of the last sittings: experiments/speed/refit/5 to 15 and 17 to 19, beside each other by sittings.py and clock.py. Tasks and files are
those of experiments/node/sitting.py. The rows are the table's shapes of README.md here, in the form that takes least time (buffers
are plain to a model whose profile has no windows); nine runs that the model was first judged by (2026-11-22), in the form to read
first; what modelled.py has over two GPUs; TP with nearly as many sequences as the one row that is said wrong; short steps that are issued call by call; that row and four more
with a head start for their sums; and the nine with attention by cuDNN. The tutor is traced nowhere as a graph: of its exposed share
experiments/cupti/graph.py tells.
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "node"))
import sitting  # noqa: E402

JUDGED = ("gpt-1.3b, TP, 4 sequences", "gpt-6.9b, FSDP, no prefetch", "gpt-1.3b, FSDP, two micro-batches, no prefetch",
          "gpt-6.9b, FSDP, 12 layers, no reshard", "gpt-6.9b, FSDP", "gpt-6.9b, TP", "gpt-124m, FSDP, 8 micro-batches of 8",
          "gpt-1.3b, FSDP, 4 sequences", "gpt-124m, TP, two micro-batches")


def rows(n):
    fsdp, tp = f"--tp 1 --fsdp {n} --sequences", f"--tp {n} --fsdp 1 --sequences"
    fastest = f"--micro-batches 1 {sitting.FAST}"
    large = lambda model, rest: f"--model {model} --data synthetic --progress 0 {rest}"
    tutor = f"--model grammar-tutor --progress 0 --tp {n} --fsdp 1"
    out = {
        "gpt-1.3b, FSDP, fastest": (large("gpt-1.3b", f"{fsdp} {8 * n} {fastest}"), 60),
        "gpt-6.9b, FSDP, fastest": (large("gpt-6.9b", f"{fsdp} {2 * n} {fastest}"), 30),
        "gpt-124m, FSDP, fastest": (large("gpt-124m", f"{fsdp} {64 * n} {fastest}"), 60),
        "llama-8b, FSDP, fastest": (large("llama-8b", f"{fsdp} {2 * n} --micro-batches 1 {sitting.LLAMA}"), 24),
        "gpt-1.3b, TP, in pieces": (large("gpt-1.3b", f"{tp} 8 --micro-batches 1 {sitting.PIECES}"), 60),
        "gpt-6.9b, TP, in pieces": (large("gpt-6.9b", f"{tp} 2 --micro-batches 1 {sitting.PIECES}"), 40),
        "grammar-tutor, TP, as a graph": (f"{tutor} --attention flash --set host.graph=on", 300),
        "gpt-1.3b, TP, 4 sequences": (large("gpt-1.3b", f"{tp} 4"), 60),
        "gpt-6.9b, FSDP, no prefetch": (large("gpt-6.9b", f"{fsdp} 4 --prefetch 0"), 24),
        "gpt-1.3b, FSDP, two micro-batches, no prefetch": (large("gpt-1.3b", f"{fsdp} 16 --micro-batches 2 --prefetch 0"), 40),
        "gpt-6.9b, FSDP, 12 layers, no reshard": (large("gpt-6.9b", f"{fsdp} 4 --layers 12 --reshard false"), 40),
        "gpt-6.9b, FSDP": (large("gpt-6.9b", f"{fsdp} 4"), 24),
        "gpt-6.9b, TP": (large("gpt-6.9b", f"{tp} 2"), 30),
        "gpt-124m, FSDP, 8 micro-batches of 8": (large("gpt-124m", f"{fsdp} 128 --micro-batches 8"), 40),
        "gpt-1.3b, FSDP, 4 sequences": (large("gpt-1.3b", f"{fsdp} 4"), 60),
        "gpt-124m, TP, two micro-batches": (large("gpt-124m", f"{tp} 16 --micro-batches 2"), 100),
        "gpt-1.3b, TP, 3 sequences": (large("gpt-1.3b", f"{tp} 3"), 60),
        "gpt-1.3b, TP, 5 sequences": (large("gpt-1.3b", f"{tp} 5"), 60),
        "gpt-1.3b, TP, 4 sequences, attention by cuDNN": (large("gpt-1.3b", f"{tp} 4 --attention cudnn"), 60),
        "gpt-1.3b, TP": (large("gpt-1.3b", f"{tp} 8"), 60),
        "gpt-1.3b, FSDP": (large("gpt-1.3b", f"{fsdp} {8 * n}"), 50),
        "gpt-124m, TP": (large("gpt-124m", f"{tp} 8"), 150),
        "gpt-124m, FSDP": (large("gpt-124m", f"{fsdp} {8 * n}"), 100),
        "gpt-124m, FSDP, 2 sequences": (large("gpt-124m", f"{fsdp} 2"), 200),
        "gpt-124m, FSDP, 4 sequences": (large("gpt-124m", f"{fsdp} 4"), 200),
        "gpt-124m, TP, 4 sequences": (large("gpt-124m", f"{tp} 4"), 200),
        "gpt-124m, DP, 2 sequences": (large("gpt-124m", f"--tp 1 --fsdp 1 --dp {n} --sequences 2"), 200),
        "grammar-tutor, TP": (tutor, 300),
        "grammar-tutor, one GPU, as a graph": ("--model grammar-tutor --progress 0 --tp 1 --fsdp 1 --set host.graph=on", 300),
        "gpt-1.3b, TP, 4 sequences, the sum first": (large("gpt-1.3b", f"{tp} 4 --set tensor_parallel.input_gradient_sum=first"), 60),
        "gpt-1.3b, TP, 3 sequences, the sum first": (large("gpt-1.3b", f"{tp} 3 --set tensor_parallel.input_gradient_sum=first"), 60),
        "gpt-1.3b, TP, 5 sequences, the sum first": (large("gpt-1.3b", f"{tp} 5 --set tensor_parallel.input_gradient_sum=first"), 60),
        "gpt-1.3b, TP, the sum first": (large("gpt-1.3b", f"{tp} 8 --set tensor_parallel.input_gradient_sum=first"), 60),
        "gpt-6.9b, TP, the sum first": (large("gpt-6.9b", f"{tp} 2 --set tensor_parallel.input_gradient_sum=first"), 30),
    }
    # These nine once more, as a step is run that is to be fast: where cuDNN is installed, attention is its
    for name in JUDGED:
        options, steps = out[name]
        out.setdefault(f"{name}, attention by cuDNN", (f"{options} --attention cudnn", steps))
    return out


if __name__ == "__main__":
    sitting.main(rows, __doc__, gpus=2, tasks=("said", "runs", "table"), profile=None)
