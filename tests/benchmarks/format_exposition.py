"""Scrapes of DCGM exporters in text, and other parsers.

Ours parses, brings into canonical units, makes wide and narrow rows, owners and inventory; what the
alternatives do is less and named so.
"""

import random
import re
from datetime import datetime, timedelta

from tests.benchmarks.formats import Alternative, Files, Format

from goodput_ingest.gpu_metrics import COUNTERS_FILE
from goodput_ingest.source import ReadOptions

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


def fields():
    """Return the names of the exporter's stock counters."""
    names = [line.split(",")[0] for line in COUNTERS_FILE.read_text().splitlines()]
    return [n for n in names if n.startswith("DCGM") and not OFF_BY_DEFAULT.search(n)]


def value(rng, field):
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


def write_scrapes(file, lines):
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


def prometheus_client(file, _):
    """Parse into Python objects."""
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415

    for family in text_string_to_metric_families(file.read_text()):
        for _ in family.samples:
            pass


def regular_expression(file, _):
    """Take lines apart with Python's re, labels left as text."""
    for line in file.read_text().splitlines():
        if match := SAMPLE.fullmatch(line):
            float(match[3])


EXPOSITION = Files(
    Format(
        name="Prometheus text",
        source="dcgm",
        unit="M lines",
        per_unit=1e6,
        budget_per_s=2e6,
        alternatives=(
            Alternative("prometheus_client (parse)", prometheus_client, ("prometheus_client",)),
            Alternative("re (parse, labels as text)", regular_expression),
        ),
        full=2_000_000,
        options=ReadOptions(cluster="bench"),
        others_max=200_000,  # they need the same time for each line
    ),
    write_scrapes,
)
