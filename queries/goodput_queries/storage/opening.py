"""Opening a file as a database of ours, the sentence where that fails, and closing it."""

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb

from goodput_queries.errors import StoreError
from goodput_queries.storage import damage, migrations
from goodput_queries.storage.row_groups import ROW_GROUP

IN_MEMORY = ":memory:"
ATTACHED_AS = "goodput"
WAIT_S = 0.02
TRIES = 500  # 10 s
MAGIC, MAGIC_OFFSET = b"DUCK", 8  # of a DuckDB file


def connect(
    path: str, *, is_read_only: bool, threads: int | None, memory_mib: int | None
) -> duckdb.DuckDBPyConnection:
    """Open a file, or memory; only ATTACH says how many rows make a row group of a file.

    memory_mib: of DuckDB; unset: `_limit_memory`. What needs more goes to files beside the file.
    """
    limit = None if memory_mib is None else f"{memory_mib}MiB"
    given = {"threads": threads or _permitted_cores(), "memory_limit": limit}
    config: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if path == IN_MEMORY:
        return duckdb.connect(path, config=config)
    # where a file that is opened without ATTACH has it: not in the working directory
    root = duckdb.connect(config={**config, "temp_directory": f"{path}.tmp"})
    try:
        if memory_mib is None:
            _limit_memory(root)
        mode = ", read_only" if is_read_only else ""
        quoted = path.replace("'", "''")
        root.execute(
            f"attach '{quoted}' as {ATTACHED_AS} (type duckdb, row_group_size {ROW_GROUP}{mode})"
        )
        root.execute(f"use {ATTACHED_AS}")
    except duckdb.Error:
        root.close()
        raise
    return root


def _permitted_cores() -> int | None:
    """Return how many cores this process may use, where a job or `taskset` limits it.

    None: all; DuckDB counts those of the machine, and those of a container's limit.
    """
    permitted = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    return None if permitted == os.cpu_count() else permitted


def _limit_memory(root: duckdb.DuckDBPyConnection) -> None:
    """Let DuckDB use 1 GiB a thread and at least 2, where its own limit is higher.

    That is 80 % of the machine; a build is as fast with less (tests/benchmarks/measurements.md).
    """
    own, threads = root.execute(
        "select parse_formatted_bytes(current_setting('memory_limit')), current_setting('threads')"
    ).fetchall()[0]
    limit = max(2, threads) << 30
    if limit < own:
        root.execute(f"set global memory_limit = '{limit}B'")


def why_not_opened(path: str, error: duckdb.Error) -> str:
    """Return the sentence for a file that DuckDB did not open."""
    text = str(error)
    if (said := damage.sentence(path, error, is_opening=True)) is not None:
        return said
    if "Could not set lock" in text:
        return f"{path}: another process has this database open. ({text.splitlines()[0]})"
    if "already attached" in text:
        return f"{path}: this process has this database open already."
    if "Permission denied" in text:
        return f"{path}: the file or its folder is not writable for you."
    return f"{path}: this is not a database that can be opened here. ({text.splitlines()[0]})"


def refuse_unless_duckdb(path: str) -> None:
    """Raise StoreError for a file of another kind, for which DuckDB would fetch an extension."""
    if path == IN_MEMORY or not Path(path).is_file():
        return
    try:
        with Path(path).open("rb") as file:
            head = file.read(MAGIC_OFFSET + len(MAGIC))
    except OSError:
        return  # opening it says why
    if head and head[MAGIC_OFFSET:] != MAGIC:
        raise StoreError(f"{path}: this is not a DuckDB database; name another file with --db.")


def refuse_unless_ours(cursor: duckdb.DuckDBPyConnection, path: str) -> None:
    """Raise StoreError where a database is another program's: a build drops whole schemas."""
    if migrations.recorded_version(cursor) is not None:
        return
    tables = cursor.execute(
        "select table_schema, table_name from information_schema.tables order by all"
    ).fetchall()
    if tables:
        raise StoreError(
            f"{path}: this database is not Goodput's: it has {'.'.join(tables[0])}. Nothing was "
            "changed; name another file with --db."
        )


def is_for_reading_only(path: str) -> bool:
    """Return whether this user may read a file and not write it."""
    return path != IN_MEMORY and os.access(path, os.R_OK) and not os.access(path, os.W_OK)


def read_only(path: str) -> str:
    """Return the sentence for a file that would have to be written and may only be read."""
    return f"{path} is read-only for you; copy it, or ask its owner to run `goodput build`."


def close(root: duckdb.DuckDBPyConnection, cursors: Iterable[duckdb.DuckDBPyConnection]) -> None:
    """Close a connection; queries of its cursors are interrupted and their callers get an error."""
    for _ in range(TRIES):
        try:
            root.close()
        except duckdb.Error as error:
            if "busy" not in str(error):
                raise
        else:
            return
        for cursor in list(cursors):
            with contextlib.suppress(duckdb.ConnectionException):  # its query ended meanwhile
                cursor.interrupt()
        time.sleep(WAIT_S)
    root.close()
