"""Since, until, cost and GPU time of one event are the same on every page, command and alert."""

import functools
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest
from starlette.applications import Starlette
from tests.app.command_line import run
from tests.app.opened_page import sent, table
from tests.app.served import ask
from tests.fleets.generate import beside_recorded
from tests.queries.conftest import Evidence
from tests.tables import each

from goodput_app.dashboard import time_zone
from goodput_app.notify import occurrences
from goodput_app.server.api.routes import api_routes
from goodput_messages import bodies
from goodput_queries.evidence import plausible
from goodput_queries.scope import Scope

FACTS = ("finding_key", "since_at", "until_at", "gpu_ms", "cost")
DRAINED, DOWN = (3_789, 3_850), (7_389, 9_000)  # seconds: 9:03:09 to 9:04:10, 10:03:09 to the end
NOW = datetime(2027, 1, 15, 10, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def session(recorded_demo, module_store):
    """Give the recorded session, and nodes of which one was drained and one is down."""
    store = module_store(copy_of=recorded_demo)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plausible, "utc_now", lambda: NOW.replace(tzinfo=None))
        site = Evidence(store, "site")
        site.watched(9_000)
        for name, outage, state in (("a", DRAINED, "drained"), ("b", DOWN, "down")):
            site.node(name, 4)
            site.state(name, "up", 0, outage[0])
            site.state(name, state, *outage)
            site.state(name, "up", outage[1], 9_000)
        store.build()
        yield closed_copy(store)


@pytest.fixture(scope="module")
def fleet(recorded_demo, filled, module_store, tmp_path_factory):
    """Give 64 GPUs over twelve hours: failures, stragglers, outages, a drain, idle notebooks."""
    path = beside_recorded(filled, recorded_demo, tmp_path_factory)
    return closed_copy(module_store(copy_of=path))


def closed_copy(store):
    """Leave a copy for commands, which nobody has open; return the store."""
    with store.cursor() as cursor:
        cursor.execute("checkpoint")
    shutil.copyfile(store.path, Path(store.path).with_name("closed.duckdb"))
    return store


WORLDS = {"session": ("site", "lab"), "fleet": ("atlas", "atlas")}  # and their clusters


@pytest.fixture(
    scope="module", params=["session", pytest.param("fleet", marks=pytest.mark.machine)]
)
def world(request):
    """Give each world, and its clusters."""
    return request.getfixturevalue(request.param), WORLDS[request.param]


def window(store, cluster):
    """Return the scope of all evidence of a cluster."""
    of = "select first_at, as_of_at from marts.clusters where cluster = $1"
    ends = store.read(of, [cluster]).row(0)
    return Scope(*(round(at.replace(tzinfo=UTC).timestamp() * 1000) for at in ends), cluster)


@functools.cache
def findings_of(store, scope):
    """Return all findings of a scope, which are evaluated once for all tests."""
    return store.read("from marts.findings", scope=scope, is_kept=True)


def rows_of(store, scope, columns=FACTS, view=None):
    if view is None:
        found = findings_of(store, scope).select(columns)
    else:
        found = store.read(f"select {', '.join(columns)} from {view}", scope=scope)
    return sorted(found.rows(), key=str)


def moment(ms):
    """Return a moment as commands and the API take it."""
    return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:%M:%S.%fZ}"


def printed(store, scope, *command):
    """Return the same facts as a command prints them."""
    closed = str(Path(store.path).with_name("closed.duckdb"))
    given = ["--db", closed, "--format", "json", "--cluster", scope.cluster]
    result = run(*command, *given, "--from", moment(scope.from_ms), "--to", moment(scope.to_ms))
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def answered(store, scope):
    """Return the same facts as the API answers."""
    window = {"from": moment(scope.from_ms), "to": moment(scope.to_ms), "cluster": scope.cluster}
    app = Starlette(routes=api_routes(store))
    return ask(app, "/api/v1/views/marts.findings/rows", params=window).json()["rows"]


def comparable(row):
    """Return facts as JSON has them: moments as text to the second, amounts rounded."""
    return tuple(
        value.isoformat(timespec="seconds") if isinstance(value, datetime)
        else value[:19] if isinstance(value, str) and value[4:5] == "-"
        else round(value, 6) if isinstance(value, float)
        else value
        for value in row
    )  # fmt: skip


@each({
    "show": (0, lambda *of: printed(*of, "show", "findings", "--limit", "0")),
    "findings": (1, lambda *of: printed(*of, "findings", "--severity", "note", "--limit", "0")),
    "API": (0, answered),
})  # fmt: skip
def test_commands_and_the_api_say_of_findings_what_the_view_has(world, number, says):
    store, clusters = world
    scope = window(store, clusters[number])

    found = sorted((comparable(row[n] for n in FACTS) for row in says(store, scope)), key=str)

    assert found == sorted(map(comparable, rows_of(store, scope)), key=str)
    assert found


def test_the_page_of_findings_shows_them_with_these_times(world, visit):
    """Of many it has the most severe."""
    store, (cluster, _) = world
    app = visit(store, "open_findings", cluster=cluster)

    shown = {
        (title, at.replace(microsecond=0, tzinfo=None))
        for title, at in table(app, "title").select("title", "since_at").rows()
    }

    rows = {
        (title, at.replace(microsecond=0))
        for title, at in rows_of(store, window(store, cluster), ("title", "since_at"))
    }
    assert shown <= rows
    assert len(shown) >= min(len(rows), 10)


# where else pages show what findings of a rule are about: view, columns of its subject and start
EVENTS = {
    "node_down": ("node_outages", "node", "start_at"),
    "node_drained": ("node_outages", "node", "start_at"),
    "gpu_error": ("gpu_incidents", "gpu_uuid", "start_at"),
    "link_down": ("link_events", "node", "start_at"),
    "hang": ("hangs", "run_key", "since_at"),
    "steps_slower": ("step_changes", "run_key", "since_at"),
}


def test_findings_begin_when_other_pages_say_that_it_began(world):
    """A finding may be of several events that lie close together: it begins with the first."""
    store, clusters = world
    seen = set()
    for scope in (window(store, cluster) for cluster in clusters):
        for rule, (view, subject, start) in EVENTS.items():
            found = findings_of(store, scope).filter(pl.col("rule") == rule)
            starts = rows_of(store, scope, (subject, start), f"marts.{view}")
            assert set(found.select(subject, "since_at").rows()) <= set(starts), rule
            seen |= set(found["rule"])
    assert {"node_drained", "node_down"} <= seen


def test_outages_and_their_findings_have_the_same_times(world):
    """A node that is drained while it runs a job to its end is drained at once, lost later."""
    store, (cluster, _) = world
    scope = window(store, cluster)
    outages = rows_of(store, scope, ("node", "start_at", "end_at", "out_at"), "marts.node_outages")
    of_outages = pl.col("rule").is_in(["node_down", "node_drained"])
    findings = findings_of(store, scope).filter(of_outages).select("node", "since_at", "until_at")

    assert sorted(findings.rows()) == [outage[:3] for outage in outages if outage[3]]
    if cluster == "site":
        expected = [("a", *DRAINED), ("b", *DOWN)]
        assert [(node, start, end) for node, start, end, _ in outages] == [
            (node, Evidence.at(begin), Evidence.at(end)) for node, begin, end in expected
        ]


def test_an_alert_starts_and_lasts_as_its_finding_does(world):
    store, _ = world
    now = rows_of(store, Scope(), ("max(as_of_at)",), "marts.clusters")[0][0].replace(tzinfo=UTC)
    seen = occurrences.seen(store, now, None)
    now_ms = round(now.timestamp() * 1000)
    day = Scope(now_ms - 86_400_000, now_ms)
    known = rows_of(store, day, ("finding_key", "since_at", "gpu_ms"))
    notices = list(seen.notices.values())

    alerts = json.loads(bodies.alerts(notices, ends_ms=now_ms))

    assert alerts
    for notice, alert in zip(notices, alerts, strict=True):
        since = datetime.fromtimestamp(notice.since_ms / 1000, UTC)
        assert alert["startsAt"][:19] == since.isoformat(timespec="seconds")[:19]
        assert (notice.finding_key, since.replace(tzinfo=None), notice.gpu_ms) in known


def test_overview_says_since_when_a_node_is_down(session, visit):
    assert f"Since {time_zone.moment(Evidence.at(DOWN[0]))}" in sent(visit(session, cluster="site"))


def test_data_quality_has_the_unclassified_time_of_the_range(session):
    scope = window(session, "lab")
    sums = "select sum(gpu_ms)::bigint from marts.ledger_by_category where category = '{}'"
    said = dict(rows_of(session, scope, ("kind", "gpu_ms"), "marts.data_quality"))

    for kind, category in (
        ("active time without job events", "busy_unclassified"),
        ("allocated time without evidence", "unknown"),
    ):
        (ledger,) = session.read(sums.format(category), scope=scope).row(0)
        assert said.get(kind, 0) == ledger
