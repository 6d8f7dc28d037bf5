"""The file that W&B writes while a run goes on, `run-ID.wandb`: what an offline run is.

Records in blocks of 32 KiB, as the log of LevelDB frames them (checksum, length, part), each a
protobuf message (wandb/proto/wandb_internal.proto): the run, entries of its history, its exit, its
machine.
Checksums are not compared: what does not decode ends the reading.
"""

import contextlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

from goodput_ingest.formats import files
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.sources.job_logs.protobuf_fields import Fields, fields

HEAD: Final = b":W&B\xe1\xbe\x00"
BLOCK_BYTES: Final = 32 * 1024
FRAME: Final = struct.Struct("<IHB")
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4  # parts of a record
RECORD_MAX_BYTES: Final = 256 * 1024 * 1024
HISTORY, RUN, EXIT, ENVIRONMENT = 2, 17, 18, 26  # of Record
ITEM, KEY, NESTED_KEY, JSON = 1, 1, 2, 16  # of HistoryRecord, then of its HistoryItem
RUN_ID, EXIT_CODE = 1, 1
HOST, USER, GPUS, SLURM = 12, 13, 19, 27  # of EnvironmentRecord; of SLURM a key and a value each


class WandbRun:
    """The entries of a run's file; `run_id`, `exit_code` and `damage` are known after them."""

    def __init__(self, path: Path) -> None:
        """Take the file."""
        self.path = path
        self.run_id = ""
        self.exit_code: int | None = None
        self.noted: dict[str, Any] = {}  # of its machine, as wandb-metadata.json has it
        self.damage = ""  # why the reading ended before the file

    def entries(self) -> Iterator[dict[str, Any]]:
        """Yield each entry of the history by name of its values."""
        try:
            with files.open_bytes(self.path) as file:
                for record in map(fields, _records(file)):
                    for run in map(fields, record.get(RUN, ())):
                        self.run_id = json_lines.printable(_text(run, RUN_ID), 200)
                    for end in map(fields, record.get(EXIT, ())):
                        self.exit_code = int.from_bytes(end.get(EXIT_CODE, [b""])[-1][:4], "little")
                    for machine in map(fields, record.get(ENVIRONMENT, ())):
                        self.noted |= _noted(machine)
                    yield from map(_entry, map(fields, record.get(HISTORY, ())))
        except (*files.BROKEN_OFF, struct.error, ValueError) as error:
            self.damage = f"the file is cut or damaged, or its run goes on: {error}"


def _records(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the records of a file; ValueError where its rest is none."""
    left, record = BLOCK_BYTES - len(file.read(len(HEAD))), b""
    while True:
        if left < FRAME.size:  # filled up
            file.read(left)
            left = BLOCK_BYTES
        if not (frame := file.read(FRAME.size)):
            return
        _, length, part = FRAME.unpack(frame)
        data = file.read(length)
        if len(data) < length or part not in (FULL, FIRST, MIDDLE, LAST):
            raise ValueError("a record is shorter than it says, or no record")
        left -= FRAME.size + length
        record = data if part in (FULL, FIRST) else record + data
        if len(record) > RECORD_MAX_BYTES:
            raise ValueError(f"a record of more than {RECORD_MAX_BYTES >> 20} MiB")
        if part in (FULL, LAST):
            yield record


def _entry(history: Fields) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in map(fields, history.get(ITEM, ())):
        names = item.get(KEY) or item.get(NESTED_KEY) or []
        name = ".".join(one.decode("utf-8", "replace") for one in names)
        with contextlib.suppress(ValueError, RecursionError):  # no value that counts
            found[name] = json.loads(_text(item, JSON))
    return found


def _noted(machine: Fields) -> dict[str, Any]:
    """Return what a record says of the machine; a later one may say but a part of it."""
    texts = {"host": _text(machine, HOST), "username": _text(machine, USER)}
    found: dict[str, Any] = {name: text for name, text in texts.items() if text}
    if gpus := machine.get(GPUS):
        found["gpu_count"] = int.from_bytes(gpus[-1], "little")
    if of_job := {_text(one, 1): _text(one, 2) for one in map(fields, machine.get(SLURM, ()))}:
        found["slurm"] = of_job
    return found


def _text(of: Fields, number: int) -> str:
    return of.get(number, [b""])[-1].decode("utf-8", "replace")
