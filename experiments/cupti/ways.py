#!/usr/bin/env python3
"""What does each way to mark a traced step add to one without marks?

    python3 experiments/cupti/ways.py SAID...

SAID is what a run of a program with ways.patch wrote to its standard error. Of rank 0: the median and the quartiles of the steps
that were marked in each way, in ms, and what the median is more than that of steps without marks. Python alone.
"""
import pathlib
import statistics
import sys

WAYS = {0: "all", 2: "behind the ops of compute", 3: "where a stream had waited", 4: "behind all else", 5: "behind a library's kernels", 6: "behind own kernels"}


def main():
    for path in map(pathlib.Path, sys.argv[1:]):
        took = {}
        for line in path.read_text().splitlines():
            if line.startswith("MODE "):
                way, step = line.split(" GPU ")[1].split()[1:3]
                took.setdefault(int(way), []).append(int(step) / 1e6)
        if not {1, 7} <= took.keys():
            sys.exit(f"{path} holds no steps without marks")
        # Of the two turns without marks, which lie on either side of the others, the middle
        without = (statistics.median(took.pop(1)) + statistics.median(took.pop(7))) / 2
        print(f"{path}: without marks {without:.2f} ms")
        for way, steps in sorted(took.items()):
            low, middle, high = statistics.quantiles(steps, n=4, method="inclusive")
            print(f"  {WAYS[way]:26} {middle - without:+.2f} ms ({middle:.2f}; half of them within {low:.2f} and {high:.2f}; {len(steps)} steps)")


if __name__ == "__main__":
    main()
