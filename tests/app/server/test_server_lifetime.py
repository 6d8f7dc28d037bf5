"""From the address and port of a server to its end: what stays, who waits, who is informed."""

import asyncio
import contextlib
import shutil
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import uvicorn
from tests.app.command_line import run
from tests.app.served import PATIENCE_S, goodput, rows_of, serving

from goodput_app.cli import serve
from goodput_app.cli.serve import refuse_strangers
from goodput_app.process.store import current_store
from goodput_app.server import asgi as server_module
from goodput_app.server import http_server
from goodput_app.server import listen as listen_module
from goodput_app.server.http_server import HttpServer
from goodput_app.settings import settings
from goodput_queries.database import LocalStore, open_store
from goodput_queries.errors import GoodputError, StoreError
from goodput_queries.remote import RemoteStore, note_path

HOLDS = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print(flush=True); sys.stdin.read()"


@pytest.fixture
def database(tmp_path, empty_database):
    path = tmp_path / "fleet.duckdb"
    shutil.copyfile(empty_database, path)
    return path


@pytest.mark.machine
def test_an_interrupted_server_leaves_only_the_database(database, tmp_path):
    with serving(database) as running:
        store = open_store(database)
        store.load(rows_of("test", 5))
        store.close()

        assert running.end(signal.SIGINT) == 0
        assert running.process.stderr.read() == ""
    assert list(tmp_path.iterdir()) == [database]
    with contextlib.closing(LocalStore(database)) as here:
        assert here.read("select count(*) from raw.gpu_samples").item() == 5


@pytest.mark.machine
def test_a_killed_server_loses_nothing_and_blocks_nobody(database):
    with serving(database) as running:
        orphan = open_store(database)
        assert isinstance(orphan, RemoteStore)
        orphan.load(rows_of("test", 5))
        running.end(signal.SIGKILL)

        with pytest.raises(StoreError, match=r"stopped during `read`\. Run the command again"):
            orphan.read("select 1")
        orphan.close()
    assert note_path(database).exists()
    with contextlib.closing(open_store(database)) as here:
        assert isinstance(here, LocalStore)
        assert here.read("select count(*) from raw.gpu_samples").item() == 5


def test_a_command_waits_for_the_process_that_has_the_database(database, tmp_path):
    first = LocalStore(database)
    with ThreadPoolExecutor(1) as thread:
        shown = thread.submit(goodput, "show", "raw.gpus", "--db", database.name, cwd=tmp_path)
        with pytest.raises(TimeoutError):
            shown.result(1.2)
        first.close()
        done = shown.result(PATIENCE_S)

    assert (done.returncode, done.stderr) == (0, "")


def test_who_holds_the_database_too_long_is_named(database, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, database], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        holder.stdout.readline()
        shown = run("doctor", "--db", "fleet.duckdb").stdout
        holder.communicate(b"")

    assert "another process has this database open" in shown


def test_a_taken_port_leaves_no_database_behind(tmp_path):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        said = "is taken. Name another --port, or none for the next free one"
        with pytest.raises(GoodputError, match=f"127.0.0.1: port {port} {said}"):
            server_module.serve(tmp_path / "fleet.duckdb", port)

    assert list(tmp_path.iterdir()) == []


def test_the_next_free_port_is_found_and_an_address_of_another_machine_refused(monkeypatch):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(listen_module, "DEFAULT_PORT", port)

        with contextlib.closing(listen_module.listen("127.0.0.1", None)) as found:
            assert port < found.getsockname()[1] < port + listen_module.PORTS_TRIED

    with pytest.raises(GoodputError, match=r"^192\.0\.2\.1: the server cannot listen there"):
        listen_module.listen("192.0.2.1", 0)


def test_pages_outside_of_the_server_open_the_named_database(tmp_path, monkeypatch):
    monkeypatch.setenv("GOODPUT_DB", str(tmp_path / "fleet.duckdb"))
    with contextlib.closing(current_store()) as opened:
        assert current_store() is opened
    assert (tmp_path / "fleet.duckdb").exists()


def start(*statuses):
    """Start a server whose health has these statuses in turn; return how often it was asked."""
    asked, ready = [], []

    async def app(_scope, _receive, send):
        status = statuses[min(len(asked), len(statuses) - 1)]
        asked.append(status)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"busy"})

    async def run():
        with contextlib.closing(socket.socket()) as listening:
            listening.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{listening.getsockname()[1]}/healthz"
            config = uvicorn.Config(app, lifespan="off", log_level="error")

            def answered():
                ready.append(True)
                server.should_exit = True

            server = HttpServer(config, on_answer=answered, health_url=url)
            await server.serve(sockets=[listening])

    asyncio.run(run())
    return len(asked), ready


def test_a_database_that_is_busy_at_the_start_delays_it_or_ends_it_with_a_sentence(monkeypatch):
    assert start(503, 503, 200) == (3, [True])

    monkeypatch.setattr(http_server, "START_S", 0.1)
    said = r"/healthz answers 503 \(busy\); the log above says why"
    with pytest.raises(GoodputError, match=said):
        start(503)


EVERYWHERE = "0.0.0.0"  # noqa: S104 -- refused, not bound to


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "localhost", "127.0.0.2"])
def test_a_loopback_address_needs_no_word(address, capsys):
    refuse_strangers(address, is_insecure=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("address", [EVERYWHERE, "::", "10.0.0.1", "gateway", "192.168.1.2"])
def test_an_address_that_others_reach_is_refused_or_warned_of(address, capsys):
    with pytest.raises(GoodputError, match="nobody signs in"):
        refuse_strangers(address, is_insecure=False)
    refuse_strangers(address, is_insecure=True)
    assert "Warning: " in capsys.readouterr().err


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_nothing_is_served_or_made_before_the_address_is_allowed(here, monkeypatch, command):
    served = []
    monkeypatch.setattr(serve, "serve_at", lambda *_: served.append("yes"))
    where = ("--dir", str(here / "demo")) if command == "demo" else ("--db", "a.duckdb")

    found = run(command, "--address", EVERYWHERE, *where)

    assert found.exit_code == 1
    assert "add --insecure" in found.stderr
    assert served == list(here.iterdir()) == []
    (here / "goodput.toml").write_text('[serve]\naddress = "0.0.0.0"\ninsecure = true\n')
    settings.cache_clear()
    assert run("serve", "--no-collect").exit_code == 0
    assert served == ["yes"]
