#!/usr/bin/env python3
"""What does Holistic Trace Analysis say of our rank files?

usage: hta_check.py FOLDER [--hta CHECKOUT]    prints {"0": 60.0, "1": ...}: overlap in percent, a rank each, as JSON
       hta_check.py FOLDER --against FILE      and compares with FILE, the JSON of `shardbook metrics FOLDER --json`
                                               or {"0": 60.0, ...}: exit code 1 if a rank differs by 0.1 or more

Pinned: facebookresearch/HolisticTraceAnalysis at f4d0062c382f42bd8a74838bcdad1916c7d5d2da.
Needs pandas, numpy, networkx, psutil and yaml (Debian: python3-pandas python3-networkx python3-psutil python3-yaml). HTA draws through plotly, which it imports
always and uses here never, so where plotly is missing a stub stands in for it. Exit code 77 means: HTA is not here.
"""
import argparse
import glob
import json
import os
import re
import sys
import types

PIN = "f4d0062c382f42bd8a74838bcdad1916c7d5d2da"

# HTA rounds times to whole microseconds unless told otherwise; it reads this when it is imported.
os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"


class Anything(types.ModuleType):
    """A module whose every attribute is a class that accepts anything."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda self, *args, **kwargs: None})


def stand_in_for(*names):
    try:
        __import__(names[0])
    except ImportError:
        for name in names:
            sys.modules[name] = Anything(name)
        for name in names[1:]:
            parent, _, child = name.rpartition(".")
            setattr(sys.modules[parent], child, sys.modules[name])


def overlap_by_rank(folder):
    """{rank: percent of communication time that compute covers}, by HTA."""
    stand_in_for("plotly", "plotly.express", "plotly.graph_objects", "plotly.subplots")
    from hta.trace_analysis import TraceAnalysis

    files = {}
    for path in glob.glob(os.path.join(folder, "rank*.json")):
        rank = re.fullmatch(r"rank(\d+)\.json", os.path.basename(path))
        if rank:
            files[int(rank.group(1))] = os.path.abspath(path)
    if not files:
        sys.exit(f"no rank files in {folder}")
    table = TraceAnalysis(trace_files=files, trace_dir=os.path.abspath(folder)).get_comm_comp_overlap(visualize=False)
    return {int(row["rank"]): float(row["comp_comm_overlap_pctg"]) for _, row in table.iterrows()}


def stated_by_us(path):
    document = json.load(open(path))
    if isinstance(document, dict) and all(key.isdigit() for key in document):
        return {int(rank): percent for rank, percent in document.items()}
    ranks = {}

    def visit(node):
        if isinstance(node, dict) and "rank" in node and "overlap" in node:
            if node["overlap"] is not None:
                ranks[node["rank"]] = 100 * node["overlap"]
        elif isinstance(node, dict):
            for value in node.values():
                visit(value)
        elif isinstance(node, list):
            for value in node:
                visit(value)

    visit(document)
    return ranks


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--hta", help="a checkout of HTA at " + PIN)
    parser.add_argument("--against", help="our own figures, as JSON")
    options = parser.parse_args()
    if options.hta:
        sys.path.insert(0, options.hta)
    try:
        import hta  # noqa: F401
        import networkx  # noqa: F401
        import pandas  # noqa: F401
        import psutil  # noqa: F401
        import yaml  # noqa: F401
    except ImportError as missing:
        print(f"HTA cannot be imported: {missing}", file=sys.stderr)
        sys.exit(77)

    theirs = overlap_by_rank(options.folder)
    print(json.dumps({str(rank): theirs[rank] for rank in sorted(theirs)}))
    if not options.against:
        return
    ours = stated_by_us(options.against)
    wrong = [rank for rank in ours if rank not in theirs or not abs(ours[rank] - theirs[rank]) < 0.1]
    for rank in wrong:
        print(f"rank {rank}: HTA says {theirs.get(rank)} %, we say {ours[rank]:.4f} %", file=sys.stderr)
    if wrong or not ours:
        sys.exit(1)


if __name__ == "__main__":
    main()
