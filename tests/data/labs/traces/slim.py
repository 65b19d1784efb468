"""Takes out of a trace of PyTorch what nothing here reads, so that it is small: arrows (ph s, f), running numbers of
operators, registers, grids and occupancy of kernels.

    python3 slim.py rank0.json.gz smaller/rank0.json.gz
"""
import gzip
import re
import sys

text = gzip.open(sys.argv[1], "rt").read()
text = re.sub(r'  \{\n    "ph": "[sf]",[^{}]*?\n  \},\n', "", text)
text = re.sub(r'"Record function id": \d+, |, "Ev Idx": \d+', "", text)
text = re.sub(r',\s+"registers per thread": .*?"est\. achieved occupancy %": \d+', "", text)
with open(sys.argv[2], "wb") as file, gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=9, mtime=0) as packed:
    packed.write(text.encode())
