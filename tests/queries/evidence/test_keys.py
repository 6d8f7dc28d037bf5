"""What the frame of a batch says of its keys."""

from datetime import datetime, timedelta

import polars as pl
import pytest

from goodput_queries.evidence.batch_keys import are_as_stored, keys_of

KEY = ("source", "gpu", "ts")
KINDS = {"source": "VARCHAR", "gpu": "VARCHAR", "ts": "TIMESTAMP", "step": "BIGINT"}
BEGIN = datetime(2026, 11, 20)  # noqa: DTZ001 -- moments are stored naive, in UTC


def readings(gpus, seconds):
    """Return readings of GPUs named by one letter, one a letter, so many seconds after BEGIN."""
    ts = [None if s is None else BEGIN + timedelta(seconds=s) for s in seconds]
    return pl.DataFrame(
        {"source": "x", "gpu": list(gpus), "ts": ts}, schema_overrides={"ts": pl.Datetime("us")}
    )


def found(rows, key=KEY):
    assert are_as_stored(rows, key, KINDS)
    return keys_of(rows, key)


@pytest.mark.parametrize(
    ("gpus", "seconds", "may_repeat"),
    [
        ("a" * 20 + "b" * 20, [*range(20), *range(20)], False),
        ("b" * 20 + "a" * 20, [*range(20), *range(20)], False),
        ("a" * 20, [*range(19), 18], True),  # the moment stands still
        ("a" * 20, [*range(19), 3], True),  # it goes back to one that was
        ("a" * 20, [*range(1, 20), 0], False),  # it goes back to none that was
        ("a" * 20 + "b" * 20 + "a" * 20, [*range(20), *range(20), *range(20)], True),
        ("a" * 20 + "b" * 20 + "a" * 20, [*range(20), *range(20), *range(20, 40)], False),
        ("a" * 20 + "b" * 20, [*range(20), *range(19), 3], True),
        ("ab" * 20, [n // 2 for n in range(40)], False),
        ("ab" * 20, [n // 4 for n in range(40)], True),
        ("a" * 20, [*range(18), None, None], True),
        ("a" * 20, [*range(19), None], False),
    ],
)
def test_a_key_that_comes_twice_is_found_in_any_order(gpus, seconds, may_repeat):
    assert found(readings(gpus, seconds)).may_repeat is may_repeat


def test_nulls_are_keys_and_a_column_that_is_not_given_is_null():
    rows = pl.DataFrame({"source": ["x", "x", "x"], "step": [1, None, None]})

    assert found(rows, ("source", "gpu", "step")).may_repeat
    assert not found(rows.head(2), ("source", "gpu", "step")).may_repeat


@pytest.mark.parametrize("other", [pl.String, pl.Datetime("ns")])
def test_keys_that_the_database_is_to_cast_are_left_to_it(other):
    assert not are_as_stored(readings("a", [1]).with_columns(pl.col("ts").cast(other)), KEY, KINDS)


def test_texts_may_be_categories():
    rows = readings("ab" * 9, [n // 2 for n in range(18)])

    assert not found(rows.with_columns(pl.col("gpu").cast(pl.Categorical()))).may_repeat
