"""Lines of NCCL Inspector logs into `FLAT`: a row a line, fields under one name for both kinds.

Each line is parsed into typed objects. One that does not fit the types is parsed field by field,
so that it is either taken after all (5.0 for 5) or named with what is wrong with it.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Annotated, Any

import msgspec
import polars as pl

from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError

TEXT_MAX_CHARS = 255
KINDS = ("coll", "p2p")
TRACE = "event_trace_ts"  # of verbose records
LINES_AT_ONCE = 1_000  # what they become stays in the cache of a core until columns are made of it
REFUSED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

HEADER: dict[str, Any] = {
    "id": pl.String,
    "comm_name": pl.String,
    "rank": pl.Int64,
    "n_ranks": pl.Int64,
    "nnodes": pl.Int64,
}
METADATA: dict[str, Any] = {
    "git_rev": pl.String,
    "dump_timestamp_us": pl.Int64,
    "hostname": pl.String,
    "pid": pl.Int64,
}
OPERATION: dict[str, Any] = {
    "operation": pl.String,
    "sequence_number": pl.Int64,
    "size": pl.UInt64,
    "exec_time_us": pl.Float64,
    "timing_source": pl.String,
    "algobw_gbs": pl.Float64,
    "busbw_gbs": pl.Float64,
    "peer": pl.Int64,
}
FLAT: dict[str, Any] = {
    **HEADER,
    **METADATA,
    "is_p2p": pl.Boolean,  # null: the line has no operation
    **OPERATION,
    "start_us": pl.Int64,
    "kernel_start_us": pl.Int64,
    "kernel_stop_us": pl.Int64,
    "channels": pl.Int64,
    "line": pl.Int64,
    "refusal": pl.String,
}

_Text = str | None
_Number = float | None
_Integer = Annotated[int, msgspec.Meta(ge=json_lines.INTEGER_MIN, le=json_lines.INTEGER_MAX)]
_Whole = _Integer | None
_Unsigned = Annotated[int, msgspec.Meta(ge=0)] | None
_KINDS = {pl.String: _Text, pl.Float64: _Number, pl.Int64: _Whole, pl.UInt64: _Unsigned}


def names(kind: str) -> dict[str, str]:
    """Return how the JSON calls the columns of OPERATION in `coll_perf` or `p2p_perf`."""
    called = {name: f"{kind}_{name}" for name in OPERATION}
    called |= {"operation": kind, "sequence_number": f"{kind}_sn", "size": f"{kind}_msg_size_bytes"}
    return called | {"peer": "p2p_peer"}


def _type(name: str, fields: dict[str, Any], called: dict[str, str] | None = None) -> Any:
    """Return a type of objects whose fields may be absent, some called otherwise in the JSON."""
    optional = [(field, kind, None) for field, kind in fields.items()]
    return msgspec.defstruct(name, optional, rename=called, gc=False)  # there are no cycles in them


def _of(columns: dict[str, Any]) -> dict[str, Any]:
    return {name: _KINDS[kind] for name, kind in columns.items()}


def _performance(kind: str) -> Any:
    """Return the type of `coll_perf` or `p2p_perf`, whose fields are named after the kind."""
    trace = {"start_us": _Whole, "kernel_events": list[_Event] | None}
    trace_type = _type("Trace", trace, {"start_us": f"{kind}_start_ts"})
    called = names(kind) | {"trace": TRACE}
    return _type("Performance", _of(OPERATION) | {"trace": trace_type | None}, called)


class _Event(msgspec.Struct, gc=False):
    kernel_start_ts: _Integer
    kernel_stop_ts: _Integer


_Header, _Metadata = _type("Header", _of(HEADER)), _type("Metadata", _of(METADATA))
_Coll, _P2p = _performance("coll"), _performance("p2p")
_Record = _type(
    "Record",
    {
        "header": _Header | None,
        "metadata": _Metadata | None,
        "coll_perf": _Coll | None,
        "p2p_perf": _P2p | None,
    },
)
_NO_HEADER, _NO_METADATA, _NO_OPERATION = _Header(), _Metadata(), _Coll()
_NO_TRACE = _type("Trace", {"start_us": _Whole, "kernel_events": None})()
_decode = msgspec.json.Decoder(_Record).decode
_start, _stop = attrgetter("kernel_start_ts"), attrgetter("kernel_stop_ts")


def read(lines: Sequence[bytes], numbers: Sequence[int]) -> pl.DataFrame:
    """Return one row of FLAT a line that is not blank, in their order."""
    starts = range(0, len(lines), LINES_AT_ONCE)
    found = [_flat(lines[i : i + LINES_AT_ONCE], numbers[i : i + LINES_AT_ONCE]) for i in starts]
    return pl.concat(found) if found else pl.DataFrame(schema=FLAT)


def _flat(lines: Sequence[bytes], at: Sequence[int]) -> pl.DataFrame:
    records: list[Any] = []
    numbers: list[int] = []
    odd: list[dict[str, Any]] = []
    for number, line in zip(at, lines, strict=True):
        if b"\\" not in line and b"\x7f" not in line:  # else a text may hold a control character
            try:
                records.append(_decode(line))
                numbers.append(number)
                continue
            except REFUSED:
                pass
        if json_lines.without_stamps(line).strip():
            odd.append(_one(line) | {"line": number})
    try:
        typed = _frame(records, numbers)
    except (TypeError, OverflowError):  # one of them has a size beyond 64, or beyond 128 bits
        typed = pl.DataFrame(schema=FLAT)
        line_at = dict(zip(at, lines, strict=True))
        odd += [_one(line_at[number]) | {"line": number} for number in numbers]
    return pl.concat([typed, pl.DataFrame(odd, schema=FLAT)]).sort("line") if odd else typed


def _frame(records: Sequence[Any], numbers: Sequence[int]) -> pl.DataFrame:
    """Return records as rows of FLAT.

    Raises TypeError or OverflowError where a number does not fit its column.
    """
    headers = [record.header or _NO_HEADER for record in records]
    metadata = [record.metadata or _NO_METADATA for record in records]
    found = [record.coll_perf or record.p2p_perf for record in records]
    operations = [one or _NO_OPERATION for one in found]
    traces = [one.trace or _NO_TRACE for one in operations]
    events = [trace.kernel_events for trace in traces]
    return pl.DataFrame(
        [
            *_columns(HEADER, headers),
            *_columns(METADATA, metadata),
            pl.Series("is_p2p", [one and type(one) is _P2p for one in found], pl.Boolean),
            *_columns(OPERATION, operations),
            *_columns({"start_us": pl.Int64}, traces),
            pl.Series(
                "kernel_start_us", [min(map(_start, e)) if e else None for e in events], pl.Int64
            ),
            pl.Series(
                "kernel_stop_us", [max(map(_stop, e)) if e else None for e in events], pl.Int64
            ),
            pl.Series("channels", [None if e is None else len(e) for e in events], pl.Int64),
            pl.Series("line", numbers, pl.Int64),
            pl.Series("refusal", [None] * len(numbers), pl.String),
        ]
    )


def _columns(kinds: dict[str, Any], objects: Sequence[Any]) -> list[pl.Series]:
    found = [
        pl.Series(name, list(map(attrgetter(name), objects)), kind) for name, kind in kinds.items()
    ]
    return [_short(column) if column.dtype == pl.String else column for column in found]


def _short(texts: pl.Series) -> pl.Series:
    return texts.str.slice(0, TEXT_MAX_CHARS).str.replace_all("\x00", "\ufffd", literal=True)


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
    kind = next((k for k in KINDS if record.get(f"{k}_perf") is not None), None)
    if kind is None:
        return flat
    perf = _object(record, f"{kind}_perf")
    trace = _object(perf, TRACE)
    events = trace.get("kernel_events")
    if events is not None and not (
        isinstance(events, list) and all(isinstance(event, dict) for event in events)
    ):
        raise FieldError("kernel_events is not a list of objects")
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
        "peer": json_lines.whole(perf, "p2p_peer"),
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
