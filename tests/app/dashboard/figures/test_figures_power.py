"""Power over time: what is stacked, what is missing, and names that would break the chart."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from goodput_app.dashboard.figures import power

START = datetime(2027, 1, 15, 8, tzinfo=UTC).replace(tzinfo=None)
BUCKET_MS = 600_000
WINDOW = START, START + timedelta(minutes=20)


def frame(*rows):
    """Return rows of marts.power_over_time: name, availability, bucket, power."""
    return pl.DataFrame(
        [
            {"cluster": "c", "name": name, "availability": availability, "power_w": watts,
             "at": START + timedelta(milliseconds=BUCKET_MS * bucket), "here_ms": 600_000.0,
             "read_ms": 0.0 if watts is None else 600_000.0}
            for name, availability, bucket, watts in rows
        ],
        schema_overrides={"availability": pl.String, "name": pl.String, "power_w": pl.Float64},
    )  # fmt: skip


def bars(*rows):
    figure = power.over_time(frame(*rows), BUCKET_MS, WINDOW, "Rack unknown")
    return {trace.name: list(trace.y) for trace in figure.data if trace.type == "bar"}


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ([("small", None, 0, 100.0), ("big", None, 0, 400.0)], ["big", "small"]),
        ([(None, "free", 0, 900.0), ("team", "held", 0, 100.0)], ["team", "Not allocated"]),
        ([(None, None, 0, 100.0)], ["Rack unknown"]),
    ],
    ids=["most power at the bottom", "what is not allocated on top", "no name"],
)
def test_names_stand_in_their_order(rows, names):
    assert list(bars(*rows)) == names


def test_a_bucket_without_a_reading_has_no_bar_and_no_coverage():
    rows = frame(("a", None, 0, 100.0), ("a", None, 1, None))

    figure = power.over_time(rows, BUCKET_MS, WINDOW, "?")

    bar, coverage = figure.data
    assert list(bar.y) == [100.0]
    assert list(coverage.y) == [100.0, 0.0, 0.0]


def test_of_many_names_the_smaller_ones_are_added_up():
    found = bars(*((f"n{i:02}", None, 0, 100.0 - i) for i in range(20)))

    assert list(found)[-1] == "12 more"
    assert sum(values[0] for values in found.values()) == pytest.approx(
        sum(100 - i for i in range(20))
    )


def test_a_name_like_a_label_of_ours_is_a_name():
    rows = frame(("Not allocated", "held", 0, 100.0), (None, "free", 0, 50.0))

    drawn = power.over_time(rows, BUCKET_MS, WINDOW, "?").data[:2]

    assert [(trace.name, list(trace.y)) for trace in drawn] == [
        ("Not allocated", [100.0]), ("Not allocated", [50.0])
    ]  # fmt: skip
