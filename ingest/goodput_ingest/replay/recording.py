"""What was known at a moment of a recording: its rows, cut to what had happened by then.

Most rows are known when they happened, once and for ever. Some go on changing: a job is pending,
runs, then ends; these are given again with what is known since. Inventory, prices and other rows
without a time are known from the beginning.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from goodput_queries.catalog import models
from goodput_queries.catalog.models import Model
from goodput_queries.database import Store

LEFT_OUT = frozenset({"rejects", "catalog"})  # rejected rows have no time


@dataclass(frozen=True)
class Changing:
    """How the rows of a table change while time passes.

    begins, ends: between which moments a row is given again.
    seen: columns as they were at the moment `$until`, as SQL.
    """

    begins: str
    ends: str
    seen: dict[str, str]


_ENDED = "end_at <= $until"
_STARTED = "start_at <= $until"
_OPEN_END = {"end_at": f"case when {_ENDED} then end_at end"}
CHANGING = {
    "job_runs": Changing(
        "submit_at",
        "end_at",
        {
            **_OPEN_END,
            "start_at": f"case when {_STARTED} then start_at end",
            "state": f"case when {_ENDED} then state "
            f"when {_STARTED} then 'RUNNING' when start_at is null and end_at is null then state "
            "else 'PENDING' end",
            "nodes": f"case when {_STARTED} then nodes else [] end",
            "gpus": f"case when {_STARTED} then gpus end",
            "alloc_tres": f"case when {_STARTED} then alloc_tres end",
            "elapsed_s": f"case when {_ENDED} then elapsed_s when {_STARTED} then least("
            "elapsed_s, date_diff('second', start_at, $until) - coalesce(suspended_s, 0)) end",
            "exit_code": f"case when {_ENDED} then exit_code end",
            "derived_exit_code": f"case when {_ENDED} then derived_exit_code end",
            "cancelled_by": f"case when {_ENDED} then cancelled_by end",
            "observed_at": "least(observed_at, $until)",
        },
    ),
    "job_steps": Changing(
        "start_at",
        "end_at",
        {
            **_OPEN_END,
            "state": f"case when {_ENDED} then state else 'RUNNING' end",
            "exit_code": f"case when {_ENDED} then exit_code end",
        },
    ),
    "holds": Changing("coalesce(start_at, submit_at)", "end_at", _OPEN_END),
    "queue_entries": Changing(
        "since_at",
        "until_at",
        {
            "until_at": "case when until_at <= $until then until_at end",
            "is_admitted": "is_admitted and until_at <= $until",
            "observed_at": "least(observed_at, $until)",
        },
    ),
    "node_states": Changing("start_at", "end_at", _OPEN_END),
    "processes": Changing(
        "start_at",
        "last_seen_at",
        {
            "last_seen_at": "least(last_seen_at, $until)",
            "gone_at": "case when gone_at <= $until then gone_at end",
        },
    ),
    "gpu_owners": Changing(
        "first_seen_at", "last_seen_at", {"last_seen_at": "least(last_seen_at, $until)"}
    ),
}


class Recording:
    """The evidence of a database, asked by time."""

    def __init__(self, store: Store) -> None:
        """Find the first and the last moment of the evidence in `store`."""
        self._store = store
        self._tables = [
            model
            for model in models.of_layer("raw").values()
            if model.name not in LEFT_OUT and _has_rows(store, model)
        ]
        ends = [_ends(store, model) for model in self._tables if model.observed]
        known = [(first, last) for first, last in ends if first is not None and last is not None]
        self.begins_at = min((first for first, _ in known), default=None)
        self.ends_at = max((last for _, last in known), default=None)

    def between(
        self, since: datetime | None, until: datetime
    ) -> Iterator[tuple[str, pl.DataFrame]]:
        """Yield table and rows that became known, or changed, after `since` and up to `until`.

        since: None: from the beginning, with what has no time. Times are naive UTC.
        """
        for model in self._tables:
            if not model.observed and since is not None:
                continue
            sql, parameters = _select(model, since, until)
            rows = self._store.read(sql, parameters)
            if not rows.is_empty():
                yield model.name, rows


def _select(
    model: Model, since: datetime | None, until: datetime
) -> tuple[str, dict[str, datetime]]:
    """Return the select of what became known of a table, with its parameters."""
    table = model.qualified_name
    if not model.observed:
        return f"select * exclude (load_sequence) from {table}", {}
    parameters = {"until": until}
    changing = CHANGING.get(model.name)
    if changing is None:
        known_at = f"coalesce({_greatest(model)}, timestamp '-infinity')"
        columns, after = "* exclude (load_sequence)", f"{known_at} > $since"
    else:
        known_at = changing.begins
        seen = ", ".join(f"{sql} as {name}" for name, sql in changing.seen.items())
        columns = f"* exclude (load_sequence) replace ({seen})"
        after = f"coalesce({changing.ends}, timestamp 'infinity') > $since"
    conditions = [f"{known_at} <= $until"]
    if since is not None:
        conditions.append(after)
        parameters["since"] = since
    order = ", ".join(model.grain)
    return f"select {columns} from {table} where {' and '.join(conditions)} order by {order}", (
        parameters
    )


def _greatest(model: Model) -> str:
    return f"greatest({', '.join(model.observed)})"


def _has_rows(store: Store, model: Model) -> bool:
    return not store.read(f"select 1 from {model.qualified_name} limit 1").is_empty()


def _ends(store: Store, model: Model) -> tuple[datetime | None, datetime | None]:
    columns = ", ".join(model.observed)
    row = store.read(
        f"select min(least({columns})), max(greatest({columns})) from {model.qualified_name}"
    ).row(0)
    return row[0], row[1]
