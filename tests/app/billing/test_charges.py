"""Who carries what: policies move money and never make any, and cents add up."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.app.billing.conftest import line_of_no_run as line
from tests.tables import each

from goodput_billing.statement.amounts.charges import IDLE_POLICIES, Policy, charges
from goodput_billing.statement.amounts.rounding import apportion, apportion_groups, nearest
from goodput_billing.statement.amounts.rows import frame_of, in_cents

H = 3_600_000


def total(found):
    return sum((c.total for c in found if c.total is not None), Fraction(0))


def by_team(found):
    sums: dict[str, float] = {}
    for charge in found:
        name = charge.key.team or charge.key.line
        sums[name] = sums.get(name, 0) + float(charge.total or 0)
    return sums


teams = st.sampled_from(["a", "b", "c"])
held = st.builds(
    lambda team, ms, price, mj, n: line("usage", ms, team, price, run_key=str(n), energy_mj=mj,
         metered_mj_price=None if mj is None else Decimal(mj) * Decimal("0.21"), credit_ms=ms // 3),
    teams, st.integers(0, 10**10), st.sampled_from(["2", "0.333333", "0", None]),
    st.none() | st.integers(0, 10**12), st.integers(0, 10**6),
)  # fmt: skip
free = st.builds(
    lambda kind, ms, team, of: line(kind, ms, team if "reserved" in kind else None, gpu_model=of),
    st.sampled_from(["idle", "reserved_idle", "not_available"]), st.integers(0, 10**10), teams,
    st.sampled_from(["H100", "H200"]),
)  # fmt: skip
days = st.lists(st.one_of(held, free), max_size=25).map(
    lambda rows: list({tuple(map(str, (r["line"], r["team"], r["run_key"], r["gpu_model"]))): r
                       for r in rows}.values()),
)  # fmt: skip
quotas = st.dictionaries(
    st.tuples(st.sampled_from(["", "c"]), st.sampled_from(["a", "b", "z"])),
    st.integers(0, 9).map(Decimal), max_size=4,
)  # fmt: skip


@settings(deadline=None)
@given(days, quotas, st.booleans())
def test_idle_policies_move_money_and_never_create_it(rows, given_quotas, is_credited):
    plain = charges(rows, Policy("none", is_credited))

    for idle in IDLE_POLICIES:
        found = charges(rows, Policy(idle, is_credited, given_quotas))
        assert total(found) == total(plain)
        assert sum((c.idle_share for c in found), Fraction(0)) == 0


@settings(deadline=None)
@given(days, quotas, st.sampled_from(IDLE_POLICIES))
def test_rows_in_cents_add_up_across_and_down(rows, given_quotas, idle):
    found = charges(rows, Policy(idle, credits_infra_failures=True, quotas=given_quotas))

    billed = in_cents(frame_of(found))

    columns = ("direct_cost", "idle_share_cost", "electricity_cost")
    for row in billed.iter_rows(named=True):
        known = [row[name] for name in columns if row[name] is not None]
        assert row["total_cost"] is None or row["total_cost"] == sum(known)
    assert sum(billed["idle_share_cost"]) == 0
    cost = Fraction(sum(billed["total_cost"].drop_nulls(), Decimal(0)))
    assert abs(cost - total(found)) <= Fraction(1, 200)


def test_an_idle_line_is_shared_out_by_cost_or_in_equal_parts_and_costs_nobody_a_cent():
    rows = [line("usage", H, "a")]
    rows += [line("idle", 1_234_567, gpu_model=f"M{i}") for i in range(7)]

    billed = in_cents(frame_of(charges(rows, Policy("proportional"))))

    assert set(billed.filter(billed["line"] == "idle")["total_cost"]) == {Decimal("0.00")}
    assert sum(billed["total_cost"]) == Decimal("6.80")  # 2 + 2 x 7 x 1,234,567 / 3,600,000

    rows = [line("usage", 3 * H, "a", run_key="1"), line("usage", H, "a", run_key="2"),
            line("usage", H, "b"), line("idle", 10 * H)]  # fmt: skip
    uniform = charges(rows, Policy("uniform"))
    shares = [(c.key.team, float(c.idle_share)) for c in uniform if c.key.line == "usage"]
    assert shares == [("a", 7.5), ("a", 2.5), ("b", 10)], "equal parts, of its lines by cost"


@pytest.mark.parametrize(
    ("more", "policy", "costs"),
    [
        (  # z used nothing and has a quota; the reservation's idle time is b's alone
            [line("usage", H, "b"), line("idle", 8 * H), line("reserved_idle", 5 * H, "b")],
            Policy("by_quota", quotas={("", "a"): Decimal(1), ("c", "z"): Decimal(3)}),
            {"a": 2 + 4, "b": 2 + 10 + 0, "z": 12, "idle": 0},
        ),
        ([line("reserved_idle", 5 * H)], Policy("by_quota", quotas={("", "a"): Decimal(1)}),
         {"a": 2 + 10, "reserved_idle": 0}),
        ([line("idle", H), line("usage", H, "b", cluster="d")], Policy("proportional"),
         {"a": 4, "b": 2, "idle": 0}),
    ],
    ids=["by quota", "reserved for nobody known", "each cluster alone"],
)  # fmt: skip
def test_idle_time_is_charged_to_who_kept_gpus_from_others(more, policy, costs):
    found = charges([line("usage", H, "a"), *more], policy)
    assert by_team(found) == costs
    assert {c.key.line for c in found if c.key.team == "z"} <= {"idle_share"}


def test_failed_infrastructure_is_credited_on_a_row_of_its_own():
    rows = [line("usage", 4 * H, "a", credit_ms=H)]

    without, with_credit = (charges(rows, Policy(credits_infra_failures=c)) for c in (False, True))

    assert [float(c.total or 0) for c in without] == [8]
    assert sorted((c.key.line, float(c.total or 0)) for c in with_credit) == [
        ("credit", -2),
        ("usage", 8),
    ]


@each(
    (Policy(), 70, 10),
    (Policy(evaluation_counts=True), 80, 0),
    (Policy(definition_version=1), 50, 30),
    (Policy(definition_version=1, evaluation_counts=True), 60, 20),
)
def test_useful_time_is_counted_by_the_definition_of_the_policy(policy, useful_ms, other_ms):
    row = line("usage", 100, "a", productive_ms=70, other_use_ms=10, communication_ms=20)

    (charge,) = charges([row], policy)

    counted = charge.quantities
    assert (counted.productive_ms, counted.other_use_ms) == (useful_ms, other_ms)


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


def test_a_half_is_rounded_away_from_zero_and_what_no_rounding_explains_is_spread_over_all_rows():
    assert [nearest(amount, 10) for amount in (5, 15, -5, -15, 4, -4)] == [1, 2, -1, -2, 0, 0]
    assert apportion([100, 100], 205, 1) == [103, 102]
    assert apportion([100, 100], 195, 1) == [98, 97]
