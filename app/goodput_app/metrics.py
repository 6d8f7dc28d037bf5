"""The numbers of the database as Prometheus text, for `/metrics`.

Example:
    # HELP goodput_ingested_rows_total Rows that were new when a source brought them.
    # TYPE goodput_ingested_rows_total counter
    goodput_ingested_rows_total{source="nvml"} 4824
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from goodput_queries import catalog

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl

    from goodput_queries.store import Store

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
TIMEOUT_S = 10.0  # Prometheus gives up on a scrape after that, unless told otherwise
LABEL_MAX_CHARS = 200

Sample = tuple["Mapping[str, Any]", "float | int | None"]


def exposition(store: Store) -> str:
    """Return all metrics of the store; a value that is not known is left out, not zero."""
    lines: list[str] = []

    def add(name: str, kind: str, meaning: str, samples: Iterable[Sample]) -> None:
        lines.extend((f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"))
        lines.extend(
            f"{name}{_labels(labels)} {value}" for labels, value in samples if value is not None
        )

    def read(sql: str) -> pl.DataFrame:
        return store.read(sql, timeout_s=TIMEOUT_S)

    add("goodput_info", "gauge", "Version of goodput.", [({"version": version("goodput")}, 1)])
    tables = read(
        """select table_name as name, estimated_size as rows from duckdb_tables()
        where schema_name = 'raw' and table_name <> 'catalog' order by name"""
    )
    add(
        "goodput_table_rows",
        "gauge",
        "Rows of a raw table, as the database estimates them.",
        [({"table": row["name"]}, row["rows"]) for row in tables.iter_rows(named=True)],
    )
    sources = read(
        """select source, sum(rows_new)::bigint as rows_new, sum(rejects)::bigint as rejects,
            epoch(max(loaded_at)) as loaded_at, epoch(max(window_end_at)) as window_end_at
        from raw.ingested group by source order by source"""
    ).to_dicts()
    for name, kind, column, meaning in (
        ("ingested_rows_total", "counter", "rows_new", "Rows that were new as they were read."),
        (
            "rejected_rows_total",
            "counter",
            "rejects",
            "Rows that were set aside as they were read.",
        ),
        ("ingest_timestamp_seconds", "gauge", "loaded_at", "When a source last brought something."),
        ("data_timestamp_seconds", "gauge", "window_end_at", "The last moment a source speaks of."),
    ):
        samples = [({"source": row["source"]}, row[column]) for row in sources]
        add(f"goodput_{name}", kind, meaning, samples)
    marts = catalog.models("marts")
    if "ledger_by_category" in marts:
        by_category = read(
            """select category, "group", blame, sum(gpu_ms)::bigint / 1000.0::double as gpu_s
            from marts.ledger_by_category group by all order by all"""
        )
        add(
            "goodput_gpu_seconds",
            "gauge",
            "GPU-seconds of the ledger by category; they add up to the capacity.",
            [
                ({k: row[k] for k in ("category", "group", "blame")}, row["gpu_s"])
                for row in by_category.iter_rows(named=True)
            ],
        )
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, Any]) -> str:
    inner = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{inner}}}" if inner else ""


def _escaped(value: object) -> str:
    """Return a label value that cannot end its quotes or its line; unknown is the empty value."""
    text = "" if value is None else str(value)[:LABEL_MAX_CHARS]
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
