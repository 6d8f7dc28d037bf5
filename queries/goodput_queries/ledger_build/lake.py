"""What a build asks of the lake that its database is of; the package `goodput_lake` has it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

import duckdb
import polars as pl

from goodput_queries.catalog.models import Model
from goodput_queries.evidence.batch import Batch, Loaded
from goodput_queries.ledger_build.dirty import DirtySet
from goodput_queries.ledger_build.dirty_hours import DirtyHours, Hours
from goodput_queries.scope import EVERYTHING, Scope

READINGS: Final = tuple(  # of a lake only these stay there: a database would be too large with them
    f"raw.{name}" for name in ("gpu_samples", "gpu_samples_other", "node_samples", "link_samples")
)

OnTask = Callable[[str, int, int], None]  # table, how many tasks of it are done, of how many


@dataclass(frozen=True)
class LakeOptions:
    """How a database uses its lake.

    engine: what builds compute readings with. address: of the Ray cluster, as `ray.init` takes it;
    None: workers on this host. workers: tasks at a time; None: by the number of cores.
    recent_days: of which the database has readings itself.
    cluster: of rows that it loads and that name none; '' is unknown.
    publishes: `publish`, which servers and `goodput build` call after builds, does so.
    """

    engine: Literal["local", "ray"] = "local"
    address: str | None = None
    workers: int | None = None
    recent_days: int = 0
    cluster: str = ""
    publishes: bool = False


class Tasks(Protocol):
    """The stages of one build that are computed from readings in the lake, part by part."""

    def has_readings(self, table: str) -> bool:
        """Say whether the lake has readings of a table."""

    def computes(self, model: Model) -> bool:
        """Say whether a stage is computed by tasks."""

    def group_of(self, model: Model) -> list[Model]:
        """Return the stages that are computed in the same tasks, itself too."""

    def new_series(self, hours: Hours) -> str:
        """Compute the series of readings of new loads in these hours; return their select."""

    def note_buckets(self) -> None:
        """Count the GPUs of each bucket; the series of readings are known."""

    def replace_hours(self, stages: Sequence[Model], dirty: DirtyHours) -> tuple[DirtyHours, int]:
        """Replace hourly stages in these hours; return where they may differ, and their rows."""

    def draft(self, model: Model, hours: Hours) -> None:
        """Draft a merged stage from the readings of new loads, which lie in these hours."""


class Lake(Protocol):
    """The lake of one database. Raises StoreError where it does not answer."""

    options: LakeOptions
    on_task: OnTask  # of builds

    def load(self, batch: Batch) -> Loaded:
        """Commit a batch to the lake; the next build brings what belongs into the database."""

    def pull(self) -> None:
        """Take over what was committed to the lake since the last time."""

    def publish(self) -> None:
        """Write closed hours that builds changed to the lake, where the options say so."""

    def tasks(self, cursor: duckdb.DuckDBPyConnection) -> Tasks:
        """Return the tasks of a build."""

    def note_changed_days(
        self, cursor: duckdb.DuckDBPyConnection, dirty: DirtySet, sequence: int
    ) -> None:
        """Note the days that a build changed, in its transaction: they are to be published."""

    def reject_implausible_readings(
        self, cursor: duckdb.DuckDBPyConnection, since: int | None
    ) -> bool:
        """Reject readings of loads after `since`; return whether builds have used any of them."""

    def is_older(self, from_ms: int) -> bool:
        """Say whether readings of a time that begins then are in the lake alone."""

    def read(
        self,
        sql: str,
        parameters: Sequence[Any],
        bounds_ms: tuple[int, int],
        keys: Sequence[str] | None,
        scope: Scope = EVERYTHING,
    ) -> pl.DataFrame:
        """Return the rows of a select over readings of a time, from the lake.

        keys: the GPUs or nodes whose readings it needs; None: all.
        """

    def close(self) -> None:
        """Give up what its engine holds."""
