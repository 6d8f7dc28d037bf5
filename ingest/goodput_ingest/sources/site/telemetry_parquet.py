"""GPU readings that a site exports in bulk: wide Parquet, a row a GPU (or MIG instance) and moment.

| column | type | |
|---|---|---|
| `ts` | timestamp | required; with a zone, else in the zone that is given |
| `gpu_uuid` | text | required, `GPU-...` |
| `gpu_instance` | text | MIG instance as the inventory names it; default empty: a whole GPU |
| metrics | numbers | any of METRICS, base units: ratios 0 to 1, W, J, Hz, bytes, degrees Celsius |
| others | numbers | stored under their own names; texts are rejected |

Values that DCGM prints for "no value" and ratios over 1 become null, and the row is flagged. Rows
sorted by GPU and time, and row groups of some hundred thousand rows, are read fastest.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import polars as pl

from goodput_ingest.formats import parquet_columns
from goodput_ingest.formats.json_text.json_lines import EPOCH, LATEST
from goodput_ingest.source import Batch, RecordedFile, Reject
from goodput_queries.errors import IngestError, stated
from goodput_queries.storage.row_groups import ROW_GROUP

ROWS_PER_BATCH = 20 * ROW_GROUP  # parts overlap in time and cost a join
CHUNK_BYTES = 4 * 1024 * 1024
KEY = ("gpu_uuid", "gpu_instance", "ts")
RATIOS = (
    *("gpu_busy_ratio", "memory_busy_ratio", "engine_active_ratio", "sm_active_ratio"),
    *("sm_occupancy_ratio", "tensor_active_ratio", "dram_active_ratio", "fp64_active_ratio"),
    *("fp32_active_ratio", "fp16_active_ratio"),
)
MEASURES = (
    *("power_w", "energy_j", "sm_clock_hz", "memory_clock_hz", "gpu_temperature_c"),
    *("memory_temperature_c", "nvlink_tx_bytes_per_s", "nvlink_rx_bytes_per_s"),
    *("pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s"),
)
COUNTS = ("clocks_event_reasons", "memory_used_bytes")
METRICS = (*RATIOS, *MEASURES, *COUNTS)
BLANK_INTEGER = 9.2e18  # DCGM's blank 64-bit integers begin at 2^63 - 16 (dcgm_fields.h)
BLANK_FLOAT = 140_737_488_355_328.0  # DCGM_FP64_BLANK; the three after it say why
BLANK_FLOAT_KINDS = 8
RATIO_MAX = 1.0001


class TelemetryParquet(RecordedFile):
    """A Parquet file of GPU readings under canonical names."""

    name: ClassVar[str] = "telemetry-parquet"

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:
        """Say whether this is Parquet that has the moment, the GPU and a metric."""
        names = parquet_columns.names(path, head)
        return {"ts", "gpu_uuid"} <= names and bool(names & set(METRICS))

    def extract(self) -> Iterator[Batch]:
        """Yield `raw.gpu_samples` and `raw.gpu_samples_other`, some row groups at a time.

        Raises IngestError where the file is no Parquet, lacks a required column, has one of
        another type, or has times without a zone and none is given.
        """
        schema, groups = self._open()
        others = self._others(schema)
        content = self._digest_of_content()
        rejects = self._skipped_columns(schema)
        first = 0
        for number, part in enumerate(parquet_columns.parts(self.path, _heights(groups))):
            digest = hashlib.blake2b(
                f"{content}\n{number}\n{ROWS_PER_BATCH}\n{self.options.zone}".encode(),
                digest_size=16,
            ).hexdigest()
            keyed, incomplete = self._keyed(part, first)
            first += part.height
            yield Batch(
                "gpu_samples", _samples(keyed), self.name, str(self.path), digest,
                [*rejects, *incomplete],
            )  # fmt: skip
            rejects = []
            if others:
                yield Batch(
                    "gpu_samples_other", _narrow(keyed, others), self.name, str(self.path), digest
                )

    def _open(self) -> tuple[dict[str, pl.DataType], list[int]]:
        """Return the columns and the rows of each row group."""
        schema, groups = parquet_columns.described(self.path)
        missing = [name for name in ("ts", "gpu_uuid") if name not in schema]
        if missing or not set(schema) & set(METRICS):
            lacks = missing or ["any metric (engine_active_ratio, power_w ...)"]
            raise IngestError(
                f"{self.path}: telemetry-parquet: the file lacks {', '.join(lacks)}. "
                "The columns are described in goodput_ingest/sources/site/telemetry_parquet.py."
            )
        self._check_types(schema)
        return schema, groups

    def _check_types(self, schema: dict[str, pl.DataType]) -> None:
        moment = schema["ts"]
        if not isinstance(moment, pl.Datetime):
            raise IngestError(f"{self.path}: ts is {moment}, expected a timestamp.")
        if moment.time_zone is None and self.options.zone is None:
            raise IngestError(
                f"{self.path}: ts has no time zone. Name it with --timezone, such as UTC."
            )
        for name in ("gpu_uuid", "gpu_instance"):
            if name in schema and not _is_text(schema[name]):
                raise IngestError(f"{self.path}: {name} is {schema[name]}, expected text.")
        wrong = [n for n in METRICS if n in schema and not _is_number(schema[n])]
        if wrong:
            raise IngestError(
                f"{self.path}: {wrong[0]} is {schema[wrong[0]]}, expected a number in base units."
            )

    def _others(self, schema: dict[str, pl.DataType]) -> list[str]:
        known = {*KEY, *METRICS}
        return [n for n, kind in schema.items() if n not in known and kind.is_numeric()]

    def _skipped_columns(self, schema: dict[str, pl.DataType]) -> list[Reject]:
        known = {*KEY, *METRICS}
        return [
            Reject(None, f"telemetry-parquet: column {name} is {kind}, only numbers are stored.")
            for name, kind in schema.items()
            if name not in known and not _is_number(kind)
        ]

    def _digest_of_content(self) -> str:
        found = hashlib.sha256()  # processors have it built in
        with stated(IngestError, f"{self.path}: cannot be read"), self.path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                found.update(chunk)
        return found.hexdigest()

    def _keyed(self, part: pl.DataFrame, first: int) -> tuple[pl.DataFrame, list[Reject]]:
        """Return the rows with their key in the store's types, and those without a key."""
        zone = self.options.zone
        far = 2**52 if part.schema["ts"].time_unit == "ms" else 2**62  # type: ignore[attr-defined] # a Datetime
        # Polars panics at moments beyond the year 262,142
        moment: pl.Expr = pl.when(pl.col("ts").to_physical().is_between(-far, far)).then("ts")
        if part.schema["ts"].time_zone is None and zone is not None:  # type: ignore[attr-defined] # as above
            moment = moment.dt.replace_time_zone(zone.key, ambiguous="null", non_existent="null")
        instance = pl.col("gpu_instance") if "gpu_instance" in part.columns else pl.lit("")
        keyed = part.with_columns(
            moment.dt.convert_time_zone("UTC").dt.replace_time_zone(None).cast(pl.Datetime("us")),
            pl.col("gpu_uuid").cast(pl.String),
            instance.cast(pl.String).fill_null("").alias("gpu_instance"),
            pl.lit(self.name).alias("source"),
        )
        is_moment = pl.col("ts").is_between(EPOCH, LATEST, closed="left").fill_null(value=False)
        without = ~is_moment | (pl.col("gpu_uuid").fill_null("") == "")
        odd = keyed.with_row_index("row", offset=first + 1).filter(without)
        if odd.is_empty():
            return keyed, []
        rejects = [
            Reject(
                row,
                f"telemetry-parquet: row {row} has no ts from 1970 to 2199 or no gpu_uuid.",
                f"{ts} {uuid}",
            )
            for row, ts, uuid in odd.select(
                "row", pl.col("ts").cast(pl.String), "gpu_uuid"
            ).iter_rows()
        ]
        return keyed.filter(~without), rejects


def _is_text(kind: pl.DataType) -> bool:
    return isinstance(kind, (pl.String, pl.Categorical, pl.Enum, pl.Null))


def _is_number(kind: pl.DataType) -> bool:
    """Say whether a column holds numbers, or nothing at all."""
    return kind.is_numeric() or isinstance(kind, pl.Null)


def _heights(groups: list[int]) -> list[int]:
    """Return the rows of parts that hold whole row groups as far as these are small."""
    heights: list[int] = []
    size = 0
    for rows in groups:
        if size and size + rows > ROWS_PER_BATCH:
            heights.append(size)
            size = 0
        size += rows
        while size > ROWS_PER_BATCH:
            heights.append(ROWS_PER_BATCH)
            size -= ROWS_PER_BATCH
    return [*heights, size] if size else heights


def _samples(keyed: pl.DataFrame) -> pl.DataFrame:
    """Return rows of raw.gpu_samples: what is no value is null, and reported."""
    kinds = keyed.schema
    present = [name for name in METRICS if name in kinds and kinds[name].is_numeric()]
    # most columns are sound all through, and that is soon said
    sound = keyed.select(_is_sound(name, kinds[name]).all() for name in present).row(0)
    odd = [name for name, is_sound in zip(present, sound, strict=True) if not is_sound]
    is_odd = keyed.select(_is_no_value(name, kinds[name]).fill_null(value=False) for name in odd)
    flag = pl.any_horizontal(pl.lit(value=False), *is_odd).alias("is_flagged")
    named = (pl.when(is_odd[name]).then(pl.lit(name)) for name in odd)
    metrics = pl.concat_str([*named, pl.lit(None, pl.String)], separator=",", ignore_nulls=True)
    nulled = (pl.when(~is_odd[name]).then(name).alias(name) for name in odd)
    metrics = pl.when(metrics != "").then(metrics).alias("flagged_metrics")
    return keyed.with_columns(*nulled, flag, metrics).select(
        "source",
        *KEY,
        *(
            pl.col(name).cast(pl.Int64 if name in COUNTS else pl.Float64, strict=False)
            for name in present
        ),
        "is_flagged",
        *(["flagged_metrics"] if odd else []),
    )


def _is_sound(name: str, kind: pl.DataType) -> pl.Expr:
    """Say of values that they surely are some: in one comparison, NaN being above every number."""
    if kind != pl.Float64:
        return ~_is_no_value(name, kind)
    if name in RATIOS:
        return pl.col(name).is_between(0, RATIO_MAX)
    return pl.col(name).is_between(-BLANK_FLOAT, BLANK_FLOAT, closed="none")


def _is_no_value(name: str, kind: pl.DataType) -> pl.Expr:
    value = pl.col(name)
    if kind.is_integer():
        blank = value >= int(BLANK_INTEGER)
    else:
        kinds = BLANK_FLOAT + BLANK_FLOAT_KINDS
        blank = (value >= BLANK_INTEGER) | value.is_between(BLANK_FLOAT, kinds) | ~value.is_finite()
        blank = blank | (value <= -BLANK_FLOAT)  # of a damaged file: nothing is as far below zero
    if name in RATIOS:
        blank = blank | (value > RATIO_MAX) | (value < 0)
    return blank


def _narrow(keyed: pl.DataFrame, others: list[str]) -> pl.DataFrame:
    """Return the columns that the wide table lacks, a row a value."""
    rows = keyed.select("source", *KEY, *(pl.col(name).cast(pl.Float64) for name in others))
    values = [
        rows.select("source", *KEY, pl.lit(name).alias("metric"), pl.col(name).alias("value"))
        .filter(pl.col("value").is_not_null() & pl.col("value").is_finite())
        .filter(pl.col("value").is_between(-BLANK_FLOAT, BLANK_INTEGER, closed="none"))
        for name in others
    ]
    return pl.concat(values)
