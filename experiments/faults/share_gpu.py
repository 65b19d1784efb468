#!/usr/bin/env python3
"""Starts a command once a rank, all on one GPU, as if each rank were a node of its own.

    python3 experiments/faults/share_gpu.py [--ranks 2] -- build/test/shardbook train --device cuda --tp 1 --fsdp 2 ...

NCCL refuses two ranks on one GPU, which it knows by the host's name and the GPU's address: here each rank gives another name
(NCCL_HOSTID), and they talk over the loopback's sockets. So everything of a run is real but its speed: the GPU changes
between the processes every few milliseconds. What a rank does on its host, what is named when it goes wrong, and whether
all ends can be seen so; how long a step takes cannot.

Standard error of all comes here, standard output of rank 0. Where a rank ends badly the others have ten seconds, and are killed
then, as torchrun does. Exit code: the largest.
"""
import argparse
import contextlib
import os
import secrets
import socket
import subprocess
import sys
import time


def free_port():
    """For the launcher's variables; the control connection goes to one of the next ones."""
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def environments(ranks):
    port, secret = free_port(), secrets.token_hex(16)
    for rank in range(ranks):
        yield dict(os.environ, RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK="0", LOCAL_WORLD_SIZE="1", GROUP_RANK=str(rank), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
                   SHARDBOOK_SECRET=secret, NCCL_HOSTID=f"rank {rank}", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1")


def start(words, ranks, **options):
    """The processes, by rank."""
    out = options.pop("stdout", None)
    return [subprocess.Popen(words, env=environment, stdout=out if rank == 0 else subprocess.DEVNULL, **options) for rank, environment in enumerate(environments(ranks))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    processes, give_up = start(args.command, args.ranks), None
    while any(process.poll() is None for process in processes):
        if give_up is None and any(process.poll() for process in processes):
            give_up = time.monotonic() + 10
        if give_up is not None and time.monotonic() > give_up:
            for process in processes:
                process.kill()
        time.sleep(0.05)
    return max(abs(process.wait()) for process in processes)


if __name__ == "__main__":
    sys.exit(main())
