"""Which GPUs an older hour is built again for: those whose time changed, not all of the fleet.

A change of what one job did concerns its GPUs alone. Stages whose header says `change_tracking: ...
of` a column note the GPUs here, hour by hour (temp.reopened); stages that are stored `hourly by
GPU` replace the hours of those alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import duckdb

# by the column that says whose time differs: what is kept of it, and the GPUs that it concerns
_COLUMNS = {"gpu_uuid": "gpu_uuid,", "node": "cluster, node,", "attempt_key": "attempt_key,"}
_GPUS = {
    "gpu_uuid": "from temp.differing",
    "node": """select hour, gpu_uuid
        from temp.differing inner join intermediate.int_gpu_units using (cluster, node)""",
    "attempt_key": """select hour, gpu_uuid
        from temp.differing
        inner join (
            select attempt_key, job_run_key from intermediate.int_attempts
            union
            select attempt_key, job_run_key from temp.attempts_before
        ) using (attempt_key)
        inner join intermediate.int_holds using (job_run_key)""",
}


def begin(cursor: duckdb.DuckDBPyConnection) -> None:
    """Forget what the last build found changed."""
    cursor.execute(
        "create or replace temp table reopened (stage varchar, hour bigint, gpu_uuid varchar)"
    )
    cursor.execute("create or replace temp table reopened_gpus (gpu_uuid varchar)")


def columns(reopens: tuple[str, str] | None) -> str:
    """Return the columns, each with a comma, of the owner whose time differs."""
    return _COLUMNS[reopens[1]] if reopens else ""


def note(cursor: duckdb.DuckDBPyConnection, reopens: tuple[str, str]) -> None:
    """Note the GPUs of temp.differing, by hour, as reopened by a stage."""
    name, column = reopens
    cursor.execute(
        f"""insert into temp.reopened
        select distinct $1, hour, gpu_uuid from ({_GPUS[column]})""",
        [name],
    )


def pass_on(
    cursor: duckdb.DuckDBPyConnection, name: str, inputs: Iterable[str], hours: Iterable[int]
) -> None:
    """Note that a stage was replaced in these hours for the GPUs that its inputs reopened."""
    cursor.execute(
        """insert into temp.reopened
        select distinct $1, hour, gpu_uuid from temp.reopened
        where list_contains($2, stage) and list_contains($3, hour)""",
        [name, list(inputs), list(hours)],
    )


def begin_pass(
    cursor: duckdb.DuckDBPyConnection, stages: Iterable[str], first: int, last: int
) -> None:
    """Fill temp.reopened_gpus with those that these stages reopened in hours first to last - 1."""
    cursor.execute(
        """create or replace temp table reopened_gpus as
        select distinct gpu_uuid from temp.reopened
        where list_contains($1, stage) and hour >= $2 and hour < $3""",
        [list(stages), first, last],
    )
