"""The numbers of the database as Prometheus text, for `/metrics`.

Example:
    # HELP goodput_ingested_rows_total Rows that were new when a source brought them.
    # TYPE goodput_ingested_rows_total counter
    goodput_ingested_rows_total{source="nvml"} 4824.0
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector

from goodput_app.settings import settings
from goodput_queries.scope import Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import polars as pl

    from goodput_queries.storage.store import Store

    Sample = tuple[Mapping[str, Any], float | int | None]
    Add = Callable[[str, str, str, Iterable[Sample]], None]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
TIMEOUT_S = 10.0  # Prometheus' default scrape timeout
LABEL_MAX_CHARS = 200

WINDOW_MS = 24 * 3_600_000
RATIOS = (
    ("goodput_ratio", "goodput_ratio", "Useful share of the capacity"),
    ("goodput_high_ratio", "goodput_hi_ratio", "The same if all unclassified time was useful"),
    ("goodput_definition_version", "definition_version", "Which definition of goodput that is"),
    ("goodput_availability_ratio", "availability_ratio", "Available share of the capacity"),
    ("goodput_allocation_ratio", "allocation_ratio", "Allocated share of what was available"),
    (
        "goodput_coverage_ratio",
        "coverage_ratio",
        "Share of allocated time that evidence classifies",
    ),
)


@dataclass(eq=False)  # the registry hashes it
class _Scrape(Collector):
    """The metrics of one answer."""

    metrics: list[Metric]

    def collect(self) -> list[Metric]:
        """Return the metrics."""
        return self.metrics


def exposition(store: Store) -> str:
    """Return all metrics of the store; an unknown value is omitted, not zero."""
    found: list[Metric] = []

    def add(name: str, kind: str, meaning: str, samples: Iterable[Sample]) -> None:
        metric = Metric(name.removesuffix("_total"), meaning, kind)
        for labels, value in samples:
            if value is not None:
                metric.add_sample(name, {key: _label(text) for key, text in labels.items()}, value)
        found.append(metric)

    def read(sql: str) -> pl.DataFrame:
        return store.read(sql, timeout_s=TIMEOUT_S)

    add("goodput_info", "gauge", "Version of goodput.", [({"version": version("goodput")}, 1)])
    tables = read(
        """select table_name as name, estimated_size as rows from duckdb_tables()
        where schema_name in ('raw', 'billing', 'state')
            and table_name not in ('catalog', 'built')
        order by name"""
    )
    add(
        "goodput_table_rows",
        "gauge",
        "Rows of a stored table, as the database estimates them.",
        [({"table": row["name"]}, row["rows"]) for row in tables.iter_rows(named=True)],
    )
    sources = read(
        """select source, sum(rows_new)::bigint as rows_new, sum(rejects)::bigint as rejects,
            epoch(max(loaded_at)) as loaded_at, epoch(max(window_end_at)) as window_end_at
        from state.ingested group by source order by source"""
    ).to_dicts()
    for name, kind, column, meaning in (
        ("ingested_rows_total", "counter", "rows_new", "Rows that were new as they were read."),
        (
            "rejected_rows_total",
            "counter",
            "rejects",
            "Rows that were rejected during ingest.",
        ),
        ("ingest_timestamp_seconds", "gauge", "loaded_at", "When a source last brought something."),
        ("data_timestamp_seconds", "gauge", "window_end_at", "The last moment a source speaks of."),
    ):
        samples = [({"source": row["source"]}, row[column]) for row in sources]
        add(f"goodput_{name}", kind, meaning, samples)
    _add_live_sources(store, add)
    _add_ledger(store, add)
    registry = CollectorRegistry()  # the library's own also has metrics of this process
    registry.register(_Scrape(found))
    return generate_latest(registry).decode()


def _add_live_sources(store: Store, add: Add) -> None:
    """Add how the sources are doing that are asked again and again."""
    sources = store.read("select * from marts.live_sources", timeout_s=TIMEOUT_S).to_dicts()
    for name, column, meaning in (
        ("age_seconds", "age_s", "Since the last successful poll of a live source began."),
        ("interval_seconds", "interval_s", "How often a live source is asked."),
        ("failures", "failures", "Failed polls of a live source in a row."),
        ("rows_last_hour", "rows_last_hour", "New rows of a live source in the last hour."),
    ):
        samples = [({k: row[k] for k in ("source", "origin")}, row[column]) for row in sources]
        add(f"goodput_live_source_{name}", "gauge", meaning, samples)


def _add_ledger(store: Store, add: Add) -> None:
    """Add what the ledger says of its last 24 hours, which end where its evidence ends."""
    until = store.read("select cluster, as_of_ms from state.built").drop_nulls().to_dicts()
    add(
        "goodput_ledger_timestamp_seconds",
        "gauge",
        "The moment up to which the ledger of a cluster has evidence.",
        [({"cluster": row["cluster"]}, row["as_of_ms"] / 1000) for row in until],
    )
    if not until:
        return
    as_of_ms = max(row["as_of_ms"] for row in until)
    scope = Scope(from_ms=as_of_ms - WINDOW_MS, to_ms=as_of_ms)
    summary = store.read("select * from marts.goodput_summary", scope=scope, timeout_s=TIMEOUT_S)
    for row in summary.iter_rows(named=True):
        for name, column, meaning in RATIOS:
            add(name, "gauge", f"{meaning}, last 24 h of the ledger.", [({}, row[column])])
    ladder = store.read("select * from marts.evidence_ladder", scope=scope, timeout_s=TIMEOUT_S)
    add(
        "goodput_headline_ratio",
        "gauge",
        "The first tile of the dashboard, by its rung of evidence, last 24 h of the ledger.",
        [({"rung": row["rung"]}, row["ratio"]) for row in ladder.iter_rows(named=True)],
    )
    by_category = store.read(
        """select category, "group", blame, gpu_ms / 1000 as gpu_s, cost
        from marts.ledger_by_blame order by category, blame""",
        scope=scope,
        timeout_s=TIMEOUT_S,
    ).to_dicts()
    code = settings().statement.currency
    for name, column, meaning in (
        ("goodput_gpu_seconds", "gpu_s", "GPU-seconds by category; they add up to the capacity"),
        ("goodput_cost", "cost", "What those GPU-seconds cost by the rate card"),
    ):
        samples = [
            (
                {k: row[k] for k in ("category", "group", "blame")}
                | ({"currency": code} if column == "cost" else {}),
                row[column],
            )
            for row in by_category
        ]
        add(name, "gauge", f"{meaning}, last 24 h of the ledger.", samples)


def _label(value: object) -> str:
    """Return a label value; unknown is the empty value."""
    return "" if value is None else str(value)[:LABEL_MAX_CHARS]
