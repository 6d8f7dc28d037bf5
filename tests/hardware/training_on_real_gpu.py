"""Train on this machine's GPU without a scheduler, with job events and NVML readings as evidence.

    PYTHONPATH=ingest:FOLDER_WITH_PYNVML python3 tests/hardware/training_on_real_gpu.py --out FOLDER

Needs PyTorch with CUDA, `pynvml` and NVIDIA's driver. The run has set-up, 30 steps, a save, a pause
that nothing declares, 10 steps, a crash; a restart with a restore, steps again from the save, a
final save and an end; then a minute of nothing. Writes job_events.jsonl, nvml.jsonl and, for tests
alone, truth.jsonl: what the loop did when, by its own clock.
"""

import argparse
import json
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import goodput_emitter as goodput

STEPS, SAVED, CRASHED = 60, 30, 40
PAUSE_S, REST_S = 20, 60


def main():
    """Record, train twice, rest; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--life", type=int, help="used by itself: one life of the training process")
    given = parser.parse_args()
    if given.life is not None:
        train(given.out, given.life)
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    recording = str(given.out / "nvml.jsonl")
    recorder = [sys.executable, "-m", "goodput_ingest.sources.nvml", "--out", recording]
    watch = subprocess.Popen([*recorder, "--node", "gpu-box", "--slow-interval", "2"])
    try:
        time.sleep(15)
        for life in (0, 1):
            life_of = [sys.executable, __file__, "--out", str(given.out), "--life", str(life)]
            subprocess.run(life_of, check=False)  # the first one is made to fail
            time.sleep(5)
        time.sleep(REST_S)
    finally:
        watch.terminate()
        watch.wait(timeout=30)
    return 0


def train(out, life):
    """Run one life of the training process; the first one crashes."""
    first = 0 if life == 0 else SAVED
    with goodput.run("trial", out / "job_events.jsonl", host="gpu-box"):
        with noted(out, life, "startup"), goodput.phase("init"):
            import torch  # noqa: PLC0415 -- part of the start-up that is measured

            weights = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
            torch.cuda.synchronize()
        if life == 1:
            with noted(out, life, "restore"), goodput.phase("restore"):
                time.sleep(6)
        for number in range(first, STEPS):
            if life == 0 and number == CRASHED:
                raise RuntimeError("made to fail")
            with noted(out, life, "step", number), goodput.step(number):
                until = time.monotonic() + 0.8
                while time.monotonic() < until:
                    for _ in range(20):
                        weights = torch.tanh(weights @ weights * 1e-3)
                    torch.cuda.synchronize()
            if number + 1 in (SAVED, STEPS):
                with noted(out, life, "save", number), goodput.phase("ckpt_save"):
                    time.sleep(4)
                goodput.durable(number)
            if life == 0 and number + 1 == SAVED:
                with noted(out, life, "pause"):
                    time.sleep(PAUSE_S)


@contextmanager
def noted(out, life, what, step=None):
    """Write when something began and ended."""
    began = time.time()
    try:
        yield
    finally:
        row = {"life": life, "what": what, "step": step, "start": began, "end": time.time()}
        with (out / "truth.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    sys.exit(main())
