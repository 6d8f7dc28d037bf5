"""What a metric of a GPU exporter is: its canonical name, unit, true kind and range.

A scrape's TYPE and HELP say what somebody wrote into a counters file, and units change with the
exporter's release. So nothing is taken from them: `catalogue.csv` has a row per name that exporters
use, with a label in braces where the label decides; `dcgm_renamed.csv` the old and the new spelling
of all other DCGM fields (DCGM 4.6.0, dcgmlib/dcgm_field_naming.py); `exporters.csv` how each
exporter's names begin and where they are documented.
"""

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib import resources
from typing import Final, Literal, NamedTuple, cast, get_args

from goodput_ingest.site_files import site_files
from goodput_queries.errors import IngestError

OnMig = Literal["whole", "instance", "none"]
Kind = Literal[
    "gauge", "counter", "rate", "bitmask", "latch", "window", "unknown", "owner", "elsewhere"
]

WIDE: Final = (
    *("gpu_busy_ratio", "memory_busy_ratio", "engine_active_ratio", "sm_active_ratio"),
    *("sm_occupancy_ratio", "tensor_active_ratio", "dram_active_ratio", "fp64_active_ratio"),
    *("fp32_active_ratio", "fp16_active_ratio", "power_w", "energy_j", "sm_clock_hz"),
    *("memory_clock_hz", "clocks_event_reasons", "gpu_temperature_c", "memory_temperature_c"),
    *("memory_used_bytes", "nvlink_tx_bytes_per_s", "nvlink_rx_bytes_per_s"),
    *("pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s"),
)
"""Metrics that are columns of raw.gpu_samples; all others are rows of raw.gpu_samples_other."""
PERCENT_OR_RATIO: Final = "percent_or_ratio"
RATIO_SUFFIX: Final = "_RATIO"
# DCGM 4.6.1 and exporter 4.9 say the base unit in the name: old stem + suffix is the old metric
UNIT_SUFFIXES: Final = {
    "_BYTES_PER_SECOND": "_bytes_per_s",
    "_BYTES": "_bytes",
    "_HERTZ": "_hz",
    "_CELSIUS": "_c",
    "_WATTS": "_w",
    "_JOULES_TOTAL": "_j",
    "_SECONDS_TOTAL": "_s",
}
OTEL: Final = re.compile(r"(?:hw|gpu[._]dcgm)[._][\w.]+")
OTEL_UNIT: Final = re.compile(
    r"(?:_(?:bytes|ratio|watts|joules|celsius|hertz|seconds))?(?:_total)?$"
)
OF_GPUS: Final = re.compile(r"(?i)(?:^|[_:.])(?:gpus?|rocm)(?:[_:.]|$)")
# what names GPUs and reads none: what orders, counts or reports them
OF_OTHERS: Final = ("goodput_", "gpu_operator_", "kube_", "slurm_", "ray_", "kueue_", "volcano_")
NAMES_REMEMBERED: Final = 65_536  # a hostile file may make up names


@dataclass(frozen=True)
class Metric:
    """What stands behind a raw name.

    metric: canonical name, unit included; for a name that is in no catalogue the name itself.
    scale: raw value * scale is in the unit of `metric`; None where the name alone does not decide
        between percent and ratio (`GPU_UTIL_RATIO`): then the values of a target have to.
    kind: what it really is, whatever TYPE says: `rate` is per second already, `latch` the last
        event, `window` a count in a sliding window, `unknown` not in the catalogue; `owner` names
        the GPU's owner in its labels and is no reading of the GPU, `elsewhere` is of no GPU.
    low, high: range of valid values, in the unit of `metric`; outside is a fault of the reading.
    on_mig: a reading of a MIG instance's series is of the `whole` GPU and repeats on each, is of
        the `instance`, or is `none` (printed as 0 though nothing was measured).
    """

    metric: str
    vendor: str
    scale: float | None = 1.0
    kind: Kind = "unknown"
    low: float = float("-inf")
    high: float = float("inf")
    on_mig: OnMig = "instance"

    @property
    def column(self) -> str | None:
        """The column of raw.gpu_samples; None for rows of raw.gpu_samples_other."""
        return self.metric if self.metric in _WIDE else None


class Exporter(NamedTuple):
    """How an exporter's names begin.

    unknown: what a name is that is not in the catalogue: `kept` under itself, also `shared` with
        programs that are no GPU exporter, or of something `elsewhere`.
    without_gpu: why its series name no GPU; '' for most.
    """

    prefix: str
    exporter: str
    unknown: str
    without_gpu: str


@lru_cache(maxsize=NAMES_REMEMBERED)
def resolve(raw_name: str) -> Metric | None:
    """Return what a raw metric name stands for; None for a name of no GPU exporter.

    Tried in turn: the exact name (OpenTelemetry's in any spelling, with or without its unit);
    DCGM's other spelling of it; an old name with its base unit appended; the name less `_total`,
    which OpenMetrics appends to counters; the end of the name, since AMD's exporter can put any
    prefix before it. A name that only begins like an exporter's comes back under itself, unscaled,
    so that nothing it says is lost.
    """
    known = _catalogue()
    if (found := known.get(raw_name) or known.get(_otel(raw_name))) is not None:
        return found
    if (found := _with_unit(raw_name)) is not None:
        return found
    if raw_name.endswith("_total") and (found := known.get(raw_name.removesuffix("_total"))):
        return found
    exporter = exporter_of(raw_name)
    if (exporter is None or exporter.unknown == "shared") and (found := _behind_prefix(raw_name)):
        return found
    if exporter is None or exporter.unknown == "elsewhere":
        return None
    return Metric(_renamed().get(raw_name, raw_name), exporter.exporter)


def exporter_of(raw_name: str) -> Exporter | None:
    """Return the exporter whose names begin so."""
    name = _otel(raw_name)
    return next((one for one in _exporters() if name.startswith(one.prefix)), None)


def is_exporters(raw_name: str) -> bool:
    """Say whether only a GPU exporter uses a name: others' begin with `gpu_`, too."""
    found, exporter = resolve(raw_name), exporter_of(raw_name)
    is_shared = exporter is not None and exporter.unknown == "shared"
    return found is not None and (found.kind != "unknown" or not is_shared)


def is_gpu_metric(raw_name: str) -> bool:
    """Say whether series of this name may be of a GPU, by the name alone or with a label."""
    return resolve(raw_name) is not None or _otel(raw_name) in _with_labels()


def unread_names(raw_names: Iterable[str]) -> list[str]:
    """Return those names that look like readings of GPUs by an exporter that is not read."""
    return sorted(
        name
        for name in raw_names
        if OF_GPUS.search(name) and not name.startswith(OF_OTHERS) and not is_gpu_metric(name)
    )


def _with_unit(raw_name: str) -> Metric | None:
    """Return the metric of an old name with its base unit appended, as FB_USED_BYTES."""
    if not raw_name.startswith("DCGM_FI_"):
        return None
    known = _catalogue()
    stem = raw_name.removesuffix(RATIO_SUFFIX)
    if stem != raw_name and (old := known.get(stem)) and old.metric.endswith("_ratio"):
        # where the old name was 0 to 1 already there is nothing to decide
        return replace(old, scale=1.0 if old.scale == 1 else None)
    for suffix, unit in UNIT_SUFFIXES.items():
        stem = raw_name.removesuffix(suffix)
        if stem != raw_name and (old := known.get(stem)) and old.metric.endswith(unit):
            return replace(old, scale=1.0)
    return None


def _behind_prefix(raw_name: str) -> Metric | None:
    """Return the AMD metric that the name ends with, behind a site's own prefix."""
    known = _catalogue()
    start = raw_name.find("_")
    while start != -1:
        found = known.get(raw_name[start + 1 :])
        if found is not None and found.vendor == "amd":
            return found
        start = raw_name.find("_", start + 1)
    return None


def _otel(raw_name: str) -> str:
    """Return a name of OpenTelemetry as Prometheus spells it, less the unit; others as they are."""
    name, brace, labels = raw_name.partition("{")
    if OTEL.fullmatch(name) is None:
        return raw_name
    return OTEL_UNIT.sub("", name.replace(".", "_"), count=1) + brace + labels


@cache
def _catalogue() -> dict[str, Metric]:
    return {row["raw_name"]: _metric(row) for row in _with_site("catalogue.csv")}


@cache
def _with_labels() -> frozenset[str]:
    return frozenset(name.partition("{")[0] for name in _catalogue() if "{" in name)


@cache
def _exporters() -> tuple[Exporter, ...]:
    return tuple(
        Exporter(*(row[f] for f in Exporter._fields)) for row in _with_site("exporters.csv")
    )


@cache
def _renamed() -> dict[str, str]:
    return {row["deprecated_name"]: row["name_dcgm_4_6"] for row in rows("dcgm_renamed.csv")}


def _metric(row: dict[str, str]) -> Metric:
    """Return the metric of a row; raises IngestError naming what is wrong with it."""
    name, numbers = row["raw_name"], {}
    for column in ("scale", "low", "high"):
        if row[column] != PERCENT_OR_RATIO:
            try:
                numbers[column] = float(row[column])
            except ValueError:
                raise IngestError(
                    f"metric {name}: {column} is {row[column]!r}, no number."
                ) from None
    for column, known in (("kind", get_args(Kind)), ("on_mig", get_args(OnMig))):
        if row[column] not in known:
            raise IngestError(
                f"metric {name}: {column} is {row[column]!r}, expected one of {', '.join(known)}."
            )
    return Metric(
        metric=row["metric"],
        vendor=row["vendor"],
        scale=numbers.get("scale"),
        kind=cast("Kind", row["kind"]),
        low=numbers["low"],
        high=numbers["high"],
        on_mig=cast("OnMig", row["on_mig"]),
    )


def rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file of this package."""
    text = resources.files(__package__).joinpath(name).read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def read_again() -> None:
    """Read the names again, with the site's; raises IngestError for a row that is wrong."""
    for cached in (_catalogue, _with_labels, _exporters):
        cached.cache_clear()
    resolve.cache_clear()
    _catalogue()
    _exporters()


def _with_site(name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file and those of the site's file of this name."""
    found = rows(name)
    for path in site_files("exporters", name):
        lines = path.read_text("utf-8", "replace").splitlines()
        needed = set(found[0]) - {"note", "source", "without_gpu"}
        for number, row in enumerate(csv.DictReader(lines), 2):
            if lacking := sorted(one for one in needed if not row.get(one)):
                raise IngestError(f"{path}: line {number} has no {', '.join(lacking)}.")
            found.append({column: row.get(column) or "" for column in found[0]})
    return found


_WIDE = frozenset(WIDE)
