"""Run one select of a person on tables that it is given; a program of its own, started as a script.

It has no database file, no environment and no secret: DuckDB in memory, locked before it sees the
statement, and limits of the kernel. It first answers which tables the statement names, then gets
their rows, then answers the result. Whoever escapes from the lock finds what they were given.

Messages on stdin and stdout: the length of a JSON object in eight bytes, the object, and where its
`bytes` says so, that many bytes of an Arrow IPC stream.
"""

import contextlib
import io
import json
import os
import resource
import sys
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
from pyarrow import ipc

LENGTH_BYTES = 8
MIB = 1 << 20
BATCH_ROWS = 8_192
OWN_MEMORY_MIB = 1_024  # Python, Arrow, the rows that come in and those that go out
OPEN_FILES_MAX = 32
NICENESS = 5  # pages come first
# A process that may be stopped before others of the machine where its memory runs out
OOM_SCORE = "1000"
PLAIN_TYPES = frozenset(
    {
        "bigint", "boolean", "date", "decimal", "double", "float", "integer", "smallint",
        "timestamp", "tinyint", "ubigint", "uinteger", "usmallint", "utinyint", "varchar",
    }
)  # fmt: skip
# Others are answered as text. DuckDB has more years than those who read its answers
DATED_TYPES = ("date", "timestamp")
FIRST_DAY, LAST_DAY = "0001-01-01", "9999-12-31"
TOO_LARGE = "the result is larger than {} MiB. Select fewer columns or rows."
# What only whole rows can answer: every column is needed then
_WHOLE_ROWS = ("PIVOT", "SHOW_REF")


class RefusedError(Exception):
    """A statement that is not answered; its text is for the person."""


def main() -> None:
    """Answer one statement."""
    request, _ = _receive()
    _limit_process(request["memory_mib"], request["cpu_s"])
    connection = locked(request["memory_mib"], request["threads"])
    try:
        _send(tables_named(connection, request["sql"]))
        while (message := _receive())[0]:
            create(connection, message[0]["schema"], message[0]["name"], message[1])
        table, is_cut = result(connection, request)
    except (duckdb.Error, RefusedError, MemoryError, pa.ArrowException) as error:
        _send({"error": type(error).__name__, "message": str(error)})
        return
    sink = io.BytesIO()
    with ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    _send({"is_cut": is_cut}, sink.getvalue())


def _limit_process(memory_mib: int, cpu_s: int) -> None:
    """Give up what the statement does not need; hard limits cannot be raised again."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123 -- a setting of the kernel, on Linux
        file.write(OOM_SCORE)
    limits = {
        resource.RLIMIT_CPU: cpu_s,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: OPEN_FILES_MAX,
        resource.RLIMIT_DATA: (memory_mib + OWN_MEMORY_MIB) * MIB,
    }
    for kind, limit in limits.items():
        with contextlib.suppress(ValueError, OSError):  # not every system has each of them
            resource.setrlimit(kind, (limit, limit))
    os.nice(NICENESS)


def locked(memory_mib: int, threads: int) -> duckdb.DuckDBPyConnection:
    """Return an empty database in memory that cannot leave this process."""
    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{memory_mib}MiB",
            "threads": threads,
            "async_threads": 1,  # else four for each core of the host: no file is read here
            "temp_directory": "",
            "max_temp_directory_size": "0B",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "allow_persistent_secrets": False,
            "secret_directory": "/nonexistent",
            "python_enable_replacements": False,
        },
    )
    connection.execute("set TimeZone = 'UTC'")
    connection.execute("create schema marts")
    connection.execute("create schema reference")
    connection.execute("set search_path = 'main,marts,reference'")
    connection.execute("set disabled_filesystems = 'LocalFileSystem'")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")
    return connection


def tables_named(connection: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    """Return the tables that a statement names, and the names that may be columns of them.

    words: every identifier and text in it, in lower case; None where it may need all columns.
    Raises RefusedError for what is not one select, and duckdb.Error for what is no SQL.
    """
    kinds = [statement.type for statement in connection.extract_statements(sql)]
    if kinds != [duckdb.StatementType.SELECT]:
        raise RefusedError("expected one select, and nothing else.")
    found = connection.execute("select json_serialize_sql($1::varchar)", [sql]).fetchall()
    parsed = json.loads(found[0][0])
    if parsed.get("error"):
        raise RefusedError(f"this statement cannot be checked: {parsed.get('error_message', '')}")
    tables, aliases = set[tuple[str, ...]](), set[str]()
    words, values = set[str](), set[str]()
    needs_all = False
    for part in _parts(parsed["statements"]):
        kind = part.get("type")
        if kind == "BASE_TABLE":
            path = tuple(name.lower() for name in part["qualified_name"]["path"])
            tables.add(path)
            aliases |= {path[-1], str(part.get("alias", "")).lower()}
        needs_all |= part.get("class") == "STAR" or kind in _WHOLE_ROWS
        needs_all |= part.get("ref_type") == "NATURAL" or bool(part.get("column_name_alias"))
        needs_all |= part.get("class") == "POSITIONAL_REFERENCE"
        if part.get("class") == "COLUMN_REF" and len(part["column_names"]) == 1:
            values.add(part["column_names"][0].lower())
        words |= {text.lower() for text in _texts(part)}
    needs_all |= not aliases.isdisjoint(values)  # a row as a value
    return {"tables": sorted(tables), "words": None if needs_all else sorted(words)}


def _parts(part: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a parsed statement."""
    pending = [part]
    while pending:
        one = pending.pop()
        if isinstance(one, list):
            pending += one
        elif isinstance(one, dict):
            yield one
            pending += one.values()


def _texts(part: dict[str, Any]) -> Iterator[str]:
    for value in part.values():
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from (one for one in value if isinstance(one, str))


def create(connection: duckdb.DuckDBPyConnection, schema: str, name: str, rows: bytes) -> None:
    """Make a table of rows that came in."""
    with ipc.open_stream(pa.py_buffer(rows)) as stream:
        table = stream.read_all()
    connection.register("incoming_rows", table)
    connection.execute(f'create table "{schema}"."{name}" as select * from incoming_rows')
    connection.unregister("incoming_rows")


def result(connection: duckdb.DuckDBPyConnection, request: dict[str, Any]) -> tuple[pa.Table, bool]:
    """Return the first rows of a select, and whether there were more."""
    connection.execute("begin transaction read only")
    selected = connection.sql(request["sql"])
    kinds = [str(kind).lower() for kind in selected.types]
    columns = [
        f'{readable(n, kind)} as "{name}"'
        for n, (name, kind) in enumerate(
            zip(_unique(selected.columns), kinds, strict=True), start=1
        )
    ]
    with selected.project(", ".join(columns)).to_arrow_reader(BATCH_ROWS) as reader:
        batches, is_cut = _first(reader, request["rows_max"], request["result_max_mib"])
        return pa.Table.from_batches(batches, reader.schema), is_cut


def _first(
    reader: pa.RecordBatchReader, rows_max: int, result_max_mib: int
) -> tuple[list[pa.RecordBatch], bool]:
    """Return the first rows, and whether there were more; raises RefusedError for too many MiB."""
    batches, rows, size = [], 0, 0
    for batch in reader:
        kept = batch.slice(0, rows_max - rows)
        size += kept.nbytes
        if size > result_max_mib * MIB:
            raise RefusedError(TOO_LARGE.format(result_max_mib))
        batches.append(kept)
        rows += kept.num_rows
        if kept.num_rows < batch.num_rows:
            return batches, True
    return batches, False


def readable(number: int, kind: str) -> str:
    """Return the expression for a column in a type that every reader of the answer knows."""
    if kind.partition("(")[0] not in PLAIN_TYPES or kind.endswith("]"):
        return f"#{number}::varchar"
    if kind not in DATED_TYPES:
        return f"#{number}"
    return (
        f"if(#{number}::date between '{FIRST_DAY}' and '{LAST_DAY}', #{number}, "
        f"if(#{number} is null, null, error('a {kind} is not between {FIRST_DAY} and {LAST_DAY}')))"
    )


def _unique(names: list[str]) -> list[str]:
    """Return quoted column names, those that come again with a number."""
    found: list[str] = []
    for name in names:
        unique, n = name, 2
        while unique.lower() in (one.lower() for one in found):
            unique, n = f"{name}_{n}", n + 1
        found.append(unique)
    return [name.replace('"', '""') for name in found]


def _receive() -> tuple[dict[str, Any], bytes]:
    """Return the next message and its bytes; ends the process where nobody asks any more."""
    head = sys.stdin.buffer.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        sys.exit(1)
    message: dict[str, Any] = json.loads(sys.stdin.buffer.read(int.from_bytes(head, "big")))
    return message, sys.stdin.buffer.read(message.get("bytes", 0))


def _send(message: dict[str, Any], content: bytes = b"") -> None:
    text = json.dumps({**message, "bytes": len(content)}).encode()
    sys.stdout.buffer.write(len(text).to_bytes(LENGTH_BYTES, "big") + text + content)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
