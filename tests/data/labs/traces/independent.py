"""Open shares of these traces, in percent, by exact decimals and none of our code: what trace_test.cpp compares with.

    python3 independent.py
"""
import gzip
import json
import os
from decimal import Decimal

HERE = os.path.dirname(os.path.abspath(__file__))


def covered(compute, start, end):
    total, at = 0, start
    for a, b in compute:
        if b > at and a < end:
            total += min(b, end) - max(a, at)
            at = min(b, end)
    return total


def rank(path, op):
    """Of each step: (issued, start, end, in backward) of the rank's collectives; and its compute."""
    events = json.load(gzip.open(path, "rt"), parse_float=Decimal)["traceEvents"]
    span = lambda e: (e["ts"], e["ts"] + e["dur"])
    calls = {e["args"]["correlation"]: e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver") and e.get("args", {}).get("correlation")}
    engine = [(e["tid"], *span(e)) for e in events if e.get("cat") == "cpu_op" and e["name"].startswith("autograd::engine::evaluate_function")]
    steps = [(e["name"], *span(e)) for e in events if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep")]
    kernels = [e for e in events if e.get("cat") == "kernel"]
    found = {}
    for e in kernels:
        call = calls.get(e["args"]["correlation"])
        if call is None or not e["name"].startswith("nccl") or op not in e["name"]:
            continue
        backward = any(t == call["tid"] and a <= call["ts"] < b for t, a, b in engine)
        for name, a, b in steps:
            if a <= call["ts"] < b:
                found.setdefault(name, []).append((call["ts"], *span(e), backward))
    return {name: sorted(rows) for name, rows in found.items()}, sorted(span(e) for e in kernels if not e["name"].startswith("nccl"))


def open_percent(folder, op, counts):
    ranks = [rank(os.path.join(HERE, folder, f"rank{r}.json.gz"), op) for r in (0, 1)]
    moved = exposed = 0
    for name in ranks[0][0]:
        for i, pair in enumerate(zip(ranks[0][0][name], ranks[1][0][name], strict=True)):
            if not counts(i, pair[0][3]):
                continue
            last = max(row[1] for row in pair)
            for (_, _, end, _), (_, compute) in zip(pair, ranks):
                start = min(last, end)
                moved += end - start
                exposed += end - start - covered(compute, start, end)
    return float(100 * exposed / moved)


for folder in ("01/bucketed", "01/flat", "01/naive"):
    print(folder, f"{open_percent(folder, 'AllReduce', lambda i, backward: True):.2f}")
for folder in ("02/hidden", "02/awaited", "02/hidden-connections8"):
    print(folder, f"{open_percent(folder, 'AllReduce', lambda i, backward: backward):.2f}")
for folder in ("04/prefetch", "04/no-prefetch", "04/prefetch-sync", "04/prefetch-sequences1"):
    print(folder, f"{open_percent(folder, 'AllGather', lambda i, backward: i >= 2):.2f}")
