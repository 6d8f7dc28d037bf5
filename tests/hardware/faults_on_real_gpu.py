"""Train on this machine's GPU with faults put in, with job events and NVML readings as evidence.

    PYTHONPATH=ingest:FOLDER_WITH_PYNVML python3 tests/hardware/faults_on_real_gpu.py --out FOLDER

Needs PyTorch with CUDA, `pynvml` and NVIDIA's driver; clocks and caps stay as they are. One run
after the other, each with one fault: waits for input, a slow host, a crash with lost steps, a loss
that is not a number, memory that grows, a hang that is killed. Writes job_events.jsonl, nvml.jsonl
and, for tests alone, truth.jsonl: what was put in, in which steps, from when until when.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import goodput_emitter as goodput

RUNS = ("input", "slow-host", "crash", "nan", "memory", "hang")
HANG_S, REST_S = 75, 10
STEP_S = 0.4


class Faults:
    """One life of a training process, and what is wrong with it."""

    def __init__(self, out, run, life):
        self.out, self.run, self.life = out, run, life

    def train(self):
        """Train until the end, or until the fault ends it."""
        with goodput.run(self.run, self.out / "job_events.jsonl", host="gpu-box"):
            with goodput.phase("init"):
                import torch  # noqa: PLC0415 -- part of the start-up

                self.torch = torch
                self.weights = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
                torch.cuda.synchronize()
            getattr(self, self.run.replace("-", "_"))()

    def steps(self, first, last, *, wait_s=0.0, host_s=0.0, loss=None):
        """Train steps `first` to `last`, each waiting so long for input and for its host."""
        for number in range(first, last + 1):
            more = {} if loss is None else {"loss": loss(number)}
            with goodput.step(number, **more) as step:
                if wait_s:
                    with step.data_wait():
                        time.sleep(wait_s)
                until = time.monotonic() + STEP_S
                while time.monotonic() < until:
                    for _ in range(20):
                        self.weights = self.torch.tanh(self.weights @ self.weights * 1e-3)
                    self.torch.cuda.synchronize()
                time.sleep(host_s)

    def input(self):
        """Wait for input in steps 61 to 80."""
        self.steps(1, 60, wait_s=0.01)
        with self.noted(61, 80):
            self.steps(61, 80, wait_s=1.2)
        self.steps(81, 110, wait_s=0.01)

    def slow_host(self):
        """Lose time in the host's own code from step 81 on."""
        self.steps(1, 80)
        with self.noted(81, 160):
            self.steps(81, 160, host_s=0.15)

    def crash(self):
        """Fail after step 70, save at 50; begin again from it."""
        if self.life:
            with goodput.phase("restore"):
                time.sleep(3)
            self.steps(51, 90)
            return
        self.steps(1, 50)
        with goodput.phase("ckpt_save"):
            time.sleep(2)
        goodput.durable(50)
        with self.noted(51, 70):
            self.steps(51, 70)
        raise RuntimeError("made to fail")

    def nan(self):
        """Report a loss that is not a number from step 41 on."""
        self.steps(1, 40, loss=lambda step: 3.0 / step + 2)
        with self.noted(41, 60):
            self.steps(41, 60, loss=lambda _: "nan")

    def memory(self):
        """Keep 256 MiB more after every step."""
        kept = []
        with self.noted(1, 130):
            for number in range(1, 131):
                self.steps(number, number)
                kept.append(self.torch.zeros(256 << 20, dtype=self.torch.uint8, device="cuda"))

    def hang(self):
        """Stop without an end after step 60, and be killed."""
        self.steps(1, 60)
        with self.noted(60, 60):
            time.sleep(HANG_S * 10)

    @contextmanager
    def noted(self, first, last):
        """Write what was put in when, also where the process is killed in it."""
        row = {"run": self.run, "first_step": first, "last_step": last, "start": time.time()}
        self._note(row)
        try:
            yield
        finally:
            self._note({**row, "end": time.time()})

    def _note(self, row):
        with (self.out / "truth.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")


def main():
    """Record, train each run, rest; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--run", choices=RUNS, help="used by itself: one life of this run")
    parser.add_argument("--life", type=int, default=0, help="used by itself")
    given = parser.parse_args()
    if given.run:
        Faults(given.out, given.run, given.life).train()
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    recording = str(given.out / "nvml.jsonl")
    recorder = [sys.executable, "-m", "goodput_ingest.sources.nvml", "--out", recording]
    watch = subprocess.Popen([*recorder, "--node", "gpu-box", "--slow-interval", "2"])
    try:
        time.sleep(REST_S)
        for run in RUNS:
            for life in (0, 1) if run == "crash" else (0,):
                _live(given.out, run, life)
                time.sleep(REST_S)
    finally:
        watch.terminate()
        watch.wait(timeout=30)
    return 0


def _live(out, run, life):
    """Run one life; one that hangs is killed."""
    command = [sys.executable, __file__, "--out", str(out), "--run", run, "--life", str(life)]
    limit_s = STEP_S * 60 + 20 + HANG_S if run == "hang" else None
    with contextlib.suppress(subprocess.TimeoutExpired):  # `run` has killed it
        subprocess.run(command, check=False, timeout=limit_s)


if __name__ == "__main__":
    sys.exit(main())
