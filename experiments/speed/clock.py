#!/usr/bin/env python3
"""What does a clock bring to modelled steps? An account, not a prediction: the program of now, asked by the profile of each sitting, beside
the mean of all sittings' runs.

    python3 experiments/speed/clock.py experiments/speed/refit

FOLDER/*/fitted.json and measured.json are those of refit.py, a folder a sitting. Rows are those that the graph of the tutor, short steps of
gpt-124m and the eager tutor are not among; the exposed share is counted without the row that is a toss. A profile that does not say at which
speed its matmuls ran (power.train) is taken to have the one by which its matmul of 8192 x 8192 x 8192 takes as long at speed one as that of the first that does. Then every row by the last profile. Python alone; about half a minute.
"""
import json
import pathlib
import sys
import tempfile

import refit
from refit import sitting
from sittings import folders_of as sittings_of

TOSS = "gpt-1.3b, TP, 4 sequences"
WITHOUT_PREFETCH = ["gpt-6.9b, FSDP, no prefetch", "gpt-1.3b, FSDP, two micro-batches, no prefetch"]
SHORT = ["gpt-124m, TP", "gpt-124m, FSDP", "gpt-124m, FSDP, 2 sequences", "gpt-124m, FSDP, 4 sequences", "gpt-124m, TP, 4 sequences", "gpt-124m, DP, 2 sequences"]


def off(row, said, runs):
    """By how many % the step is off, and by how many points the exposed share, where it was measured."""
    step = sum(run["step"] for run in runs) / len(runs)
    shares = [run["exposed"] for run in runs if run["exposed"] is not None]
    return 100 * (said["step"] / step - 1), said["exposed"] - sum(shares) / len(shares) if shares and said["exposed"] is not None else None


def cube_ns(profile):
    """What the matmul takes of which it is known how fast it is without a pause, and with long ones."""
    return next(point[4] for point in profile["gemm"]["bf16"]["points"] if point[:4] == [8192, 8192, 8192, 1])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sittings = sittings_of(sys.argv[1], "fitted.json")
    measured = [json.loads((folder / "measured.json").read_text()) for folder in sittings]
    profiles = [json.loads((folder / "fitted.json").read_text()) for folder in sittings]
    rows = {name: options for name, (options, _) in refit.rows(2).items()}
    runs = {name: [one[name] for one in measured if name in one] for name in rows}
    large = [name for name in rows if runs[name] and "tutor" not in name and name not in SHORT]
    known = next((profile for profile in profiles if "train" in profile["power"]), None)
    if known is None:
        sys.exit("no profile says at which speed its matmuls ran")
    for profile in profiles:
        profile["power"].setdefault("train", known["power"]["train"] * cube_ns(known) / cube_ns(profile))
    with tempfile.TemporaryDirectory() as place:
        def said(profile, names):
            path = pathlib.Path(place) / "profile.json"
            path.write_text(json.dumps(profile))
            return {name: off(name, sitting.train(f"{rows[name]} --profile {path}", "meta", pathlib.Path(place) / "run"), runs[name]) for name in names}

        print(f"{len(large)} rows | step off by: mean, worst | exposed: mean, worst | " + "; ".join(WITHOUT_PREFETCH))
        for folder, profile in zip(sittings, profiles):
            own = profile["power"].pop("train")
            for clock in (None, own):
                of = said({**profile, "power": {**profile["power"], **({"train": clock} if clock else {})}}, large)
                steps, shares = [one[0] for one in of.values()], [one[1] for name, one in of.items() if name != TOSS]
                mean, worst = lambda all: sum(map(abs, all)) / len(all), lambda all: max(all, key=abs)
                print(f"sitting {folder.name}, " + (f"clock {clock:.3g}" if clock else "no clock") + f" | {mean(steps):.1f}, {worst(steps):+.1f} % | {mean(shares):.1f}, {worst(shares):+.1f} points | "
                      + "; ".join(f"{of[name][0]:+.1f} %" for name in WITHOUT_PREFETCH), flush=True)
        print(f"\nby the profile of sitting {sittings[-1].name}")
        for name, (step, share) in said({**profiles[-1], "power": {**profiles[-1]["power"], "train": own}}, [name for name in rows if runs[name]]).items():
            print(f"{name} | {step:+.1f} %" + (f", {share:+.1f}" if share is not None else ""))


if __name__ == "__main__":
    main()
