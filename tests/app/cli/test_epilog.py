"""`goodput epilog`: a job's report within two seconds or nothing, and exit code 0."""

import os
import shutil
import threading

import httpx
import pytest
from starlette.applications import Starlette
from tests.app.command_line import failing, run
from tests.app.served import ask

from goodput_app.cli import epilog
from goodput_app.server.job_page import job_route
from goodput_queries.database import LocalStore


@pytest.fixture
def database(recorded_demo, here, monkeypatch):
    """Give the recorded session as `goodput.duckdb`, and time for its first answer."""
    for name in ("SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "GOODPUT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GOODPUT_EPILOG_WITHIN_S", "120")
    return shutil.copyfile(recorded_demo, here / "goodput.duckdb")


@pytest.mark.usefixtures("database")
def test_the_report_is_of_the_job_of_the_environment(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "9102")

    done = run("epilog")

    assert done.exit_code == 0
    assert done.stdout.startswith("Job: 9102, run main, COMPLETED. Goodput (% of allocated): 45.8")


@pytest.mark.parametrize("arguments", [("77",), ("9102", "--db", "nowhere.duckdb")])
@pytest.mark.usefixtures("database")
def test_what_fails_writes_nothing(arguments):
    done = run("epilog", *arguments)
    assert (done.exit_code, done.output) == (0, "")


@pytest.mark.usefixtures("database")
def test_without_a_job_the_usage_is_wrong_and_a_task_is_named_as_accounting_does(monkeypatch):
    assert "no job: name its number, or set SLURM_JOB_ID." in failing("epilog", code=2)
    for name, value in (("JOB_ID", "18"), ("ARRAY_JOB_ID", "17"), ("ARRAY_TASK_ID", "3")):
        monkeypatch.setenv(f"SLURM_{name}", value)
    assert epilog.job_of_environment() == "17_3"


def test_what_takes_too_long_writes_nothing_and_ends(monkeypatch):
    over, ended = threading.Event(), []
    monkeypatch.setattr(epilog, "_report", lambda *_: str(over.wait()))
    monkeypatch.setattr(os, "_exit", ended.append)

    done = run("epilog", "9102", "--within", "0.01")
    over.set()

    assert (ended, done.output) == ([0], "")


def test_a_server_is_asked_with_the_token(database, monkeypatch):
    sent = {}

    def get(url, *, params, headers, **_):
        sent.update(headers)
        return ask(app, url.removeprefix("http://server"), params=params, headers=headers)

    monkeypatch.setenv("GOODPUT_TOKEN", "goodput_t")
    monkeypatch.setattr(httpx, "get", get)
    store = LocalStore(database)
    app = Starlette(routes=[job_route(store, "http://server")])
    done = run("epilog", "9105", "--url", "http://server/", "--format", "table")
    store.close()

    assert done.stdout.splitlines()[-1].endswith("http://server/run?run=lab%2Fhang")
    assert sent["Authorization"] == "Bearer goodput_t"
