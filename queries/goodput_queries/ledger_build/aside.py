"""Stages that readings alone decide, made on another connection while those of jobs are made.

Planning the many small statements of the latter takes one core. What is made here is handed over in
memory and rolled back: a build is written by one transaction alone.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from goodput_queries.catalog import models as sql_models
from goodput_queries.ledger_build import dirty, materialise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import duckdb
    import pyarrow as pa

    from goodput_queries.ledger_build.dirty import Hours
    from goodput_queries.storage.store import LocalStore

    Made = dict[str, pa.Table]


@contextlib.contextmanager
def making(store: LocalStore, hours: Hours) -> Iterator[Callable[[], Made]]:
    """Begin to make the stages for these hours; yield what waits for their rows, by stage.

    What it is made of has been committed. What fails there is raised where it is waited for.
    """
    with store.cursor() as cursor, ThreadPoolExecutor(1, "aside") as pool:
        made = pool.submit(_make, cursor, hours)
        try:
            yield made.result
        except BaseException:
            cursor.interrupt()  # nobody waits for it
            raise


def _make(cursor: duckdb.DuckDBPyConnection, hours: Hours) -> Made:
    models = sql_models.aside()
    cursor.execute("begin")
    try:
        dirty.set_constants(cursor)
        materialise.replace_hours(cursor, models, hours, is_compared=False)
        return {m.qualified_name: materialise.rows_of_hours(cursor, m, hours) for m in models}
    finally:
        cursor.execute("rollback")
