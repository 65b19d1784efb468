"""What the PyTorch scripts of labs 01, 02 and 04 share: options, ranks, and steps that are timed and traced."""
import argparse
import os
import time

import torch
import torch.distributed as dist


def options_of(doc, lab):
    """The options that every lab has; `doc` is the script's own."""
    options = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--steps", type=int, default=2, help="that are traced")
    options.add_argument("--out", default=f"experiments/{lab}/twin")
    return options


def start():
    """This process's rank, on the GPU of its number, in a group of all that torchrun has started."""
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    torch.manual_seed(0)
    return rank


def measure_and_trace(step, name, rank, args):
    """Times 20 steps untraced; then traces `args.steps` more, a file a rank in args.out/name, and says both."""
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(20):
        loss = step()
    torch.cuda.synchronize()
    ms = (time.perf_counter() - begun) / 20 * 1e3

    folder = f"{args.out}/{name}"
    os.makedirs(folder, exist_ok=True)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA],
        schedule=torch.profiler.schedule(wait=0, warmup=2, active=args.steps, repeat=1),
        on_trace_ready=lambda profiler: profiler.export_chrome_trace(f"{folder}/rank{rank}.json.gz"),
    ) as profiler:
        for _ in range(2 + args.steps):
            step()
            profiler.step()
    if rank == 0:
        print(f"{name}: {ms:.2f} ms a step, loss {loss.item():.4f}; traces in {folder}")
    dist.destroy_process_group()
