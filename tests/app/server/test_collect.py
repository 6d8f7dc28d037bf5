"""`goodput collect`: alone, beside a server, inside one; what the Data page and /metrics show."""

import contextlib
import json
import shutil
import signal
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from tests.app import served
from tests.app.command_line import failing, run
from tests.app.served import running
from tests.tables import each
from tests.until import until

import goodput_app
from goodput_app.cli import serve
from goodput_app.settings import read, settings
from goodput_ingest.live import status as live_status
from goodput_ingest.live.config import collectors
from goodput_ingest.live.status import Status
from goodput_ingest.live.store_lease import is_collected
from goodput_queries.database import open_store
from goodput_queries.errors import GoodputError
from goodput_queries.evidence.plausible import utc_now
from goodput_queries.remote import find_server

PACKAGE = Path(goodput_app.__file__).parent
PATIENCE_S = 180.0
pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def site(tmp_path, empty_database):
    """Give a folder with an empty database, settings with a folder of job events, and a step."""
    shutil.copyfile(empty_database, tmp_path / "goodput.duckdb")
    (tmp_path / "events").mkdir()
    (tmp_path / "goodput.toml").write_text(
        '[[collect]]\nsource = "job-events"\nfolder = "events"\ninterval_s = 1\n'
    )
    say(tmp_path, 1)
    return tmp_path


def say(site, step):
    """Let a job write a step."""
    line = {"v": 1, "ts": 1795177781.5 + step, "event": "step", "step": step, "dur_s": 1.0}
    who = {"run_id": "9001", "rank": 0, "host": "n1"}
    with (site / "events" / "job.jsonl").open("a") as file:
        file.write(json.dumps(line | who) + "\n")


def steps_of(site):
    """Return the steps in the database, through the server if one has it."""
    with contextlib.closing(open_store(site / "goodput.duckdb")) as store:
        return store.read("select step from raw.job_events order by step").to_series().to_list()


def await_steps(site, steps):
    """Wait until the database has these steps."""
    until(lambda: steps_of(site) == steps, f"steps {steps} are there", every_s=0.5)


@contextlib.contextmanager
def collecting(site):
    """Run `goodput collect`, which says when it has begun."""
    with running("collect", cwd=site) as process:
        assert process.stderr.readline() == "Polling job-events (events). Ctrl-C ends it.\n"
        yield process


@contextlib.contextmanager
def serving(site, *options):
    """Run `goodput serve`; it is ready when it says where it is."""
    with served.serving(site / "goodput.duckdb", "--port", "0", *options) as server:
        yield server.process


def test_once_says_what_each_source_brought_and_fails_where_one_does(site):
    first = run("collect", "--once", "--format", "json")
    say(site, 2)
    with (site / "goodput.toml").open("a") as file:
        file.write('[[collect]]\nsource = "job-log"\nfolder = "nowhere"\n')
    settings.cache_clear()
    second = run("collect", "--once", "--format", "json")

    assert first.exit_code == 0, first.stderr
    (row,) = json.loads(first.stdout)
    told = {"rows": 1, "rows_new": 1, "rejects": 0, "error": None}
    assert row == {"source": "job-events", "origin": "events", **told}
    assert second.exit_code == 1
    assert second.stderr.endswith("1 of 2 sources failed.\n")
    events, logs = json.loads(second.stdout)
    assert events["rows_new"] == 1
    assert logs["error"] == "nowhere: there is no such folder to follow."
    assert steps_of(site) == [1, 2]


@pytest.mark.machine
def test_commands_and_a_starting_server_get_the_database_from_a_collector(site):
    """Then the collector works through the server, which says so, and when that ends, without."""
    database = site / "goodput.duckdb"
    with collecting(site) as process:
        await_steps(site, [1])
        assert run("build").exit_code == 0
        with serving(site) as server:
            assert find_server(database) is not None
            say(site, 2)
            await_steps(site, [1, 2])  # through the server
            server.send_signal(signal.SIGTERM)
            said = server.stderr.read()
            assert server.wait(PATIENCE_S) == 0, said
            assert f"process {process.pid} collects into this database already" in said
        say(site, 3)
        await_steps(site, [1, 2, 3])  # without it
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.machine
def test_a_server_collects_by_itself_alone_shows_it_and_ends_cleanly(site):
    database = site / "goodput.duckdb"
    database.unlink()
    with serving(site) as server:
        await_steps(site, [1])
        assert is_collected(database)
        second = run("collect")
        with contextlib.suppress(GoodputError):
            store = find_server(database)
            text = httpx.get(f"{store.url}/metrics", trust_env=False, timeout=PATIENCE_S).text
            store.close()
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE_S) == 0
        assert server.stderr.read() == ""

    assert {path.name for path in site.iterdir()} == {"goodput.duckdb", "goodput.toml", "events"}
    assert second.exit_code == 1
    assert second.stderr == (
        f"{database}: process {server.pid} collects into this database already. "
        "Stop that process first.\n"
    )
    assert 'goodput_live_source_failures{origin="events",source="job-events"} 0.0' in text


@pytest.mark.machine
def test_a_server_that_is_stopped_during_a_build_ends_it_first(site):
    """The first build begins as the server does; a file in use could not be closed."""
    assert run("collect", "--once").exit_code == 0
    with serving(site, "--no-collect") as server:
        server.send_signal(signal.SIGTERM)

        assert server.wait(PATIENCE_S) == 0
        assert server.stderr.read() == ""


def test_without_live_sources_there_is_nothing_to_collect():
    assert failing("collect") == (
        "goodput.toml: no live source is named under [[collect]]; `goodput doctor` says which "
        "there are and the lines that add them.\n"
    )


@pytest.mark.parametrize("command", ["collect", "serve"])
def test_a_wrong_live_source_is_a_stated_failure(tmp_path, command):
    (tmp_path / "goodput.toml").write_text('[[collect]]\nsource = "nope"\n')

    assert failing(command).startswith("goodput.toml: [[collect]] 1: 'source' is 'nope', expected ")
    assert list(tmp_path.iterdir()) == [tmp_path / "goodput.toml"]


@pytest.mark.usefixtures("site")
@each((["serve"], ["job-events"]), (["serve", "--no-collect"], []))
def test_a_server_collects_what_the_settings_name(monkeypatch, command, collected):
    served_ = []
    monkeypatch.setattr(serve, "serve_at", lambda *given: served_.append(given))

    assert run(*command).exit_code == 0

    ((_, _, _, sources, *_),) = served_
    assert [one.reads for one in sources] == collected


def test_sources_and_credits_of_the_example_are_right_those_commented_out_too(tmp_path):
    text = (PACKAGE / "goodput.example.toml").read_text()
    names = ("[otlp]", "[[collect]]", "source = ", "url = ", "urls = ")
    of_sources = tuple(f"# {name}" for name in names)
    commented = [line[2:] for line in text.splitlines() if line.startswith(of_sources)]
    (tmp_path / "goodput.toml").write_text("\n".join(commented))
    example, others = read(PACKAGE / "goodput.example.toml"), read(tmp_path / "goodput.toml")
    given = {"cluster": example.ingest.cluster, "timezone": example.ingest.timezone}

    found = [*collectors(example.collect, **given), *collectors(others.collect)]

    assert [one.reads for one in found] == [
        *("prometheus", "slurm", "job-events", "job-log", "serving-requests", "nccl-inspector"),
        *("kubernetes", "kubernetes-api", "dcgm", "node-exporter", "serving-metrics", "nvml"),
        "kernel-log",
    ]
    block = text[text.index("# [[statement.credits]]") :].partition("\n\n")[0]
    (tmp_path / "goodput.toml").write_text(block.replace("\n# ", "\n").removeprefix("# "))
    (credit,) = read(tmp_path / "goodput.toml").statement.credits
    assert (credit.reason, credit.share, credit.accounts) == ("Failed hardware", 0.5, ("nlp",))


def statuses(store):
    """Leave a source of each state, asked every ten seconds."""
    seconds = {"ok": 1, "late": 25, "stale": 55, "failing": 15}
    for name, age_s in seconds.items():
        then = utc_now() - timedelta(seconds=age_s)
        status = Status(name, f"of {name}", utc_now(), 10).answered(then)
        if name == "failing":
            status = status.failed(utc_now(), "it <b>cannot</b> be reached.")
        live_status.write(store, [status])
    live_status.write(store, [Status("waiting", "of waiting", utc_now(), 10)])
    gone = utc_now() - timedelta(days=8)
    live_status.write(store, [Status("gone", "of gone", gone, 10).answered(gone)])


def test_a_clock_set_back_makes_no_poll_and_no_failure_of_the_future(own_store, built_empty):
    ahead = utc_now() + timedelta(hours=1)
    failing = Status("slurm", "a", ahead, 10).answered(ahead).failed(ahead, "away.")
    store = own_store(copy_of=built_empty)
    live_status.write(store, [failing])

    answered_at, age_s = store.read("select answered_at, age_s from marts.live_sources").row(0)
    assert max(answered_at, store.read("select since_at from marts.findings").item()) <= utc_now()
    assert age_s == 0
    long_ago = utc_now() - timedelta(minutes=6)
    live_status.write(store, [Status("unasked", "a", long_ago, 10).failed(long_ago, "away.")])
    state = store.read("select state from marts.live_sources where source = 'unasked'").item()
    assert state == "stale", "it failed, and is asked no more"


def test_the_data_page_shows_how_live_sources_are_doing(store, visit):
    statuses(store)

    app = visit(store, "data_health", is_sound=False)

    (error,) = app.error
    assert error.value.splitlines() == [
        "2 of 5 live sources are failing or stale.",
        r"- failing \(of failing\): it \<b\>cannot\</b\> be reached\.",
        r"- stale \(of stale\): it is no longer polled\. Is a server or goodput collect running? "
        r"If it was removed from goodput\.toml\: goodput retire stale",
    ]
    (table,) = (one.value for one in app.dataframe if "state" in one.value)
    assert table["state"].tolist() == ["failing", "waiting", "stale", "late", "ok"]
    assert table["error"][0] == "it <b>cannot</b> be reached."
    is_known = table["age_s"].notna().tolist()  # no success yet is not a success just now
    assert is_known == [True, False, True, True, True]
