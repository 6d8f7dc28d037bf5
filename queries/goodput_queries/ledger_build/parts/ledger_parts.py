"""The ledger of single GPUs by groups of nodes, for workers that have none of the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from goodput_queries.lake.arrange import bucket_of
from goodput_queries.ledger_build import materialise
from goodput_queries.ledger_build.node_hours import NodeHours, ranges
from goodput_queries.ledger_build.parts import restrict
from goodput_queries.ledger_build.parts.database_rows import columns, insert, variables
from goodput_queries.ledger_build.parts.engines import followed
from goodput_queries.ledger_build.parts.plan import parts_of
from goodput_queries.ledger_build.parts.task import Task, needs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from goodput_queries.catalog.models import Model
    from goodput_queries.ledger_build.parts.engines import Engine, OnTask
    from goodput_queries.ledger_build.parts.plan import Part

GROUPS_OF_A_WORKER = 4  # so that a slow one does not hold up the others at the end


def replace(
    cursor: duckdb.DuckDBPyConnection,
    engine: Engine,
    stage: Model,
    dirty: NodeHours,
    on_task: OnTask,
) -> tuple[NodeHours, int]:
    """Replace the ledger of these hours; of all nodes by tasks, of some nodes here."""
    of_some = NodeHours(
        of_nodes=((hour, node) for hour, nodes in dirty.of_nodes.items() for node in nodes)
    )
    changed, rows = materialise.replace_hours(cursor, [stage], of_some, is_compared=False)
    hours = dirty.whole
    if not hours:
        return changed, rows
    gpus = _note_groups(cursor, GROUPS_OF_A_WORKER * engine.workers)
    for first, last in ranges(hours, len(hours)):
        materialise.set_hours(cursor, first, last)
        cursor.execute(f"delete from {stage.qualified_name} where {materialise.OF_THESE_HOURS}")
    parts = parts_of(
        hours,
        gpus,
        most_gpu_hours=materialise.PASS_MAX_GPU_HOURS,
        workers=engine.workers,
    )
    computed = engine.compute(_tasks(cursor, stage, parts))
    for tables in followed(computed, stage.qualified_name, len(parts), on_task):
        rows += insert(cursor, stage.qualified_name, tables[stage.qualified_name])
    return changed | NodeHours(hours), rows


def _tasks(cursor: duckdb.DuckDBPyConnection, stage: Model, parts: list[Part]) -> Iterator[Task]:
    selects = {stage.qualified_name: stage.sql}
    needs = needs_of(tuple(selects), tuple(selects.values()))
    known = {name: columns(cursor, name) for name in needs.inputs}
    for part in parts:
        yield Task(
            selects=selects,
            first=part[1],
            last=part[2],
            variables=variables(cursor),
            inputs={
                name: cursor.sql(restrict.of_nodes(name, known[name], part)).to_arrow_table()
                for name in needs.inputs
            },
        )


def _note_groups(cursor: duckdb.DuckDBPyConnection, groups: int) -> dict[int, int]:
    """Put nodes into groups, in temporary tables; return how many GPUs each group has."""
    nodes = cursor.sql("select distinct cluster, node from intermediate.int_gpu_units").pl()
    names = (f"{cluster} {node}" for cluster, node in nodes.iter_rows())
    part = pl.Series([bucket_of(name, groups) for name in names], dtype=pl.Int32)
    cursor.register("given", nodes.with_columns(part=part).to_arrow())
    cursor.execute(
        """create or replace temp table part_units as
        select distinct cluster, node, gpu_uuid, part
        from intermediate.int_gpu_units inner join given using (cluster, node)"""
    )
    cursor.unregister("given")
    cursor.execute(
        """create or replace temp table part_job_runs as
        select distinct job_run_key, part
        from intermediate.int_holds
        inner join (select distinct cluster, node, part from temp.part_units)
            using (cluster, node)"""
    )
    cursor.execute(
        """create or replace temp table part_attempts as
        select distinct attempt_key, part
        from intermediate.int_attempts inner join temp.part_job_runs using (job_run_key)"""
    )
    counts = "select part, count(distinct gpu_uuid) from temp.part_units group by part"
    return dict(cursor.execute(counts).fetchall())
