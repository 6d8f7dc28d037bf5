"""The files that are mutated: the golden inputs of every source, and three of Parquet."""

import io
from datetime import datetime, timedelta

import polars as pl
from tests.ingest.golden_cases import CASES

LINES_MAX_BYTES = 12_000  # of formats of lines: a longer file covers no more of the parser
WHOLE = (b"{\n", b"[", b"\x80", b"PK", b"PAR1")  # formats that a cut would make invalid


def corpus():
    """Return name and bytes of all files as sources write them, always in the same order."""
    paths = [path for case in CASES for path in sorted(case.glob("input*"))]
    found = [("/".join(path.parts[-3:]), _shortened(path.read_bytes())) for path in paths]
    table = {"goodput.bundle": "1", "goodput.table": "gpu_samples"}
    return [
        *found,
        ("telemetry_parquet/input.parquet", _parquet(1, "uncompressed", None)),
        ("telemetry_parquet/unpacks/input.parquet", _parquet(70_000, "zstd", None)),
        ("bundle/input.parquet", _parquet(1, "zstd", table)),
    ]


def _shortened(content):
    if len(content) <= LINES_MAX_BYTES or content.startswith(WHOLE):
        return content
    return content[: content.rfind(b"\n", 0, LINES_MAX_BYTES) + 1] or content


def _parquet(times, compression, metadata):
    start = datetime(2025, 8, 20, 14)  # noqa: DTZ001 -- moments are naive, in UTC
    rows = pl.DataFrame({
        "ts": [start + timedelta(seconds=30 * n) for n in range(40)] * 2,
        "gpu_uuid": [f"GPU-5fd4f087-86f3-7a43-b711-4771313afc5{n // 40}" for n in range(80)],
        "gpu_busy_ratio": [n % 5 / 4 for n in range(80)],
        "power_w": [100.0 + n for n in range(80)],
    }).with_columns(source=pl.lit("nvml"), gpu_instance=pl.lit(""), is_flagged=False)  # fmt: skip
    stream = io.BytesIO()
    rows = pl.concat([rows] * times)
    rows.write_parquet(stream, compression=compression, metadata=metadata)
    return stream.getvalue()
