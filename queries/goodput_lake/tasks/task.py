"""A task: some tables of a build, computed for the readings of some GPUs and hours.

A task is a value and its result depends on nothing else: it can be done on any host, in any order,
and again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

import pyarrow as pa

from goodput_queries.catalog import models
from goodput_queries.ledger_build.lake import READINGS


@dataclass(frozen=True)
class LakePart:
    """Which rows of a table of the lake a task reads.

    files: their paths, where all workers have the folder; None: they ask the lake.
    """

    table: str
    version: int
    start_at: datetime
    end_at: datetime
    buckets: tuple[int, ...]
    files: tuple[str, ...] | None


@dataclass(frozen=True)
class Task:
    """Which tables to compute, of which hours, from what.

    selects: the SQL of each table, by its name `layer.name`, in the order in which they are made.
    first, last: hours since the epoch, the last one not included.
    is_streamed: rows of readings are not kept, nor compared by key: one select reads them, once.
    variables: the constants of the build.
    inputs: the rows of tables of the database that concern the task.
    loads: table_name, load_digest, load_sequence, first_at, last_at; rows outside were rejected.
    """

    selects: Mapping[str, str]
    first: int
    last: int
    variables: Mapping[str, Any]
    inputs: Mapping[str, pa.Table]
    is_streamed: bool = False
    readings: tuple[LakePart, ...] = ()
    loads: pa.Table | None = None
    lake_url: str = ""
    lake_options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Needs:
    """What some selects read. All are names `layer.name`, each list in an order of making."""

    readings: list[str]
    inputs: list[str]  # stored tables, of which the database has the rows
    views: list[models.Model]
    pass_tables: list[models.Model]


@cache
def needs_of(names: tuple[str, ...], selects: tuple[str, ...]) -> Needs:
    """Return what these tables need, through views and temporary tables too."""
    known = {m.qualified_name: m for m in models.build_order()}
    found: set[str] = set()
    wanted = set[str]().union(*(models.tables_read(sql) for sql in selects))
    while wanted := wanted - found - set(names):
        found |= wanted
        passed = [known[n] for n in wanted if n in known and _is_passed(known[n])]
        wanted = set[str]().union(*(model.reads for model in passed))
    order = [m for m in models.build_order() if m.qualified_name in found]
    stored = [m.qualified_name for m in order if not _is_passed(m) and m.layer != "temp"]
    base = sorted(name for name in found if name.split(".")[0] in models.BASE_LAYERS)
    return Needs(
        readings=[name for name in base if name in READINGS],
        inputs=[*(name for name in base if name not in READINGS), *stored],
        views=[m for m in order if _is_passed(m) and m.layer != models.TEMP_LAYER],
        pass_tables=[m for m in order if _is_passed(m) and m.layer == models.TEMP_LAYER],
    )


def _is_passed(model: models.Model) -> bool:
    """Say whether a task makes it itself: views, and tables of a pass."""
    if model.layer == models.TEMP_LAYER:
        return not model.is_written_by_code
    return not model.is_stored
