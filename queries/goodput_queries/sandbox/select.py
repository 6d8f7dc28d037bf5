"""Answer a select of a person: from views of the scope, in a process that has nothing else.

The store evaluates the views that the statement names, in the scope and for the teams of the
reader; the statement itself runs in the worker on these rows. So it cannot reach a row, a file or a
message about either that the reader may not see, whatever it consists of.
"""

import difflib
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from goodput_queries.database import Store
from goodput_queries.errors import NotPermittedError, QueryError
from goodput_queries.remote import packed
from goodput_queries.sandbox.limits import DEFAULT, Limits
from goodput_queries.sandbox.process import WorkerProcess
from goodput_queries.sandbox.views import SCHEMAS, View, offered
from goodput_queries.sandbox.worker import TOO_LARGE, readable
from goodput_queries.scope import EVERYTHING, Scope
from goodput_queries.storage.row_access import LIMITED


@dataclass(frozen=True)
class Answer:
    """The rows of a select.

    is_cut: there were more than `rows_max`. views: what it read. is_limited: it has the rows of the
    reader's teams only. How many others there are, and whether, would say when other teams worked.
    """

    rows: pl.DataFrame
    is_cut: bool
    rows_max: int
    views: tuple[str, ...]
    is_limited: bool


def select(
    store: Store,
    sql: str,
    *,
    scope: Scope = EVERYTHING,
    limits: Limits = DEFAULT,
    took: Callable[[float], object] | None = None,
) -> Answer:
    """Return the answer to a select; the views that it names have the rows of the scope.

    took: gets the processor time of the worker, also of one that failed.
    Raises QueryError where it cannot be answered, with a sentence for whoever asked.
    """
    if not sql.strip():
        raise QueryError("there is no statement; expected a select.")
    if len(sql) > limits.sql_max_chars:
        raise QueryError(f"a statement has at most {limits.sql_max_chars:,} characters.")
    with WorkerProcess(limits, took) as worker:
        worker.ask(sql)
        named, _ = worker.receive()
        views = _views(offered(store), named["tables"], scope)
        for view in views:
            columns = _columns(view, named["words"])
            rows = _rows_of(store, view, columns, scope, limits, worker)
            schema, name = view.name.split(".")
            worker.send({"schema": schema, "name": name}, packed(rows))
        worker.send({})
        head, content = worker.receive()
    rows = pl.read_ipc_stream(io.BytesIO(content))
    return _answer(rows, bool(head["is_cut"]), limits, views, scope)


def whole(
    store: Store, view: View, *, scope: Scope = EVERYTHING, limits: Limits = DEFAULT
) -> Answer:
    """Return the rows of a view in the scope: no statement of a person, so that no worker runs.

    Columns have the types that a worker gives them. Raises QueryError where there is too much.
    """
    kinds = (column.type.lower() for column in view.columns)
    listed = ", ".join(
        f'{readable(n, kind)} as "{column.name}"'
        for n, (column, kind) in enumerate(zip(view.columns, kinds, strict=True), start=1)
    )
    rows = store.read(
        f"select {listed} from (select * from {view.name}) limit $1",
        [limits.rows_max + 1],
        scope=scope,
        timeout_s=limits.timeout_s,
        is_kept=True,
    )
    if rows.estimated_size("mb") > limits.result_max_mib:
        raise QueryError(TOO_LARGE.format(limits.result_max_mib))
    return _answer(rows[: limits.rows_max], rows.height > limits.rows_max, limits, [view], scope)


def _answer(
    rows: pl.DataFrame, is_cut: bool, limits: Limits, views: Sequence[View], scope: Scope
) -> Answer:
    is_limited = scope.teams is not None and any(
        view.has_team_rows and not view.name.startswith("reference.") for view in views
    )
    return Answer(rows, is_cut, limits.rows_max, tuple(view.name for view in views), is_limited)


def _views(known: dict[str, View], named: Iterable[Sequence[str]], scope: Scope) -> list[View]:
    """Return the views that a statement names; raises QueryError for one that is not offered.

    A name without a schema may be that of a common table expression: the worker knows.
    """
    found: dict[str, View] = {}
    for path in named:
        name = ".".join(path)
        if len(path) == 1:
            names = [f"{schema}.{name}" for schema in SCHEMAS if f"{schema}.{name}" in known]
        elif name in known:
            names = [name]
        elif path[-2] in ("information_schema", "pg_catalog", "main", "temp"):
            names = []  # of the worker's own database, which has only what it was given
        else:
            raise QueryError(_unknown(name, known))
        for one in names[:1]:
            if scope.teams is not None and not known[one].is_for_teams:
                raise NotPermittedError(f"{LIMITED}; {one} holds more than these.")
            found[one] = known[one]
    return list(found.values())


def _unknown(name: str, known: dict[str, View]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    return f"there is no view {name!r} here: only those of marts and reference.{hint}"


def _columns(view: View, words: list[str] | None) -> list[str]:
    """Return the columns of a view that a statement may need: at least one, for its rows."""
    names = [column.name for column in view.columns]
    if words is None:
        return names
    return [name for name in names if name in set(words)] or names[:1]


def _rows_of(
    store: Store,
    view: View,
    columns: list[str],
    scope: Scope,
    limits: Limits,
    worker: WorkerProcess,
) -> pl.DataFrame:
    """Return the rows of a view in the scope; raises QueryError where they are too many."""
    listed = ", ".join(f'"{name}"' for name in columns)
    sql = f"select {listed} from {view.name} limit $1"
    try:
        rows = store.read(
            sql,
            [limits.view_rows_max + 1],
            scope=scope,
            timeout_s=worker.left_s,
            is_kept=True,
        )
    except QueryError:
        _ = worker.left_s  # says so where it is the deadline that stopped it
        raise
    if rows.height > limits.view_rows_max:
        most = f"{limits.view_rows_max:,} rows"
    elif rows.estimated_size("mb") > limits.view_mib_max:
        most = f"{limits.view_mib_max} MiB"
    else:
        return rows
    raise QueryError(
        f"{view.name} has more than {most} in this time range. Narrow the time range or the "
        "cluster, or name only the columns that are needed."
    )
