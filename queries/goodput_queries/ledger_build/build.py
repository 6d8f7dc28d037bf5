"""Bringing the ledger up to date: what changed, the runs it concerns, the hours they touch.

The order of the stages follows from what their SQL reads. Each stage is replaced in the way that
its header names (`materialise.py`), for the keys (`dirty_jobs.py`) and hours (`dirty.py`) that
changed since the last build. A full build takes the same road with everything changed, so that both
give the same rows.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import polars as pl

from goodput_queries.catalog import models
from goodput_queries.evidence import forgetting, retention
from goodput_queries.evidence.implausible import reject_implausible_rows
from goodput_queries.ledger_build import dirty, dirty_gpus, dirty_jobs, materialise, watermarks
from goodput_queries.ledger_build.placement import place as placement
from goodput_queries.ledger_build.placement import scope

if TYPE_CHECKING:
    import duckdb

    from goodput_queries.catalog.models import Model
    from goodput_queries.storage.store import LocalStore

# what is written to them is written by loads alone
LOADED = {f"raw.{name}" for name in ("gpu_instances", "gpus", "nodes")}
# made of the archive too, where readings were dropped
ROLL_UPS = {f"marts.{name}" for name in ("ledger_hourly_by_node", "statement_hourly")}
# nodes in telemetry and events, and until when their ownership is inferred
NODES = {"staging.stg_node_clusters", "staging.stg_unscheduled"}
# they say from when to when the ledger goes
BOUNDING = {"intermediate.int_clusters", "intermediate.int_gpu_units"}
SUMMARY_SCHEMA = {"stage": pl.String, "rows": pl.Int64, "seconds": pl.Float64}


def build(store: LocalStore, *, is_full: bool = False) -> pl.DataFrame:
    """Build what changed since the last build; return stage, rows and seconds, one row a stage."""
    with store.writing() as cursor:
        sequence = _scalar(cursor, "select coalesce(max(sequence), 0) from state.ingested")
        before = _scalar(cursor, "select max(sequence) from state.built")
        since = None if is_full else before
        if since == sequence:
            return pl.DataFrame([], schema=SUMMARY_SCHEMA)
        loaded = dirty.loaded_tables(cursor, since)
        is_rejected = reject_implausible_rows(cursor, loaded, since)
        if is_rejected or ("raw.gpu_samples" in loaded and retention.reopen_hours(cursor)):
            forgetting.forget_ledger(cursor)
            since = None
        work = _Build(cursor, since, _note_reading_series(cursor, since))
        for model in models.build_order():
            work.make(model)
        cursor.execute("delete from state.built")
        cursor.execute(
            "insert into state.built "
            "select cluster, as_of_ms, $1 from intermediate.int_clusters "
            "union all select null, null, $1",
            [sequence],
        )
    return pl.DataFrame(work.timings, schema=SUMMARY_SCHEMA, orient="row")


def _note_reading_series(cursor: duckdb.DuckDBPyConnection, since: int | None) -> dirty.Hours:
    """Carry on the series of readings; return the hours whose telemetry may have changed."""
    hours = dirty.reading_hours(cursor, since)
    for first, last in dirty.ranges(hours, len(hours)):
        materialise.set_hours(cursor, first, last)
        watermarks.note_reading_series(cursor, since)
    return hours


def _frozen_until(cursor: duckdb.DuckDBPyConnection) -> int:
    """Return the first hour whose readings are kept: earlier ones are not made again."""
    return retention.kept_from_ms(cursor, "gpu_samples") // dirty.HOUR_MS


class _Build:
    """One build under way: since which load, and which hours its stages found changed.

    since: the last load of the previous build; None: a full build.
    readings: the hours whose telemetry may have changed.
    """

    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, since: int | None, readings: dirty.Hours
    ) -> None:
        self.cursor = cursor
        self.is_full = since is None
        self.timings: list[tuple[str, int, float]] = []
        self.dirty: dict[str, dirty.Hours] = {}  # by stage
        self.every: dirty.Hours | None = None
        self.added: dirty.Hours | None = None
        self.partly: dict[str, dirty.Hours] = {}  # of the GPUs in temp.reopened alone
        self.same: set[str] = set()  # stages that came out as they were
        self.loaded = dirty.loaded_tables(cursor, since)
        self.others: set[str] = set()  # stages of which all hours depend, where they differ
        self.readings = readings
        self.writers = {
            "intermediate.int_holds": self._place,
            "temp.changed_inferred_holds": self._note_changed_inferred_holds,
            "temp.dirty_run_ids": self._note_dirty_run_ids,
            "temp.dirty_job_runs": self._note_dirty_job_runs,
            "temp.dirty_attempts": self._note_dirty_attempts,
        }
        self.makers = {
            "full": self._make_full,
            "job_runs": self._make_keyed,
            "run_ids": self._make_keyed,
            "runs": self._make_keyed,
            "attempts": self._make_keyed,
            "hourly": self._make_hourly,
            "merged": self._make_merged,
            "compared": self._make_compared,
        }
        self.frozen_until = _frozen_until(cursor)
        dirty.set_constants(cursor)
        if "raw.job_events" in self.loaded or self.is_full:
            watermarks.note_event_hosts(cursor, since)
        dirty_gpus.begin(cursor)
        cursor.execute(f"set variable built_sequence = {-1 if since is None else since}")

    def make(self, model: Model) -> None:
        """Bring one stage up to date."""
        started = time.perf_counter()
        if self._has_nothing_to_tell(model):
            self.dirty[model.qualified_name] = set()
            rows = 0
        elif model.qualified_name in self.writers:
            rows = self.writers[model.qualified_name](model)
        elif model.materialised is not None:
            rows = self.makers[model.materialised](model)
        elif model.layer == models.TEMP_LAYER and not models.is_of_a_pass(model.qualified_name):
            materialise.draft(self.cursor, model)
            rows = 0
        else:
            return
        self.timings.append((model.name, rows, time.perf_counter() - started))

    def _has_nothing_to_tell(self, model: Model) -> bool:
        """Say whether a stage is empty, and stays so for want of what it needs."""
        tables = (model.qualified_name, model.needs)
        return model.needs is not None and not any(
            self.cursor.execute(f"select 1 from {table} limit 1").fetchall() for table in tables
        )

    def _is_unmoved(self, model: Model) -> bool:
        """Say whether nothing that a stage is made of has changed."""
        tables, stages_read = models.evidence(model.qualified_name)
        return not (self.is_full or tables & self.loaded or stages_read - self.same)

    def _make_full(self, model: Model) -> int:
        if _may_stand(model) and self._is_unmoved(model):
            self.same.add(model.qualified_name)
            self.dirty[model.qualified_name] = set()
            return _scalar(self.cursor, f"select count(*) from {model.qualified_name}") or 0
        if model.qualified_name in BOUNDING:
            self.every = None
        hours, is_other, rows = materialise.replace_all(
            self.cursor, model, model.sql, is_compared=not self.is_full
        )
        if is_other:
            self.others.add(model.qualified_name)
            hours = self._every_hour()
        elif model.directives.get("change_tracking") == "all" and not self.is_full:
            self.same.add(model.qualified_name)
        self._note(model, hours)
        return rows

    def _note(self, model: Model, hours: dirty.Hours) -> None:
        """Keep the hours in which a stage differs: of all GPUs, or of those it has reopened."""
        (self.partly if model.reopens else self.dirty)[model.qualified_name] = hours

    def _make_keyed(self, model: Model) -> int:
        materialise.draft(self.cursor, model)
        kind = str(model.materialised)
        before: dirty.Hours = set()
        old = f"from {model.qualified_name} where {materialise.KEYS[kind]}"
        if kind == "job_runs":
            new = f"temp.{model.name}"
            dirty_jobs.note_changed_job_runs(self.cursor, new, old)
            old = f"from {dirty_jobs.JOB_RUNS_BEFORE}"  # asked once: finding them takes a while
            if not self.is_full:
                before = dirty.job_run_hours(self.cursor, new, dirty_jobs.JOB_RUNS_BEFORE)
        hours, rows = materialise.replace_keys(self.cursor, model, kind, old, is_full=self.is_full)
        self._note(model, hours | before)
        return rows

    def _make_hourly(self, model: Model) -> int:
        if model.qualified_name in self.dirty:
            return 0  # computed in the same pass as another one
        together = models.of_the_same_pass(model)
        whole, part = self._hours_of(model)
        inputs = models.inputs(model)
        changed, rows = materialise.replace_hours(
            self.cursor, together, whole,
            is_compared=not self.is_full, part=part, reopened_by=inputs,
        )  # fmt: skip
        for made in together:
            self._note(made, changed - part)
        if part:
            self._note_part(model, inputs, changed & part)
        return rows

    def _make_merged(self, model: Model) -> int:
        """Merge the rows of new loads into a stage; where nodes changed, those of all loads."""
        is_full = self.is_full or not self.others.isdisjoint(NODES)
        since = -1 if is_full else _scalar(self.cursor, "select built_sequence()")
        self.cursor.execute(f"set variable merged_sequence = {since}")
        materialise.draft(self.cursor, model)
        return materialise.merge(self.cursor, model, is_full=is_full)

    def _make_compared(self, model: Model) -> int:
        """Rebuild a stage; temp.<name>_before keeps its previous rows."""
        self.cursor.execute(
            f"create or replace temp table {model.name}_before as from {model.qualified_name}"
        )
        _, _, rows = materialise.replace_all(
            self.cursor, model, model.sql, is_compared=not self.is_full
        )
        return rows

    def _note_changed_inferred_holds(self, model: Model) -> int:
        self._empty(model)
        if self.is_full:
            dirty_jobs.note_everything(self.cursor, model.name)
        elif "staging.stg_inferred_holds" not in self.dirty:  # it was made
            dirty_jobs.note_changed_inferred_holds(self.cursor)
        return 0

    def _note_part(self, model: Model, inputs: set[str], hours: dirty.Hours) -> None:
        """Keep the hours in which a stage was replaced for some GPUs alone."""
        name = model.qualified_name
        if model.is_compared:
            self.dirty[name] = self.dirty[name] | hours
        else:
            self.partly[name] = hours
            dirty_gpus.pass_on(self.cursor, name, inputs, hours)

    def _hours_of(self, model: Model) -> tuple[dirty.Hours, dirty.Hours]:
        """Return the hours for which an hourly stage is replaced: those its inputs changed in.

        First those in which it is replaced for every GPU, then those of some GPUs alone.
        """
        every = self._every_hour()
        if model.qualified_name in ROLL_UPS and self.is_full:
            return every, set()  # those whose readings were dropped come from the archive
        every = {hour for hour in every if hour >= self.frozen_until}
        if _is_of_readings(model):
            return {hour for hour in self.readings if hour >= self.frozen_until}, set()
        if self.is_full:
            return every, set()
        inputs = models.inputs(model)
        whole = set().union(*(found for name, found in self.dirty.items() if name in inputs))
        part = set().union(*(found for name, found in self.partly.items() if name in inputs))
        whole |= self._hours_since_last_end()
        if not model.is_by_gpu:
            whole |= part
        return whole & every, (part - whole) & every

    def _every_hour(self) -> dirty.Hours:
        """Return every hour of the ledger; asked once, after the stages that bound it."""
        if self.every is None:
            self.every = dirty.all_hours(self.cursor)
        return self.every

    def _hours_since_last_end(self) -> dirty.Hours:
        """Return the hours over which the end of the evidence moved; asked once it is known."""
        if self.added is None:
            self.added = dirty.hours_since_last_end(self.cursor)
        return self.added

    def _place(self, model: Model) -> int:
        """Put holds on GPUs; a job run whose holds moved has changed."""
        conflicts = models.of_layer("intermediate")["int_hold_conflicts"]
        is_full = self._is_fleet_other()
        place = placement.place if is_full else scope.place_again
        held, contested = place(self.cursor)
        for stage, rows, whose in (
            (model, held, ["job_run_key"]),
            (conflicts, contested, ["job_run_key", "kept_by"]),
        ):
            self.cursor.register("placed", rows.to_arrow())
            self.cursor.execute(f"create or replace temp table {stage.name} as from placed")
            self.cursor.unregister("placed")
            hours = materialise.replace_places(
                self.cursor, stage, [] if is_full else whose, is_compared=not self.is_full
            )
            self._note(stage, hours)
        return held.height

    def _is_fleet_other(self) -> bool:
        """Say whether the GPUs that can be held are others than in the build before."""
        return self.is_full or "intermediate.int_slots" in self.others

    def _empty(self, model: Model) -> None:
        """Recreate a table that code fills."""
        self.cursor.execute(f"create or replace {model.sql.split('create ', 1)[1]}")

    def _note_dirty_run_ids(self, model: Model) -> int:
        self._empty(model)
        # an event that names only its host may belong to another cluster than was thought
        if self.is_full or not self.others.isdisjoint(NODES):
            dirty_jobs.note_everything(self.cursor, model.name)
        else:
            dirty_jobs.note_dirty_run_ids(
                self.cursor,
                self.readings,
                has_new_errors=bool({"raw.gpu_events", "raw.gpus"} & self.loaded),
            )
            dirty_jobs.note_first_event(self.cursor)
        return 0

    def _note_dirty_job_runs(self, model: Model) -> int:
        self._empty(model)
        if self.is_full:
            dirty_jobs.note_everything(self.cursor, model.name)
        else:
            dirty_jobs.note_dirty_job_runs(self.cursor)
        return 0

    def _note_dirty_attempts(self, model: Model) -> int:
        self._empty(model)
        if self.is_full:
            dirty_jobs.note_everything(self.cursor, model.name)
        elif dirty_jobs.note_dirty_attempts(self.cursor):
            dirty_jobs.note_first_event(self.cursor)
            materialise.draft(self.cursor, models.of_layer(models.TEMP_LAYER)["job_events"])
        return 0


def _may_stand(model: Model) -> bool:
    """Say whether it is known of a stage's inputs if they changed: all are loaded or compared."""
    return (
        models.evidence(model.qualified_name)[0] <= LOADED and "change_tracking" in model.directives
    )


def _is_of_readings(model: Model) -> bool:
    return any(m.name == model.name for m in models.of_readings())


def _scalar(cursor: duckdb.DuckDBPyConnection, sql: str) -> int | None:
    value = cursor.execute(sql).fetchall()[0][0]
    return None if value is None else int(value)
