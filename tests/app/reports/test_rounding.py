"""Cents that add up."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from goodput_app.reports.rounding import apportion, apportion_groups, nearest

amounts = st.lists(
    st.fractions(min_value=-1000, max_value=1000, max_denominator=3_600_000),
    min_size=1,
    max_size=60,
)
PLACES = st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"))


@given(amounts)
def test_rows_add_up_to_the_total_and_none_is_off_by_a_cent(rows: list[Fraction]) -> None:
    total = nearest(sum(rows, Fraction(0)))

    cents = apportion(rows, total)

    assert sum(cents) == total
    assert all(
        abs(Fraction(c, 100) - row) < Fraction(1, 100) for c, row in zip(cents, rows, strict=True)
    )


@given(st.lists(st.tuples(PLACES, amounts.map(lambda found: found[0])), min_size=1, max_size=60))
def test_every_account_gets_its_own_sum_to_the_cent(
    rows: list[tuple[tuple[str, str], Fraction]],
) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    exact = [amount for _, amount in rows]
    total = nearest(sum(exact, Fraction(0)))

    cents = apportion_groups(exact, [place for place, _ in rows], total)

    assert sum(cents) == total
    for account in {place[0] for place, _ in rows}:
        mine = [i for i, (place, _) in enumerate(rows) if place[0] == account]
        own = sum((exact[i] for i in mine), Fraction(0))
        assert abs(Fraction(sum(cents[i] for i in mine), 100) - own) < Fraction(1, 100)


def test_a_half_is_rounded_away_from_zero() -> None:
    assert [nearest(Fraction(cents, 200)) for cents in (1, 3, -1, -3)] == [1, 2, -1, -2]


def test_what_no_rounding_explains_is_spread_over_all_rows() -> None:
    assert apportion([Fraction(1), Fraction(1)], 205) == [103, 102]
    assert apportion([Fraction(1), Fraction(1)], 195) == [98, 97]


def test_no_rows_have_no_cents() -> None:
    assert apportion([], 0) == []
