"""What a select of a person cannot do: reach files, the network, settings, or more time."""

import contextlib
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyarrow import ipc
from tests.tables import each

from goodput_queries.errors import QueryError
from goodput_queries.sandbox import process, worker
from goodput_queries.sandbox.limits import Limits
from goodput_queries.sandbox.process import WorkerProcess

SECRET = "sesame-4711"  # noqa: S105 -- what a test looks for
MANY_CORES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>
int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set) {
    CPU_ZERO_S(size, set);
    for (int core = 0; core < 64; core++) CPU_SET_S(core, size, set);
    return 0;
}
long sysconf(int name) {
    long (*real)(int) = dlsym(RTLD_NEXT, "sysconf");
    return name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF ? 64 : real(name);
}
"""
REQUEST = {"rows_max": 1_000, "result_max_mib": 1}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Give a folder with a file that nobody may read."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "file.txt").write_text(SECRET)
    return {"folder": str(folder), "file": str(folder / "file.txt")}


@pytest.fixture(scope="module")
def locked():
    """Give the connection of a worker, with one table, in this process."""
    with contextlib.closing(worker.locked(memory_mib=256, threads=1)) as connection:
        sink = pa.BufferOutputStream()
        table = pa.table({"run_key": ["a", "b"], "team": ["red", None], "gpu_ms": [1, 2]})
        with ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        worker.create(connection, "marts", "runs", sink.getvalue().to_pybytes())
        yield connection


def answer(connection, sql):
    """Do with a statement as a worker does."""
    try:
        named = worker.tables_named(connection, sql)
        table, is_cut = worker.result(connection, {"sql": sql, **REQUEST})
    finally:
        with contextlib.suppress(duckdb.Error):
            connection.execute("rollback")
    return named, table, is_cut


@each("copy (select 1) to '{folder}/out.csv'", "attach '{folder}/other.duckdb'",
      "attach ':memory:' as other", "install httpfs",
      "load '{folder}/x.duckdb_extension'", "set lock_configuration = false",
      "set enable_external_access = true", "set variable scope_teams = ['other']",
      "reset enable_external_access", "pragma database_list", "call pragma_version()",
      "export database '{folder}'", "import database '{folder}'", "checkpoint", "vacuum",
      "use memory", "begin", "create table t as select 1", "create secret (type s3)",
      "create macro f() as table select * from read_text('{file}')",
      "insert into marts.runs values ('x')", "delete from marts.runs",
      "update marts.runs set team = 'x'", "drop table marts.runs",
      "prepare p as select * from read_text('{file}')", "execute p", "deallocate p",
      "explain analyze select 1", "select 1; select 2",
      "select 1; copy (select 1) to '{folder}/out.csv'",
      "/* select */ pragma database_list -- select 1", "", ";")  # fmt: skip
def test_what_is_not_one_select_is_refused(locked, place, sql):
    with pytest.raises(worker.RefusedError, match="expected one select"):
        answer(locked, sql.format(**place))
    assert sorted(p.name for p in Path(place["folder"]).iterdir()) == ["file.txt"]


@each(
    "select * from read_csv('{file}')", "select * from read_text('{file}')",
    "select * from read_blob('{file}')", "select * from read_json('{file}')",
    "select * from read_parquet('{folder}/*.parquet')",
    "select * from read_duckdb('{folder}/other.duckdb')", "select * from sniff_csv('{file}')",
    "select * from glob('{folder}/*')", "select * from '{file}'", 'select * from "{file}"',
    "from 'file://{file}'", "from 'https://example.org/rows.csv'",
    "from read_csv('s3://bucket/rows.csv')", "from '/proc/self/environ'",
    "from duckdb_extensions()", "select * from query('select * from read_text(''{file}'')')",
    "select * from query_table('{file}')", "select (select content from read_text('{file}'))",
    "select 1 where exists (from read_text('{file}'))",
    "with t as (from read_text('{file}')) from t",
    "with t as materialized (from read_text('{file}')) select 1 from t",
    "select * from (values (1)) as v(a), lateral (select content from read_text('{file}'))",
    "select 1 union all select content from read_text('{file}')",
    "select * from read_text/* */('{file}')", "select * from \u2000read_text('{file}')",
    "pivot (from read_text('{file}')) on filename using count(*)",
    "describe select * from read_csv('{file}')", "summarize '{file}'", "show all tables from other",
    "with t as (insert into marts.runs values ('x') returning 1) from t",
    "with t as (delete from marts.runs returning 1) from t", "select getenv('GOODPUT_SECRET')",
    "select * from python_frame", "select * from arrow_table", "select * from arrow_scan(1, 2, 3)",
    "select * from pandas_scan(1)", "select nextval('s')", "select * from sql_auto_complete('sel')",
    "select date '10000-01-01'", "select 'infinity'::timestamp", "select error('stop')",
    "select " + "(" * 5_000 + "1" + ")" * 5_000, "select 1" + "+1" * 5_000,
    "select repeat('x', 3000000) from range(3)")  # fmt: skip
def test_a_select_reaches_only_what_it_is_given(locked, place, sql):
    python_frame = arrow_table = pa.table({"secret": [SECRET]})
    text = sql.replace("{file}", place["file"]).replace("{folder}", place["folder"])

    with pytest.raises((duckdb.Error, worker.RefusedError)) as refused:
        answer(locked, text)

    assert python_frame is arrow_table
    assert SECRET not in str(refused.value)


@each("from duckdb_settings()", "from duckdb_databases()", "from duckdb_secrets()",
      "from duckdb_tables()", "from duckdb_views()", "from duckdb_temporary_files()",
      "from duckdb_logs", "from pragma_database_size()", "from pg_catalog.pg_settings",
      "from pg_catalog.pg_database", "from information_schema.schemata",
      "select current_setting('temp_directory'), current_setting('secret_directory')",
      "select current_query(), current_database(), version()")  # fmt: skip
def test_system_tables_reveal_no_path(locked, sql):
    home = str(Path.home())
    _, table, _ = answer(locked, sql)
    text = json.dumps(table.to_pylist(), default=str)
    assert not [path for path in (home, str(Path.cwd()), "/tmp", ".venv") if path in text]  # noqa: S108 -- looked for, not used


@each(("enable_external_access", "false"), ("lock_configuration", "true"), ("temp_directory", ""),
      ("autoload_known_extensions", "false"), ("autoinstall_known_extensions", "false"),
      ("allow_community_extensions", "false"), ("python_enable_replacements", "false"))  # fmt: skip
def test_the_lock_holds_even_where_a_statement_ran_unchecked(locked, name, value):
    for change in ("set", "set global", "set session"):
        with pytest.raises(duckdb.Error):
            locked.execute(f"{change} {name} = '{'true' if value == 'false' else 'false'}'")
    with pytest.raises(duckdb.Error):
        locked.execute(f"reset {name}")
    assert locked.execute(f"select current_setting('{name}')::varchar").fetchall() == [(value,)]


@pytest.mark.parametrize(("sql", "tables", "words"), [
    ("select team from marts.runs", [("marts", "runs")], {"team"}),
    ('select "TEAM" from MARTS."Runs"', [("marts", "runs")], {"team"}),
    ("select 'marts.nodes' -- from marts.nodes", [], None),
    ("with m as (select 1) from m, marts.runs as r", [("m",), ("marts", "runs")], None),
    ("select r from marts.runs as r", [("marts", "runs")], None),
    ("select a from marts.runs as r(a)", [("marts", "runs")], None),
    ("select 1 from runs join nodes using (team)", [("nodes",), ("runs",)], {"team"}),
    ("select max(columns('t.*')) from marts.runs", [("marts", "runs")], None),
    ("select #1 from marts.runs", [("marts", "runs")], None),
    ("describe marts.runs", [("marts", "runs")], None),
])  # fmt: skip
def test_tables_and_columns_of_a_statement_are_found(locked, sql, tables, words):
    found = worker.tables_named(locked, sql)

    assert found["tables"] == tables
    if words is None and tables:
        assert found["words"] is None
    elif words:
        assert words <= set(found["words"])


def test_an_answer_has_plain_types_and_different_names(locked):
    _, table, is_cut = answer(
        locked,
        """select 1::hugeint as a, 2 as A, [1] as "q""x", interval 1 day as i, null::date as d,
            timestamp '2027-01-15 08:00:00' as t, 'ünï ☃' || chr(0) as "nämé"
        from marts.runs order by run_key desc""",
    )

    assert table.column_names == ["a", "A_2", 'q"x', "i", "d", "t", "nämé"]
    assert [str(kind) for kind in table.schema.types] == [
        "string", "int32", "string", "string", "date32[day]", "timestamp[us]", "string",
    ]  # fmt: skip
    assert table.num_rows == 2
    assert not is_cut


def test_rows_beyond_the_limit_are_left_out_and_said(locked):
    _, table, is_cut = answer(locked, "select range from range(100000000)")
    assert table.column("range").to_pylist() == list(range(REQUEST["rows_max"]))
    assert is_cut


@pytest.mark.parametrize("sql", [
    "with recursive r as (select 1 as n union all select n + 1 from r) select max(n) from r",
    "select levenshtein(repeat('a', 1000000), repeat('b', 1000000))",  # nothing interrupts it
    "select sleep_ms(60000)",
    "select sum(a.range * b.range) from range(1000000) as a, range(1000000) as b",
])  # fmt: skip
def test_a_select_ends_at_its_deadline(sql):
    limits = Limits(timeout_s=0.7, threads=1)
    began = time.monotonic()

    with pytest.raises(QueryError, match=r"took longer than 0\.7 s and was stopped"):
        run(sql, limits)

    assert time.monotonic() - began < 5


@pytest.mark.parametrize(("sql", "why"), [
    ("select length(repeat('x', 4000000000))", "more than 64 MiB"),
    ("select list(range) from range(1000000000)", "more than 64 MiB"),
    # ends DuckDB on a stack of 8 MiB; `make` allows its commands a larger one
    ("select * from (" * 1_500 + "select 1" + ")" * 1_500,
     "its process ended|Max expression depth"),
])  # fmt: skip
def test_a_select_that_takes_too_much_ends_alone(sql, why):
    with pytest.raises(QueryError, match=why):
        run(sql, Limits(timeout_s=20, memory_mib=64, threads=1))


def test_a_worker_has_no_environment(monkeypatch):
    monkeypatch.setenv("GOODPUT_SECRET", SECRET)
    with WorkerProcess(Limits()) as asked:
        asked.ask("select 1")
        asked.receive()
        environment = Path(f"/proc/{asked.pid}/environ").read_text()

    names = {entry.partition("=")[0] for entry in environment.rstrip("\0").split("\0")}
    assert names == {*process.ENVIRONMENT, "PYTHONPATH"}
    assert SECRET not in environment


def test_a_worker_finds_the_packages_that_its_server_has(tmp_path, monkeypatch):
    (tmp_path / "duckdb.py").write_text("raise SystemExit(0)")
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), *sys.path])
    with pytest.raises(QueryError, match="its process ended"):
        run("select 1", Limits())

    monkeypatch.setattr(sys, "path", sys.path[2:])
    run("select 1", Limits())


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler: a host of many cores")
def test_a_select_is_answered_on_a_host_of_many_cores(tmp_path, monkeypatch):
    library = tmp_path / "cores.so"
    (tmp_path / "cores.c").write_text(MANY_CORES)
    command = ["cc", "-shared", "-fPIC", "-o", library, tmp_path / "cores.c", "-ldl"]
    subprocess.run(command, check=True)
    monkeypatch.setitem(process.ENVIRONMENT, "LD_PRELOAD", str(library))

    run("select count(*) from range(1000000)", Limits())


def run(sql, limits):
    with WorkerProcess(limits) as process:
        process.ask(sql)
        process.receive()
        process.send({})
        process.receive()
