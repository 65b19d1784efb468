#!/usr/bin/env python3
"""The profile h200x8 with what `shardbook calibrate` measured of attention of short sequences, and of ops in a graph, that it was made
without. Not in the profile that ships: see README.md, "tutor-graph". Python alone.

    python3 experiments/speed/short_sequences.py short.json
    ./shardbook train --device meta --model grammar-tutor --tp 2 --fsdp 1 --attention flash --set host.graph=on --profile short.json
"""
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    profile = json.loads((HERE.parents[1] / "engine/simulate/profiles/h200x8.json").read_text())
    measured = json.loads((HERE / "short_sequences.json").read_text())
    profile["name"] = "h200x8-short"
    profile["origin"].append(measured["measured"])
    profile["device"]["graph_gap_ns"] = measured["graph_gap_ns"]
    for kernel, points in measured["kernels"].items():
        known = profile["kernels"][kernel]
        assert points[-1][0] < known[0][0], kernel
        profile["kernels"][kernel] = points + known
    pathlib.Path(sys.argv[1]).write_text(json.dumps(profile, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
