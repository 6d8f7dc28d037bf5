"""Read this machine's GPUs for a while with the product's own sampler and report its cost.

    PYTHONPATH=ingest:FOLDER_WITH_PYNVML python3 tests/hardware/nvml_on_real_gpu.py --out FOLDER

Needs Python 3.10, `pynvml` (one file of nvidia-ml-py) and NVIDIA's driver. In the middle third of
the time every GPU is kept busy, so that idle and busy readings can be kept apart. Writes the
recording (nvml.jsonl, for `goodput ingest nvml`) and report.json, prints the report, and exits with
1 where the reader costs more than 1 % of a core a GPU.
"""

import argparse
import contextlib
import ctypes
import json
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

from goodput_ingest.sources.nvml.gpu import Gpu
from goodput_ingest.sources.nvml.library import Nvml
from goodput_ingest.sources.nvml.machine import sees_all_processes
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
    report = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        **describe(),
        **record(recording, said.seconds),
    }
    report["readings"] = summary([json.loads(line) for line in recording.open()], report)
    (said.out / "report.json").write_text(json.dumps(report, indent=2))
    is_cheap = report["cpu_ratio_a_gpu"] <= BUDGET_RATIO
    verdict = "ok" if is_cheap else "TOO MUCH"
    share = f"{report['cpu_ratio_a_gpu']:.3%} of a core a GPU ({verdict})"
    sys.stdout.write(f"{json.dumps(report, indent=2)}\nprocessor: {share}\n")
    return not is_cheap


def describe():
    """Return what the GPUs say of themselves, and what they do not give."""
    with opened() as gpus:
        for gpu in gpus:
            gpu.fast(time.time(), time.monotonic())
            gpu.slow(time.time())
        return {"gpus": [{**gpu.meta(), "without": gpu.without()} for gpu in gpus]}


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
    busy_from = time.time()
    recorder.wait(never, seconds / 3)
    codes = [process.wait() for process in load]
    busy_to = time.time()
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
        "busy": [busy_from, busy_to],
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


def summary(lines, report):
    """Return how many lines of each kind came, how whole they are, and what idle and busy show."""
    fast = [line for line in lines if line["kind"] == "fast"]
    with_gpm = [line for line in fast if "gpm" in line]
    whole = [x for x in with_gpm if x["gpm"] and None not in x["gpm"].values()]
    kinds = [line["kind"] for line in lines]
    found = {
        "lines": {kind: kinds.count(kind) for kind in sorted(set(kinds))},
        "gpm_whole": f"{len(whole)} of {len(with_gpm)}",
        "gpm_window_ms": spread([line["gpm_window_ms"] for line in with_gpm]),
        "took_ms": spread([line["took_ms"] for line in fast if "took_ms" in line]),
        "events": [line for line in lines if line["kind"] == "event"],
    }
    begin, end = report["busy"]
    margin_s = 3.0  # contexts take a while to come and go
    parts = {
        "idle": [x for x in whole if x["t"] < begin],
        "busy": [x for x in whole if begin + margin_s < x["t"] < end - margin_s],
    }
    for name, part in parts.items():
        found[name] = {
            "engine_pct": spread([x["gpm"]["gr_active_pct"] for x in part]),
            "dram_pct": spread([x["gpm"]["dram_bw_pct"] for x in part]),
            "power_w": spread([x["power_mw"] / 1e3 for x in part if "power_mw" in x]),
            "gpu_util_pct": spread([x["util_gpu_pct"] for x in part if "util_gpu_pct" in x]),
        }
    found["processes"] = sorted(
        {len(x["procs"]) for x in lines if x["kind"] == "slow" and "procs" in x}
    )
    return found


def spread(values):
    """Return the least, the median and the greatest; None of nothing."""
    if not values:
        return None
    return [round(x, 2) for x in (min(values), statistics.median(values), max(values))]


@contextlib.contextmanager
def opened():
    """Give all GPUs, opened by the product's reader."""
    nvml = Nvml()
    nvml.open()
    count = nvml.ask("nvmlDeviceGetCount")
    gpus = [Gpu(nvml, index, sees_all_processes=sees_all_processes()) for index in range(count)]
    yield gpus
    for gpu in gpus:
        gpu.close()
    nvml.close()


def _arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "nvml-report")))
    parser.add_argument("--keep-busy", nargs=2, type=float, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
