"""The server: processes that load and read through it, and its memory at rest."""

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import httpx
import polars as pl
import pytest
from starlette.applications import Starlette
from tests.app.command_line import run
from tests.app.served import PATIENCE_S, ask, rows_of, serving
from tests.tables import each
from tests.until import until

from goodput_app.server import asgi as server_module
from goodput_app.server.background import Upkeep
from goodput_app.server.metrics.exposition import Metrics
from goodput_queries.database import LocalStore
from goodput_queries.errors import QueryError, StoreError
from goodput_queries.evidence.batch import Batch
from goodput_queries.remote import ServerNote, find_server, note_path, read_note
from goodput_queries.scope import Scope


@pytest.fixture(scope="module")
def server(empty_database, tmp_path_factory):
    """Give a running server on an empty database, shared by the tests of a module."""
    path = tmp_path_factory.mktemp("served") / "fleet.duckdb"
    with serving(Path(shutil.copyfile(empty_database, path))) as running:
        yield running


@pytest.fixture
def through(server):
    found = find_server(server.database)
    with contextlib.closing(found):
        yield found


def test_the_server_says_who_it_is_and_serves_the_dashboard(server):
    note = read_note(server.database)

    until(lambda: server.get("/healthz").json()["is_built"], "the first build has ended")
    assert server.get("/healthz").json() == {
        "status": "ok", "version": "0.1.0", "instance": note.instance, "is_built": True,
        "is_writable": True, "pending_evaluations": 0,
    }  # fmt: skip
    assert stat.S_IMODE(note_path(server.database).stat().st_mode) == 0o600
    assert "<title>" in server.get("/").raise_for_status().text


def test_a_second_process_loads_and_reads_through_the_server_with_scope_and_types(through):
    part = rows_of("remote", 3, rejects=2)
    at = datetime(2026, 11, 20)  # noqa: DTZ001 -- naive UTC
    typed = "select getvariable('scope_team') as team, $at as at, null as nothing, [1, 2] as list"

    assert through.load(part).rows_new == 3
    assert through.load(part).is_repeat
    sql = "select count(*) from raw.gpu_samples where source = $1"
    assert through.read(sql, ["remote"]).item() == 3
    frame = through.read(typed, {"at": at}, scope=Scope(team="vision"))
    assert frame.rows() == [("vision", at, None, [1, 2])]
    empty = through.read("select source, ts from raw.gpu_samples where false")
    assert empty.schema == {"source": pl.String, "ts": pl.Datetime("us")}


def test_a_second_process_backs_up_the_database_of_the_server(through, server):
    through.load(rows_of("before", 2))

    target = server.database.with_name("copy.duckdb")
    assert through.back_up(target)["file"].to_list() == [str(target)]
    with contextlib.closing(LocalStore(target)) as copy:
        sql = "select count(*) from raw.gpu_samples where source = 'before'"
        assert copy.read(sql).item() == 2


@pytest.mark.parametrize("sql", ["select * from nope", "drop table raw.gpus", "selct"])
def test_an_error_through_the_server_is_the_same_error(store, through, sql):
    with pytest.raises(QueryError) as local:
        store.read(sql)
    with pytest.raises(QueryError) as there:
        through.read(sql)

    assert str(there.value) == str(local.value)


ENDLESS = "select sum(a.range * b.range) from range(1000000) a, range(1000000) b"


@each(
    (StoreError, lambda it: it.load(Batch("nope", pl.DataFrame(), "test", "file", "1")),
     "^there is no table 'nope'"),
    (StoreError, lambda it: it.read("select 1 -- " + "x" * 2**20),
     r"^`read` takes at most 1048576 bytes a call\.$"),
    (QueryError, lambda it: it.read(ENDLESS, timeout_s=0.2),
     r"^the query took longer than 0\.2 s and was stopped$"),
)  # fmt: skip
def test_what_does_not_fit_and_takes_too_long_is_refused(through, error, call, said):
    with pytest.raises(error, match=said):
        call(through)


@pytest.mark.parametrize("call", ["load", "read", "build"])
@each(
    ({"Authorization": ""}, 401, "the token is missing or not this server's."),
    ({"Authorization": "Bearer x"}, 401, "the token is missing or not this server's."),
    ({"Authorization": "TOKEN"}, 401, "the token is missing or not this server's."),
    ({"Host": "rebound.example.org"}, 421, ""),
    ({"Host": "127.0.0.1.example.org"}, 421, ""),
    ({"X-Forwarded-For": "203.0.113.9"}, 403, ""),
    ({}, 400, "this is not a call of `{}` as this version knows it."),
)
def test_a_call_is_refused_without_token_or_from_elsewhere(server, call, headers, status, said):
    given = {"Authorization": f"Bearer {read_note(server.database).token}", **headers}
    url = f"{server.url}/api/v1/store/{call}"

    answer = httpx.post(url, headers=given, trust_env=False, timeout=PATIENCE_S)

    assert answer.status_code == status
    assert said.format(call) in answer.text


def test_commands_work_while_the_server_runs(server, monkeypatch):
    """The command line finds the server by itself."""
    monkeypatch.chdir(server.database.parent)
    of = ("--db", server.database.name)

    shown, ledger = (
        run(*command, *of, "--format", "json") for command in (("show", "raw.rejects"), ("ledger",))
    )
    read_in, second = run("ingest", "auto", of[1], *of), run("serve", *of)

    for rows in (shown, ledger):
        assert (rows.exit_code, rows.stderr) == (0, "")
        assert isinstance(json.loads(rows.stdout), list)
    assert read_in.exit_code == 1
    assert "1 file of no known format" in read_in.stderr
    assert second.exit_code == 1
    assert second.stderr == (
        f"{of[1]}: process {server.process.pid} serves this database at {server.url} already.\n"
    )


def test_a_database_that_does_not_answer_is_not_healthy(store):
    note = ServerNote("http://127.0.0.1:9", "secret", 1, "instance", "fleet.duckdb")
    routes = server_module.routes(store, note, Upkeep(store), Metrics(store))
    store.close()

    health, shown = (ask(Starlette(routes=routes), path) for path in ("/healthz", "/metrics"))
    assert (health.status_code, health.json()["instance"]) == (503, "instance")
    assert shown.status_code == 503


UNIT = Path(__file__).parents[3] / "deploy/systemd/goodput.service"
GROWN_AND_FREED = """
import time
import goodput_app, duckdb, polars as pl

def held_mb():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) >> 10 for line in file if line.startswith("VmRSS"))

connection = duckdb.connect()
connection.execute("create temp table many as select random() as a from range(20_000_000)")
frame = pl.DataFrame({"a": pl.Series([1.5]).new_from_index(0, 20_000_000)}).sort("a")
grown = held_mb()
connection.execute("drop table many")
del frame
deadline = time.monotonic() + 60
while held_mb() > grown / 2 and time.monotonic() < deadline:
    time.sleep(0.5)
print(grown, held_mb())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_a_server_at_rest_gives_its_memory_back():
    lines = [line.removeprefix("Environment=") for line in UNIT.read_text().splitlines()]
    environment = dict(line.split("=", 1) for line in lines if "_MALLOC_CONF=" in line)
    done = subprocess.run(
        [sys.executable, "-c", GROWN_AND_FREED],
        env=os.environ | environment, capture_output=True, text=True, check=True,
    )  # fmt: skip

    grown, left = map(int, done.stdout.split())
    assert len(environment) == 2
    assert left <= grown / 2
    assert done.stderr == ""  # an allocator that cannot read its settings says so
