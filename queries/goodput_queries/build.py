"""Bringing the ledger up to date: what changed, the runs it concerns, the hours they touch.

The order of the stages follows from what their SQL reads. Each stage is replaced in the way its
header names (`stages.py`), for the keys and hours that changed since the last build (`changes.py`).
A full build takes the same road with everything changed, so that both give the same rows.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import polars as pl

from goodput_queries import catalog, changes, placement, stages

if TYPE_CHECKING:
    import duckdb

    from goodput_queries.catalog import Model
    from goodput_queries.store import LocalStore

SUMMARY_SCHEMA = {"stage": pl.String, "rows": pl.Int64, "seconds": pl.Float64}


def build(store: LocalStore, *, is_full: bool = False) -> pl.DataFrame:
    """Build what changed since the last build; return stage, rows and seconds, one row a stage."""
    with store.writing() as cursor:
        cursor.execute(
            "create table if not exists intermediate.built "
            "(cluster varchar, as_of_ms bigint, sequence bigint)"
        )
        sequence = _scalar(cursor, "select coalesce(max(sequence), 0) from raw.ingested")
        before = _scalar(cursor, "select max(sequence) from intermediate.built")
        is_full = is_full or before is None
        if before == sequence and not is_full:
            return pl.DataFrame([], schema=SUMMARY_SCHEMA)
        work = _Build(cursor, None if is_full else before)
        for model in catalog.build_order():
            work.make(model)
        cursor.execute("delete from intermediate.built")
        cursor.execute(
            "insert into intermediate.built "
            "select cluster, as_of_ms, $1 from intermediate.int_clusters "
            "union all select null, null, $1",
            [sequence],
        )
    return pl.DataFrame(work.timings, schema=SUMMARY_SCHEMA, orient="row")


class _Build:
    """One build under way: since which load, and which hours its stages found changed.

    since: the last load that the build before saw; None: everything is built anew.
    """

    def __init__(self, cursor: duckdb.DuckDBPyConnection, since: int | None) -> None:
        self.cursor = cursor
        self.is_full = since is None
        self.timings: list[tuple[str, int, float]] = []
        self.dirty: dict[str, changes.Hours] = {}  # by stage
        self.readings = changes.reading_hours(cursor, since)
        self.writers = {
            "intermediate.int_gpu_reading_spans": self._note_reading_spans,
            "intermediate.int_holds": self._place,
            "temp.dirty_run_ids": self._note_dirty_run_ids,
            "temp.dirty_attempts": self._note_dirty_attempts,
        }
        self.makers = {
            "full": self._make_full,
            "job_runs": self._make_keyed,
            "run_ids": self._make_keyed,
            "attempts": self._make_keyed,
            "hourly": self._make_hourly,
        }
        cursor.execute(f"set variable built_sequence = {-1 if since is None else since}")
        if not self.is_full:
            cursor.execute(
                "create or replace temp table attempts_before as from intermediate.int_attempts"
            )

    def make(self, model: Model) -> None:
        """Bring one stage up to date."""
        started = time.perf_counter()
        if model.qualified_name in self.writers:
            rows = self.writers[model.qualified_name](model)
        elif model.materialised is not None:
            rows = self.makers[model.materialised](model)
        elif model.layer == catalog.TEMP_LAYER and not catalog.is_of_a_pass(model.qualified_name):
            stages.draft(self.cursor, model)
            rows = 0
        else:
            return
        self.timings.append((model.name, rows, time.perf_counter() - started))

    def _make_full(self, model: Model) -> int:
        hours, is_other, rows = stages.replace_all(
            self.cursor, model, model.sql, is_compared=not self.is_full
        )
        self.dirty[model.qualified_name] = changes.all_hours(self.cursor) if is_other else hours
        return rows

    def _make_keyed(self, model: Model) -> int:
        stages.draft(self.cursor, model)
        kind = str(model.materialised)
        before: changes.Hours = set()
        if kind == "job_runs":
            new = f"temp.{model.name}"
            old = f"(from {model.qualified_name} where {stages.KEYS[kind]})"
            changes.note_changed_job_runs(self.cursor, new, old)
            before = set() if self.is_full else changes.job_run_hours(self.cursor, new, old)
        hours, rows = stages.replace_keys(self.cursor, model, kind, is_full=self.is_full)
        self.dirty[model.qualified_name] = hours | before
        return rows

    def _make_hourly(self, model: Model) -> int:
        hours, rows = stages.replace_hours(self.cursor, model, self._hours_of(model))
        self.dirty[model.qualified_name] = hours
        return rows

    def _hours_of(self, model: Model) -> changes.Hours:
        """Return the hours for which an hourly stage is replaced: those its inputs changed in."""
        if model.layer == "intermediate" and not model.bounds:
            return self.readings
        every = changes.all_hours(self.cursor)
        if self.is_full:
            return every
        inputs = catalog.inputs(model)
        hours = set().union(*(found for name, found in self.dirty.items() if name in inputs))
        return (hours | changes.hours_since_last_end(self.cursor)) & every

    def _note_reading_spans(self, _: Model) -> int:
        """Widen each GPU's span of readings by the readings of the changed hours."""
        if self.is_full:
            self.cursor.execute("delete from intermediate.int_gpu_reading_spans")
        for first, last in changes.ranges(self.readings, len(self.readings)):
            stages.set_hours(self.cursor, first, last)
            self.cursor.execute(
                """create or replace temp table reading_spans as
                select gpu_uuid, min(first_ms) as first_ms, max(last_ms) as last_ms
                from (
                    select gpu_uuid, to_ms(min(ts)) as first_ms, to_ms(max(ts)) as last_ms
                    from raw.gpu_samples
                    where ts >= from_ms(build_from_ms()) and ts < from_ms(build_to_ms())
                    group by gpu_uuid
                    union all
                    from intermediate.int_gpu_reading_spans
                )
                group by gpu_uuid"""
            )
            self.cursor.execute("delete from intermediate.int_gpu_reading_spans")
            self.cursor.execute("insert into intermediate.int_gpu_reading_spans from reading_spans")
        return 0

    def _place(self, model: Model) -> int:
        """Put holds on GPUs; a job run whose holds moved has changed."""
        holds, conflicts = placement.place(self.cursor)
        self.cursor.execute(
            "create or replace temp table holds_before as from intermediate.int_holds"
        )
        for name, rows in (("int_holds", holds), ("int_hold_conflicts", conflicts)):
            self.cursor.register("placed", rows.to_arrow())
            hours, _, _ = stages.replace_all(
                self.cursor,
                catalog.models("intermediate")[name],
                "select * from placed",
                is_compared=not self.is_full,
            )
            self.dirty[f"intermediate.{name}"] = hours
            self.cursor.unregister("placed")
        self.cursor.execute(
            """insert into temp.changed_job_runs
            select distinct job_run_key
            from (
                (from intermediate.int_holds except from temp.holds_before)
                union all
                (from temp.holds_before except from intermediate.int_holds)
            )"""
        )
        return holds.height

    def _note_dirty_run_ids(self, model: Model) -> int:
        self.cursor.execute(f"create or replace {model.sql.split('create ', 1)[1]}")
        if self.is_full:
            changes.note_everything(self.cursor, model.name)
        else:
            changes.note_dirty_run_ids(self.cursor, self.readings)
        return 0

    def _note_dirty_attempts(self, model: Model) -> int:
        self.cursor.execute(f"create or replace {model.sql.split('create ', 1)[1]}")
        if self.is_full:
            changes.note_everything(self.cursor, model.name)
        elif changes.note_dirty_attempts(self.cursor):
            stages.draft(self.cursor, catalog.models(catalog.TEMP_LAYER)["job_events"])
        return 0


def _scalar(cursor: duckdb.DuckDBPyConnection, sql: str) -> int | None:
    value = cursor.execute(sql).fetchall()[0][0]
    return None if value is None else int(value)
