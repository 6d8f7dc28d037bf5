"""How work is divided: hours into passes of bounded size, the readings of a pass into parts."""

import bisect
from collections.abc import Collection
from itertools import accumulate

import duckdb

from goodput_queries.ledger_build.dirty_hours import HOUR_MS

READINGS_OF_A_PART = 400_000
UNITS_GIB = {"MiB": 1 / 1024, "GiB": 1, "TiB": 1024}  # as DuckDB prints its memory limit


def passes(
    cursor: duckdb.DuckDBPyConnection, hours: Collection[int], most_gpu_hours: int
) -> list[tuple[int, int]]:
    """Return hours as half-open ranges by the number of units that are present in each hour.

    Evidence of years has many units, of which few are there at one time.

    most_gpu_hours: of a pass on one or two threads. More threads, with 1 GiB each, take as many
    times as much: what keeps two of them busy leaves others idle between its statements.
    """
    if not hours:
        return []
    settings = "select current_setting('threads'), current_setting('memory_limit')"
    threads, memory = cursor.execute(settings).fetchall()[0]
    size, unit = memory.split()
    gib = float(size) * UNITS_GIB.get(unit, 0)
    most_gpu_hours *= max(1, int(min(threads, gib)) // 2)
    joins = dict(
        cursor.execute(
            f"""select hour, sum(units)
            from (
                select start_ms // {HOUR_MS} as hour, 1 as units from intermediate.int_gpu_units
                union all
                select end_ms // {HOUR_MS} + 1, -1
                from intermediate.int_gpu_units where end_ms is not null
            )
            group by hour"""
        ).fetchall()
    )
    starts = sorted(joins)
    present = list(accumulate(int(joins[hour]) for hour in starts))
    found: list[tuple[int, int]] = []
    gpu_hours = 0
    for hour in sorted(hours):
        place = bisect.bisect_right(starts, hour) - 1
        here = present[place] if place >= 0 else 0
        if found and found[-1][1] == hour and gpu_hours + here <= most_gpu_hours:
            found[-1] = (found[-1][0], hour + 1)
            gpu_hours += here
        else:
            found.append((hour, hour + 1))
            gpu_hours = here
    return found


def note_reading_parts(cursor: duckdb.DuckDBPyConnection, most: int) -> int:
    """Set where the parts of the table begin in which the readings of these hours are looked at.

    Returns how many there are: at most so many, and none that is not worth its own.
    """
    first, after = cursor.execute(
        """select coalesce(min(place), 0), coalesce(max(place) + 1, 0)
        from staging.stg_gpu_samples
        where ts >= from_ms(build_from_ms() - reading_margin_ms())
            and ts < from_ms(build_to_ms() + reading_margin_ms())"""
    ).fetchall()[0]
    borders = borders_of_parts(first, after, most)
    cursor.execute(f"set variable build_reading_parts = {borders}")
    return len(borders) - 1


def borders_of_parts(first: int, after: int, most: int) -> list[int]:
    """Return where the parts of the readings from `first` to before `after` begin, and the end."""
    parts = max(1, min(most, (after - first) // READINGS_OF_A_PART))
    return [first + part * (after - first) // parts for part in range(parts + 1)]
