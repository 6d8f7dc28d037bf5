"""Bringing the ledger up to date: stage by stage, in the order that their SQL asks for.

Of each stage the build computes what depends on what is dirty (`dirty.close`), replaces it in the
way that its header names (`materialise.py`), and adds to the dirty set where the rows differ now. A
full build takes the same road with everything dirty, so that both give the same rows.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

import duckdb
import polars as pl

from goodput_queries.catalog import models
from goodput_queries.catalog.models import Model
from goodput_queries.errors import UnbalancedError
from goodput_queries.evidence import forgetting, log_clusters, retention
from goodput_queries.evidence.implausible import reject_implausible_rows
from goodput_queries.ledger_build import balance, dirty, dirty_runs, materialise, watermarks
from goodput_queries.ledger_build.dirty import Change, DirtySet
from goodput_queries.ledger_build.dirty_hours import DirtyHours, ranges
from goodput_queries.ledger_build.lake import Lake, Tasks
from goodput_queries.ledger_build.placement.incremental import place_again
from goodput_queries.ledger_build.placement.set_wise import STAGES, place_all, write
from goodput_queries.objectives import serving as serving_objectives
from goodput_queries.objectives.serving import ServingObjective
from goodput_queries.storage.database_file import DatabaseFile

# of the runs that are dirty
EVENTS = ("event_numbers", "renumbered_events", "inferred_events", "google_events")
SUMMARY_SCHEMA = {"stage": pl.String, "rows": pl.Int64, "seconds": pl.Float64}


def build(
    file: DatabaseFile,
    lake: Lake | None,
    objectives: Sequence[ServingObjective] | None,
    *,
    is_full: bool = False,
) -> pl.DataFrame:
    """Build what changed since the last build; return stage, rows and seconds, one row a stage.

    lake: that the database is of. objectives: of serving; None: as the last build had.

    Raises UnbalancedError where its checks fail: the ledger stays as it was, and
    `state.refused_builds` has the reason.
    """
    try:
        return _built(file, lake, objectives, is_full=is_full)
    except UnbalancedError as error:
        if error.sequence is not None:
            with file.writing() as cursor:
                balance.note_refused(cursor, error)
        raise


def _built(
    file: DatabaseFile,
    lake: Lake | None,
    objectives: Sequence[ServingObjective] | None,
    *,
    is_full: bool,
) -> pl.DataFrame:
    """Build in one transaction, which an error rolls back."""
    with file.cursor() as cursor:  # no transaction of a writer: what is kept of answers stays
        is_full |= not serving_objectives.are_kept(cursor, objectives)
        if not is_full and _loaded(cursor) == _built_until(cursor):
            return pl.DataFrame([], schema=SUMMARY_SCHEMA)
    with file.writing() as cursor:
        sequence = _loaded(cursor)
        since = None if is_full else _built_until(cursor)
        if not serving_objectives.are_kept(cursor, objectives):
            serving_objectives.keep(cursor, objectives or ())
        if not is_full:
            balance.raise_if_refused(cursor, sequence)
        dirty_set = dirty.of_loads(cursor, _after_clearing(cursor, lake, since))
        cursor.execute(f"set variable built_sequence = {dirty.last_load(dirty_set.since)}")
        parts = None if lake is None else lake.tasks(cursor)
        _extend_watermarks(cursor, dirty_set, parts)
        work = _Build(cursor, dirty_set, parts)
        for model in models.build_order():
            work.make(model)
        balance.verify(cursor, work.dirty, sequence)
        if lake is not None:
            lake.note_changed_days(cursor, work.dirty, sequence)
        cursor.execute("delete from state.refused_builds")
        cursor.execute("delete from state.built")
        cursor.execute(
            "insert into state.built "
            "select cluster, as_of_ms, $1 from intermediate.int_clusters "
            "union all select null, null, $1",
            [sequence],
        )
    return pl.DataFrame(work.timings, schema=SUMMARY_SCHEMA, orient="row")


def _after_clearing(
    cursor: duckdb.DuckDBPyConnection, lake: Lake | None, since: int | None
) -> int | None:
    """Remove rows that cannot be; return `since`, or None where all has to be computed again."""
    loaded = dirty.loaded_tables(cursor, since)
    is_rejected = lake is not None and lake.reject_implausible_readings(cursor, since)
    is_rejected |= reject_implausible_rows(cursor, loaded, since)
    if is_claimed := log_clusters.claim(cursor, loaded, since):
        cursor.execute("delete from state.event_hosts")  # noted again by a full build
    if (
        is_rejected
        or is_claimed
        or ("raw.gpu_samples" in loaded and retention.reopen_hours(cursor))
    ):
        forgetting.forget_ledger(cursor)
        return None
    return None if dirty.has_new_engines_of_known_requests(cursor, loaded, since) else since


def _extend_watermarks(
    cursor: duckdb.DuckDBPyConnection, dirty_set: DirtySet, parts: Tasks | None
) -> None:
    """Carry on the series of readings and the times of event hosts by what was loaded."""
    if parts is not None:
        watermarks.note_reading_series(cursor, parts.new_series(dirty_set.readings))
        parts.note_buckets()
    else:
        for first, last in ranges(dirty_set.readings, len(dirty_set.readings)):
            materialise.set_hours(cursor, first, last)
            watermarks.note_reading_series(cursor)
    watermarks.set_reading_margin(cursor)
    if "raw.job_events" in dirty_set.loaded or dirty_set.is_full:
        watermarks.note_event_hosts(cursor, dirty_set.since)


class _Build:
    """One build under way: what is dirty so far, and the tasks of a build of a lake."""

    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, dirty_set: DirtySet, parts: Tasks | None
    ) -> None:
        self.cursor = cursor
        self.dirty = dirty_set
        self.parts = parts
        self.timings: list[tuple[str, int, float]] = []
        for model in models.of_layer(models.TEMP_LAYER).values():
            if model.is_written_by_code:
                cursor.execute(f"create or replace {model.sql.split('create ', 1)[1]}")

    def make(self, model: Model) -> None:
        """Bring one stage up to date, with those that are computed in the same pass."""
        if model.qualified_name in self.dirty.stages:
            return
        started = time.perf_counter()
        changes = self._changes(model)
        seconds = time.perf_counter() - started
        self.dirty = self.dirty.after(changes)
        if model.qualified_name == dirty.BOUNDING:
            self.dirty = dirty.bounded(self.cursor, self.dirty)
        if model.qualified_name in changes:
            self.timings.append((model.name, changes[model.qualified_name].rows, seconds))

    def _changes(self, model: Model) -> dict[str, Change]:
        """Compute what of a stage is dirty; return how it came out, by stage."""
        name = model.qualified_name
        again = dirty.close(self.dirty, model)
        if not again or self._stays_empty(model):
            return {name: Change(is_none=True)}
        if name == "intermediate.int_holds":
            return self._place()
        if name == "temp.dirty_run_ids":
            dirty_runs.seed(self.cursor, self.dirty)
        elif name == "temp.dirty_job_runs":
            if dirty_runs.close(self.cursor, is_full=self.dirty.is_full):
                for table in EVENTS:
                    self._draft(models.of_layer(models.TEMP_LAYER)[table])
        elif model.materialised == "hourly":
            return self._replace_hours(model, again)
        elif model.materialised is not None:
            return {name: self._replace(model)}
        elif models.is_drafted(model) and not models.is_of_a_pass(name):
            self._draft(model)
        else:
            return {}
        return {name: Change()}

    def _stays_empty(self, model: Model) -> bool:
        """Say whether a stored stage is empty, and stays so since its sources are."""
        is_of_sources = model.materialised and model.sources and not model.is_of_dirty_keys
        return bool(is_of_sources) and not self._has_rows(model.qualified_name, *model.sources)

    def _has_rows(self, *sources: str) -> bool:
        """Say whether one of these tables has a row."""
        is_of_parts = self.parts is not None and any(map(self.parts.has_readings, sources))
        return is_of_parts or materialise.has_rows(self.cursor, sources)

    def _draft(self, model: Model) -> bool:
        """Draft a stage; say whether it may have rows: none where none of its sources has."""
        may_have_rows = not model.sources or self._has_rows(*model.sources)
        (materialise.draft if may_have_rows else materialise.draft_empty)(self.cursor, model)
        return may_have_rows

    def _replace(self, model: Model) -> Change:
        """Replace a stage that is not hourly."""
        is_full = self.dirty.is_full
        if model.materialised == "merged":
            return self._merge(model)
        if model.materialised == "full":
            return materialise.replace_all(self.cursor, model, is_compared=not is_full)
        if not (self._draft(model) or self._has_rows(model.qualified_name)):
            return Change(is_none=True)
        where = None if is_full else materialise.KEYS[str(model.materialised)]
        if model.materialised != "job_runs":
            return materialise.replace_rows(self.cursor, model, where, is_compared=not is_full)
        hours = dirty_runs.note_changed_job_runs(self.cursor, is_full=is_full)
        change = materialise.replace_rows(self.cursor, model, where, is_compared=False)
        return replace(change, hours=hours)

    def _replace_hours(self, model: Model, hours: DirtyHours) -> dict[str, Change]:
        """Replace an hourly stage, and those of the same pass, in these hours."""
        if self.parts is not None and self.parts.computes(model):
            together = self.parts.group_of(model)
            differing, rows = self.parts.replace_hours(together, hours)
        else:
            together = models.of_the_same_pass(model)
            differing, rows = materialise.replace_hours(
                self.cursor, together, hours, is_compared=not self.dirty.is_full
            )
        return {made.qualified_name: Change(rows, differing) for made in together}

    def _merge(self, model: Model) -> Change:
        """Merge the rows of new loads into a stage; where nodes changed, those of all loads."""
        since = self.dirty.since if self.dirty.has_same(dirty.NODES) else None
        self.cursor.execute(f"set variable merged_sequence = {dirty.last_load(since)}")
        if self.parts is not None and self.parts.computes(model):
            self.parts.draft(model, dirty.reading_hours(self.cursor, since))
        else:
            materialise.draft(self.cursor, model)
        return materialise.merge(self.cursor, model, is_full=since is None)

    def _place(self) -> dict[str, Change]:
        """Put holds on GPUs; a job run whose holds moved has changed."""
        stages = [models.of_layer("intermediate")[name] for name in STAGES.values()]
        is_again = self.dirty.has_same({"intermediate.int_slots"})
        if is_again:
            write(self.cursor, place_again(self.cursor))
            if not self._has_rows("temp.dirty_nodes"):
                return {stage.qualified_name: Change(is_none=True) for stage in stages}
        else:
            place_all(self.cursor)
        where, is_compared = (
            materialise.KEYS["placed"] if is_again else None,
            not self.dirty.is_full,
        )
        changes = {
            stage.qualified_name: materialise.replace_rows(
                self.cursor, stage, where, is_compared=is_compared
            )
            for stage in stages
        }
        if is_compared:
            dirty_runs.note_moved_holds(self.cursor)
        return changes


def _loaded(cursor: duckdb.DuckDBPyConnection) -> int:
    return _scalar(cursor, "select max(sequence) from state.ingested") or 0


def _built_until(cursor: duckdb.DuckDBPyConnection) -> int | None:
    return _scalar(cursor, "select max(sequence) from state.built")


def _scalar(cursor: duckdb.DuckDBPyConnection, sql: str) -> int | None:
    value = cursor.execute(sql).fetchall()[0][0]
    return None if value is None else int(value)
