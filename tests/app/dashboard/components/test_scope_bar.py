"""The bar on top of every page: its filters, how far the data reaches, and the search."""

from datetime import datetime, timedelta
from urllib.parse import quote

import polars as pl
import pytest
import streamlit as st
from tests.tables import each, gives

from goodput_app.dashboard import theme, time_zone
from goodput_app.dashboard.components import scope_bar
from goodput_app.dashboard.data import freshness, marts
from goodput_app.dashboard.data import search as found_by
from goodput_app.dashboard.scope import View
from goodput_app.process.store import use_store
from goodput_queries.scope import EVERYTHING, Scope

NOON = datetime(2026, 11, 20, 12)  # noqa: DTZ001 -- UTC, as the database has it


def shown(mode="RECORDED", scope=EVERYTHING):
    """Give a view of the last 15 minutes before noon."""
    return View(scope, NOON - timedelta(minutes=15), NOON, NOON, NOON, mode)


def clusters(**ends_min):
    """Give marts.clusters that end so many minutes before noon."""
    rows = [
        {"cluster": name, "as_of_at": NOON - timedelta(minutes=ago)}
        for name, ago in ends_min.items()
    ]
    return pl.DataFrame(rows).with_columns(whole_hours_until_at=pl.lit(None, pl.Datetime))


ENDED = ("ended: no data in this time range, data ends 2026-11-20 11:00:00 UTC", "orange")
OLDEST = [(f"c{n}: data to 11:{60 - n}:00", "gray") for n in range(7, 2, -1)]

test_clusters_say_how_far_their_data_reaches = gives(
    lambda minutes, view: freshness.badges(clusters(**minutes), view),
    ({"new": 0, "ended": 60}, shown(), [ENDED, ("new: data to 12:00:00", "gray")]),
    ({"a": 0.5, "b": 1.5, "c": 5}, shown("LIVE"),
     [("c: data 5m old", "red"), ("b: data 1m 30s old", "orange"),
      ("a: data 30.0 s old", "green")]),
    ({"a": 0, "b": 60}, shown(scope=Scope(cluster="a")), [("data to 12:00:00", "gray")]),
    ({f"c{n}": n for n in range(8)}, shown(),
     [*OLDEST, ("3 more clusters are as fresh or fresher", "gray")]),
)  # fmt: skip


def test_a_filter_offers_the_largest_runs_and_the_one_in_the_link_with_clusters(monkeypatch):
    """Of too many runs it offers some; those that are called alike have their cluster."""
    values = pl.DataFrame([
        ("run", "a/7", "7", "a"), ("run", "b/7", "7", "b"), ("run", "a/8", "8", "a"),
        ("node", "n1", "n1", "a"), ("node", "n1", "n1", "b"),
    ], schema=["kind", "value", "label", "cluster"], orient="row")  # fmt: skip
    keys = [f"lab/{n}" for n in range(1582)]  # of a month, the most GPU time first
    runs = pl.DataFrame({"kind": "run", "value": keys, "label": keys, "cluster": "lab"})

    assert scope_bar.options_of(values, "run") == {"a/7": "7 (a)", "b/7": "7 (b)", "a/8": "8"}
    assert scope_bar.options_of(values, "node") == {"n1": "n1"}
    assert len(scope_bar.options_of(runs, "run")) == 1582
    monkeypatch.setattr(scope_bar, "CHOICES_MAX", 2)
    assert list(scope_bar.options_of(runs, "run", "lab/9")) == ["lab/0", "lab/1", "lab/9"]
    said = "The 2 of 1,582 with the most GPU time; the URL accepts any."
    assert scope_bar.left_out(runs, "run") == said
    assert scope_bar.left_out(runs, "node") is None


test_a_window_has_as_many_buckets_as_can_be_seen = gives(
    scope_bar.bucket_ms,
    (1_000, 1_000), (332_000, 2_000), (3_600_000, 30_000), (24 * 3_600_000, 600_000),
    (30 * 86_400_000, 14_400_000 + 7_200_000), (400 * 86_400_000, 86_400_000),
)  # fmt: skip

# else no answer would be shared: of a live site the range begins with the clock
test_viewers_of_a_moving_window_ask_for_the_same_range_for_some_seconds = gives(
    lambda later_s, length: NOON - scope_bar.in_steps(NOON + later_s - length, NOON + later_s),
    *((timedelta(seconds=n), timedelta(days=1), timedelta(days=1)) for n in (0, 9)),
    (timedelta(0), timedelta(minutes=5), timedelta(minutes=5)),
)


@pytest.fixture
def window_of(monkeypatch):
    """Give what returns, in minutes from noon, the window that a link asks of these clusters."""

    def minutes(known, **asked):
        first = known.with_columns(first_at=NOON - timedelta(days=1))
        monkeypatch.setattr(marts, "clusters", lambda: first)
        monkeypatch.setattr(scope_bar, "_mode", lambda *_: "RECORDED")
        monkeypatch.setattr(scope_bar, "current_replay", lambda: None)
        monkeypatch.setattr(st, "query_params", asked)
        return [(end - NOON) / timedelta(minutes=1) for end in scope_bar.view().window]

    return minutes


@each((None, [-60, 0]), ("late", [-60, 0]), ("early", [-60, -35]), ("old", [-960, -900]))
def test_a_range_ends_with_the_database_whichever_cluster_is_chosen(window_of, cluster, expected):
    """Else one cluster has more than all of them; one without data in that range shows its own."""
    asked = {"from": "now-1h", **({"cluster": cluster} if cluster else {})}

    assert window_of(clusters(late=0, early=35, old=900), **asked) == expected


@each((-120, [-105, -30]), (-90, [-60, -30]), (60, [-60, 0]))
def test_a_range_has_whole_hours_where_no_more_is_known(window_of, until_min, expected):
    """Whole hours end before the range, in it and after it."""
    until = NOON + timedelta(minutes=until_min)
    asked = {"from": "2026-11-20T10:15:00Z", "to": "2026-11-20T11:30:00Z"}

    assert window_of(clusters(all=0).with_columns(whole_hours_until_at=until), **asked) == expected


@pytest.fixture
def find(capture):
    """Give the kind and label of what a text finds, in order."""

    def found(text):
        use_store(capture)
        return found_by.find(text).select("kind", "label").rows()

    return found


@pytest.fixture
def run(capture):
    """Give a run of the session with a name of its job that is not its own."""
    sql = "from marts.search_targets where kind = 'run' and detail <> '' order by start_at limit 1"
    return capture.read(sql).row(0, named=True)


def test_a_run_is_found_by_its_name_and_its_jobs_where_all_words_occur(find, run, capture):
    expected, jobs = ("run", run["label"]), run["detail"].split(" / ")
    assert find(run["label"])[0] == expected
    assert all(expected in find(text) for text in (*jobs, f"{jobs[0]} {run['label']}"))
    assert find(f"{jobs[0]} no-such-word") == []
    node, gpu = capture.read("select node, gpu_uuid from marts.gpus order by 2 limit 1").row(0)
    assert ("node", node) in find(node[1:].upper()), "a part of a name in any case"
    assert ("gpu", gpu) in find(gpu.lower())


@pytest.mark.parametrize("text", ["", "  ", "%", "_", "' or 1=1 --", "<b>"])
def test_what_is_no_name_finds_nothing(find, text):
    assert [label for _, label in find(text) if text.strip() not in label or not text.strip()] == []


def test_a_run_outside_of_the_time_range_has_a_link_to_its_own_time(capture, visit, run):
    window = {"from": "2026-11-20T12:35:00Z", "to": "2026-11-20T12:35:01Z"}
    app = visit(capture, "one_run", run=run["value"], **window)

    links = [link.proto for link in app.get("page_link")]
    (own,) = (one.query_string for one in links if one.label.startswith("Show the run in its own"))
    assert f"from={quote(time_zone.iso(run['start_at']), safe='')}" in own
    assert any(theme.markdown_text(run["value"]) in one.value for one in app.title)
    assert len([one for one in app.button if one.label == "Clear filters"]) == 1


def test_a_link_of_a_run_alone_opens_where_it_has_data(capture, visit, run, configured):
    configured("[ui]\nrange = 'now-1s'\n")
    app = visit(capture, "one_run", run=run["value"])
    assert app.text_input(key="scope_from").value == time_zone.iso(run["start_at"])
    assert not [one for one in app.info if one.value.startswith("No data")]
