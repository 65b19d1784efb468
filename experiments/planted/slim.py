"""Takes out of a trace with stacks what nothing here reads: functions of PyTorch's own, arrows, shapes of grids.

    python3 slim.py rank0.json.gz smaller/rank0.json.gz

Functions of the file that is named *.py in --own (planted.py) and rows of modules stay. No time and no row of work is touched.
"""
import argparse
import gzip
import json

options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
options.add_argument("trace")
options.add_argument("out")
options.add_argument("--own", default="planted.py")
args = options.parse_args()

UNREAD = ("Ev Idx", "registers per thread", "shared memory", "blocks per SM", "warps per SM", "grid", "block", "est. achieved occupancy %",
          "Input Strides", "Concrete Inputs", "Input type")
trace = json.load(gzip.open(args.trace))
kept = []
for event in trace["traceEvents"]:
    if event.get("cat") == "python_function" and args.own not in event["name"] and not event["name"].startswith("nn.Module"):
        continue
    if event.get("ph") in ("s", "f") and event.get("cat") != "fwdbwd":
        continue
    for name in UNREAD:
        event.get("args", {}).pop(name, None)
    kept.append(event)
trace["traceEvents"] = kept
with open(args.out, "wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=9, mtime=0) as packed:
    packed.write(json.dumps(trace, separators=(",", ":")).encode())
