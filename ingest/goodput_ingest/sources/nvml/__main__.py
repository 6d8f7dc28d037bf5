"""Record this machine's GPUs until Ctrl-C.

python -m goodput_ingest.sources.nvml --out gpus.jsonl
"""

import argparse
import signal
import socket
import sys
import threading
from pathlib import Path

from goodput_ingest.sources.nvml.library import Nvml, NvmlError
from goodput_ingest.sources.nvml.recorder import Recorder
from goodput_ingest.sources.nvml.sampler import Sampler
from goodput_ingest.sources.nvml.watch import Rhythm

INTERVAL_MIN_S = 0.2  # GPM needs 0.1 s between snapshots, and threads are late at times


def main(arguments: list[str] | None = None) -> int:
    """Record until a signal or the time is over; return the exit code."""
    said = _parser().parse_args(arguments)
    if said.interval < INTERVAL_MIN_S or said.slow_interval < said.interval:
        return _fail(f"--interval is at least {INTERVAL_MIN_S} s, --slow-interval not less than it")
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        nvml = Nvml()
        nvml.open()  # before a file is made that would hold nothing
        nvml.close()
    except NvmlError as error:
        return _fail(f"NVML cannot be used: {error.reason}")
    try:
        recorder = Recorder(said.out)
    except OSError as error:
        return _fail(f"{said.out} cannot be written ({error.strerror})")
    sampler = Sampler(nvml, recorder.add, said.node, Rhythm(said.interval, said.slow_interval))
    sampler.start()
    sampler.settled.wait()
    problems = sampler.problems()
    for problem in problems:
        sys.stderr.write(f"nvml: {problem}\n")
    if sampler.is_reading():
        recorder.wait(stop, said.seconds)
    sampler.stop()
    recorder.close()
    if recorder.problem:
        return _fail(f"{said.out} cannot be written ({recorder.problem})")
    return bool(problems)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m goodput_ingest.sources.nvml", description=__doc__
    )
    parser.add_argument("--out", type=Path, required=True, help="file to write (.jsonl, .jsonl.gz)")
    parser.add_argument("--seconds", type=float, help="stop after this time; otherwise on a signal")
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between readings")
    parser.add_argument(
        "--slow-interval", type=float, default=10.0, help="the same of counters and processes"
    )
    parser.add_argument(
        "--node", default=socket.gethostname(), help="the scheduler's name of this node"
    )
    return parser


def _fail(sentence: str) -> int:
    sys.stderr.write(f"nvml: {sentence}.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
