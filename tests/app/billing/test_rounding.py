"""Cents that add up."""

from hypothesis import given
from hypothesis import strategies as st

from goodput_billing.statement.amounts.rounding import apportion, apportion_groups, nearest

CENT = 1_000
AMOUNT = st.integers(-(10**9), 10**9)
amounts = st.lists(AMOUNT, max_size=60)
PLACES = st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"))


@given(amounts)
def test_rows_add_up_to_the_total_and_none_is_off_by_a_cent(rows):
    total = nearest(sum(rows), CENT)

    cents = apportion(rows, total, CENT)

    assert sum(cents) == total
    assert all(abs(c * CENT - row) < CENT for c, row in zip(cents, rows, strict=True))


@given(st.lists(st.tuples(PLACES, AMOUNT), min_size=1, max_size=60))
def test_every_account_gets_its_own_sum_to_the_cent(rows):
    rows = sorted(rows, key=lambda row: row[0])
    exact = [amount for _, amount in rows]
    total = nearest(sum(exact), CENT)

    cents = apportion_groups(exact, [place for place, _ in rows], total, CENT)

    assert sum(cents) == total
    for account in {place[0] for place, _ in rows}:
        mine = [i for i, (place, _) in enumerate(rows) if place[0] == account]
        assert abs(sum(cents[i] for i in mine) * CENT - sum(exact[i] for i in mine)) < CENT


def test_a_half_is_rounded_away_from_zero():
    assert [nearest(amount, 10) for amount in (5, 15, -5, -15, 4, -4)] == [1, 2, -1, -2, 0, 0]


def test_what_no_rounding_explains_is_spread_over_all_rows():
    assert apportion([100, 100], 205, 1) == [103, 102]
    assert apportion([100, 100], 195, 1) == [98, 97]
