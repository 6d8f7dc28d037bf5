"""The files that are mutated: the golden inputs of every source, and small tables of a site."""

import io
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl

GOLDEN = Path(__file__).parents[1] / "ingest" / "golden"
LINES_MAX_BYTES = 12_000  # of formats of lines: a longer file covers no more of the parser
WHOLE = (b"{\n", b"[", b"\x80", b"PK", b"PAR1")  # formats that a cut would make invalid
TABLES = {
    "rates.csv": "cluster,gpu_model,mig_profile,partition,qos,price_per_gpu_h,"
    "valid_from,valid_to,note\n"
    "c,H100,,,,2.50,2025-08-01T00:00:00Z,,list price\n"
    "c,H100,,batch,low,1.25,2025-08-01T00:00:00Z,2026-08-01T00:00:00Z,\n",
    "tariffs.csv": "cluster,zone,from_hour,to_hour,price_per_kwh,pue,server_ratio,valid_from,note\n"
    "c,Europe/Berlin,22,6,0.21,1.3,1.2,2025-08-01T00:00:00Z,night\n"
    "c,Europe/Berlin,6,22,0.31,1.3,1.2,2025-08-01T00:00:00Z,day\n",
    "carbon.csv": "cluster,valid_from,valid_to,g_per_kwh,carbon_free_ratio,pue,note\n"
    "c,2025-08-01T00:00:00Z,2025-08-01T01:00:00Z,412.5,0.35,1.3,\n"
    "c,2025-08-01T01:00:00Z,,365,,,estimate\n",
    "power_feeds.csv": "cluster,feed,capacity_kw,server_ratio,note\nc,1A1,17.3,1.4,tap box\n",
    "budgets.csv": "cluster,account,cost_per_month,quota_gpus,valid_from,valid_to,note\n"
    "c,nlp,1000.00,8,2025-08-01T00:00:00Z,,\n",
    "inventory.csv": "node,gpu_index,gpu_uuid,gpu_model,valid_from,valid_to\n"
    "n1,0,GPU-5fd4f087-86f3-7a43-b711-4771313afc50,H100,2025-08-01T00:00:00Z,\n"
    "n1,1,GPU-5fd4f087-86f3-7a43-b711-4771313afc51,H100,2025-08-01T00:00:00Z,\n",
}


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
    found += [Golden(f"tables/input.{name}", text.encode()) for name, text in TABLES.items()]
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
