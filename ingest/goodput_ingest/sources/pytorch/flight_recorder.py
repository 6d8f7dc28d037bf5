"""PyTorch Flight Recorder dumps (dump version 2.4 to 2.10): the last operations of one rank.

A dump names neither host, process, job nor when it was written; the global rank stands in the
file's name alone. JSON has 0 and text where the pickle has None and numbers.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import prod
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from goodput_ingest.formats import files, raw_tables
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import EPOCH, EPOCH_S_MAX, FieldError
from goodput_ingest.source import Batch, RecordedFile, Reject
from goodput_ingest.sources.pytorch import flight_recorder_dump
from goodput_queries.errors import IngestError

DUMP_MAX_BYTES = 256 * 1024 * 1024  # 20,000 entries with frames have some 30 MB
INT32_MAX = 2**31 - 1
RANKS_MAX = 1_000_000
TEXT_MAX_CHARS = 255
SUFFIXES = {".gz", ".json", ".pickle", ".pkl", ".bin", ".txt", ".dump", ".trace"}
RANK_IN_NAME = (
    re.compile(r"rank[_-]?(\d{1,9})(?!.*rank)", re.IGNORECASE),
    re.compile(r"(\d{1,9})$"),
)
NAMED_FOLDERS = 2  # of the path, to distinguish gangs whose dumps have one prefix
STATES = ("scheduled", "started", "completed")
PREFIX = "nccl:"
DTYPE_BYTES = {  # c10::ScalarType
    "Byte": 1, "Char": 1, "Bool": 1, "Short": 2, "Int": 4, "Long": 8, "Half": 2, "BFloat16": 2,
    "Float": 4, "Double": 8, "ComplexHalf": 4, "ComplexFloat": 8, "ComplexDouble": 16,
    "Float8_e5m2": 1, "Float8_e4m3fn": 1, "Float8_e5m2fnuz": 1, "Float8_e4m3fnuz": 1,
    "UInt16": 2, "UInt32": 4, "UInt64": 8,
}  # fmt: skip

RECORDS = raw_tables.columns("flight_records")
GROUPS = raw_tables.columns("flight_groups")


@dataclass(frozen=True)
class DumpName:
    """Rank and gang of a dump, from its file name."""

    dump_set: str
    rank: int


class FlightRecorder(RecordedFile):
    """The dump of one rank, JSON or pickle."""

    name: ClassVar[str] = "flight-recorder"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether the first bytes hold the keys of a dump, pickled or as JSON."""
        if head.startswith(flight_recorder_dump.PICKLE_START):
            return b"pg_config" in head[:4096] and b"pg_status" in head
        # the JSON is sorted by key: first the version, then the entries, pg_config only at the end
        start = head[:4096]
        is_first = start.lstrip().startswith((b'{"comm_lib_version"', b'{"nccl_version"'))
        return is_first and (b'"collective_seq_id"' in start or b'"pg_config"' in start)

    def extract(self) -> Iterator[Batch]:
        """Yield the entries and how far the rank had come; an entry that is none is a reject."""
        name = self._name()
        content = self._content()
        try:
            dump = flight_recorder_dump.load(content)
            configured, progress = _configured(dump), _by_id(dump, "pg_status")
        except FieldError as error:
            raise IngestError(
                f"{self.path}: this is not a Flight Recorder dump: {error}."
            ) from error
        key = (self.name, self.options.cluster, name.dump_set, name.rank)
        digest = hashlib.sha256(repr(key).encode("utf-8", "replace") + content)
        del content
        rows: list[tuple[Any, ...]] = []
        rejects: list[Reject] = []
        names_by_id: dict[str, str] = {}
        latest: datetime | None = None
        for number, entry in enumerate(_entries(dump), 1):
            try:
                fields, moments = _record(entry)
            except FieldError as error:
                shown = json_lines.printable(repr(entry)[:500], 500)
                rejects.append(Reject(None, f"entry {number}: {error}", shown))
                continue
            rows.append((*key, *fields))
            names_by_id[str(entry.get("pg_id"))] = fields[0]
            latest = max([*moments, *([latest] if latest else [])])
        groups = [
            (*key, *group, latest, _text(dump, "comm_lib_version"))
            for group in _groups(configured, progress, names_by_id)
        ]
        text = digest.hexdigest()[: files.DIGEST_CHARS]
        for table, schema, found, rejected in (
            ("flight_records", RECORDS, rows, rejects),
            ("flight_groups", GROUPS, groups, []),
        ):
            frame = pl.DataFrame(found, schema=schema, orient="row")
            yield Batch(table, frame, self.name, str(self.path), text, rejected)

    def _name(self) -> DumpName:
        """Return rank and dump set from the path; raises IngestError where no rank is in it."""
        stem = self.path.name
        while (dot := stem.rfind(".")) > 0 and stem[dot:].lower() in SUFFIXES:
            stem = stem[:dot]
        match = next((m for p in RANK_IN_NAME if (m := p.search(stem))), None)
        if match is None or int(match[1]) > INT32_MAX:
            raise IngestError(
                f"{self.path}: the rank of a Flight Recorder dump stands in its file name alone, "
                "and this one has none. Name it as PyTorch does, ending in the rank (..._rank_3)."
            )
        folders = self.path.parent.parts[-NAMED_FOLDERS:]
        rest = f"{stem[: match.start(1)]}*{stem[match.end(1) :]}"
        return DumpName(json_lines.printable("/".join([*folders, rest]), 1000), int(match[1]))

    def _content(self) -> bytes:
        """Return the whole dump, which is small, decompressed; a cut one is refused."""
        try:
            with files.open_bytes(self.path) as file:
                content = file.read(DUMP_MAX_BYTES + 1)
        except files.BROKEN_OFF as error:
            raise IngestError(f"{self.path}: the file is cut or damaged: {error}.") from error
        if len(content) > DUMP_MAX_BYTES:
            raise IngestError(
                f"{self.path}: larger than {DUMP_MAX_BYTES >> 20} MiB; no Flight Recorder dump is. "
                "Make the ring smaller with TORCH_FR_BUFFER_SIZE."
            )
        return content


def _entries(dump: Mapping[str, Any]) -> list[dict[str, Any]]:
    entries = dump.get("entries", [])
    return [e if isinstance(e, dict) else {} for e in entries] if isinstance(entries, list) else []


def _record(entry: dict[str, Any]) -> tuple[tuple[Any, ...], list[datetime]]:
    """Return an entry's columns from group_name on, and its times."""
    group = entry.get("process_group")
    if not (isinstance(group, list | tuple) and len(group) == 2):
        raise FieldError("process_group is not [name, description]")
    name, description = (json_lines.text({"g": part}, "g", TEXT_MAX_CHARS) for part in group)
    record_id = json_lines.whole(entry, "record_id", 0)
    created_at = _moment(entry, "time_created_ns")
    operation, state = _text(entry, "profiling_name"), _text(entry, "state")
    if name is None or record_id is None or created_at is None or operation is None:
        raise FieldError("group, record_id, time_created_ns or profiling_name is missing")
    if state not in STATES:
        raise FieldError(f"state is none of {', '.join(STATES)}")
    started_at = _moment(entry, "time_discovered_started_ns")
    completed_at = _moment(entry, "time_discovered_completed_ns")
    duration_ms = json_lines.number(entry, "duration_ms", 0)
    timeout_ms = json_lines.number(entry, "timeout_ms", 0)
    dtypes, elements = entry.get("input_dtypes"), _elements(entry.get("input_sizes"))
    dtype = (
        dtypes[0] if isinstance(dtypes, list) and dtypes and isinstance(dtypes[0], str) else None
    )
    is_one_type = dtype is not None and all(other == dtype for other in dtypes or ())
    width = DTYPE_BYTES.get(dtype) if dtype is not None and is_one_type else None
    fields = (
        name,
        description,
        record_id,
        json_lines.whole(entry, "collective_seq_id", 0),
        json_lines.whole(entry, "p2p_seq_id", 0),
        operation.removeprefix(PREFIX),
        entry.get("is_p2p") is True,
        state,
        created_at,
        None if duration_ms is None else duration_ms / 1000,
        started_at,
        completed_at,
        entry["retired"] if isinstance(entry.get("retired"), bool) else None,
        None if timeout_ms is None else timeout_ms / 1000,
        json_lines.printable(dtype, 50) if dtype else None,
        elements,
        elements * width if elements is not None and width and elements < 2**58 else None,
        _text(entry, "thread_name"),
        _frame(entry.get("frames")),
    )
    return fields, [at for at in (created_at, started_at, completed_at) if at is not None]


def _groups(
    configured: Mapping[str, dict[str, Any]],
    progress: Mapping[str, dict[str, Any]],
    names_by_id: Mapping[str, str],
) -> Iterator[tuple[Any, ...]]:
    """Yield name, description, ranks and progress of each group that the dump knows.

    Progress goes by the process's own number of a group; entries say which name that is. A group
    whose entries have left the ring is found by its name, which is that number for those that
    PyTorch numbered.
    """
    progress_by_name = {
        names_by_id.get(number, number): status
        for number, status in progress.items()
        if number in names_by_id or number not in names_by_id.values()
    }
    for name, config in configured.items():
        status = progress_by_name.get(name, {})
        last = [
            _sequence(status, f"last_{what}_collective")
            for what in ("enqueued", "started", "completed")
        ]
        yield (
            json_lines.printable(name, TEXT_MAX_CHARS),
            _text(config, "desc"),
            _ranks(config.get("ranks")),
            *last,
        )


def _configured(dump: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        str(fields.get("name", key)): fields for key, fields in _by_id(dump, "pg_config").items()
    }


def _by_id(dump: Mapping[str, Any], name: str) -> dict[str, dict[str, Any]]:
    value = dump.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(v, dict) for v in value.values()):
        raise FieldError(f"{name} is not an object of objects")
    return {str(key): fields for key, fields in value.items()}


def _sequence(status: dict[str, Any], name: str) -> int | None:
    """Return a sequence number, which JSON gives as text; -1 is none yet."""
    value = status.get(name)
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value):
        value = int(value)
    try:
        found = json_lines.whole({name: value}, name)
    except FieldError:
        return None
    return None if found is None or found < 0 else found


def _ranks(value: Any) -> list[int] | None:
    """Return the global ranks of a group, which a dump gives as the text of a list."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.startswith("[") else None
        except (ValueError, RecursionError):
            return None
    if not isinstance(value, list) or not 0 < len(value) <= RANKS_MAX:
        return None
    if not all(
        isinstance(r, int) and not isinstance(r, bool) and 0 <= r <= INT32_MAX for r in value
    ):
        return None
    return value


def _elements(sizes: Any) -> int | None:
    """Return the elements of all tensors; None where the shapes cannot be read."""
    if not isinstance(sizes, list) or len(sizes) > 100_000:
        return None
    if not all(
        isinstance(shape, list)
        and len(shape) <= 64
        and all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 2**48 for n in shape)
        for shape in sizes
    ):
        return None
    total = sum(prod(shape) for shape in sizes)
    return total if total < 2**62 else None


def _moment(entry: dict[str, Any], name: str) -> datetime | None:
    """Return naive UTC from nanoseconds; None and, in JSON, 0 mean that it is not known."""
    value = json_lines.whole(entry, name, 0, EPOCH_S_MAX * 1_000_000_000)
    return EPOCH + timedelta(microseconds=value // 1000) if value else None


def _frame(frames: Any) -> str | None:
    """Return the innermost frame as a person reads it."""
    if not isinstance(frames, list) or not frames or not isinstance(frames[0], dict):
        return None
    name, file, line = (frames[0].get(key) for key in ("name", "filename", "line"))
    return json_lines.printable(f"{str(name)[:100]} ({str(file)[-150:]}:{str(line)[:12]})", 300)


def _text(fields: dict[str, Any] | Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return json_lines.printable(value, TEXT_MAX_CHARS) if isinstance(value, str) else None
