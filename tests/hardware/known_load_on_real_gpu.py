"""Load this machine's GPU at three known levels, read by the product's recorder and nvidia-smi.

    PYTHONPATH=ingest python3 tests/hardware/known_load_on_real_gpu.py --out FOLDER --seconds 90

Needs PyTorch with CUDA, `pynvml` and NVIDIA's driver. Each level repeats matrix products for a part
of every 0.2 s; SM activity follows that part. Writes nvml.jsonl, smi.csv (the same moments by
nvidia-smi, for comparison) and, for tests alone, levels.jsonl.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

LEVELS = (0.25, 0.6, 1.0)
PERIOD_S = 0.2
QUERY = "timestamp,power.draw,clocks.sm,utilization.gpu,temperature.gpu,memory.used"


def main():
    """Record both ways while the levels follow one another; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=90.0, help="length of each level")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    recording = [sys.executable, "-m", "goodput_ingest.sources.nvml", "--node", "gpu-box"]
    smi = ["nvidia-smi", f"--query-gpu={QUERY}", "--format=csv,nounits", "--loop-ms=1000"]
    with (given.out / "smi.csv").open("w") as file:
        watches = [
            subprocess.Popen([*recording, "--out", str(given.out / "nvml.jsonl")]),
            subprocess.Popen(smi, stdout=file),
        ]
        try:
            load(given.out, given.seconds)
        finally:
            for watch in watches:
                watch.terminate()
                watch.wait(timeout=30)
    return 0


def load(out, seconds):
    """Run the levels, with 15 s of nothing before and after each."""
    import torch  # noqa: PLC0415 -- loading it takes seconds, of which the recorders have a look

    weights = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    torch.cuda.synchronize()
    for level in LEVELS:
        time.sleep(15)
        began = time.time()
        while time.time() < began + seconds:
            period = time.monotonic()
            while time.monotonic() < period + level * PERIOD_S:
                weights = torch.tanh(weights @ weights * 1e-3)
                torch.cuda.synchronize()
            time.sleep(max(0.0, period + PERIOD_S - time.monotonic()))
        row = {"level": level, "start": began, "end": time.time()}
        with (out / "levels.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
    time.sleep(15)


if __name__ == "__main__":
    sys.exit(main())
