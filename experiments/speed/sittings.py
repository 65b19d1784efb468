#!/usr/bin/env python3
"""What was said before the runs of each sitting, beside what was measured: the table of README.md, "refit-since". Python alone.

    python3 experiments/speed/sittings.py experiments/speed/refit

FOLDER/*/said.json and measured.json are those of refit.py, a folder a sitting. By how many % the step that was said is off, and by how many
points the exposed share; of a graph no timeline tells that (experiments/cupti/graph.py does).
"""
import json
import pathlib
import sys

import refit


def signed(value):
    return f"{value:+.1f}".replace("-", "−")


def between(values, written):
    ends = sorted({written(min(values)), written(max(values))}, key=float)
    return " to ".join(ends)


def folders_of(place, name):
    """The sittings in a folder that have a file of that name and what was measured, in their order."""
    folders = sorted((path.parent for path in pathlib.Path(place).absolute().glob(f"*/{name}")), key=lambda folder: (len(folder.name), folder.name))
    if not folders:
        sys.exit(f"{place} has no sitting: a folder with {name} and measured.json in it")
    return folders


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folders = folders_of(sys.argv[1], "said.json")
    sittings = [[json.loads((folder / f"{name}.json").read_text()) for name in ("said", "measured")] for folder in folders]
    print("| run over two GPUs | step, ms | exposed | " + " | ".join(folder.name for folder in folders) + " |")
    print("|---|--:|--:|" + "--:|" * len(folders))
    for name in refit.rows(2):
        runs = [measured[name] for _, measured in sittings if name in measured]
        if not runs:
            continue
        shares = [run["exposed"] for run in runs if run["exposed"] is not None and "graph" not in name]
        cells = []
        for said, measured in sittings:
            cell = ""
            if name in said and name in measured:
                cell = f"{signed(100 * (said[name]['step'] / measured[name]['step'] - 1))} %"
                if shares:
                    cell += f", {signed(said[name]['exposed'] - measured[name]['exposed'])}"
            cells.append(cell)
        step = between([run["step"] for run in runs], lambda ms: f"{ms:.3g}")
        share = between(shares, lambda part: f"{part:.1f}") + " %" if shares else ""
        print(f"| {name} | {step} | {share} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
