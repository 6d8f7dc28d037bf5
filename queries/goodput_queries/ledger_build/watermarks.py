"""Watermarks: the first and last time of each GPU's readings and of each host's events.

Builds update them from new loads alone, so that no build scans all raw rows, and the intervals of
rows that retention dropped stay known.
"""

import duckdb

READING_MARGIN_MS = 900_000  # over ten intervals of a source that reads every minute or oftener
SLOW_READING_MARGIN_MS = 3_600_000
NEW_READING_SERIES = """select
        source, gpu_uuid, gpu_instance, to_ms(min(ts)) as first_ms, to_ms(max(ts)) as last_ms
    from raw.gpu_samples
    where ts >= from_ms(build_from_ms()) and ts < from_ms(build_to_ms())
        and load_sequence > built_sequence()
    group by source, gpu_uuid, gpu_instance"""


def reading_margin_ms(cursor: duckdb.DuckDBPyConnection) -> int:
    """Return how far a reading can affect hours around it: ten intervals of the slowest source.

    The interval is estimated from the number of readings: gaps make it longer, not shorter.
    """
    rows = cursor.execute(
        """select max(series.length_ms / loads.readings)
        from (
            select source, sum(last_ms - first_ms) as length_ms
            from state.reading_series
            group by source
        ) as series
        inner join (
            select source, sum(rows_new) as readings
            from state.ingested
            where table_name = 'gpu_samples'
            group by source
            having readings > 0
        ) as loads using (source)"""
    ).fetchall()
    interval_ms = rows[0][0]
    is_fast = interval_ms is not None and 10 * interval_ms <= READING_MARGIN_MS
    return READING_MARGIN_MS if is_fast else SLOW_READING_MARGIN_MS


def set_reading_margin(cursor: duckdb.DuckDBPyConnection) -> None:
    """Set how far a build reads around its hours; needs the series of readings."""
    cursor.execute(f"set variable reading_margin_ms = {reading_margin_ms(cursor)}")


def note_reading_series(cursor: duckdb.DuckDBPyConnection, new: str = NEW_READING_SERIES) -> None:
    """Extend state.reading_series by readings of the build's hours, of loads not built yet.

    new: a select of their series, first and last time.
    """
    keys = "source, gpu_uuid, gpu_instance"
    _extend(cursor, "state.reading_series", keys, new, f"hash({keys}) as series,")


def note_event_hosts(cursor: duckdb.DuckDBPyConnection, sequence: int | None) -> None:
    """Extend state.event_hosts by the events of loads after `sequence`."""
    # rows of an earlier version have no load_sequence
    is_new = "true" if sequence is None else f"load_sequence > {sequence}"
    new = f"""select cluster, host, to_ms(min(ts)) as first_ms, to_ms(max(ts)) as last_ms
        from raw.job_events where {is_new} group by cluster, host"""
    _extend(cursor, "state.event_hosts", "cluster, host", new)


def _extend(
    cursor: duckdb.DuckDBPyConnection, table: str, keys: str, new: str, derived: str = ""
) -> None:
    cursor.execute(
        f"""create or replace temp table extended as
        select {keys}, {derived} min(first_ms) as first_ms, max(last_ms) as last_ms
        from ({new} union all select {keys}, first_ms, last_ms from {table})
        group by {keys}"""
    )
    cursor.execute(f"delete from {table}")
    cursor.execute(f"insert into {table} by name from temp.extended")
