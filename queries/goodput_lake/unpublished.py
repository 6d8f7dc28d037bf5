"""Which days of the ledger and of the ten-minute roll-up a build changed: they go to the lake."""

from typing import Final

import duckdb

from goodput_queries.ledger_build.dirty import DirtySet

STAGES: Final = {  # by table in the lake: what its rows are made of
    "ledger_hourly": ("marts.ledger_hourly_by_node",),
    "gpu_metrics": ("intermediate.int_gpu_metrics", "intermediate.int_gpu_inventory"),
}


def note_unpublished_days(
    cursor: duckdb.DuckDBPyConnection, dirty: DirtySet, sequence: int
) -> None:
    """Note the days of these stages' dirty hours, in the transaction of the build."""
    for table, stages in STAGES.items():
        differing = dirty.differing(stages)
        hours = dirty.every if differing.is_every else differing.hours
        cursor.execute(
            """create or replace temp table changed_days as
            select cluster, day
            from (select date '1970-01-01' + unnest($1::integer[]) as day)
            inner join intermediate.int_clusters
                on day between from_ms(first_ms)::date and from_ms(as_of_ms)::date""",
            [sorted({hour // 24 for hour in hours})],
        )
        cursor.execute(
            """delete from state.unpublished_days
            where table_name = $1
                and (cluster, day) in (select (cluster, day) from temp.changed_days)""",
            [table],
        )
        cursor.execute(
            "insert into state.unpublished_days select $1, cluster, day, $2 from temp.changed_days",
            [table, sequence],
        )
