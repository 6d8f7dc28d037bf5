"""The record of a job that is started or watched here: job events and its output, in a folder.

    goodput-runs/train-20261127T150000/
        train-20261127T150000.jsonl      job events
        train-20261127T150000.out.log    its output, each line with its time
        train-20261127T150000.snapshot.json    how the node is configured

What cannot be written is dropped and reported once: a record never stops a job.
"""

import json
import os
import platform
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from goodput_ingest.processes.proc import PROC

VERSION = 1  # of job events
NUMBERED_FROM_S = 1_577_836_800  # 2020, as goodput_emitter numbers attempts
ALIVE_S = 60.0  # between two events of a job that goes on
SNAPSHOT = ".snapshot.json"  # not `.jsonl`: what follows job events does not read it
EVENTS, OUTPUT = ".jsonl", ".out.log"  # `.out`: digits before `.log` alone are a job id of Slurm
ID_MAX_CHARS = 100
UUIDS = ("GPU-", "MIG-")
GPU_FILES = "driver/nvidia/gpus/*/information"
GPU_UUID = re.compile(r"^GPU UUID:\s+(GPU-\S+)$", re.MULTILINE)


@dataclass
class Record:
    """The files of one job.

    folder: made with the first line. attempt: its number in the run. pid: of the job's process.
    gpus: what the job may use, each by `gpu_uuid` or `local_rank`; empty: not known.
    """

    folder: Path
    run_id: str
    attempt: int
    pid: int = 0
    gpus: Sequence[Mapping[str, Any]] = ()
    problem: str = ""
    _files: dict[str, int] = field(default_factory=dict)
    _alive_at_s: float = field(default_factory=time.monotonic)

    def start(self, at_s: float, command: str, user: str | None) -> None:
        """Write `job.start` for each GPU; at_s: epoch seconds."""
        for rank, gpu in enumerate(self.gpus or [{}]):
            self.event("job.start", at_s, rank=rank, **gpu, command=command, user=user)

    def event(self, event: str, at_s: float, *, rank: int = 0, **fields: Any) -> None:
        """Write one event of the job."""
        gpu = dict(self.gpus[0]) if self.gpus and not rank else {}
        row = {
            "v": VERSION,
            "ts": at_s,
            "event": event,
            "run_id": self.run_id,
            "attempt": self.attempt,
            "rank": rank,
            "host": platform.node(),
            "pid": self.pid,
            **gpu,
            **fields,
        }
        known = {name: value for name, value in row.items() if value is not None}
        self.write(EVENTS, json.dumps(known).encode() + b"\n")

    def alive(self, **fields: Any) -> None:
        """Write at most once a minute that the job goes on."""
        if time.monotonic() - self._alive_at_s >= ALIVE_S:
            self._alive_at_s = time.monotonic()
            self.event("metric", time.time(), **fields)

    def write(self, ending: str, lines: bytes) -> None:
        """Append whole lines to one of the files."""
        if self.problem:
            return
        try:
            if ending not in self._files:
                self.folder.mkdir(parents=True, exist_ok=True)
                path = self.folder / f"{self.run_id}{ending}"
                self._files[ending] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            os.write(self._files[ending], lines)
        except OSError as error:
            self.problem = f"{self.folder}: {error.strerror}; nothing more is recorded"


def new_record(
    folder: Path, name: str, run_id: str | None, gpus: str | None, proc: Path = PROC
) -> Record:
    """Return the record of a job that begins now.

    folder: of all records. name: the command in short. run_id: None: the name with the time.
    gpus: as in CUDA_VISIBLE_DEVICES; None: not said.
    """
    now = datetime.now(UTC)
    stem = _file_name(name.rsplit(".", 1)[0]) or "job"
    time_stamp = f"{now:%Y%m%dT%H%M%S}"
    chosen = _file_name(run_id or f"{stem}-{time_stamp}")
    place = folder / f"{_file_name(run_id or stem)}-{time_stamp}"
    attempt = int(now.timestamp()) - NUMBERED_FROM_S
    return Record(place, chosen, attempt, gpus=visible_gpus(gpus, proc))


def _file_name(text: str) -> str:
    return re.sub(r"[^\w.-]", "_", text)[:ID_MAX_CHARS].strip(".")


def visible_gpus(named: str | None, proc: Path = PROC) -> list[dict[str, Any]]:
    """Return the GPUs that CUDA_VISIBLE_DEVICES names, as fields of job events.

    None: the only GPU that the driver has; of several it is not known which the job uses.
    """
    if named is None:
        texts = [path.read_text(errors="replace") for path in proc.glob(GPU_FILES)]
        uuids = [found[1] for text in texts if (found := GPU_UUID.search(text))]
        return [{"gpu_uuid": uuid} for uuid in uuids] if len(uuids) == 1 else []
    gpus: list[dict[str, Any]] = []
    for one in map(str.strip, named.split(",")):
        if one.isdecimal():
            gpus.append({"local_rank": int(one)})
        elif one.startswith(UUIDS):
            gpus.append({"gpu_uuid": one})
        else:
            break  # CUDA sees none of those behind what it does not know
    return gpus
