"""`/run/JOB`: the report of a job as text and as a page, with the rights of who asks."""

from urllib.parse import quote

import pytest
from tests.app.served import ask
from tests.app.server.conftest import ALL, RED_TEAM, URL, behind_tokens
from tests.tables import each
from tests.two_teams import COBALTS

from goodput_app.server.job_page import job_route

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
        "4.7 GPU-min). Cost: $0.16, of which wasted $0.16. Why: Work is lost at a limit (scheduler "
        "state TIMEOUT); 284.0 GPU-s lost with stalls and restarts, 100.0 % of the "
        "allocated time, 1 attempt (Likely). Change first: Save a checkpoint before the limit, or "
        f"ask for a longer limit. Data until: 2026-11-20 12:35:02Z. {URL}/run?run=lab%2Fhang"
    )
    assert max(map(len, answer.text.splitlines())) <= 100


def test_the_report_of_a_job_is_a_table_of_its_facts_or_a_page_for_a_portal(recorded):
    lines = report(recorded, "fsdp", format="table").text.splitlines()
    answer = report(recorded, "9105", accept="text/html,*/*")

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


@each(({"format": "xml"}, 400), ({"cluster": "nowhere"}, 404))
def test_what_is_not_known_is_refused(recorded, params, status):
    assert report(recorded, "9105", **params).status_code == status
