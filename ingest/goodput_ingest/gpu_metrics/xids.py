"""Events from gauges: Xids from that which holds the last one, and health checks that fail.

A change of its value is an event. The gauge of Xids is a latch: it has neither the time nor the
number of Xids, and only the last of several between two readings. The kernel log is authoritative;
an event from here has the time of the reading that showed it: `approximate` after a recent previous
reading, else `at_or_before`. What a health check says is so when it is read.
"""

from datetime import timedelta
from typing import Any, Final

import polars as pl

from goodput_ingest.formats.parsed import INSTANT
from goodput_ingest.gpu_metrics.memory import Memory

LATCH: Final = "xid_last"
HEALTHS: Final = {  # whose series may be one a part: the value of one that has failed
    "gpu_is_healthy": pl.col("value") == 0,
    "gpu_health_status": pl.col("value") > 10,
}
BEFORE: Final[dict[str, Any]] = {  # columns of what is remembered of a GPU
    "gpu_uuid": pl.String,
    "code_before": pl.Int32,
    "known_until": INSTANT,
    "seen_before": INSTANT,
}


def events(
    seen: pl.DataFrame,
    label_sets: pl.DataFrame,
    facts: pl.DataFrame,
    cluster: str | None,
    memory: Memory,
) -> pl.DataFrame:
    """Return rows of raw.gpu_events; the codes that the latches now hold are remembered.

    A reading without the gauge changes nothing: recent exporters print it from the first Xid on,
    so that its first appearance is an event if the GPU's other series were there before. A latch
    that is read again (polls of a server overlap) adds no event.
    """
    known = facts.filter(pl.col("value").is_not_null())
    name = pl.col("metric").str.split("{").list.first()
    is_failed = pl.coalesce(pl.when(name == one).then(failed) for one, failed in HEALTHS.items())
    codes = {
        "xid": known.filter(pl.col("metric") == LATCH).with_columns(code="value"),
        "unhealthy": known.filter(name.is_in(HEALTHS)).with_columns(code=is_failed),
    }
    found = [_of_kind(kind, seen, label_sets, of, memory) for kind, of in codes.items()]
    return pl.concat(found, how="diagonal").with_columns(cluster=pl.lit(cluster, dtype=pl.String))


def _of_kind(
    kind: str, seen: pl.DataFrame, label_sets: pl.DataFrame, values: pl.DataFrame, memory: Memory
) -> pl.DataFrame:
    """Return the events of a kind; values: gpu_uuid, ts and code, 0 for none."""
    codes = values.group_by("gpu_uuid", "ts").agg(pl.col("code").max().cast(pl.Int32))
    latches = memory.latches[kind]
    known = dict(latches)
    latest = codes.sort("ts").group_by("gpu_uuid").agg(pl.col("code", "ts").last())
    for gpu_uuid, code, ts in latest.iter_rows():
        if gpu_uuid not in latches or latches[gpu_uuid][1] < ts:
            latches[gpu_uuid] = code, ts
    of_note = codes.filter(pl.col("code") != 0)["gpu_uuid"].unique().to_list()
    if not of_note:
        return pl.DataFrame(schema={"gpu_uuid": pl.String})
    readings = _readings(seen.filter(pl.col("gpu_uuid").is_in(of_note)), label_sets, codes)
    before = pl.DataFrame(
        [(uuid, *known.get(uuid, (None, None)), memory.seen_at(uuid)) for uuid in of_note],
        schema=BEFORE,
        orient="row",
    )
    held = readings.join(before, on="gpu_uuid", how="left", maintain_order="left").with_columns(
        held=pl.coalesce(pl.col("code").forward_fill().over("gpu_uuid"), "code_before").fill_null(0)
    )
    earlier = held.with_columns(
        held_before=pl.coalesce(pl.col("held").shift().over("gpu_uuid"), "code_before").fill_null(
            0
        ),
        ts_before=pl.coalesce(pl.col("ts").shift().over("gpu_uuid"), "seen_before"),
    )
    since = pl.col("ts") - pl.col("ts_before")
    is_watched = since.is_between(timedelta(0), memory.hole).fill_null(value=False)
    is_known = (pl.col("ts") <= pl.col("known_until")).fill_null(value=False)
    is_event = (pl.col("held") != 0) & (pl.col("held") != pl.col("held_before")) & ~is_known
    is_xid = kind == "xid"
    return earlier.filter(is_event).select(
        "gpu_uuid",
        "node",
        "pci_bus_id",
        "ts",
        "message",
        pl.lit(kind).alias("kind"),
        (pl.col("held") if is_xid else pl.lit(None, pl.Int32)).alias("code"),
        pl.when(is_watched | (not is_xid))
        .then(pl.lit("approximate"))
        .otherwise(pl.lit("at_or_before"))
        .alias("ts_precision"),
    )


def _readings(seen: pl.DataFrame, label_sets: pl.DataFrame, codes: pl.DataFrame) -> pl.DataFrame:
    """Return a row a GPU and moment: its place, the message and the code of the latch, if read."""
    places = label_sets.select("node", "pci_bus_id", "message").with_row_index("labels")
    return (
        seen.join(places, on="labels", how="left")
        .group_by("gpu_uuid", "ts")
        .agg(pl.col("node", "pci_bus_id", "message").max())
        .join(codes, on=["gpu_uuid", "ts"], how="left")
        .sort("gpu_uuid", "ts")
    )
