"""Since, until, cost and GPU time of each finding of a made-up fleet, wherever they are shown."""

import contextlib
import csv
import io
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.app.facts_of_findings import FACTS, comparable, printed, rows_of, window
from tests.app.opened_page import table

from goodput_app.demo import recipe
from goodput_app.notify import occurrences
from goodput_ingest.run.ingest import ingest
from goodput_ingest.synthetic import generate
from goodput_messages import bodies
from goodput_queries.scope import Scope

pytestmark = pytest.mark.machine
FLEET = "atlas"
START = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.fixture(scope="module")
def world(new_store, tmp_path_factory):
    """Give 64 GPUs over twelve hours: failures, stragglers, outages, a drain, idle notebooks."""
    folder = tmp_path_factory.mktemp("fleet")
    generate(folder / "files", gpus=64, hours=12, seed=7, start=START)
    with contextlib.closing(new_store()) as store:
        for step in recipe(folder / "files"):
            ingest(store, step.source, [step.path], step.options)
        store.build()
        with store.cursor() as cursor:
            cursor.execute("checkpoint")
        shutil.copyfile(store.path, Path(store.path).with_name("closed.duckdb"))
        yield store


@pytest.mark.parametrize("command", [("findings", "--severity", "note"), ("show", "findings")])
def test_commands_say_of_findings_what_the_view_has(world, command):
    scope = window(world, FLEET)
    said = printed(world, scope, *command, "--limit", "0")

    found = sorted((comparable(row[name] for name in FACTS) for row in said), key=str)

    assert len(found) > 20
    assert found == sorted(map(comparable, rows_of(world, scope)), key=str)


def test_a_csv_export_has_them_to_the_cent(world):
    scope = window(world, FLEET)
    text = printed(world, scope, "show", "findings", "--limit", "0", form="csv")

    said = sorted([row[name][:19] for name in FACTS] for row in csv.DictReader(io.StringIO(text)))
    expected = sorted(
        ["" if value is None else str(value)[:19] for value in comparable(row)]
        for row in rows_of(world, scope)
    )
    assert [row[:-1] for row in said] == [row[:-1] for row in expected]
    costs = [[float(row[-1] or 0) for row in rows] for rows in (said, expected)]
    assert costs[0] == pytest.approx(costs[1], abs=0.005)


def test_the_page_of_findings_shows_them_alike(world, visit):
    columns = ("title", "since_at")
    app = visit(world, "open_findings", cluster=FLEET)

    shown = table(app, *columns).select(columns)

    rows = {
        (title, since.replace(microsecond=0))
        for title, since in rows_of(world, window(world, FLEET), columns)
    }
    assert shown.height > 10
    assert {(t, at.replace(microsecond=0, tzinfo=None)) for t, at in shown.rows()} <= rows


def test_each_alert_starts_and_lasts_as_its_finding_does(world):
    now = rows_of(world, Scope(), ("max(as_of_at)",), "marts.clusters")[0][0].replace(tzinfo=UTC)
    seen = occurrences.seen(world, now, None)
    assert seen is not None
    columns = ("finding_key", "since_at", "gpu_ms")
    scope = Scope(round((now.timestamp() - 86_400) * 1000), round(now.timestamp() * 1000))
    known = set(rows_of(world, scope, columns))
    notices = list(seen.notices.values())

    alerts = json.loads(bodies.alerts(notices, ends_ms=round(now.timestamp() * 1000)))

    assert len(alerts) == len(notices) > 2
    for notice, alert in zip(notices, alerts, strict=True):
        since = datetime.fromtimestamp(notice.since_ms / 1000, UTC)
        assert alert["startsAt"][:19] == since.isoformat(timespec="seconds")[:19]
        assert (notice.finding_key, since.replace(tzinfo=None), notice.gpu_ms) in known


def test_outages_and_their_findings_are_alike(world):
    """A node that is drained while it runs a job is out of use when that has ended."""
    scope = window(world, FLEET)
    outages = rows_of(world, scope, ("node", "start_at", "out_at", "end_at"), "marts.node_outages")
    findings = world.read(
        "select node, since_at, until_at from marts.findings "
        "where rule in ('node_down', 'node_drained')",
        scope=scope,
    ).rows()

    assert sorted(findings) == [(node, out, end) for node, _, out, end in outages if out]
    assert any(start != out for _, start, out, _ in outages)
    assert any(start == out for _, start, out, _ in outages)


def test_losses_add_up_to_those_of_their_findings(world):
    """Each finding of a loss sums intervals of the ledger: its time is that of its rows there."""
    scope = window(world, FLEET)
    (whole,) = rows_of(world, scope, ("wasted_ms", "wasted_cost"), "marts.goodput_summary")
    for sums in (
        "select sum(gpu_ms), sum(cost) from marts.ledger_by_category where kind = 'badput'",
        "select sum(gpu_ms), sum(cost) from marts.waste_by_team",
        "select sum(wasted_ms), sum(wasted_cost) from marts.nodes",
        "select sum(wasted_ms), sum(wasted_cost) from marts.goodput_over_time",
    ):
        found = world.read(sums, scope=scope).row(0)
        assert int(found[0]) == whole[0], sums
        assert found[1] == pytest.approx(whole[1]), sums
