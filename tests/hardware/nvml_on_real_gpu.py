"""Read this machine's GPUs for a while with the product's own sampler and report its cost.

    PYTHONPATH=ingest:FOLDER_WITH_PYNVML python3 tests/hardware/nvml_on_real_gpu.py --out FOLDER

Needs Python 3.10, `pynvml` (one file of nvidia-ml-py) and NVIDIA's driver. In the middle third of
the time every GPU is kept busy, so that idle and busy readings can be kept apart. Writes the
recording (nvml.jsonl, for `goodput ingest nvml`), prints the report, and exits with 1 where the
reader costs more than 1 % of a core a GPU.
"""

import argparse
import ctypes
import json
import os
import platform
import subprocess
import sys
import threading
import time
from pathlib import Path

from goodput_ingest.sources.nvml.library import Nvml
from goodput_ingest.sources.nvml.recorder import Recorder
from goodput_ingest.sources.nvml.sampler import Sampler
from goodput_ingest.sources.nvml.watch import Rhythm

BUDGET_RATIO = 0.01  # of one core, a GPU
INTERVAL_S = 1.0


def main():
    """Run all parts; return the exit code."""
    said = _arguments()
    if said.keep_busy is not None:
        keep_busy(*said.keep_busy)
        return 0
    said.out.mkdir(parents=True, exist_ok=True)
    recording = said.out / "nvml.jsonl"
    recording.unlink(missing_ok=True)
    report = record(recording, said.seconds)
    is_cheap = report["cpu_ratio_a_gpu"] <= BUDGET_RATIO
    verdict = "ok" if is_cheap else "TOO MUCH"
    share = f"{report['cpu_ratio_a_gpu']:.3%} of a core a GPU ({verdict})"
    sys.stdout.write(f"{json.dumps(report, indent=2)}\nprocessor: {share}\n")
    return not is_cheap


def record(path, seconds):
    """Record as the product does; return the processor time it took."""
    recorder = Recorder(path)
    sampler = Sampler(Nvml(), recorder.add, platform.node(), Rhythm(INTERVAL_S, 10 * INTERVAL_S))
    never = threading.Event()
    sampler.start()
    sampler.settled.wait()
    never.wait(INTERVAL_S)  # opening is not reading
    gpus = len(sampler.without())
    before_s, begun_s = time.process_time(), time.monotonic()
    recorder.wait(never, seconds / 3)
    load = [start_load(gpu, seconds / 3) for gpu in range(gpus)]
    recorder.wait(never, seconds / 3)
    codes = [process.wait() for process in load]
    recorder.wait(never, seconds / 3)
    spent_s, took_s = time.process_time() - before_s, time.monotonic() - begun_s
    problems = sampler.problems()
    sampler.stop()
    recorder.close()
    return {
        "seconds": round(took_s, 1),
        "cpu_s": round(spent_s, 3),
        "cpu_ratio_a_gpu": spent_s / took_s / max(1, gpus),
        "problems": problems,
        "load_exit_codes": codes,
    }


def start_load(gpu, seconds):
    """Keep a GPU busy from a process of its own, which the reader must see."""
    command = [sys.executable, __file__, "--keep-busy", str(gpu), str(seconds)]
    return subprocess.Popen(command)


def keep_busy(gpu, seconds):
    """Fill a GPU's memory over and over through CUDA's driver library."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def ask(function, *arguments):
        if code := getattr(cuda, function)(*arguments):
            raise SystemExit(f"{function} failed with {code}")

    device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    size = ctypes.c_size_t(1 << 30)
    ask("cuInit", 0)
    ask("cuDeviceGet", ctypes.byref(device), int(gpu))
    ask("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    ask("cuCtxSetCurrent", context)
    ask("cuMemAlloc_v2", ctypes.byref(memory), size)
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        for _ in range(100):
            ask("cuMemsetD32Async", memory, 1, ctypes.c_size_t(size.value // 4), None)
        ask("cuCtxSynchronize")


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "nvml-report")))
    parser.add_argument("--keep-busy", nargs=2, type=float, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
