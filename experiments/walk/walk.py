#!/usr/bin/env python3
"""Labs 00, 01, 02 and 04 on a node with two GPUs: their runs measured beside modelled, and each part's check.

Every run of a lab is made on the GPUs, cut over two where the text has eight, and again with `--device meta`. Of each: the
step, the exposed share, and the sentence of `why`. Then each part's solution goes into a learner's place and is checked.
Prints Markdown; works in a copy, so the learner's own files are not touched.

    python3 experiments/walk/walk.py [--copy FOLDER]
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

TUTOR = "--model grammar-tutor --fsdp 1 "
DP = "--model gpt-124m --dp 2 --tp 1 --fsdp 1 --sequences 2 --set data_parallel.reduce="
FSDP = "--model gpt-1.3b --fsdp 2 --tp 1 "
RUNS = [
    ("01a", "each parameter by itself", DP + "naive"),
    ("01a", "all at once", DP + "flat"),
    ("01a", "in buckets", DP + "bucketed"),
    ("02a", "sums of backward overlapped", "--model gpt-1.3b --tp 2 --fsdp 1 --sequences 8"),
    ("02a", "awaited at once", "--model gpt-1.3b --tp 2 --fsdp 1 --sequences 8 --set tensor_parallel.input_gradient_sum=awaited"),
    ("02b", "tutor, tp 1", TUTOR + "--tp 1"),
    ("02b", "tutor, tp 2", TUTOR + "--tp 2"),
    ("02c", "width 512, tp 1", TUTOR + "--width 512 --heads 16 --tp 1"),
    ("02c", "width 512, tp 2", TUTOR + "--width 512 --heads 16 --tp 2"),
    ("02c", "width 2048, tp 1", TUTOR + "--width 2048 --heads 64 --tp 1"),
    ("02c", "width 2048, tp 2", TUTOR + "--width 2048 --heads 64 --tp 2"),
    ("04a", "each block when it is needed", FSDP + "--sequences 4 --prefetch 0"),
    ("04a", "ahead in forward alone", FSDP + "--sequences 4 --set fsdp.backward_prefetch=none"),
    ("04a", "ahead in both", FSDP + "--sequences 4"),
    ("04b", "1024 tokens a GPU", FSDP + "--sequences 2"),
    ("04b", "3072 tokens a GPU", FSDP + "--sequences 6"),
    ("04c", "the host waits in each layer", FSDP + "--sequences 4 --set host.synchronize=layer"),
]
SOLUTIONS = {"00b": ("00_timeline", "fit.cpp"), "01a": ("01_data_parallel", "buckets.cpp"), "01b": ("01_data_parallel", "shards.cpp"),
             "02a": ("02_tensor_parallel", "linears.cpp"), "02b": ("02_tensor_parallel", "why.cpp"), "02c": ("02_tensor_parallel", "width.cpp"),
             "04a": ("04_fsdp", "schedule.cpp"), "04b": ("04_fsdp", "tokens.cpp"), "04c": ("04_fsdp", "planted.cpp")}


def said(words, folder):
    done = subprocess.run(["./shardbook"] + words, cwd=folder, capture_output=True, text=True, timeout=400)
    return done.returncode, done.stdout, done.stderr


def measured(options, device, folder):
    """(step in ms, exposed part of it, the sentence of why); None where the run failed."""
    run = tempfile.mkdtemp()
    words = ["train", "--device", device, "--json", "--progress", "0", "--out", run + "/run"] + options.split()
    if device == "cuda":
        words += ["--steps", "24", "--warmup-steps", "2", "--trace-steps", "20:22"]
    code, out, err = said(words, folder)
    if code != 0 or "{" not in out:
        return None, (err or out).strip()[-160:]
    results = json.loads(out[out.index("{"):])
    code, out, err = said(["why", run + "/run", "--json"], folder)
    why = json.loads(out) if code == 0 else {}
    shutil.rmtree(run)
    return results["step_ns"] / 1e6, why.get("sentence", err.strip())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--copy", default=os.path.join(tempfile.gettempdir(), "shardbook-walk"))
    asked = parser.parse_args()
    print("| part | run | measured, ms | modelled, ms | `why` says of the measured one | and of the modelled one |\n|---|---|---|---|---|---|")
    for part, name, options in RUNS:
        gpu, model = measured(options, "cuda", ROOT), measured(options, "meta", ROOT)
        shown = ["%.3f" % one[0] if one[0] else "–" for one in (gpu, model)]
        print("| %s | %s | %s | %s | %s | %s |" % (part, name, shown[0], shown[1], gpu[1], model[1]), flush=True)

    # The loop, as a learner types it, in a copy that has its build with it
    shutil.rmtree(asked.copy, ignore_errors=True)
    shutil.copytree(ROOT, asked.copy, symlinks=True, ignore=shutil.ignore_patterns(".git", "runs", "progress.txt"))
    said(["build"], asked.copy)
    print("\n| part | its starter | its solution | seconds |\n|---|---|---|---|")
    for part, (lab, file) in SOLUTIONS.items():
        keys = [one["key"] for lab_part in json.load(open(os.path.join(asked.copy, "labs", lab, "lab.json")))["parts"] if lab_part["id"] == part
                for one in lab_part.get("predict", [])]
        said(["next", part] + [key + "=1" for key in keys], asked.copy)
        before = said(["check", part], asked.copy)
        shutil.copy(os.path.join(asked.copy, "solutions", lab, file), os.path.join(asked.copy, "experiments", lab, file))
        begin = time.time()
        after = said(["check", part], asked.copy)
        first = re.sub(r"\s+", " ", before[1] or before[2]).replace("|", "/")[:110]
        print("| %s | %s… | %s | %.1f |" % (part, first, "passes" if after[0] == 0 else "FAILS: " + (after[1] or after[2])[:200], time.time() - begin), flush=True)


if __name__ == "__main__":
    main()
