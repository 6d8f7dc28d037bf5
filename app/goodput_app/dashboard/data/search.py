"""What the search finds: runs, nodes, GPUs and teams whose names contain a text."""

from datetime import datetime

import polars as pl

from goodput_app.dashboard.data import marts
from goodput_queries.scope import EVERYTHING, Scope

FOUND_MAX = 20


def run(run_key: str) -> pl.DataFrame:
    """Return the row of marts.search_targets of a run, or none."""
    return marts.read(
        "select * from marts.search_targets where kind = 'run' and value = $1", EVERYTHING, run_key
    )


def time_elsewhere(
    run_key: str, start: datetime, end: datetime
) -> tuple[datetime, datetime] | None:
    """Return when a run began and ended, where a range has nothing of it; None where it has."""
    for run_start, run_end in run(run_key).select("start_at", "end_at").iter_rows():
        if run_end is not None and (run_end <= start or run_start >= end):
            return hour_of(run_start), run_end
    return None


def hour_of(start: datetime) -> datetime:
    """Return from when a range has all of what began then: whole hours are known of old times."""
    until = marts.clusters()["whole_hours_until_at"].max()
    is_old = isinstance(until, datetime) and start < until
    return start.replace(minute=0, second=0, microsecond=0) if is_old else start


def find(text: str, scope: Scope = EVERYTHING) -> pl.DataFrame:
    """Return rows of marts.search_targets, whole names first, then beginnings; `total` of all.

    Several words must all occur. Of equal matches runs come first, the latest ones before others.
    """
    return marts.read(
        f"""with words as (
            select list_filter(string_split(lower($1), ' '), lambda word: word <> '') as all_words
        ),
        found as (
            select targets.*, lower(label) as name,
                lower(concat_ws(' ', label, detail)) as haystack
            from marts.search_targets as targets
        )
        select * exclude (name, haystack, all_words), count(*) over () as total
        from found, words
        where len(all_words) > 0
            and list_bool_and(list_transform(all_words, lambda word: contains(haystack, word)))
        order by
            name = lower($1) desc, starts_with(name, lower($1)) desc,
            list_position(['run', 'node', 'gpu', 'team'], kind),
            coalesce(end_at, start_at) desc nulls last, label, cluster
        limit {FOUND_MAX}""",
        scope,
        text.strip(),
    )
