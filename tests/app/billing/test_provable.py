"""Whether the evidence of a day is whole."""

from datetime import date

import pytest

from goodput_billing.statement.closing import is_provable
from goodput_billing.statement.days import HOUR_MS, Day

DAY = Day(date(2026, 11, 19), "UTC", 1_795_046_400_000, 1_795_132_800_000)


@pytest.mark.parametrize(
    ("kept_before_ms", "is_whole"),
    [(None, True), (HOUR_MS, True), (HOUR_MS - 1, False), (0, False)],
)
def test_a_day_is_whole_if_an_hour_before_it_is_kept(store, kept_before_ms, is_whole):
    """The energy of the first hour needs the reading before it; another table is kept longer."""
    if kept_before_ms is not None:
        with store.writing() as cursor:
            for table, more_ms in (("gpu_samples", 0), ("node_samples", 9 * HOUR_MS)):
                cursor.execute(
                    "insert into state.kept_from values ($1, $2)",
                    [table, DAY.from_ms - kept_before_ms - more_ms],
                )

    assert is_provable(store, DAY) == is_whole
