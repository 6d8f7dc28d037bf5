"""Checks that a build runs on what it recomputed, before it commits; a failure rolls it back.

They are `sql/checks` for the dirty hours: every unit's segments tile the time that it is in the
inventory, without holes and overlaps, with no negative time, and add up to its capacity; the parts
of a GPU make one GPU, in one place; the roll-up by node has the same time in known categories.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb

from goodput_queries.errors import UnbalancedError
from goodput_queries.ledger_build import materialise
from goodput_queries.ledger_build.dirty import DirtySet
from goodput_queries.ledger_build.passes import passes

UNITS, ROLL_UP = "intermediate.int_gpu_units", "marts.ledger_hourly_by_node"
EXAMPLE_MAX = 400  # characters: names are untrusted input

_PARTS = """
    select 'parts of a GPU that do not make one GPU' as invariant, count(*) as n,
        min(format('{} at {:.3f} GPUs from {} on', gpu_uuid, share, from_ms(start_ms))) as example
    from checks.parts_make_whole_gpus
    union all
    select 'units of a GPU that begin twice at one time', count(*),
        min(format('{} {} from {} on', gpu_uuid, gpu_instance, from_ms(start_ms)))
    from (
        from intermediate.int_gpu_units
        select gpu_uuid, gpu_instance, start_ms group by all having count(*) > 1
    )"""

# segments tile [a, b) without hole or overlap where their starts without a are their ends without
# b; sums of hashes compare both without an order of all segments
_HOURS = """
    with hours as (
        select unnest(range(build_from_ms(), build_to_ms(), 3600000)) as hour_ms
    ),
    units as (
        select units.* replace (least(coalesce(units.end_ms, as_of_ms), as_of_ms) as end_ms)
        from intermediate.int_gpu_units as units
        inner join intermediate.int_clusters using (cluster)
    ),
    cells as (
        select * replace (
            greatest(start_ms, hour_ms) as start_ms, least(end_ms, hour_ms + 3600000) as end_ms)
        from units
        inner join hours on start_ms < hour_ms + 3600000 and end_ms > hour_ms
        where end_ms > start_ms
    ),
    expected as (
        select cluster, node, gpu_uuid, gpu_instance, hour_ms,
            sum(share_ms(start_ms, end_ms, share_lo, share_hi, share_of)) as gpu_ms,
            sum(hash(start_ms)) - sum(hash(end_ms)) as borders
        from cells group by all
    ),
    found as (
        select cluster, node, gpu_uuid, gpu_instance, hour_ms, sum(gpu_ms) as gpu_ms,
            sum(hash(start_ms)) - sum(hash(end_ms)) as borders,
            least(min(gpu_ms), min(end_ms - start_ms) - 1) < 0 as is_negative
        from intermediate.int_ledger_segments
        where hour_ms >= build_from_ms() and hour_ms < build_to_ms()
        group by all
    ),
    broken as (
        select
            case
                when is_negative then 'hours of a GPU with negative or empty intervals'
                when expected.borders is distinct from found.borders
                    then 'hours of a GPU with holes or overlaps'
                else 'hours of a GPU whose categories do not add up to its time'
            end as invariant,
            format('{} {} on {}/{} in the hour from {}: {} ms of {} ms',
                gpu_uuid, gpu_instance, cluster, node, from_ms(hour_ms),
                coalesce(found.gpu_ms, 0), coalesce(expected.gpu_ms, 0)) as example
        from expected
        full join found using (cluster, node, gpu_uuid, gpu_instance, hour_ms)
        where is_negative or expected.borders is distinct from found.borders
            or expected.gpu_ms is distinct from found.gpu_ms
    )
    select invariant, count(*) as n, min(example) as example from broken group by invariant"""

# the amounts of a stretch of steps add up to its time: so each node has the same time in both
_ROLL_UP = """
    with amounts as (
        select cluster, node, hour_ms, sum(gpu_ms) as of_roll_up, 0 as of_segments
        from marts.ledger_hourly_by_node
        where hour_ms >= build_from_ms() and hour_ms < build_to_ms()
        group by all
        union all
        select cluster, node, hour_ms, 0, sum(gpu_ms)
        from intermediate.int_ledger_segments
        where hour_ms >= build_from_ms() and hour_ms < build_to_ms()
        group by all
    ),
    sums as (
        select cluster, node, hour_ms,
            sum(of_roll_up) as of_roll_up, sum(of_segments) as of_segments
        from amounts group by all
    )
    select 'hours whose roll-up differs from the segments' as invariant, count(*) as n,
        min(format('{}/{} in the hour from {}: {} ms of {} ms',
            cluster, node, from_ms(hour_ms), of_roll_up, of_segments)) as example
    from sums where of_roll_up <> of_segments
    union all
    select 'hours with a negative amount', count(*),
        min(format('{} on {}/{} in the hour from {}: {} ms',
            category, cluster, node, from_ms(hour_ms), gpu_ms))
    from marts.ledger_hourly_by_node
    where hour_ms >= build_from_ms() and hour_ms < build_to_ms() and gpu_ms < 0
    union all
    select 'hours with an unknown category', count(*),
        min(format('{} in the hour from {}', category, from_ms(hour_ms)))
    from marts.ledger_hourly_by_node
    anti join reference.gpu_second_categories using (category)
    where hour_ms >= build_from_ms() and hour_ms < build_to_ms()"""


@dataclass(frozen=True)
class Broken:
    """An invariant that does not hold, in how many cases, and the first of them."""

    invariant: str
    n: int
    example: str


def verify(cursor: duckdb.DuckDBPyConnection, dirty: DirtySet, sequence: int) -> None:
    """Check what a build recomputed; raises UnbalancedError that names what is wrong.

    sequence: the last load that the build has processed.
    """
    found: list[Broken] = []
    if UNITS in dirty.stages and not dirty.stages[UNITS].is_none:
        found += _broken(cursor, _PARTS)
    if ROLL_UP in dirty.stages:
        hours = dirty.stages[ROLL_UP].hours.within(
            {hour for hour in dirty.every if hour >= dirty.frozen_until}
        )
        most = materialise.LEDGER_PASS_MAX_GPU_HOURS
        for first, last in passes(cursor, hours.hours, most):
            materialise.set_hours(cursor, first, last)
            found += _broken(cursor, _HOURS)
            found += _broken(cursor, _ROLL_UP)
    if found:
        raise UnbalancedError.of(_together(found), sequence)


def note_refused(cursor: duckdb.DuckDBPyConnection, error: UnbalancedError) -> None:
    """Record why a build was not published, in place of what was recorded before."""
    cursor.execute("delete from state.refused_builds")
    now = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
    for invariant, n, example in error.broken:
        cursor.execute(
            "insert into state.refused_builds values ($1, $2, $3, $4, $5)",
            [error.sequence, now, invariant, n, example],
        )


def raise_if_refused(cursor: duckdb.DuckDBPyConnection, sequence: int) -> None:
    """Raise the error of a build of the same evidence, which would come out the same."""
    rows = cursor.execute(
        "select invariant, n, example from state.refused_builds where sequence = $1 "
        "order by invariant",
        [sequence],
    ).fetchall()
    if rows:
        raise UnbalancedError.of(rows)


def _broken(cursor: duckdb.DuckDBPyConnection, sql: str) -> list[Broken]:
    rows = cursor.execute(f"select * from ({sql}) where n > 0").fetchall()
    return [Broken(invariant, n, example[:EXAMPLE_MAX]) for invariant, n, example in rows]


def _together(found: list[Broken]) -> list[tuple[str, int, str]]:
    """Return one row an invariant: passes count their cases by themselves."""
    names = sorted({one.invariant for one in found})
    return [
        (
            name,
            sum(one.n for one in found if one.invariant == name),
            min(one.example for one in found if one.invariant == name),
        )
        for name in names
    ]
