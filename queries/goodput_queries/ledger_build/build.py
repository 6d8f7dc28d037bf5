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

from goodput_queries import serving_objectives
from goodput_queries.catalog import models
from goodput_queries.evidence import forgetting, retention
from goodput_queries.evidence.implausible import reject_implausible_rows
from goodput_queries.ledger_build import dirty, dirty_jobs, materialise, watermarks
from goodput_queries.ledger_build.node_hours import HOUR_MS, Hours, NodeHours, ranges
from goodput_queries.ledger_build.parts.distribute import Parts
from goodput_queries.ledger_build.parts.unpublished import note_unpublished_days
from goodput_queries.ledger_build.placement.incremental import place_again
from goodput_queries.ledger_build.placement.set_wise import STAGES, place_all, write

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
# its hours are those of serving telemetry, which reach farther than those of readings
SERVING = "intermediate.int_serving_timeline"
# they say from when to when the ledger goes
BOUNDING = {"intermediate.int_clusters", "intermediate.int_gpu_units"}
SUMMARY_SCHEMA = {"stage": pl.String, "rows": pl.Int64, "seconds": pl.Float64}


def build(store: LocalStore, *, is_full: bool = False) -> pl.DataFrame:
    """Build what changed since the last build; return stage, rows and seconds, one row a stage."""
    with store.writing() as cursor:
        sequence = _scalar(cursor, "select coalesce(max(sequence), 0) from state.ingested")
        before = _scalar(cursor, "select max(sequence) from state.built")
        has_other_objectives = serving_objectives.keep(cursor, store.serving_objectives)
        since = None if is_full or has_other_objectives else before
        if since == sequence:
            return pl.DataFrame([], schema=SUMMARY_SCHEMA)
        loaded = dirty.loaded_tables(cursor, since)
        of_lake, parts = store.of_lake, None
        is_rejected = of_lake.reject_implausible_readings(cursor, since)
        is_rejected |= reject_implausible_rows(cursor, loaded, since)
        if dirty.has_new_engines_of_known_requests(cursor, loaded, since):
            since = None
        if is_rejected or ("raw.gpu_samples" in loaded and retention.reopen_hours(cursor)):
            forgetting.forget_ledger(cursor)
            since = None
        if of_lake.lake is not None:
            parts = Parts(cursor, of_lake.lake, of_lake.engine, of_lake.on_task)
        cursor.execute(f"set variable built_sequence = {-1 if since is None else since}")
        work = _Build(cursor, since, _note_reading_series(cursor, since, parts), parts)
        for model in models.build_order():
            work.make(model)
        if parts is not None:
            note_unpublished_days(cursor, work.dirty, sequence or 0)
        cursor.execute("delete from state.built")
        cursor.execute(
            "insert into state.built "
            "select cluster, as_of_ms, $1 from intermediate.int_clusters "
            "union all select null, null, $1",
            [sequence],
        )
    return pl.DataFrame(work.timings, schema=SUMMARY_SCHEMA, orient="row")


def _note_reading_series(
    cursor: duckdb.DuckDBPyConnection, since: int | None, parts: Parts | None
) -> Hours:
    """Carry on the series of readings; return the hours whose telemetry may have changed."""
    hours = dirty.reading_hours(cursor, since)
    if parts is not None:
        watermarks.note_reading_series(cursor, parts.new_series(hours))
        parts.note_buckets()
        return hours
    for first, last in ranges(hours, len(hours)):
        materialise.set_hours(cursor, first, last)
        watermarks.note_reading_series(cursor)
    return hours


class _Build:
    """One build under way: since which load, and where its stages differ from those before.

    since: the last load of the previous build; None: a full build.
    readings: the hours whose telemetry may have changed.
    parts: the tasks of a build whose readings are in a lake.
    """

    def __init__(
        self,
        cursor: duckdb.DuckDBPyConnection,
        since: int | None,
        readings: Hours,
        parts: Parts | None,
    ) -> None:
        self.cursor = cursor
        self.parts = parts
        self.is_full = since is None
        self.timings: list[tuple[str, int, float]] = []
        self.dirty: dict[str, NodeHours] = {}  # by stage
        self.unchanged: set[str] = set()  # stages, of those that track all changes
        self.every: Hours | None = None
        self.added: NodeHours | None = None
        self.loaded = dirty.loaded_tables(cursor, since)
        self.readings = readings
        self.serving = dirty.serving_hours(cursor, since)
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
        # earlier hours cannot be computed again: their readings were dropped
        self.frozen_until = retention.kept_from_ms(cursor, "gpu_samples") // HOUR_MS
        dirty.set_constants(cursor)
        if "raw.job_events" in self.loaded or self.is_full:
            watermarks.note_event_hosts(cursor, since)

    def make(self, model: Model) -> None:
        """Bring one stage up to date."""
        started = time.perf_counter()
        if self._can_skip_empty_source(model):
            self.dirty[model.qualified_name] = NodeHours()
            self.unchanged.add(model.qualified_name)
            rows = 0
        elif self._is_without_rows(model):
            rows = self._make_empty(model)
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

    def _can_skip_empty_source(self, model: Model) -> bool:
        """Say whether a stored stage is empty, and stays so since its source is."""
        tables = (model.qualified_name, *model.sources)
        is_of_a_source = model.materialised and model.sources and not model.is_of_dirty_keys
        return bool(is_of_a_source) and not any(self._has_rows(table) for table in tables)

    def _is_without_rows(self, model: Model) -> bool:
        """Say whether a stage has no rows in this build, since nothing that it reads has any."""
        return model.is_of_dirty_keys and not self._has_rows(str(model.skip_if_empty))

    def _has_rows(self, table: str) -> bool:
        if self.parts is not None and self.parts.has_readings(table):
            return True
        return bool(self.cursor.execute(f"select 1 from {table} limit 1").fetchall())

    def _can_reuse(self, model: Model) -> bool:
        """Say whether nothing that a stage is made of has changed; all of it must be tracked."""
        tables, stages_read = models.evidence(model.qualified_name)
        is_tracked = tables <= LOADED and model.is_compared
        return is_tracked and not (
            self.is_full or tables & self.loaded or stages_read - self.unchanged
        )

    def _make_full(self, model: Model) -> int:
        name = model.qualified_name
        if self._can_reuse(model):
            self.unchanged.add(name)
            self.dirty[name] = NodeHours()
            return _scalar(self.cursor, f"select count(*) from {name}") or 0
        if name in BOUNDING:
            self.every = None
        hours, is_other, rows = materialise.replace_all(
            self.cursor, model, model.sql, is_compared=not self.is_full
        )
        if is_other:
            hours = NodeHours(self._every_hour())
        elif model.directives.get("change_tracking") == "all" and not self.is_full:
            self.unchanged.add(name)
        self.dirty[name] = hours
        return rows

    def _make_empty(self, model: Model) -> int:
        """Draft a stage without rows; where it is stored those of its dirty keys go."""
        materialise.draft_empty(self.cursor, model)
        return 0 if model.materialised is None else self._replace_keys(model)

    def _make_keyed(self, model: Model) -> int:
        materialise.draft(self.cursor, model)
        return self._replace_keys(model)

    def _replace_keys(self, model: Model) -> int:
        kind = str(model.materialised)
        before = NodeHours()
        old = f"from {model.qualified_name} where {materialise.KEYS[kind]}"
        if kind == "job_runs":
            new = f"temp.{model.name}"
            dirty_jobs.note_changed_job_runs(self.cursor, new, old)
            old = f"from {dirty_jobs.JOB_RUNS_BEFORE}"  # asked once: finding them takes a while
            if not self.is_full:
                before = dirty.job_run_hours(self.cursor, new, dirty_jobs.JOB_RUNS_BEFORE)
        hours, rows = materialise.replace_keys(self.cursor, model, kind, old, is_full=self.is_full)
        self.dirty[model.qualified_name] = hours | before
        return rows

    def _make_hourly(self, model: Model) -> int:
        if model.qualified_name in self.dirty:
            return 0  # computed in the same pass as another one
        hours = self._hours_of(model)
        if self.parts is not None and self.parts.computes(model):
            together = self.parts.group_of(model)
            changed, rows = self.parts.replace_hours(together, hours)
        else:
            together = models.of_the_same_pass(model)
            changed, rows = materialise.replace_hours(
                self.cursor, together, hours, is_compared=not self.is_full
            )
        for made in together:
            self.dirty[made.qualified_name] = changed
        return rows

    def _make_merged(self, model: Model) -> int:
        """Merge the rows of new loads into a stage; where nodes changed, those of all loads."""
        is_full = self._have_nodes_changed()
        since = -1 if is_full else _scalar(self.cursor, "select built_sequence()")
        self.cursor.execute(f"set variable merged_sequence = {since}")
        if self.parts is not None and self.parts.computes(model):
            hours = dirty.reading_hours(self.cursor, since)
            self.parts.draft(model, hours)
        else:
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

    def _hours_of(self, model: Model) -> NodeHours:
        """Return where an hourly stage is replaced: where its inputs changed."""
        every = self._every_hour()
        if model.qualified_name == SERVING:
            return NodeHours(hour for hour in self.serving if hour >= self.frozen_until)
        if model.qualified_name in ROLL_UPS and self.is_full:
            return NodeHours(every)  # those whose readings were dropped come from the archive
        kept = {hour for hour in every | self.readings if hour >= self.frozen_until}
        if model in models.of_readings():
            return NodeHours(self.readings & kept)
        if self.is_full:
            return NodeHours(every & kept)
        found = self._hours_since_last_end()
        for name in models.inputs(model) & self.dirty.keys():
            found |= self.dirty[name]
        return (found if model.is_by_node else found.of_all_nodes()).within(every & kept)

    def _every_hour(self) -> Hours:
        """Return every hour of the ledger; asked once, after the stages that bound it."""
        if self.every is None:
            self.every = dirty.all_hours(self.cursor)
        return self.every

    def _hours_since_last_end(self) -> NodeHours:
        """Return the hours over which the end of the evidence moved; asked once it is known."""
        if self.added is None:
            self.added = NodeHours(dirty.hours_since_last_end(self.cursor))
        return self.added

    def _have_nodes_changed(self) -> bool:
        """Say whether nodes, or until when their ownership is inferred, are others than before."""
        return not self.unchanged >= NODES

    def _place(self, _: Model) -> int:
        """Put holds on GPUs; a job run whose holds moved has changed."""
        stages = models.of_layer("intermediate")
        is_full = "intermediate.int_slots" not in self.unchanged
        rows = place_all(self.cursor) if is_full else write(self.cursor, place_again(self.cursor))
        for name in STAGES.values():
            stage = stages[name]
            if not is_full and not self._has_rows("temp.dirty_nodes"):
                self.dirty[stage.qualified_name] = NodeHours()
                continue
            self.dirty[stage.qualified_name] = materialise.replace_placed(
                self.cursor, stage, is_full=is_full, is_compared=not self.is_full
            )
        return rows

    def _empty(self, model: Model) -> None:
        """Recreate a table that code fills."""
        self.cursor.execute(f"create or replace {model.sql.split('create ', 1)[1]}")

    def _note_changed_inferred_holds(self, model: Model) -> int:
        self._empty(model)
        if self.is_full:
            dirty_jobs.note_everything(self.cursor, model.name)
        elif "staging.stg_inferred_holds" not in self.unchanged:
            dirty_jobs.note_changed_inferred_holds(self.cursor)
        return 0

    def _note_dirty_run_ids(self, model: Model) -> int:
        self._empty(model)
        # an event that names only its host may belong to another cluster than was thought
        if self._have_nodes_changed():
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


def _scalar(cursor: duckdb.DuckDBPyConnection, sql: str) -> int | None:
    value = cursor.execute(sql).fetchall()[0][0]
    return None if value is None else int(value)
