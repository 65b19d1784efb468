#!/usr/bin/env python3
"""Where do a modelled and a measured run differ, step by step?

    python3 experiments/speed/compare.py MODELLED_RUN MEASURED_RUN

For each run folder, the mean over ranks and traced steps, of each step's own window (what a measured run does between
two traced steps, reading its marks, counts to neither):

    step      length of the window
    compute   some compute ran
    exposed   communication ran and no compute; of it
      late    .. before the last rank of the collective had come (skew between ranks and hosts)
      rest    .. after that: what the model means by exposed
    idle      nothing ran
    comm      communication in all, as the sum of its union; overlap is its part under compute

and how many ms the collectives of each name took on average, from their last rank's start to their end; last, what a
launch cost each rank's host (median, us): hosts that differ are why ranks wait for each other. Only the standard
library is used; the files are those of `./shardbook train`.
"""
import glob
import json
import os
import statistics
import sys
from collections import defaultdict


def union(spans):
    out = []
    for start, end in sorted(spans):
        if out and start <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        elif end > start:
            out.append([start, end])
    return out


def length(spans):
    return sum(end - start for start, end in spans)


def minus(spans, holes):
    """Both are unions."""
    out = []
    for start, end in spans:
        for hole_start, hole_end in holes:
            if hole_end <= start or hole_start >= end:
                continue
            if hole_start > start:
                out.append([start, hole_start])
            start = max(start, hole_end)
        if start < end:
            out.append([start, end])
    return out


def load(folder):
    """rank -> step -> {window, compute, communication: [(key, start, end, name)], memory}; times in us."""
    ranks = {}
    for path in sorted(glob.glob(os.path.join(folder, "rank*.json"))):
        with open(path, encoding="utf-8") as file:
            trace = json.load(file)
        rank = trace["distributedInfo"]["rank"]
        steps = defaultdict(lambda: {"compute": [], "communication": [], "memory": []})
        for event in trace["traceEvents"]:
            args = event.get("args", {})
            if event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset") or "stream" not in args:
                continue
            step, start, end = steps[args["step"]], event["ts"], event["ts"] + event["dur"]
            if "Collective name" in args:
                key = (args["Process Group Name"], args["Process Group Ranks"], args["Seq"])
                step["communication"].append((key, start, end, args["Collective name"]))
            else:
                step["compute" if event["cat"] == "kernel" else "memory"].append((start, end))
        for event in trace["traceEvents"]:
            name = event.get("name", "")
            if event.get("cat") != "user_annotation" or not name.startswith("ProfilerStep#"):
                continue
            number = int(name.split("#")[1])
            if number in steps:
                # When its work ran on the device; the row itself is when the host issued it.
                args = event.get("args", {})
                steps[number]["window"] = (args["device_start_ns"] / 1000, args["device_end_ns"] / 1000)
        ranks[rank] = dict(steps)
    return ranks


def launch_costs(folder):
    """rank -> median us of a launch call."""
    costs = {}
    for path in sorted(glob.glob(os.path.join(folder, "rank*.json"))):
        with open(path, encoding="utf-8") as file:
            trace = json.load(file)
        calls = [event["dur"] for event in trace["traceEvents"] if event.get("name") == "cudaLaunchKernel"]
        if calls:
            costs[trace["distributedInfo"]["rank"]] = statistics.median(calls)
    return costs


def rows(ranks):
    last_start = defaultdict(float)
    for steps in ranks.values():
        for number, step in steps.items():
            for key, start, _, _ in step["communication"]:
                last_start[number, key] = max(last_start[number, key], start)
    for steps in ranks.values():
        for number, step in steps.items():
            begin, end = step["window"]
            compute = union(step["compute"])
            communication = union((start, stop) for _, start, stop, _ in step["communication"])
            late = union((start, min(stop, last_start[number, key])) for key, start, stop, _ in step["communication"])
            moving = union((min(stop, last_start[number, key]), stop) for key, start, stop, _ in step["communication"])
            everything = union([*step["compute"], *step["memory"], *((s, e) for _, s, e, _ in step["communication"])])
            exposed = minus(communication, compute)
            yield {
                "step": end - begin,
                "compute": length(compute),
                "exposed": length(exposed),
                "late": length(minus(minus(late, moving), compute)),
                "idle": end - begin - length(everything),
                "comm": length(communication),
            }


def main(folders):
    if not folders:
        sys.exit(__doc__)
    for folder in folders:
        ranks = load(folder)
        if not ranks:
            sys.exit(f"{folder} holds no rank files: name the folder of a run")
        all_rows = list(rows(ranks))
        mean = {name: sum(row[name] for row in all_rows) / len(all_rows) for name in all_rows[0]}
        mean["rest"] = mean["exposed"] - mean["late"]
        part = lambda name: f"{mean[name] / 1e3:10.3f} ms {100 * mean[name] / mean['step']:5.1f} %"
        print(f"{folder}: {len(ranks)} ranks, {len(all_rows) // len(ranks)} steps")
        for name in ("step", "compute", "exposed", "late", "rest", "idle", "comm"):
            print(f"  {'  ' if name in ('late', 'rest') else ''}{name:<{8 if name in ('late', 'rest') else 10}}{part(name)}")
        print(f"  overlap   {100 * (1 - mean['exposed'] / mean['comm']) if mean['comm'] else 0:26.1f} %")
        took, count = defaultdict(float), defaultdict(int)
        begun = defaultdict(float)
        for steps in ranks.values():
            for number, step in steps.items():
                for key, start, _, _ in step["communication"]:
                    begun[number, key] = max(begun[number, key], start)
        for number, step in ranks[min(ranks)].items():
            for key, _, end, name in step["communication"]:
                took[key[0], name] += end - begun[number, key]
                count[key[0], name] += 1
        for axis, name in sorted(took):
            print(f"  {axis} {name}: {count[axis, name]} of {took[axis, name] / count[axis, name] / 1e3:.4f} ms")
        costs = launch_costs(folder)
        if costs:
            print("  a launch cost the host " + ", ".join(f"{cost:.1f} us (rank {rank})" for rank, cost in costs.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
