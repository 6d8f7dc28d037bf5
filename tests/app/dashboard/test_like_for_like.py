"""Changes are measured over the clusters and hours that both windows cover; others are named."""

from datetime import UTC, datetime

import polars as pl
import pytest

from goodput_app.weekly import like_for_like
from goodput_queries.scope import Scope

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
START = 100 * DAY_MS
DAY = Scope(from_ms=START, to_ms=START + DAY_MS)


def clusters(**spans):
    """Give marts.clusters with these first and last hours, from the start of the range."""
    return pl.DataFrame(
        [
            {"cluster": name, "first_at": at(first), "as_of_at": at(last)}
            for name, (first, last) in spans.items()
        ]
    ).with_columns(whole_hours_until_at=pl.lit(None, pl.Datetime("ms")))


def at(hours):
    return datetime.fromtimestamp((START + hours * HOUR_MS) / 1000, UTC).replace(tzinfo=None)


def hours(pair):
    """Return a pair of scopes as cluster and hours from the start of the range."""
    return [
        (scope.cluster, (scope.from_ms - START) / HOUR_MS, (scope.to_ms - START) / HOUR_MS)
        for scope in pair
    ]


@pytest.mark.parametrize(
    ("spans", "pairs", "left_out"),
    [
        ({"a": (-200, 24)}, [[(None, 0, 24), (None, -168, -144)]], ()),
        ({"a": (-48, 24)}, [[(None, 0, 24), (None, -24, 0)]], ()),
        ({"a": (-48, 23.9), "b": (-48, 24)}, [[(None, 0, 23.9), (None, -24, -0.1)]], ()),
        ({"a": (-48, 20), "b": (-18, 24)},
         [[("a", 0, 20), ("a", -24, -4)], [("b", 6, 24), ("b", -18, 0)]], ()),
        ({"a": (-48, 24), "new": (-1, 24)},
         [[("a", 0, 24), ("a", -24, 0)]], ("new (data of 1h in both)",)),
        ({"a": (-48, 24), "new": (0, 24)},
         [[("a", 0, 24), ("a", -24, 0)]], ("new (no data in the day before)",)),
        ({"a": (-48, 24), "old": (-48, -2)},
         [[("a", 0, 24), ("a", -24, 0)]], ("old (no data in this range)",)),
        ({"a": (-48, 24), "gone": (-90, -30)}, [[(None, 0, 24), (None, -24, 0)]], ()),
    ],
    ids=["week before", "day before", "ends alike", "own hours", "little", "new", "old", "gone"],
)  # fmt: skip
def test_both_windows_are_cut_to_what_both_cover(spans, pairs, left_out):
    found = next(like_for_like.windows(DAY, clusters(**spans)))

    assert [hours(pair) for pair in found.pairs] == pairs
    assert found.left_out == left_out


def test_both_windows_have_whole_hours_where_no_more_is_known_of_the_earlier():
    known = clusters(a=(-200.2, 23.5)).with_columns(whole_hours_until_at=pl.lit(at(-2)))
    range_ = Scope(from_ms=START + HOUR_MS // 2, to_ms=START + DAY_MS)

    found = next(like_for_like.windows(range_, known))

    assert [hours(pair) for pair in found.pairs] == [[("a", 1, 23), ("a", -167, -145)]]


@pytest.mark.parametrize("spans", [{"a": (0, 24)}, {"a": (-200, -30)}])
def test_nothing_is_compared_where_nothing_is_known_of_before(spans):
    assert list(like_for_like.windows(DAY, clusters(**spans))) == []


def ledger(productive, unknown, idle):
    return pl.DataFrame(
        {
            "category": ["productive", "unknown", "idle_held"],
            "kind": ["goodput", "unsettled", "badput"],
            "gpu_ms": [productive, unknown, idle],
            "cost": [None, None, 1.0],
        },
        schema_overrides={"cost": pl.Float64},
    )


@pytest.mark.parametrize(
    ("now", "then", "ratio", "classified", "is_certain"),
    [
        ((60, 10, 30), (50, 10, 40), 0.1, 60 / 90 - 50 / 90, True),
        ((60, 10, 30), (50, 30, 20), 0.1, 60 / 90 - 50 / 70, False),
        ((60, 10, 30), (40, 20, 40), 0.2, 60 / 90 - 40 / 80, False),
    ],
    ids=["same way", "signs differ", "evidence moved"],
)
def test_a_direction_is_certain_where_bounds_and_evidence_agree(
    now, then, ratio, classified, is_certain
):
    found = like_for_like.change(ledger(*now), ledger(*then))

    assert found.ratio == pytest.approx(ratio)
    assert found.classified == pytest.approx(classified)
    assert found.is_certain is is_certain


def test_a_window_without_capacity_has_no_change():
    assert like_for_like.change(ledger(1, 1, 1), ledger(0, 0, 0)) is None


def test_ledgers_are_summed_by_category_and_no_price_stays_none():
    found = like_for_like.summed([ledger(1, 2, 3), ledger(10, 20, 30)])

    assert found["gpu_ms"].to_list() == [11, 22, 33]
    assert found["cost"].to_list() == [None, None, 2.0]


def test_the_window_before_follows_the_week_before():
    found = like_for_like.windows(DAY, clusters(a=(-200, 24)))

    assert [one.name for one in found] == ["the same hours of the week before", "the day before"]
