"""The files that are mutated: the golden inputs of every source, and a small Parquet."""

import io
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl

GOLDEN = Path(__file__).parents[1] / "ingest" / "golden"
LINES_MAX_BYTES = 12_000  # of formats of lines: a longer file covers no more of the parser
WHOLE = (b"{\n", b"[", b"\x80", b"PK", b"PAR1")  # formats that a cut would make invalid


@dataclass(frozen=True)
class Golden:
    """A file as a source writes it: its name below the corpus, and its bytes."""

    name: str
    content: bytes

    @property
    def suffixes(self):
        """Return the suffix of the file's name, by which some formats are recognised."""
        return Path(self.name).name.removeprefix("input")


def corpus():
    """Return all files, always in the same order."""
    found = [
        Golden(str(path.relative_to(GOLDEN)), _shortened(path.read_bytes()))
        for path in sorted(GOLDEN.rglob("input*"))
    ]
    return [*found, Golden("telemetry_parquet/input.parquet", _parquet())]


def _shortened(content):
    if len(content) <= LINES_MAX_BYTES or content.startswith(WHOLE):
        return content
    return content[: content.rfind(b"\n", 0, LINES_MAX_BYTES) + 1] or content


def _parquet():
    start = datetime(2025, 8, 20, 14)  # noqa: DTZ001 -- moments are naive, in UTC
    rows = pl.DataFrame(
        {
            "ts": [start + timedelta(seconds=30 * n) for n in range(40)] * 2,
            "gpu_uuid": ["GPU-5fd4f087-86f3-7a43-b711-4771313afc50"] * 40
            + ["GPU-5fd4f087-86f3-7a43-b711-4771313afc51"] * 40,
            "gpu_busy_ratio": [n % 5 / 4 for n in range(80)],
            "power_w": [100.0 + n for n in range(80)],
        }
    )
    stream = io.BytesIO()
    rows.write_parquet(stream, compression="uncompressed")
    return stream.getvalue()
