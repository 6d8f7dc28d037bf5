"""The answer to a scrape, in the format that Prometheus asks for.

Numbers of the ledger are computed once a build, so that a scrape of an unchanged database costs a
few small selects.

Example:
    # HELP goodput_ingested_rows_total New rows by source.
    # TYPE goodput_ingested_rows_total counter
    goodput_ingested_rows_total{source="nvml"} 4824.0
"""

import threading

import polars as pl
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import choose_encoder

from goodput_app.distribution import version
from goodput_app.process.own_cost import own_cost
from goodput_app.server.metrics import ledger
from goodput_app.server.metrics.families import Samples
from goodput_app.server.metrics.objectives import add_objectives
from goodput_app.server.metrics.open_findings import FIRST_WAIT_S, OpenFindings
from goodput_queries.database import LocalStore

TIMEOUT_S = 10.0  # Prometheus' default scrape timeout
ORIGINS_MAX = 200  # a followed folder has an origin a file
_TABLES = """
    select table_name as name, estimated_size as rows from duckdb_tables()
    where schema_name in ('raw', 'billing', 'state') and table_name not in ('catalog', 'built')
    order by name
"""
_SOURCES = """
    select source, sum(rows_new)::bigint as rows_new, sum(rejects)::bigint as rejects,
        epoch(max(loaded_at)) as loaded_at, epoch(max(window_end_at)) as window_end_at
    from state.ingested group by source order by source
"""
_BUILT = """
    select coalesce(
        string_agg(concat_ws(':', cluster, as_of_ms, sequence), ',' order by cluster), ''
    )
    from state.built
"""
_COUNTED = """
    select coalesce(string_agg(concat_ws(':', cluster, until_ms), ',' order by cluster), '')
    from state.counted_until
"""
SOURCES = {
    "goodput_ingested_rows_total": "rows_new",
    "goodput_rejected_rows_total": "rejects",
    "goodput_ingest_timestamp_seconds": "loaded_at",
    "goodput_data_timestamp_seconds": "window_end_at",
}
LIVE_SOURCES = {
    "goodput_live_source_age_seconds": "age_s",
    "goodput_live_source_interval_seconds": "interval_s",
    "goodput_live_source_failures": "failures",
    "goodput_live_source_rows_last_hour": "rows_last_hour",
}


class Metrics:
    """The metrics of a store; safe to ask from several threads."""

    def __init__(self, store: LocalStore, *, first_wait_s: float = FIRST_WAIT_S) -> None:
        """first_wait_s: how long the first scrape waits for the findings."""
        self._store = store
        self._findings = OpenFindings(store, first_wait_s=first_wait_s)
        self._lock = threading.Lock()
        self._built: tuple[str, dict[str, Metric], dict[str, int]] | None = None
        self._counted: tuple[str, dict[str, Metric]] | None = None

    def answer(self, accept: str = "") -> tuple[bytes, str]:
        """Return the exposition and its content type; an unknown value is left out.

        accept: the header of the request. Raises GoodputError where the database does not answer.
        """
        registry = CollectorRegistry()  # the library's own also has metrics of this process
        registry.register(self.samples())
        encode, content_type = choose_encoder(accept)
        return encode(registry), content_type

    def samples(self) -> Samples:
        """Return all metrics as of now; raises GoodputError where the database does not answer."""
        samples = Samples()
        samples.add("goodput_info", [({"version": version()}, 1)])
        tables = self._read(_TABLES)
        samples.add(
            "goodput_table_rows",
            [({"table": row["name"]}, row["rows"]) for row in tables.iter_rows(named=True)],
        )
        cost = own_cost(self._store)
        for name, value in (
            ("goodput_process_cpu_seconds_total", cost.cpu_s),
            ("goodput_process_memory_bytes", cost.memory_bytes),
            ("goodput_build_seconds_total", cost.built_s),
            ("goodput_evaluation_seconds_total", cost.evaluated_s),
        ):
            samples.add(name, [({}, value)])
        _add_rows(samples, SOURCES, self._read(_SOURCES), ("source",))
        live = _folded(self._read("select * from marts.live_sources order by source, origin"))
        _add_rows(samples, LIVE_SOURCES, live, ("source", "origin"))
        ends = self._add_ledger(samples)
        if ends:
            self._findings.add_to(samples, max(ends.values()))
        return samples

    def _read(self, sql: str) -> pl.DataFrame:
        return self._store.read(sql, timeout_s=TIMEOUT_S)

    def _add_ledger(self, samples: Samples) -> dict[str, int]:
        """Add what the ledger says, as known of this build; return the ends of evidence."""
        built, counted = self._read(_BUILT).item(), self._read(_COUNTED).item()
        with self._lock:
            if self._built is None or self._built[0] != built:
                found, ends = Samples(), ledger.clusters(self._store)
                ledger.add_window(self._store, found, ends)
                if "goodput_objectives" in self._store.variables:
                    add_objectives(self._store, found)
                self._built = (built, found.metrics, ends)
            _, metrics, ends = self._built
            if self._counted is None or self._counted[0] != counted:
                found = Samples()
                ledger.add_counted(self._store, found, ends)
                self._counted = (counted, found.metrics)
            samples.metrics |= metrics | self._counted[1]
        return ends


def _folded(live: pl.DataFrame) -> pl.DataFrame:
    """Return live sources, those after the first ORIGINS_MAX as one `other` a source: its worst."""
    columns = ["source", "origin", *LIVE_SOURCES.values()]
    rest = live.slice(ORIGINS_MAX).with_columns(origin=pl.lit("other"))
    worst = [pl.max(name) for name in LIVE_SOURCES.values() if name != "rows_last_hour"]
    other = rest.group_by("source", "origin").agg(*worst, pl.sum("rows_last_hour")).sort("source")
    return pl.concat([live.head(ORIGINS_MAX).select(columns), other.select(columns)])


def _add_rows(
    samples: Samples, columns: dict[str, str], rows: pl.DataFrame, labels: tuple[str, ...]
) -> None:
    """Add metrics of one row a source."""
    for name, column in columns.items():
        samples.add(
            name,
            [({k: row[k] for k in labels}, row[column]) for row in rows.iter_rows(named=True)],
        )
