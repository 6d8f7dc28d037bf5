"""TensorBoard's event files: scalars with their step and wall time.

A TFRecord (length, its checksum, data, its checksum) for each event, a protobuf message of which
three fields are wanted (TensorFlow's core/util/event.proto, core/framework/summary.proto). They are
read by hand, since the library `tensorboard` brings gRPC and a server. Checksums are not compared:
what does not decode ends the reading.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

from goodput_ingest.formats import files
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.source import Batch, RecordedFile, Reject
from goodput_ingest.sources.job_logs import run_history
from goodput_ingest.sources.job_logs.protobuf_fields import LENGTHS, Fields, fields
from goodput_ingest.sources.job_logs.run_history import History, Point
from goodput_queries.errors import IngestError

VERSION: Final = b"brain.Event:"  # in the first record
FRAME: Final = struct.Struct("<QI")
CHECKSUM_BYTES: Final = 4
RECORD_MAX_BYTES: Final = 256 * 1024 * 1024  # images and graphs are megabytes
WALL_TIME, STEP, SUMMARY = 1, 2, 5  # fields of Event
VALUE, TAG, SIMPLE_VALUE, TENSOR = 1, 1, 2, 8  # of Summary, then of its Value
CONTENT, FLOATS = 4, 5  # of TensorProto
TAGS_MAX: Final = 10_000
OF_TRAINING: Final = ("train", "training")  # folders below that of the run
OF_EVALUATION: Final = ("eval", "evaluation", "val", "validation", "test")


class TensorBoard(RecordedFile):
    """An event file of one run."""

    name: ClassVar[str] = "tensorboard"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- judged by content alone
        """Say whether the first record says which version of events follow."""
        return VERSION in head[:64] and b"\x00" in head[: FRAME.size]

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.job_events`; raises IngestError where it is no event file."""
        if not self.recognises(self.path, files.head(self.path)):
            raise IngestError(f"{self.path}: this is not an event file of TensorBoard.")
        points: dict[str, list[Point]] = {}
        rejects: list[Reject] = []
        records = 0
        try:
            for event in _events(self.path):
                records += 1
                try:
                    for tag, point in _scalars(event):
                        if tag in points or len(points) < TAGS_MAX:
                            points.setdefault(tag, []).append(point)
                except FieldError as error:
                    rejects.append(Reject(None, f"{self.name}: record {records}: {error}."))
        except (*files.BROKEN_OFF, struct.error, ValueError) as error:
            why = f"{self.name}: the file is cut or damaged after record {records}: {error}."
            rejects.append(Reject(None, why))
        folder = self.path.absolute().parent
        part = folder.name.lower()
        named = folder.parent if part in (*OF_TRAINING, *OF_EVALUATION) else folder
        chosen = None if part in OF_EVALUATION else run_history.of_steps(points)
        others = [
            event
            for tag, of_tag in points.items()
            if tag != chosen
            for event in run_history.summary(tag, of_tag)
        ]
        history = History(self.name, self.path, self.options, self.options.run_id or named.name)
        digest = repr((points, rejects))
        yield from history.batches(points.get(chosen or "", ()), others, rejects, [digest])


def _events(path: Path) -> Iterator[Fields]:
    """Yield the events of a file; ValueError where its rest is none."""
    with files.open_bytes(path) as file:
        while frame := file.read(FRAME.size):
            length, _ = FRAME.unpack(frame)
            if length > RECORD_MAX_BYTES:
                raise ValueError(f"a record of {length} bytes")
            data = file.read(length + CHECKSUM_BYTES)
            if len(data) < length + CHECKSUM_BYTES:
                raise ValueError("a record is shorter than it says")
            yield fields(data[:-CHECKSUM_BYTES])


def _scalars(event: Fields) -> Iterator[tuple[str, Point]]:
    """Yield the scalars of an event by tag; FieldError for a time or step that is none."""
    (wall_time,) = struct.unpack("<d", event[WALL_TIME][-1]) if WALL_TIME in event else (0.0,)
    said = {"wall_time": wall_time, "step": int.from_bytes(event.get(STEP, [b""])[-1], "little")}
    for summary in event.get(SUMMARY, ()):
        for value in map(fields, fields(summary).get(VALUE, ())):
            tag = json_lines.printable(value.get(TAG, [b""])[-1].decode("utf-8", "replace"), 200)
            if (number := _number(value)) is None:
                continue
            step = json_lines.whole(said, "step", 0, run_history.STEP_MAX) or 0
            loss = number if run_history.is_loss(tag) else None
            yield tag, Point(step, json_lines.moment(said, "wall_time"), loss)


def _number(value: Fields) -> float | None:
    """Return the number of a value, of TensorFlow 2 in a tensor; None for an image and the like."""
    tensor = fields(value[TENSOR][-1]) if TENSOR in value else {}
    found = value.get(SIMPLE_VALUE) or tensor.get(FLOATS) or tensor.get(CONTENT) or [b""]
    return float(struct.unpack("<f", found[-1])[0]) if len(found[-1]) == LENGTHS[5] else None
