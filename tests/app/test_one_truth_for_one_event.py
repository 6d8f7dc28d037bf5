"""Since, until, cost and GPU time of one event are the same on every page, command and alert."""

import contextlib
import json
import shutil
from datetime import UTC, datetime, timedelta

import pytest
from tests.app.facts_of_findings import FACTS, comparable, printed, rows_of, window
from tests.app.opened_page import table, texts
from tests.queries.conftest import Evidence

from goodput_app.dashboard import time_zone
from goodput_app.notify import occurrences
from goodput_messages import bodies
from goodput_queries.database import LocalStore
from goodput_queries.evidence import plausible
from goodput_queries.scope import Scope

DRAINED, DOWN = (3_789, 3_850), (7_389, 9_000)  # seconds: 9:03:09 to 9:04:10, 10:03:09 to the end
NOW = datetime(2027, 1, 15, 10, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def world(recorded_demo, tmp_path_factory):
    """Give the recorded session, and nodes of which one was drained and one is down."""
    path = tmp_path_factory.mktemp("truth") / "fleet.duckdb"
    shutil.copyfile(recorded_demo, path)
    with contextlib.closing(LocalStore(path)) as store, pytest.MonkeyPatch.context() as patch:
        patch.setattr(plausible, "utc_now", lambda: NOW.replace(tzinfo=None))
        site = Evidence(store, "site")
        site.watched(9_000)
        for name, outage, state in (("a", DRAINED, "drained"), ("b", DOWN, "down")):
            site.node(name, 4)
            site.state(name, "up", 0, outage[0])
            site.state(name, state, *outage)
            site.state(name, "up", outage[1], 9_000)
        store.build()
        with store.cursor() as cursor:
            cursor.execute("checkpoint")
        shutil.copyfile(path, path.with_name("closed.duckdb"))
        yield store


@pytest.mark.parametrize(
    ("command", "cluster"),
    [(("show", "findings"), "site"), (("findings", "--severity", "note"), "lab")],
)
def test_commands_say_of_findings_what_the_view_has(world, command, cluster):
    scope = window(world, cluster)
    said = printed(world, scope, *command, "--limit", "0")

    found = sorted((comparable(row[name] for name in FACTS) for row in said), key=str)

    assert found == sorted(map(comparable, rows_of(world, scope)), key=str)
    assert found


def test_the_page_of_findings_shows_them_with_these_times(world, visit):
    scope = window(world, "site")
    app = visit(world, "open_findings", cluster="site")

    shown = table(app, "title").select("title", "since_at").rows()

    rows = rows_of(world, scope, ("title", "since_at"))
    assert {(title, at.replace(microsecond=0, tzinfo=None)) for title, at in shown} == {
        (title, at.replace(microsecond=0)) for title, at in rows
    }


def test_outages_and_their_findings_have_the_same_times(world):
    scope = window(world, "site")
    outages = rows_of(world, scope, ("node", "start_at", "end_at"), "marts.node_outages")
    findings = world.read(
        "select node, since_at, until_at from marts.findings where rule like 'node_%'", scope=scope
    )

    assert sorted(findings.rows()) == [(node, start, end) for node, start, end in outages]
    expected = [("a", *DRAINED), ("b", *DOWN)]
    start = Evidence.at(0)
    assert outages == [
        (node, start + timedelta(seconds=begin), start + timedelta(seconds=end))
        for node, begin, end in expected
    ]


def test_an_alert_starts_when_its_finding_does(world):
    seen = occurrences.seen(world, NOW, None)
    assert seen is not None
    ends_ms = round(NOW.timestamp() * 1000)
    notices = [one for one in seen.notices.values() if one.node == "b"]

    (alert,) = json.loads(bodies.alerts(notices, ends_ms=ends_ms))

    began = Evidence.at(DOWN[0])
    assert alert["startsAt"][:19] == began.isoformat(timespec="seconds")


def test_overview_says_since_when_a_node_is_down(world, visit):
    app = visit(world, cluster="site")

    assert f"since {time_zone.moment(Evidence.at(DOWN[0]))}" in texts(app).replace("\\", "")


SUMS = {  # what adds up the waste of a scope in another way: its select of milliseconds and cost
    "categories": "select sum(gpu_ms), sum(cost) from marts.ledger_by_category "
    "where kind = 'badput'",
    "teams": "select sum(gpu_ms), sum(cost) from marts.waste_by_team",
    "nodes": "select sum(wasted_ms), sum(wasted_cost) from marts.nodes",
    "hours": "select sum(wasted_ms), sum(wasted_cost) from marts.goodput_over_time",
}


@pytest.mark.parametrize("cluster", ["lab", "site", None])
@pytest.mark.parametrize("sql", SUMS.values(), ids=SUMS)
def test_every_view_adds_up_to_one_sum_of_waste(world, cluster, sql):
    scope = Scope(cluster=cluster)
    (whole,) = rows_of(world, scope, ("wasted_ms", "wasted_cost"), "marts.goodput_summary")

    (found,) = world.read(sql, scope=scope).rows()

    assert int(found[0] or 0) == whole[0]
    assert found[1] == pytest.approx(whole[1])


def test_data_quality_has_the_unclassified_time_of_the_range(world):
    scope = window(world, "lab")
    sums = "select sum(gpu_ms)::bigint from marts.ledger_by_category where category = '{}'"
    said = dict(rows_of(world, scope, ("kind", "gpu_ms"), "marts.data_quality"))

    for kind, category in (
        ("active time without job events", "busy_unclassified"),
        ("allocated time without evidence", "unknown"),
    ):
        (ledger,) = world.read(sums.format(category), scope=scope).row(0)
        assert said.get(kind, 0) == ledger
