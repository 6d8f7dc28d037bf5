"""Train on this machine's GPU without a scheduler, with job events and NVML readings as evidence.

    PYTHONPATH=ingest python3 tests/hardware/training_on_real_gpu.py --out FOLDER trial

Needs PyTorch with CUDA, `pynvml` and NVIDIA's driver; clocks and caps stay as they are. One run
after the other. `trial` has set-up, 30 steps, a save, a pause that nothing declares, 10 steps, a
crash; a restart with a restore, steps again from the save, a final save and an end; then a minute
of nothing. The others have one fault each: waits for input, a slow host, a crash with lost steps, a
loss that is not a number, memory that grows, a hang that is killed. Writes job_events.jsonl,
nvml.jsonl and, for tests alone, truth.jsonl: what was done or put in when, by the loop's own clock.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path

import goodput_emitter as goodput

RUNS = ("trial", "input", "slow-host", "crash", "nan", "memory", "hang")
RESTARTED = ("trial", "crash")
BEFORE_S, BETWEEN_S, AFTER_S = 15, 10, 60
HANG_S = 75
STEP_S = 0.4
STEPS, SAVED, CRASHED = 60, 30, 40  # of the trial
PAUSE_S = 20


class Training:
    """One life of a training process, and what it does."""

    def __init__(self, out, run, life):
        self.out, self.run, self.life = out, run, life

    def train(self):
        """Train until the end, or until the fault ends it."""
        with goodput.run(self.run, self.out / "job_events.jsonl", host="gpu-box"):
            with self.noted(what="startup"), goodput.phase("init"):
                import torch  # noqa: PLC0415 -- part of the start-up that is measured

                self.torch = torch
                self.weights = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
                torch.cuda.synchronize()
            getattr(self, self.run.replace("-", "_"))()

    def steps(self, first, last, *, step_s=STEP_S, wait_s=0.0, host_s=0.0, loss=None):
        """Train steps `first` to `last`, each waiting so long for input and for its host."""
        for number in range(first, last + 1):
            more = {} if loss is None else {"loss": loss(number)}
            with goodput.step(number, **more) as step:
                if wait_s:
                    with step.data_wait():
                        time.sleep(wait_s)
                until = time.monotonic() + step_s
                while time.monotonic() < until:
                    for _ in range(20):
                        self.weights = self.torch.tanh(self.weights @ self.weights * 1e-3)
                    self.torch.cuda.synchronize()
                time.sleep(host_s)

    def trial(self):
        """Crash in the first life, begin again from its save in the second."""
        if self.life:
            with self.noted(what="restore"), goodput.phase("restore"):
                time.sleep(6)
        for number in range(SAVED if self.life else 0, STEPS):
            if not self.life and number == CRASHED:
                raise RuntimeError("made to fail")
            with self.noted(what="step", step=number):
                self.steps(number, number, step_s=2 * STEP_S)
            if number + 1 in (SAVED, STEPS):
                with self.noted(what="save", step=number), goodput.phase("ckpt_save"):
                    time.sleep(4)
                goodput.durable(number)
            if not self.life and number + 1 == SAVED:
                with self.noted(what="pause"):
                    time.sleep(PAUSE_S)

    def input(self):
        """Wait for input in steps 61 to 80."""
        self.steps(1, 60, wait_s=0.01)
        with self.noted(first_step=61, last_step=80):
            self.steps(61, 80, wait_s=1.2)
        self.steps(81, 110, wait_s=0.01)

    def slow_host(self):
        """Lose time in the host's own code from step 81 on."""
        self.steps(1, 80)
        with self.noted(first_step=81, last_step=160):
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
        with self.noted(first_step=51, last_step=70):
            self.steps(51, 70)
        raise RuntimeError("made to fail")

    def nan(self):
        """Report a loss that is not a number from step 41 on."""
        self.steps(1, 40, loss=lambda step: 3.0 / step + 2)
        with self.noted(first_step=41, last_step=60):
            self.steps(41, 60, loss=lambda _: "nan")

    def memory(self):
        """Keep 256 MiB more after every step."""
        kept = []
        with self.noted(first_step=1, last_step=130):
            for number in range(1, 131):
                self.steps(number, number)
                kept.append(self.torch.zeros(256 << 20, dtype=self.torch.uint8, device="cuda"))

    def hang(self):
        """Stop without an end after step 60, and be killed."""
        self.steps(1, 60)
        self._note(first_step=60, last_step=60, start=time.time())
        time.sleep(HANG_S * 10)

    @contextlib.contextmanager
    def noted(self, **what):
        """Write when something began and ended."""
        began = time.time()
        try:
            yield
        finally:
            self._note(**what, start=began, end=time.time())

    def _note(self, **row):
        with (self.out / "truth.jsonl").open("a") as file:
            file.write(json.dumps({"run": self.run, "life": self.life, **row}) + "\n")


def main():
    """Record, train each run, rest; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="+", choices=RUNS)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--life", type=int, help="used by itself: one life of the first run")
    given = parser.parse_args()
    if given.life is not None:
        Training(given.out, given.runs[0], given.life).train()
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    recording = str(given.out / "nvml.jsonl")
    recorder = [sys.executable, "-m", "goodput_ingest.sources.nvml", "--out", recording]
    watch = subprocess.Popen([*recorder, "--node", "gpu-box", "--slow-interval", "2"])
    try:
        time.sleep(BEFORE_S)
        for run in given.runs:
            for life in range(1 + (run in RESTARTED)):
                _live(given.out, run, life)
                time.sleep(BETWEEN_S)
        time.sleep(AFTER_S)
    finally:
        watch.terminate()
        watch.wait(timeout=30)
    return 0


def _live(out, run, life):
    """Run one life; one that hangs is killed."""
    command = [sys.executable, __file__, run, "--out", str(out), "--life", str(life)]
    limit_s = STEP_S * 60 + 20 + HANG_S if run == "hang" else None
    with contextlib.suppress(subprocess.TimeoutExpired):  # `run` has killed it
        subprocess.run(command, check=False, timeout=limit_s)


if __name__ == "__main__":
    sys.exit(main())
