"""The bar on top of every page: what its filters offer, how far the data reaches."""

from datetime import datetime, timedelta

import polars as pl
import pytest
import streamlit as st

from goodput_app.dashboard import time_zone
from goodput_app.dashboard.components import scope_bar
from goodput_app.dashboard.data import freshness, marts
from goodput_app.dashboard.scope import View
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
    return pl.DataFrame(rows)


def test_a_cluster_whose_data_ended_before_the_time_range_is_named():
    assert freshness.badges(clusters(new=0, ended=60), shown()) == [
        ("ended: no data in this time range, data ends 2026-11-20 11:00:00 UTC", "orange"),
        ("new: data to 12:00:00", "gray"),
    ]


def test_each_cluster_has_an_age_of_its_own():
    found = freshness.badges(clusters(a=0.5, b=1.5, c=5), shown("LIVE"))

    assert found == [
        ("c: data 5m old", "red"), ("b: data 1m 30s old", "orange"), ("a: data 30.0 s old", "green")
    ]  # fmt: skip


def test_one_cluster_needs_no_name():
    two = clusters(a=0, b=60)

    assert freshness.badges(two, shown(scope=Scope(cluster="a"))) == [("data to 12:00:00", "gray")]


def test_of_many_clusters_the_oldest_are_named():
    many = clusters(**{f"c{n}": n for n in range(8)})

    found = freshness.badges(many, shown())

    assert [text.split(":")[0] for text, _ in found[:-1]] == ["c7", "c6", "c5", "c4", "c3"]
    assert found[-1][0] == "3 more clusters are as fresh or fresher"


@pytest.fixture
def runs():
    """Give marts.scope_values with 1,582 runs, the most GPU time first."""
    keys = [f"lab/{n}" for n in range(1582)]
    return pl.DataFrame(
        {"kind": "run", "value": keys, "label": keys, "cluster": "lab"},
        schema={"kind": pl.String, "value": pl.String, "label": pl.String, "cluster": pl.String},
    )


def test_a_filter_offers_all_runs_of_a_month(runs):
    assert len(scope_bar.options_of(runs, "run")) == 1582


def test_of_too_many_a_filter_offers_the_largest_and_the_one_in_the_link(runs, monkeypatch):
    monkeypatch.setattr(scope_bar, "CHOICES_MAX", 2)

    assert list(scope_bar.options_of(runs, "run", "lab/9")) == ["lab/0", "lab/1", "lab/9"]
    assert scope_bar.left_out(runs, "run") == (
        "The 2 of 1,582 with the most GPU time; the URL accepts any."
    )
    assert scope_bar.left_out(runs, "node") is None


@pytest.mark.parametrize(
    ("window_ms", "bucket_ms"),
    [
        (1_000, 1_000),
        (332_000, 2_000),
        (3_600_000, 30_000),
        (24 * 3_600_000, 600_000),
        (30 * 86_400_000, 14_400_000 + 7_200_000),
        (400 * 86_400_000, 86_400_000),
    ],
)
def test_a_window_has_as_many_buckets_as_can_be_seen(window_ms, bucket_ms):
    assert scope_bar.bucket_ms(window_ms) == bucket_ms


def test_viewers_of_a_moving_window_ask_for_the_same_range_for_some_seconds():
    """Else no answer would be shared: of a live site the range begins with the clock."""
    day, later = timedelta(days=1), timedelta(seconds=9)

    starts = {scope_bar.in_steps(NOON + late - day, NOON + late) for late in (later * 0, later)}

    assert starts == {NOON - day}
    assert scope_bar.in_steps(NOON - timedelta(minutes=5), NOON) == NOON - timedelta(minutes=5)


@pytest.mark.parametrize(
    ("cluster", "start_min", "end_min"),
    [(None, -60, 0), ("late", -60, 0), ("early", -60, -35), ("old", -960, -900)],
)
def test_a_range_ends_with_the_whole_database_whichever_cluster_is_chosen(
    monkeypatch, cluster, start_min, end_min
):
    """Else one cluster has more than all of them; one without data in that range shows its own."""
    ends = {"late": 0, "early": 35, "old": 900}
    first = pl.lit(NOON - timedelta(days=1)).alias("first_at")
    monkeypatch.setattr(marts, "clusters", lambda: clusters(**ends).with_columns(first))
    monkeypatch.setattr(scope_bar, "_mode", lambda *_: "RECORDED")
    monkeypatch.setattr(scope_bar, "current_replay", lambda: None)
    asked = {"from": "now-1h", **({"cluster": cluster} if cluster else {})}
    monkeypatch.setattr(st, "query_params", asked)

    found = scope_bar.view()

    minutes = [timedelta(minutes=start_min), timedelta(minutes=end_min)]
    assert found.window == (NOON + minutes[0], NOON + minutes[1])


def test_runs_that_are_called_alike_are_offered_with_their_cluster():
    values = pl.DataFrame(
        [
            ("run", "a/7", "7", "a"),
            ("run", "b/7", "7", "b"),
            ("run", "a/8", "8", "a"),
            ("node", "n1", "n1", "a"),
            ("node", "n1", "n1", "b"),
        ],
        schema=["kind", "value", "label", "cluster"],
        orient="row",
    )
    assert scope_bar.options_of(values, "run") == {"a/7": "7 (a)", "b/7": "7 (b)", "a/8": "8"}
    assert scope_bar.options_of(values, "node") == {"n1": "n1"}


def test_filters_of_a_view_are_those_that_are_set():
    at = datetime(2026, 1, 1)  # noqa: DTZ001 -- UTC
    view = View(Scope(team="a", from_ms=1), at, at, at, at, "RECORDED")
    assert view.filters == {"team": "a"}
    assert time_zone.window(*view.window).endswith("UTC")
