"""Train on two GPUs with a rank that is late for a while, once for each way to measure it.

    torchrun --nproc-per-node 2 tests/hardware/late_rank_on_real_gpus.py FOLDER

FOLDER gets the job events of each way as a file; `test_late_rank.py` reads them. Needs PyTorch.
"""

import sys
import time
from pathlib import Path

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

import goodput_emitter as goodput

STEPS, LATE_RANK, LATE_STEPS, DELAY_S = 120, 1, range(40, 100), 0.06
WIDTH, LAYERS, BATCH = 8192, 8, 4096


def step_of(model, optimizer, step, batch, *, is_late):
    """Train one step; a late rank works on its host before."""
    if is_late:
        time.sleep(DELAY_S)
    with step.forward():
        loss = model(batch).square().mean()
    with step.backward():
        loss.backward()
    with step.optimizer():
        optimizer.step()
        optimizer.zero_grad()
    step.loss(loss)


def train(name, path, *, has_hook):
    """Write the events of a run; with the hook communication is measured, else parts alone."""
    rank = distributed.get_rank()
    layers = [torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)]
    model = torch.nn.Sequential(*layers).to("cuda", torch.bfloat16)
    model = DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    batch = torch.randn(BATCH, WIDTH, device="cuda", dtype=torch.bfloat16)
    with goodput.run(name, path, attempt=0):
        goodput.plan(STEPS)
        if has_hook:
            goodput.measure_communication(model)
        for number in range(1, STEPS + 1):
            with goodput.step(number) as step:
                is_late = rank == LATE_RANK and number in LATE_STEPS
                step_of(model, optimizer, step, batch, is_late=is_late)
                torch.cuda.synchronize()  # as a trainer that reads its loss each step


def main():
    """Train once with the hook and once without."""
    distributed.init_process_group("nccl")
    torch.cuda.set_device(distributed.get_rank())
    folder = Path(sys.argv[1])
    for name, has_hook in (("communication", True), ("parts", False)):
        train(name, folder / f"{name}.jsonl", has_hook=has_hook)
        distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
