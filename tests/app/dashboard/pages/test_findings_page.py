"""The page of findings, in-process."""

import re
from dataclasses import replace
from urllib.parse import quote

import polars as pl
import pytest
from tests.app.conftest import PATIENCE_S
from tests.app.opened_page import HOSTILE, assert_sound, links, plain, press, table
from tests.recorded_session import CAPTURED, built

from goodput_app.dashboard import flags, severities
from goodput_app.dashboard.components.findings import finding_parts
from goodput_app.dashboard.data import findings, health


@pytest.fixture
def short(monkeypatch):
    """Let the page list two findings."""
    monkeypatch.setattr(finding_parts, "INBOX_MAX", 2)


def named(store, rule):
    return str(store.read("select finding_key from marts.findings where rule = $1", [rule]).item())


@pytest.mark.usefixtures("short")
def test_fixes_come_first_and_of_many_findings_below_it_says_how_many_there_are(capture, visit):
    app = visit(capture, "open_findings")

    fixes = capture.read("select target from marts.fixes where back_high_ms > 0").height
    assert table(app, "target").height == fixes
    assert "back_week_cost" not in table(app, "target").columns, "of five minutes"
    assert table(app, "title").height == 2
    every = capture.read("from marts.findings").height
    assert f"The 2 most severe and costly of {every} findings" in plain(app)


@pytest.mark.usefixtures("short")
def test_a_linked_finding_shows_evidence_and_the_way_to_its_run(capture, visit, monkeypatch):
    known = findings.known

    def throttled(scope):
        found = known(scope)
        rule = pl.lit("throttled_gpu").alias("rule")
        return found and replace(found, findings=found.findings.with_columns(rule))

    row = {"reason": "hw_thermal", "recurrence": "chronic", "throttled_hours": 3, "read_hours": 12}
    found = pl.DataFrame([{**row, "slowdown_margin_c": 6.0}])
    monkeypatch.setattr(findings, "known", throttled)
    monkeypatch.setattr(health, "throttled_gpus", lambda _: found)

    app = visit(capture, "open_findings", finding=named(capture, "input_stall"))

    assert table(app, "title").height == 3
    assert "24.0 GPU-s lost, 4.3 % of the allocated time" in plain(app)
    assert re.search(r"Confirmed; [\d,]+ of [\d,]+ such findings were right in tests", plain(app))
    assert links(app)["Open run main"]["run"] == ["lab/main"]
    assert "**Recurrence:** hw_thermal chronic (3 of 12 h read)" in plain(app)


def test_filters_of_the_link_leave_what_they_name(capture, visit):
    app = visit(capture, "open_findings", rules="input_stall,hang", state="open")

    assert table(app, "title")["title"].to_list() == ["Steps wait for input"]
    # for narrow screens it stands as a card, too, with the same way to open it
    assert "What to do: Prefetch or cache the input" in plain(app)
    assert app.button(key="card_finding_0").click().run().query_params["finding"]
    assert "#### Steps wait for input" in plain(app)


def test_a_finding_is_acknowledged_on_the_page_and_dismissed_with_a_reason_alone(
    filled, own_store, visit
):
    writable = own_store(copy_of=built(filled, *CAPTURED))
    page = visit(writable, "open_findings", finding=named(writable, "input_stall"))
    page.text_input(key="said_by").input(HOSTILE)
    app = press(page, "Dismiss")
    assert [error.value.split(":")[0] for error in app.error] == ["A note is needed\\"]
    assert writable.read("from state.finding_actions").is_empty()

    assert_sound(press(app, "Acknowledge"))
    said = writable.read("select action, said_by from state.finding_actions").row(0)
    assert said == ("acknowledge", HOSTILE)
    assert all("<script>" not in str(element.value) for element in app.markdown)


def test_what_has_an_open_finding_carries_a_flag_that_opens_it(capture, visit, monkeypatch):
    monkeypatch.setattr(flags, "IS_EVALUATED", True)
    monkeypatch.setattr(flags, "FIRST_WAIT_S", PATIENCE_S)
    app = visit(capture, "one_run", run="lab/main", **{"from": "2026-11-20T12:29:00Z"})

    found = capture.read(
        "select finding_key, title, run_key, gpu_uuid from marts.findings where state = 'open'"
    )
    of_run = found.filter(pl.col("run_key") == "lab/main")
    titles = {name: link["finding"] for name, link in links(app).items() if ": Steps" in name}
    key = of_run.filter(pl.col("title") == "Steps wait for input")["finding_key"].to_list()
    assert list(titles.values()) == [key]
    (name,) = titles
    assert name.startswith(":orange[:material/warning:] ticket")

    runs = table(visit(capture, "all_runs", **{"from": "2026-11-20T12:29:00Z"}), "flag")
    flagged = runs.filter(pl.col("flag").is_not_null())
    assert {f"lab/{name}" for name in flagged["run_name"]} == set(found["run_key"].drop_nulls())
    (of_main,) = flagged.filter(pl.col("run_name") == "main")["flag"]
    assert of_main.startswith("findings?")
    worst = of_run.filter(pl.col("title") == "Attempts of the job failed")["finding_key"].item()
    assert f"finding={worst}" in of_main
    label = quote(f"{severities.in_text('ticket')} (+{of_run.height - 1})")
    assert of_main.endswith(f"#{label}")  # the verdict says why
