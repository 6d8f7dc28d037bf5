"""Prometheus mode of the NCCL Inspector: one text file a GPU, rewritten every interval.

    nccl_bus_bandwidth_gbs{...,collective="AllReduce",message_size="95-96MB"} 341.2

The GPU's UUID stands in the file's name alone, the time nowhere. Several files may stand in one,
each after a line `# file <epoch s>-nccl_inspector_metrics_<uuid>.prom`.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from goodput_ingest.formats import raw_tables
from goodput_ingest.formats.files import Part
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.json_lines import FieldError
from goodput_ingest.source import ReadOptions, Reject
from goodput_queries.errors import IngestError

GB = 1e9  # the plugin's GB/s are decimal
INT32_MAX = 2**31 - 1
LINE_MAX_CHARS = 4_000
TEXT_MAX_CHARS = 255
STARTS = (b"nccl_bus_bandwidth_gbs{", b"nccl_p2p_bus_bandwidth_gbs{")
MEASURES = {  # metric: column and what one of its units is in base units
    "nccl_bus_bandwidth_gbs": ("busbw_bytes_per_s", GB),
    "nccl_p2p_bus_bandwidth_gbs": ("busbw_bytes_per_s", GB),
    "nccl_collective_exec_time_microseconds": ("exec_time_s", 1e-6),
    "nccl_p2p_exec_time_microseconds": ("exec_time_s", 1e-6),
}
UUID = r"(?P<uuid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
FILE_NAME = re.compile(rf"nccl_inspector_metrics_{UUID}\.prom")
FILE_LINE = re.compile(rf"# file (?:(?P<at>\d{{9,10}})-)?nccl_inspector_metrics_{UUID}\.prom\s*")
SAMPLE = re.compile(r"(?P<metric>\w{1,80})\{(?P<labels>.*)\}\s+(?P<value>\S{1,40})\s*")
LABEL = re.compile(r'(\w{1,80})="((?:[^"\\]|\\.)*)"(?:,|$)')
SIZE = re.compile(r"(\d{1,4})-(\d{1,4})([KMGTP]?)B")
UNKNOWN = {"", "unknown", "Unknown"}
SCHEMA = raw_tables.columns("collective_summaries")


@dataclass(frozen=True)
class Written:
    """Owner of a file and time of writing, naive UTC; None: unknown."""

    gpu_uuid: str | None
    at: datetime | None


def is_of_prometheus_mode(head: bytes) -> bool:
    """Say whether the first lines that are no comment are samples of the Inspector."""
    lines = [line for line in head.splitlines()[:20] if line.strip() and not line.startswith(b"#")]
    return bool(lines) and lines[0].startswith(STARTS)


def written(path: Path, options: ReadOptions) -> Written:
    """Return what is known of a file before its first line."""
    match = FILE_NAME.search(path.name)
    return Written(f"GPU-{match['uuid']}" if match else None, options.observed_at)


def read(
    part: Part, path: Path, known: Written, source: str, cluster: str | None
) -> tuple[pl.DataFrame, list[Reject], Written]:
    """Return rows of `raw.collective_summaries`, the rejects, and the owner of the next part."""
    rows: dict[tuple[Any, ...], dict[str, float]] = {}
    rejects: list[Reject] = []
    for number, line in enumerate(part.lines, part.first_line):
        if match := FILE_LINE.fullmatch(line):
            at = json_lines.moment({"ts": int(match["at"])}, "ts") if match["at"] else known.at
            known = Written(f"GPU-{match['uuid']}", at)
        elif line.strip() and not line.startswith("#"):
            try:
                key, column, value = _sample(line)
            except FieldError as error:
                rejects.append(Reject(number, str(error), json_lines.printable(line, 500)))
                continue
            if known.at is None:
                raise IngestError(
                    f"{path}: the Inspector's Prometheus files do not say when they were written. "
                    "Give the time with --observed-at."
                )
            node, label, *others = key
            whole = (source, cluster, node, known.gpu_uuid, label, known.at, *others)
            rows.setdefault(whole, {})[column] = value
    rejects += part.cut
    found = [
        (*key, values.get("busbw_bytes_per_s"), values.get("exec_time_s"))
        for key, values in rows.items()
    ]
    return pl.DataFrame(found, schema=SCHEMA, orient="row"), rejects, known


def _sample(line: str) -> tuple[tuple[Any, ...], str, float]:
    """Return a sample's key from node on (less GPU and time), the column it fills, its value."""
    match = SAMPLE.fullmatch(line) if len(line) <= LINE_MAX_CHARS else None
    if match is None:
        raise FieldError("the line is not a sample: expected metric{labels} value")
    if match["metric"] not in MEASURES:
        raise FieldError("the metric is none of the Inspector's")
    column, unit = MEASURES[match["metric"]]
    labels: dict[str, Any] = dict(LABEL.findall(match["labels"]))
    is_p2p = match["metric"].startswith("nccl_p2p")
    operation = _text(labels, "p2p_operation" if is_p2p else "collective")
    node = _text(labels, "node")
    if operation is None or node is None:
        raise FieldError("the sample does not say node or operation")
    try:
        value = json_lines.number({"value": float(match["value"])}, "value", 0)
    except ValueError:
        raise FieldError("the value is not a number") from None
    if value is None:
        raise FieldError("the value is NaN")
    algorithm, _, protocol = (_text(labels, "algo_proto") or "").rpartition("_")
    key = (
        node,
        _text(labels, "gpu"),
        _text(labels, "slurm_job_id"),
        _text(labels, "comm_name"),
        _whole(labels, "n_nodes"),
        _whole(labels, "nranks"),
        operation,
        is_p2p,
        *_size(labels.get("message_size", "")),
        algorithm or None,
        protocol or None,
    )
    return key, column, value * unit


def _text(labels: dict[str, Any], name: str) -> str | None:
    value = labels.get(name, "")
    return None if value in UNKNOWN else json_lines.printable(value, TEXT_MAX_CHARS)


def _whole(labels: dict[str, Any], name: str) -> int | None:
    value = labels.get(name, "")
    is_number = value.isdecimal() and len(value) < 11 and int(value) <= INT32_MAX
    return int(value) if is_number else None


def _size(text: str) -> tuple[int | None, int | None]:
    """Return the bounds of a bucket as `95-96MB`, whose units go in steps of 1024."""
    match = SIZE.fullmatch(text)
    if match is None:
        return None, None
    unit = 1024 ** " KMGTP".index(match[3] or " ")
    return int(match[1]) * unit, int(match[2]) * unit
