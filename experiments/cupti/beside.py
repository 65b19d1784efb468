#!/usr/bin/env python3
"""Do the timeline's spans tell when kernels ran? Each span of a measured run beside the kernels that CUPTI saw on its stream.

    python3 experiments/cupti/beside.py RUN SPANS...

SPANS are what watch.so wrote, a file a process; the one that fits rank 0 of RUN best is compared with it. Each traced step is laid
upon CUPTI's clock by itself, all its tracks by one shift: that under which the most spans of its longest track find kernels of their
own length, then the median of what their ends differ. A span's kernels are those of one stream whose middle lies in it, marks left
out; where none does, the span is counted as without. Printed in us, per step, track and kind of op: the median, the 90th percentile
and the most of |difference| of start, end and length, and the median of start and end with its sign (positive: the span is later).
Python alone.
"""
import bisect
import collections
import json
import pathlib
import statistics
import sys


def read_seen(path):
    """CUPTI's stream -> its kernels in order: (start, end, name), ns."""
    streams = collections.defaultdict(list)
    for line in path.read_text().splitlines():
        if line.count(" ") < 4:   # the last, of a process that was ended
            continue
        kind, stream, start, end, name = line.split(" ", 4)
        if "mark_kernel" in name:
            continue
        streams[int(stream)].append((int(start), int(end), name))
    return {stream: sorted(seen) for stream, seen in streams.items()}


def read_told(folder):
    """step -> track -> its spans in order: (start, end, op), ns."""
    steps = collections.defaultdict(lambda: collections.defaultdict(list))
    for event in json.loads((folder / "rank0.json").read_text())["traceEvents"]:
        if event.get("cat") in ("kernel", "gpu_memcpy"):
            start = event["ts"] * 1e3
            steps[event["args"]["step"]][event["tid"]].append((start, start + event["dur"] * 1e3, event["args"]["op"]))
    return {step: {track: sorted(spans) for track, spans in tracks.items()} for step, tracks in steps.items()}


def kernels_in(seen, middles, begin, end):
    """First start and last end of the kernels whose middle lies in [begin, end), and how many."""
    first, last = bisect.bisect_left(middles, begin), bisect.bisect_left(middles, end)
    inside = seen[first:last]
    return (inside[0][0], max(kernel[1] for kernel in inside), len(inside)) if inside else (0, 0, 0)


def fits(spans, seen, middles, shift):
    """How many spans find, under this shift, kernels that take as long within a tenth and 5 us."""
    count = 0
    for begin, end, _ in spans:
        start, stop, many = kernels_in(seen, middles, begin + shift, end + shift)
        count += bool(many) and abs((stop - start) - (end - begin)) < 0.1 * (end - begin) + 5e3
    return count


def shift_of(spans, seen, middles):
    """The best shift of a step's spans on this stream, and how many spans fit under it."""
    longest = max(range(len(spans)), key=lambda at: spans[at][1] - spans[at][0])
    begin, end, _ = spans[longest]
    best = (0, 0)
    for start, stop, _ in seen:
        if abs((stop - start) - (end - begin)) < 0.05 * (end - begin) + 5e3:
            shift = stop - end
            best = max(best, (fits(spans, seen, middles, shift), shift))
    return best


def compare(told, seen_of):
    """What spans differ by, by row, lines to print, and how many fit."""
    middles_of = {stream: [(start + end) / 2 for start, end, _ in seen] for stream, seen in seen_of.items()}
    rows, lines, fitting = collections.defaultdict(list), [], 0
    for step, tracks in told.items():
        shift = None
        for track, spans in sorted(tracks.items(), key=lambda of: -len(of[1])):
            is_first = shift is None
            if is_first:
                fit, shift, stream = max((*shift_of(spans, seen, middles_of[stream]), stream) for stream, seen in seen_of.items())
                if fit == 0:
                    break
            else:
                fit, stream = max((fits(spans, seen, middles_of[stream], shift), stream) for stream, seen in seen_of.items())
            fitting += fit
            seen, middles = seen_of[stream], middles_of[stream]
            pairs = [(span, kernels_in(seen, middles, span[0] + shift, span[1] + shift)) for span in spans]
            found = [(span, kernels) for span, kernels in pairs if kernels[2]]
            if is_first:
                # On CUPTI's clock by the median of the ends: a constant between two clocks is no error of a span
                shift += statistics.median(kernels[1] - span[1] - shift for span, kernels in found)
            for (begin, end, op), (start, stop, _) in found:
                difference = (begin + shift - start, end + shift - stop, (end - begin) - (stop - start))
                for row in ((step, "all"), (step, f"track {track}"), ("ops", op)):
                    rows[row].append(difference)
            lines.append(f"step {step}, track {track} on CUPTI's stream {stream}: {len(spans)} spans, {fit} fit, {len(pairs) - len(found)} without a kernel")
    return rows, lines, fitting


def main():
    told = read_told(pathlib.Path(sys.argv[1]))
    rows, lines, _ = max((compare(told, read_seen(pathlib.Path(path))) for path in sys.argv[2:] if pathlib.Path(path).stat().st_size > 0), key=lambda compared: compared[2])
    print("\n".join(lines))
    print(f"\n{'':34}{'spans':>6} {'start: median':>14} {'90 %':>7} {'most':>7} {'end: median':>12} {'90 %':>7} {'most':>7} {'length: median':>15} {'90 %':>7} {'most':>7} {'start':>8} {'end':>8}  us")
    for (group, op), values in sorted(rows.items(), key=lambda row: (row[0][0] == "ops", str(row[0][0]), -len(row[1]))):
        text = f"{str(group) if group == 'ops' else 'step ' + str(group):9} {op:24}{len(values):6}"
        for at, width in ((0, 14), (1, 12), (2, 15)):
            of = sorted(abs(value[at]) / 1e3 for value in values)
            text += f" {statistics.median(of):{width}.2f} {of[int(0.9 * (len(of) - 1))]:7.2f} {of[-1]:7.2f}"
        for at in (0, 1):
            text += f" {statistics.median(value[at] for value in values) / 1e3:+8.2f}"
        print(text)


if __name__ == "__main__":
    main()
