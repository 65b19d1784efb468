"""What tests/gpu/faulty_ranks.cpp does, with torch.distributed: started by torchrun, see faults.py.

    torch_ranks.py FAULT TIMEOUT_S [cuda|cuda-shared|host]
"""
import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

fault, timeout = sys.argv[1], float(sys.argv[2])
on_gpus, shared = len(sys.argv) < 4 or sys.argv[3] != "host", len(sys.argv) > 3 and sys.argv[3] == "cuda-shared"
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
GOOD_STEPS, STEPS, ODD, SHARD = 20, 40, 1, 1 << 18

if shared:  # see share_gpu.py
    os.environ.update(NCCL_HOSTID=f"rank {rank}", NCCL_SOCKET_IFNAME="lo", NCCL_IB_DISABLE="1")
gpu = 0 if shared else rank
if on_gpus:
    torch.cuda.set_device(gpu)
device = torch.device("cuda", gpu) if on_gpus else torch.device("cpu")
dist.init_process_group("nccl" if on_gpus else "gloo", timeout=datetime.timedelta(seconds=timeout), **({"device_id": device} if on_gpus else {}))
part, whole, norm = (torch.zeros(n, device=device) for n in (SHARD, SHARD * size, SHARD))


def synchronize():
    if on_gpus:
        torch.cuda.synchronize()


dist.barrier()
for step in range(STEPS):
    now = step == GOOD_STEPS and rank == ODD
    dist.all_gather_into_tensor(whole, part)
    if now:
        print(f"FAULT {time.clock_gettime(time.CLOCK_MONOTONIC):.6f}", file=sys.stderr, flush=True)
        if fault == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        if fault == "slow":
            time.sleep(0.6 * timeout)

    def reduce():
        dist.reduce_scatter_tensor(part, whole)

    def total():
        if now and fault == "missing":
            time.sleep(30)
        if now and fault == "left_out":
            return
        dist.all_reduce(norm[:SHARD // 2] if now and fault == "size" else norm)

    if now and fault == "behind":
        torch.cuda._sleep(int(60e9))  # cycles: 30 s and more
    for call in (total, reduce) if now and fault == "swapped" else (reduce, total):
        call()
    synchronize()
dist.barrier()
dist.destroy_process_group()
