"""NCCL Inspector logs (NCCL 2.28 to 2.30): one JSON object for each operation of one rank.

Its Prometheus mode is read as well (nccl_inspector_prometheus.py).

Whole parts go through Polars' JSON reader with a fixed schema; lines that it refuses are read one
by one, so that a single cut line costs no speed and is named. Both ways meet in `FLAT`, one row a
line, which `_checked` turns into `raw.collectives` and rejects. Verbose records say when an
operation ran; the others only when the line was written.

A proposed later format writes header and metadata once and then records without them: a line with
a header but no operation is remembered and lends its header to what follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from goodput_ingest import files, json_lines, nccl_inspector_prometheus
from goodput_ingest.json_lines import FieldError
from goodput_ingest.source import Batch, ReadOptions, Reject
from goodput_queries.errors import IngestError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ONE_BY_ONE_LINES = 200  # below, a chunk that the fast reader refuses is read line by line
GB = 1e9  # the plugin's GB/s are decimal
SIGN_BIT = 2**63  # a size above is 2^64 minus the true one: the plugin took the type's size as -1
EPOCH_US_MAX = json_lines.EPOCH_S_MAX * 1_000_000
TEXT_MAX_CHARS = 255
OPERATIONS = (b'"coll_perf"', b'"p2p_perf"')
MARKS = (*OPERATIONS, b'"inspector_output_format_version"')

HEADER = {"id": pl.String, "comm_name": pl.String, "rank": pl.Int64, "n_ranks": pl.Int64}
HEADER |= {"nnodes": pl.Int64}
METADATA = {"git_rev": pl.String, "dump_timestamp_us": pl.Int64}
METADATA |= {"hostname": pl.String, "pid": pl.Int64}
OF_THE_HEADER = (*HEADER, *METADATA)


def _payload(kind: str) -> dict[str, Any]:
    """Return the schema of `coll_perf` or `p2p_perf`; fields are named after the kind."""
    event = pl.Struct({"kernel_start_ts": pl.Int64, "kernel_stop_ts": pl.Int64})
    fields: dict[str, Any] = {
        kind: pl.String,
        f"{kind}_sn": pl.Int64,
        f"{kind}_msg_size_bytes": pl.UInt64,
        f"{kind}_exec_time_us": pl.Float64,
        f"{kind}_timing_source": pl.String,
        f"{kind}_algobw_gbs": pl.Float64,
        f"{kind}_busbw_gbs": pl.Float64,
        "event_trace_ts": pl.Struct(
            {f"{kind}_start_ts": pl.Int64, "kernel_events": pl.List(event)}
        ),
    }
    if kind == "p2p":
        fields["p2p_peer"] = pl.Int64
    return fields


RECORD: dict[str, Any] = {
    "header": pl.Struct(HEADER),
    "metadata": pl.Struct(METADATA),
    "coll_perf": pl.Struct(_payload("coll")),
    "p2p_perf": pl.Struct(_payload("p2p")),
}
FLAT: dict[str, Any] = {
    **HEADER,
    **METADATA,
    "is_p2p": pl.Boolean,  # null: the line has no operation
    "operation": pl.String,
    "sequence_number": pl.Int64,
    "size": pl.UInt64,
    "exec_time_us": pl.Float64,
    "timing_source": pl.String,
    "algobw_gbs": pl.Float64,
    "busbw_gbs": pl.Float64,
    "peer": pl.Int64,
    "start_us": pl.Int64,
    "kernel_start_us": pl.Int64,
    "kernel_stop_us": pl.Int64,
    "channels": pl.Int64,
    "line": pl.Int64,
    "refusal": pl.String,
}
NEEDED = {  # column of FLAT: how the file calls it
    "id": "header.id",
    "rank": "header.rank",
    "n_ranks": "header.n_ranks",
    "hostname": "metadata.hostname",
    "pid": "metadata.pid",
    "dump_timestamp_us": "metadata.dump_timestamp_us",
    "operation": "the operation's name",
    "sequence_number": "the sequence number",
    "exec_time_us": "the execution time",
}


class NcclInspector:
    """A log of the NCCL Inspector plugin: one process, every communicator it was in."""

    name: ClassVar[str] = "nccl-inspector"

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file and the cluster it speaks of."""
        self.path = path
        self.options = options
        self._header: dict[str, Any] = {}

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether most lines are objects, some with an operation or Inspector metadata.

        Or samples of the Prometheus mode.
        """
        if nccl_inspector_prometheus.is_of_prometheus_mode(head):
            return True
        return json_lines.are_most(head) and _has_record(head)

    @staticmethod
    def context(content: bytes) -> bytes | None:
        """Return the last header if it came alone: records that follow it have none."""
        at = content.rfind(b'"header"')
        if at < 0:
            return None
        end = content.find(b"\n", at)
        line = content[content.rfind(b"\n", 0, at) + 1 : end if end >= 0 else len(content)]
        return None if any(mark in line for mark in OPERATIONS) else line

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.collectives`, part by part; a line that was cut is a reject.

        Of the Prometheus mode, `raw.collective_summaries`.
        """
        head = files.head(self.path)
        if nccl_inspector_prometheus.is_of_prometheus_mode(head):
            yield from self._summaries()
            return
        is_one_cut_line = head.lstrip().startswith(b'{"') and b"\n" not in head
        if head.strip() and not is_one_cut_line and not _has_record(head):
            raise IngestError(
                f"{self.path}: no line is a record of the NCCL Inspector; expected "
                '{"header": ..., "metadata": ..., "coll_perf": ...}.'
            )
        for part in files.parts(self.path):
            key = files.digest(part, "collectives", self.options.cluster, self._header)
            flat = _flat(part.raw_lines, part.first_line)
            flat = self._with_carried_header(flat)
            rows, rejects = _checked(flat, part)
            yield Batch(
                "collectives",
                rows.select(
                    pl.lit(self.name).alias("source"),
                    pl.lit(self.options.cluster, pl.String).alias("cluster"),
                    pl.all(),
                ),
                self.name,
                str(self.path),
                key,
                rejects,
            )

    def _summaries(self) -> Iterator[Batch]:
        """Yield what the Prometheus mode tells, which is means of windows."""
        known = nccl_inspector_prometheus.written(self.path, self.options)
        for part in files.parts(self.path):
            key = files.digest(part, "collective_summaries", self.options.cluster, known)
            rows, rejects, known = nccl_inspector_prometheus.read(
                part, self.path, known, self.name, self.options.cluster
            )
            yield Batch("collective_summaries", rows, self.name, str(self.path), key, rejects)

    def _with_carried_header(self, flat: pl.DataFrame) -> pl.DataFrame:
        """Lend the last header that came alone to the lines without one; drop header lines."""
        if self._header:
            flat = pl.concat([pl.DataFrame([self._header], schema=FLAT), flat])
        is_marker = pl.col("is_p2p").is_null() & pl.col("id").is_not_null()
        markers = flat.filter(is_marker)
        if markers.is_empty():
            return flat
        self._header = markers.select(OF_THE_HEADER).row(-1, named=True)
        lone = pl.when(is_marker).then(pl.struct(OF_THE_HEADER)).forward_fill()
        return (
            flat.with_columns(is_marker.alias("is_marker"), lone.alias("lone"))
            .with_columns(
                pl.when(pl.col("id").is_null())
                .then(pl.col("lone").struct.field(name))
                .otherwise(pl.col(name))
                .alias(name)
                for name in OF_THE_HEADER
            )
            .filter(~pl.col("is_marker"))
            .select(*FLAT)
        )


def _has_record(head: bytes) -> bool:
    return any(mark in line for line in json_lines.objects(head) for mark in MARKS)


def _flat(lines: list[bytes], first_line: int) -> pl.DataFrame:
    """Return one row of FLAT a line that is not blank."""
    numbers = range(first_line, first_line + len(lines))
    if all(lines):
        return _read(lines, numbers)
    numbered = [(n, line) for n, line in zip(numbers, lines, strict=True) if line.strip()]
    return _read([line for _, line in numbered], [n for n, _ in numbered])


def _read(lines: list[bytes], numbers: range | list[int]) -> pl.DataFrame:
    """Read lines at once; where the fast reader refuses, by halves and at last one by one."""
    if not lines:
        return pl.DataFrame(schema=FLAT)
    if (fast := _at_once(lines)) is not None:
        return fast.with_columns(
            pl.Series("line", numbers, pl.Int64), pl.lit(None, pl.String).alias("refusal")
        )
    if len(lines) <= ONE_BY_ONE_LINES:
        rows = [_one(line) | {"line": n} for n, line in zip(numbers, lines, strict=True)]
        return pl.DataFrame(rows, schema=FLAT)
    half = len(lines) // 2
    return pl.concat([_read(lines[:half], numbers[:half]), _read(lines[half:], numbers[half:])])


def _without_callback_order(line: bytes) -> bytes:
    """Take out `event_trace_sn`, half of a verbose record, if it is where the plugin writes it."""
    start = line.find(b',"event_trace_sn":{')
    stop = line.find(b'}]},"event_trace_ts":{', start)
    return line[:start] + line[stop + 3 :] if 0 < start < stop else line


def _at_once(lines: list[bytes]) -> pl.DataFrame | None:
    """Return the lines as FLAT without line and refusal; None where one of them does not fit."""
    is_verbose = b"event_trace_sn" in lines[0] + lines[-1]
    text = b"\n".join(map(_without_callback_order, lines) if is_verbose else lines)
    text = text.replace(b':"nan"', b":null")
    try:
        records = pl.read_ndjson(text, schema=RECORD)
    except pl.exceptions.PolarsError:
        return None
    if records.height != len(lines):
        return None
    coll, p2p = pl.col("coll_perf").struct, pl.col("p2p_perf").struct
    coll_trace, p2p_trace = (s.field("event_trace_ts").struct for s in (coll, p2p))
    has_p2p = pl.col("p2p_perf").is_not_null()
    has_coll = pl.col("coll_perf").is_not_null()

    def either(name: str) -> pl.Expr:
        return pl.coalesce(coll.field(f"coll{name}"), p2p.field(f"p2p{name}"))

    events = pl.coalesce(coll_trace.field("kernel_events"), p2p_trace.field("kernel_events"))
    starts = events.list.eval(pl.element().struct.field("kernel_start_ts"))
    stops = events.list.eval(pl.element().struct.field("kernel_stop_ts"))
    return records.select(
        *(pl.col("header").struct.field(name) for name in HEADER),
        *(pl.col("metadata").struct.field(name) for name in METADATA),
        pl.when(has_coll | has_p2p).then(~has_coll).alias("is_p2p"),
        either("").alias("operation"),
        either("_sn").alias("sequence_number"),
        either("_msg_size_bytes").alias("size"),
        either("_exec_time_us").alias("exec_time_us"),
        either("_timing_source").alias("timing_source"),
        either("_algobw_gbs").alias("algobw_gbs"),
        either("_busbw_gbs").alias("busbw_gbs"),
        p2p.field("p2p_peer").alias("peer"),
        pl.coalesce(coll_trace.field("coll_start_ts"), p2p_trace.field("p2p_start_ts")).alias(
            "start_us"
        ),
        starts.list.min().alias("kernel_start_us"),
        stops.list.max().alias("kernel_stop_us"),
        events.list.len().cast(pl.Int64).alias("channels"),
    )


def _one(line: bytes) -> dict[str, Any]:
    """Return one line as FLAT; one that cannot be read has a refusal and nothing else."""
    try:
        return _fields(json_lines.record(line.decode("utf-8", "replace")))
    except FieldError as error:
        return {"refusal": str(error)}


def _fields(record: dict[str, Any]) -> dict[str, Any]:
    header, metadata = _object(record, "header"), _object(record, "metadata")
    flat: dict[str, Any] = {
        "id": json_lines.text(header, "id", TEXT_MAX_CHARS),
        "comm_name": json_lines.text(header, "comm_name", TEXT_MAX_CHARS),
        **{name: json_lines.whole(header, name) for name in ("rank", "n_ranks", "nnodes")},
        "git_rev": json_lines.text(metadata, "git_rev", TEXT_MAX_CHARS),
        "hostname": json_lines.text(metadata, "hostname", TEXT_MAX_CHARS),
        "pid": json_lines.whole(metadata, "pid"),
        "dump_timestamp_us": json_lines.whole(metadata, "dump_timestamp_us"),
    }
    kind = next((k for k in ("coll", "p2p") if record.get(f"{k}_perf") is not None), None)
    if kind is None:
        return flat
    perf = _object(record, f"{kind}_perf")
    trace = _object(perf, "event_trace_ts")
    events = trace.get("kernel_events")
    if events is not None and not (
        isinstance(events, list) and all(isinstance(event, dict) for event in events)
    ):
        raise FieldError("kernel_events is no list of objects")
    starts = [json_lines.whole(event, "kernel_start_ts") for event in events or ()]
    stops = [json_lines.whole(event, "kernel_stop_ts") for event in events or ()]
    return flat | {
        "is_p2p": kind == "p2p",
        "operation": json_lines.text(perf, kind, TEXT_MAX_CHARS),
        "sequence_number": json_lines.whole(perf, f"{kind}_sn"),
        "size": json_lines.whole(perf, f"{kind}_msg_size_bytes", 0, 2**64 - 1),
        "exec_time_us": json_lines.number(perf, f"{kind}_exec_time_us"),
        "timing_source": json_lines.text(perf, f"{kind}_timing_source", TEXT_MAX_CHARS),
        "algobw_gbs": _bandwidth(perf, f"{kind}_algobw_gbs"),
        "busbw_gbs": _bandwidth(perf, f"{kind}_busbw_gbs"),
        "peer": json_lines.whole(perf, "p2p_peer") if kind == "p2p" else None,
        "start_us": json_lines.whole(trace, f"{kind}_start_ts"),
        "kernel_start_us": min((s for s in starts if s is not None), default=None),
        "kernel_stop_us": max((s for s in stops if s is not None), default=None),
        "channels": None if events is None else len(events),
    }


def _object(record: dict[str, Any], name: str) -> dict[str, Any]:
    value = record.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise FieldError(f"{name} is {json_lines.kind(value)}, expected an object")
    return value


def _bandwidth(perf: dict[str, Any], name: str) -> float | None:
    """Return GB/s; the plugin writes "nan" and the like as text where there is none."""
    if isinstance(perf.get(name), str) and perf[name].lower().lstrip("-+") in ("nan", "inf"):
        return None
    return json_lines.number(perf, name)


def _checked(flat: pl.DataFrame, part: files.Part) -> tuple[pl.DataFrame, list[Reject]]:
    """Return the rows of `raw.collectives` less source and cluster, and what was set aside."""
    missing = [
        pl.when(pl.col(column).is_null()).then(pl.lit(f"{called} is missing"))
        for column, called in NEEDED.items()
    ]
    ranges = {
        "rank": (0, 2**31 - 1),
        "n_ranks": (1, 2**31 - 1),
        "pid": (0, 2**63 - 1),
        "sequence_number": (0, 2**63 - 1),
        "exec_time_us": (0, 1e15),
        "dump_timestamp_us": (0, EPOCH_US_MAX),
    }
    outside = [
        pl.when(~pl.col(column).is_between(low, high)).then(
            pl.lit(f"{NEEDED[column]} is out of range")
        )
        for column, (low, high) in ranges.items()
    ]
    no_operation = pl.when(pl.col("is_p2p").is_null()).then(
        pl.lit("there is no operation: neither coll_perf nor p2p_perf")
    )
    flat = flat.with_columns(
        pl.coalesce("refusal", no_operation, *missing, *outside).alias("refusal")
    )
    rejects = [
        Reject(n, reason, json_lines.printable(part.lines[n - part.first_line], 500))
        for n, reason in flat.filter(pl.col("refusal").is_not_null())
        .select("line", "refusal")
        .iter_rows()
    ]
    if part.damage:
        rejects.append(Reject(part.first_line + len(part.lines), part.damage))
    return flat.filter(pl.col("refusal").is_null()).select(_columns()), rejects


def _columns() -> list[pl.Expr]:
    """Return `raw.collectives` from FLAT, in base units."""
    is_wrapped = pl.col("size") > SIGN_BIT
    size = pl.col("size").reinterpret(signed=True).abs()
    # bandwidth is proportional to the size, so the wrong size is taken out of it again
    size_ratio = pl.when(is_wrapped).then(size / pl.col("size")).otherwise(1.0)

    def rate(name: str) -> pl.Expr:
        value = pl.col(name) * size_ratio * GB
        return pl.when(value.is_finite() & (value >= 0)).then(value)

    def moment(name: str) -> pl.Expr:
        is_known = pl.col(name).is_between(1, EPOCH_US_MAX)
        return pl.when(is_known).then(pl.col(name)).cast(pl.Datetime("us"))

    def small(name: str) -> pl.Expr:
        return pl.when(pl.col(name).is_between(-1, 2**31 - 1)).then(pl.col(name)).cast(pl.Int32)

    return [
        _text("hostname").alias("node"),
        pl.col("pid"),
        _text("id").alias("comm_id"),
        _text("comm_name"),
        pl.col("rank").cast(pl.Int32),
        pl.col("n_ranks").cast(pl.Int32).alias("ranks"),
        small("nnodes").alias("nodes"),
        _text("operation"),
        pl.col("is_p2p"),
        small("peer"),
        pl.col("sequence_number"),
        pl.when(size >= 0).then(size).alias("message_bytes"),
        (pl.col("exec_time_us") / 1e6).alias("exec_time_s"),
        _text("timing_source"),
        rate("algobw_gbs").alias("algbw_bytes_per_s"),
        rate("busbw_gbs").alias("busbw_bytes_per_s"),
        moment("dump_timestamp_us").alias("dumped_at"),
        moment("start_us").alias("started_at"),
        moment("kernel_start_us").alias("kernel_start_at"),
        moment("kernel_stop_us").alias("kernel_stop_at"),
        small("channels"),
        _text("git_rev").alias("plugin_version"),
    ]


def _text(name: str) -> pl.Expr:
    return pl.col(name).str.slice(0, TEXT_MAX_CHARS).str.replace_all("\x00", "\ufffd", literal=True)
