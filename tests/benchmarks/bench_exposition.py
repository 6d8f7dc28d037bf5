"""Scrapes of DCGM exporters end to end into the DuckDB file, beside other parsers.

    python tests/benchmarks/bench_exposition.py --lines 2000000

Prints one row: work, budget, ours, the alternatives. Ours reads the file, hashes it, parses, brings
into canonical units, makes wide and narrow rows, owners and inventory, and commits them; what the
alternatives do is less and named so. `cpu` is time on all cores, which a busy machine changes less.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import resource
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from goodput_ingest.gpu_metrics import COUNTERS_FILE
from goodput_ingest.load import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.store import LocalStore

if TYPE_CHECKING:
    from collections.abc import Callable

BUDGET_LINES_PER_S = 2e6
NODES, GPUS, INTERVAL_S = 16, 8, 30
START = datetime(2026, 11, 20)  # noqa: DTZ001 -- moments are naive, in UTC
# what an exporter prints with its stock counters file (etc/default-counters.csv), less labels
OFF_BY_DEFAULT = re.compile(
    "SM_ACTIVE|SM_OCCUPANCY|ENFORCED|EVENT_REASONS|VIOLATION|PROF_NVLINK|EXP_|ECC_|REMAP_PENDING|DRIVER"
)
LABELS = (
    '{{gpu="{gpu}",UUID="GPU-6f0c1c2e-3b7a-4d51-{node:04x}-0d1c2b3a{gpu:04x}",'
    'pci_bus_id="00000000:{bus:02X}:00.0",device="nvidia{gpu}",modelName="NVIDIA H100 80GB HBM3",'
    'Hostname="gpu-{node:04}",DCGM_FI_DRIVER_VERSION="570.124.06",hpc_job="{job}"}} '
)
SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)\{(.*)\} (\S+)")
PARSED_BY_OTHERS = 200_000  # lines; they need the same time for each


def fields() -> list[str]:
    """Return the names of the exporter's stock counters."""
    names = [line.split(",")[0] for line in COUNTERS_FILE.read_text().splitlines()]
    return [n for n in names if n.startswith("DCGM") and not OFF_BY_DEFAULT.search(n)]


def value(rng: random.Random, field: str) -> str:
    """Return what an exporter could print for a field."""
    if "ACTIVE" in field:
        return f"{rng.random():.6f}"
    if "POWER" in field:
        return f"{rng.uniform(70, 700):.6f}"
    if "ENERGY" in field or "BYTES" in field:
        return str(rng.randrange(10**12))
    if any(part in field for part in ("XID", "REMAP", "REPLAY", "VGPU")):
        return "0"
    return str(rng.randrange(100))


def write_scrapes(file: Path, lines: int) -> int:
    """Write about so many lines as our scraper records them; return how many."""
    rng = random.Random(1)  # noqa: S311 -- no secret
    values = {field: [value(rng, field) for _ in range(997)] for field in fields()}
    labels = [
        [LABELS.format(gpu=g, node=n, bus=16 + g, job=481516 + n) for g in range(GPUS)]
        for n in range(NODES)
    ]
    written = number = 0
    with file.open("w") as out:
        while written < lines:
            at = START + timedelta(seconds=INTERVAL_S * (number // NODES))
            node = number % NODES
            text = [f"# scraped_at {at.isoformat()}Z http://gpu-{node:04}:9400/metrics\n"]
            for field, known in values.items():
                text.append(f"# HELP {field} Help text of a field.\n# TYPE {field} gauge\n")
                text += [
                    f"{field}{labels[node][g]}{known[(number * 31 + g) % 997]}\n"
                    for g in range(GPUS)
                ]
            out.write("".join(text))
            written += 1 + len(values) * (2 + GPUS)
            number += 1
    return written


def ours(file: Path, folder: Path) -> tuple[float, float]:
    """Read the file into a database; return seconds and seconds of all cores."""
    with contextlib.closing(LocalStore(folder / "ours.duckdb")) as store:
        store.read("select 1")
        started, cpu = time.perf_counter(), cpu_s()
        summary = ingest(store, "dcgm", [file], ReadOptions(cluster="bench"))
        store.read("select 1")
        found = time.perf_counter() - started, cpu_s() - cpu
        if summary.rows_new == 0 or summary.rejects:
            raise SystemExit("not all was loaded")
        return found


def prometheus_client(text: str) -> None:
    """Parse into Python objects."""
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415

    for family in text_string_to_metric_families(text):
        for _ in family.samples:
            pass


def regular_expression(text: str) -> None:
    """Take lines apart with Python's re, labels left as text."""
    for line in text.splitlines():
        if match := SAMPLE.fullmatch(line):
            float(match[3])


def polars_regular_expression(text: str) -> None:
    """Let Polars take lines apart with one expression, labels left as text."""
    lines = pl.Series("line", text.splitlines())
    lines.str.extract_groups(SAMPLE.pattern).struct.unnest().with_columns(
        pl.col("3").cast(pl.Float64, strict=False)
    )


ALTERNATIVES: dict[str, Callable[[str], None]] = {
    "prometheus_client (parse only)": prometheus_client,
    "re (parse only, labels as text)": regular_expression,
    "Polars regex (parse only, labels as text)": polars_regular_expression,
}


def cpu_s() -> float:
    """Return the seconds of all cores that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def rate(lines: int, seconds: float) -> str:
    """Return a rate as people write it."""
    return f"{lines / seconds / 1e6:.2f} M lines/s"


def main() -> None:
    """Write the file, read it all ways, print the row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=2_000_000)
    wanted = parser.parse_args().lines
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scrapes.prom"
        lines = write_scrapes(file, wanted)
        seconds, cpu = ours(file, Path(folder))
        with file.open() as opened:
            text = opened.read(int(file.stat().st_size * min(1, PARSED_BY_OTHERS / lines)))
        text = text[: text.rfind("\n") + 1]
        others: list[str] = []
        for name, parse in ALTERNATIVES.items():
            started = time.perf_counter()
            try:
                parse(text)
            except ImportError:
                others.append(f"{name}: not installed")
                continue
            others.append(f"{name}: {rate(text.count(chr(10)), time.perf_counter() - started)}")
    print(  # noqa: T201 -- that is what it is for
        f"| exposition text, {lines / 1e6:.1f} M lines, into the file "
        f"| >= {BUDGET_LINES_PER_S / 1e6:g} M lines/s "
        f"| {rate(lines, seconds)} ({seconds:.2f} s, cpu {cpu:.2f} s) | {'; '.join(others)} |"
    )


if __name__ == "__main__":
    main()
