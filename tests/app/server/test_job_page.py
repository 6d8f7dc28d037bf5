"""The report of a job: `/run/JOB` as text and page, and `goodput epilog` within two seconds."""

import os
import shutil
import threading
from urllib.parse import quote

import httpx
import pytest
from starlette.applications import Starlette
from tests.app.command_line import run
from tests.app.served import ask
from tests.app.server.token_site import ALL, RED_TEAM, URL, behind_tokens
from tests.two_teams import COBALTS

from goodput_app.cli import epilog
from goodput_app.server.job_page import job_route
from goodput_queries.database import LocalStore

pytestmark = pytest.mark.usefixtures("people_sign_in")


def report(store, job, token=ALL, accept="text/plain", **params):
    """Return the answer to a program that asks for a job."""
    headers = {"Authorization": f"Bearer {token}", "Accept": accept}
    return ask(behind_tokens(job_route(store, URL)), f"/run/{job}", headers=headers, params=params)


def test_the_report_of_a_job_is_a_paragraph(recorded):
    answer = report(recorded, "9105")

    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert " ".join(answer.text.split()) == (
        "Job: 9105, run hang, TIMEOUT. Goodput (% of allocated): 0.0 %. "
        "Allocated: 4.7 GPU-min on 4 GPUs. Wasted: 4.7 GPU-min (Failed without progress "
        "4.7 GPU-min). Cost: $0.16, of which wasted $0.16. Why: Work is lost at a limit (TIMEOUT "
        "(scheduler state TIMEOUT)); 284.0 GPU-s lost with stalls and restarts, 100.0 % of the "
        "allocated time, 1 attempt (Likely). Change first: Save a checkpoint before the limit, or "
        f"ask for a longer limit. Data until: 2026-11-20 12:35:02Z. {URL}/run?run=lab%2Fhang"
    )
    assert max(map(len, answer.text.splitlines())) <= 100


def test_the_report_of_a_job_is_a_table_of_its_facts(recorded):
    lines = report(recorded, "fsdp", format="table").text.splitlines()

    assert lines[:6] == [
        "Job:                      fsdp, run fsdp, COMPLETED",
        "Goodput (% of allocated): 58.1 % (up to 58.5 %)",
        "Allocated:                4.8 GPU-min on 4 GPUs",
        "Wasted:                   2.0 GPU-min (Start-up 1.2 GPU-min, Teardown 47.1 GPU-s, "
        "Straggler wait 0.1",
        f"{'GPU-s)':>32}",
        "Unclassified:             1.0 GPU-s",
    ]
    assert lines[-1] == f"Page:                     {URL}/run?run=lab%2Ffsdp"


def test_a_portal_gets_a_page_with_the_facts_and_the_way_to_the_run(recorded):
    answer = report(recorded, "9105", accept="text/html,*/*")

    assert answer.headers["content-type"].startswith("text/html")
    assert "<dt>Why</dt><dd>Work is lost at a limit" in answer.text
    assert f'href="{URL}/run?run=lab%2Fhang"' in answer.text


def test_a_run_of_another_team_is_as_unknown_as_none(teams):
    own, other = report(teams, "redtrain", RED_TEAM), report(teams, "cobalttrain", RED_TEAM)

    assert own.status_code == 200
    assert COBALTS.word not in own.text
    assert (other.status_code, other.text) == (404, "The ledger knows no run cobalttrain.\n")


def test_hostile_names_are_shown_as_text(teams):
    key, *_ = teams.read(
        "select value from marts.search_targets where kind = 'run' and contains(value, '<script>')"
    )["value"]

    assert "<script>" not in report(teams, quote(key), accept="text/html").text


@pytest.mark.parametrize(
    ("params", "status"), [({"format": "xml"}, 400), ({"cluster": "nowhere"}, 404)]
)
def test_what_is_not_known_is_refused(recorded, params, status):
    assert report(recorded, "9105", **params).status_code == status


@pytest.fixture
def database(recorded_demo, here, monkeypatch):
    """Give the recorded session as `goodput.duckdb`, and time for its first answer."""
    for name in ("SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "GOODPUT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(epilog, "WITHIN_S", 120)
    return shutil.copyfile(recorded_demo, here / "goodput.duckdb")


@pytest.mark.usefixtures("database")
def test_the_report_is_of_the_job_of_the_environment(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "9102")

    done = run("epilog")

    assert done.exit_code == 0
    assert done.stdout.startswith("Job: 9102, run main, COMPLETED. Goodput (% of allocated): 45.8")


def test_a_task_of_an_array_is_named_as_accounting_does(monkeypatch):
    for name, value in (("JOB_ID", "18"), ("ARRAY_JOB_ID", "17"), ("ARRAY_TASK_ID", "3")):
        monkeypatch.setenv(f"SLURM_{name}", value)

    assert epilog.job_of_environment() == "17_3"


@pytest.mark.parametrize("arguments", [("77",), ("9102", "--db", "nowhere.duckdb")])
@pytest.mark.usefixtures("database")
def test_what_fails_writes_nothing(arguments):
    done = run("epilog", *arguments)

    assert (done.exit_code, done.output) == (0, "")


@pytest.mark.usefixtures("database")
def test_without_a_job_the_usage_is_wrong():
    done = run("epilog")

    assert done.exit_code == 2
    assert "no job: name its number, or set SLURM_JOB_ID." in done.stderr


def test_what_takes_too_long_writes_nothing_and_ends(monkeypatch):
    over, ended = threading.Event(), []
    monkeypatch.setattr(epilog, "WITHIN_S", 0.01)
    monkeypatch.setattr(epilog, "_report", lambda *_: str(over.wait()))
    monkeypatch.setattr(os, "_exit", ended.append)

    done = run("epilog", "9102")
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
