"""What a statement is made of: it ties to the ledger and to the scheduler, to the millisecond.

Worked example 3 of the accounting rules, to the cent, and its edge.
"""

from datetime import date
from decimal import Decimal

import polars as pl
import pytest
from tests.queries.conftest import START_MS, built_once, each, shown_by, steps
from tests.queries.loaders import steady

from goodput_billing.statement.amounts.charges import Policy
from goodput_billing.statement.amounts.rows import in_cents
from goodput_billing.statement.closing import computed
from goodput_billing.statement.days import Day, day_of
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import statement
from goodput_billing.statement.window import lines_of, lines_of_days
from goodput_queries.scope import Scope

HOUR_S = 3_600
KEYS = ("line, cluster, team, user_name, run_key, partition, qos, gpu_model, mig_profile, "
        "price_per_gpu_h")  # fmt: skip
SUMS = ("sum(gpu_ms)::bigint as gpu_ms, sum(own_waste_ms)::bigint as own_ms, "
        "sum(energy_mj)::bigint as mj, sum(measured_ms)::bigint as measured_ms, "
        "sum(metered_mj_price) as metered")  # fmt: skip
HELD = "select sum(gpu_ms) from marts.statement_lines where line = 'usage'"


def lines(store, scope):
    return store.read(f"select {KEYS}, {SUMS} from marts.statement_lines group by all", scope=scope)


@built_once
def busy(evidence):
    """Load two nodes, one with a MIG instance, with jobs that begin and end at odd moments."""
    evidence.node("a", 4, model="NVIDIA H100 80GB HBM3")
    evidence.node("m", 1, model="NVIDIA H100 80GB HBM3")
    evidence.instance("m#0")
    evidence.watched(6 * HOUR_S)
    evidence.state("a", "down", 15_000, 16_000)
    evidence.job("1", 123.457, 9_000.001, ["a"], 4, account="A")
    evidence.job("2", 10_000, 13_333.333, ["a"], 2, "NODE_FAIL", account="B", user_name="bob")
    evidence.job("3", 1_000, None, ["m"], 1, "RUNNING", account="B", gpu_type="3g.40gb")
    evidence.events("1", [{"event": "job.start", "t": 200}, *steps(1, 400, 300, 20)])
    evidence.add("rates", gpu_model="H100", price_per_gpu_h=Decimal("2.85"), cluster=None)
    evidence.tariff("0.123457", "1.3", "1.25", cluster=None)
    for gpu in ("a#0", "a#1", "m#0"):
        evidence.energy(f"c/{gpu}", steady(6 * HOUR_S, 137.7))


@pytest.mark.parametrize("cut_ms", [1, 3_600_000, 12_345_678])
def test_splitting_a_day_changes_nothing(busy, cut_ms):
    start, end = START_MS, START_MS + 6 * HOUR_S * 1000
    middle = start + cut_ms

    parts = [lines(busy, Scope(from_ms=a, to_ms=b)) for a, b in ((start, middle), (middle, end))]

    whole = lines(busy, Scope(from_ms=start, to_ms=end))
    keys = KEYS.split(", ")
    added = pl.concat(parts).group_by(keys).agg(pl.exclude(keys).sum())
    assert added.sort(keys).fill_null(0).rows() == whole.sort(keys).fill_null(0).rows()


@pytest.mark.parametrize(("zone", "day_starts_at"), [("UTC", "11:00"), ("Asia/Kolkata", "16:00")])
def test_days_that_are_read_together_are_those_read_alone(busy, zone, day_starts_at):
    settings = StatementSettings(zone=zone, day_starts_at=day_starts_at)
    days = [day_of(date(2027, 1, day), settings) for day in range(14, 17)]

    together, alone = lines_of_days(busy.store, days), [lines_of(busy.store, day) for day in days]

    assert any(frame.height for frame in alone)
    assert all(found.equals(of_day) for found, of_day in zip(together, alone, strict=True))


def test_differences_from_the_scheduler_are_named_and_add_up(busy):
    day = Day(date(2027, 1, 15), "UTC", START_MS, START_MS + 6 * HOUR_S * 1000)
    held = busy.read(HELD, scope=day.scope)
    of_scheduler = "select sum(held_gpu_s) * 1000 from marts.scheduler_reconciliation"
    scheduler = busy.read(of_scheduler, scope=day.scope)

    named = busy.read("select reason, gpu_ms from marts.statement_differences", scope=day.scope)

    assert round(scheduler.item()) - held.item() == sum(named["gpu_ms"])
    assert set(named["reason"]) == {"MIG instances count by their slices"}


def counted(*readings):
    return lambda c: [c.job_on_a_node("1", 0, 7_200, 1), c.energy(c.gpu("a#0"), readings)]


def bands(cluster):
    """Load 08:00 to 12:00 UTC, 03:00 to 07:00 in New York: two hours by night, two by day."""
    cluster.node("a", 1, watched=4 * HOUR_S)
    cluster.energy(cluster.gpu("a#0"), steady(4 * HOUR_S, 1000))
    of_day = {"zone": "America/New_York", "pue": Decimal(1), "server_ratio": Decimal(1)}
    for begin, end, cost in ((22, 5, "0.05"), (5, 22, "0.20")):
        cluster.add("tariffs", from_hour=begin, to_hour=end, price_per_kwh=Decimal(cost), **of_day)


OF_LINES = "sum(metered_mj_price), sum(untariffed_mj)::bigint from marts.statement_lines"
test_energies = shown_by({
    # 300 kJ, then at least the 200 kJ since the reset, then 300 kJ
    "a counter that restarts counts from 0": (
        counted((0, 5e6), (600, 5.3e6), (1200, 2e5), (1800, 5e5)),
        lambda c: c.own("sum(energy_mj)", "marts.statement_energy_hourly"), [(800_000_000,)]),
    "a jump that no GPU makes is no energy": (
        counted((0, 5e6), (600, 9.2e18), (1200, 9.2e18), (4000, 5e6), (4600, 5.1e6)),
        lambda c: c.own("sum(energy_mj)", "marts.statement_energy_hourly"), [(100_000_000,)]),
    "the tariff is that of the hour in its own zone": (
        bands, f"select {OF_LINES}", [(Decimal(1_800_000_000), 0)]),
    "without a tariff energy is known and its cost is not": (
        counted(*steady(3_600, 100)),
        f"select sum(energy_mj)::bigint, {OF_LINES} where line = 'usage'",
        [(360_000_000, None, 360_000_000)]),
})  # fmt: skip


def test_energy_of_a_window_that_cuts_an_hour_is_that_of_its_evidence(cluster):
    """Six minutes in the middle of an hour are read."""
    cluster.telemetry("a", 1, start=1_260)
    cluster.job("1", 1_260, 1_620, ["a"], 1)
    read = range(1_260, 1_621, 30)
    cluster.energy(cluster.gpu("a-0"), [(second, 1e6 + 100 * second) for second in read])
    yield

    def energy_mj(*window):
        scope = Scope(*(START_MS + 1000 * second for second in window))
        return cluster.read("select sum(energy_mj)::bigint from marts.gpu_models", scope).item()

    whole = 360 * 100_000
    assert [energy_mj(), energy_mj(1_260, 1_620), energy_mj(660, 2_220)] == [whole] * 3
    assert [energy_mj(1_260, 1_440), energy_mj(1_440, 1_620)] == [whole // 2] * 2


@each((date(2026, 3, 8), 23), (date(2026, 11, 1), 25), (date(2026, 11, 2), 24))
def test_days_are_as_long_as_their_zone_makes_them(when, hours):
    settings = StatementSettings(zone="America/New_York", day_starts_at="00:00")
    assert day_of(when, settings).hours == hours


def test_a_day_of_25_hours_charges_25_and_the_days_about_it_lose_nothing(cluster):
    begin = 1_793_404_800 - 1_800_000_000  # 2026-10-31T00:00Z
    cluster.listed("n", cluster.gpu("GPU-1"), slurm_index=0, valid_from_at=begin)
    cluster.job("1", begin, begin + 4 * 24 * HOUR_S, ["n"], 1)
    yield
    settings = StatementSettings(zone="America/New_York", day_starts_at="17:00")

    days = (date(2026, 10, 31), date(2026, 11, 1), date(2026, 11, 2))
    held = [cluster.read(HELD, day_of(day, settings).scope).item() / 3_600_000 for day in days]
    assert held == [25, 24, 24]


def test_a_statement_of_an_open_day_balances(busy):
    made = statement(busy.store, date(2027, 1, 15), StatementSettings(idle_policy="proportional"))

    assert not made.is_closed
    still_runs = made.rows.filter((pl.col("mig_profile") != "") & (pl.col("line") == "usage"))
    assert still_runs["gpu_ms"].sum() == (6 * HOUR_S - 1_000) * 1000 * 3 // 7
    (row,) = made.balance.to_dicts()
    assert row["statement_ms"] == row["ledger_ms"] == row["capacity_ms"]
    assert row["held_ms"] == row["ledger_held_ms"]
    assert row["held_ms"] + row["free_ms"] + row["not_available_ms"] == row["statement_ms"]
    assert sum(made.accounts["total_cost"]) == made.total_cost
    uses = ("productive", "other_use", "own_waste", "platform_waste", "unsettled")
    for account in made.accounts.filter("is_account").iter_rows(named=True):
        assert sum(account[f"{use}_cost"] for use in uses) == account["allocated_cost"]


def meter(evidence, node, begin, end, watts, every=60):
    """Load a node's power meter: readings that cover back to the one before them."""
    evidence.host(node, range(begin, end + 1, every), "meter", power_w=float(watts))


def metered(evidence):
    """Load a node of 2 GPUs at 100 W and 300 W, that take 1,000 W at its meter for 4 hours."""
    evidence.node("a", 2, watched=5 * HOUR_S)
    evidence.job("1", 0, 2 * HOUR_S, ["a"], 1, account="A")
    evidence.energy(evidence.gpu("a#0"), steady(5 * HOUR_S, 100))
    evidence.energy(evidence.gpu("a#1"), steady(5 * HOUR_S, 300))
    evidence.tariff("0.1", "1.5", "2")


def energies(evidence):
    """Return kWh of counters and of meters, and what they cost, by line."""
    found = evidence.read(
        "select line, energy_mj / 3.6e9, wall_mj / 3.6e9, (metered_mj_price / 3.6e9)::double "
        "from (select line, sum(energy_mj) as energy_mj, sum(wall_mj) as wall_mj, "
        "sum(metered_mj_price) as metered_mj_price from marts.statement_lines group by line)"
    )
    return {line: pytest.approx(values) for line, *values in found.rows()}


# of 1,000 W 400 W are the GPUs' own; 600 W are the server's: 300 W for each of two GPUs
@each({
    "shared by what GPUs counted and the rest by their time": (
        (0, 1_000), {"usage": [0.2, 0.8, 0.8 * 0.1 * 1.5], "idle": [1.8, 4.2, 4.2 * 0.1 * 1.5]}),
    "hours that it does not cover whole are those of the counters": (
        (1_800, 1_000), {"usage": [0.2, 0.4, 0.1 * 0.1 * 1.5 * 2 + 0.4 * 0.1 * 1.5]}),
    "a meter that counts less than its GPUs is not believed": (
        (0, 399), {"usage": [0.2, None, 0.2 * 0.1 * 1.5 * 2]}),
})  # fmt: skip
def test_a_nodes_meter(cluster, read, expected):
    begin, watts = read
    metered(cluster)
    meter(cluster, "a", begin, 5 * HOUR_S, watts)
    yield
    assert energies(cluster).items() >= expected.items()


test_a_late_meter = shown_by({"a meter that comes later than the build is seen by the next": (
             [metered, lambda c: meter(c, "a", 0, 5 * HOUR_S, 1_000)],
             [[0.2, None, 0.2 * 0.1 * 1.5 * 2], [0.2, 0.8, 0.8 * 0.1 * 1.5]])},
    read=lambda c: energies(c)["usage"], builds=2)  # fmt: skip


# 72 GPU-hours of 120 kW at 0.10 a kWh: 1.667 kWh and 0.1667 each, 12.00 in all
test_three_teams_pay_a_metered_rack = shown_by({"by their GPUs": (
    {"A": 8, "B": 16, "C": 48},
    [("A", 8, 13.333, 1.333), ("B", 16, 26.667, 2.667), ("C", 48, 80.0, 8.0)])},
    load=lambda c, gpus: [
        c.node("a", 72, watched=HOUR_S), meter(c, "a", 0, HOUR_S, 120_000), c.tariff("0.1"),
        *(c.job(team, 0, HOUR_S, ["a"], n, account=team) for team, n in gpus.items())],
    read="select team, sum(gpu_ms) / 3600000, round(sum(wall_mj) / 3.6e9, 3), round(sum("
    "metered_mj_price)::double / 3.6e9, 3) from marts.statement_lines group by team order by team",
)  # fmt: skip


# what it shows: GPUs of the node; start, end and GPUs of its job; when the meter of 700 W is read;
# seconds of the meter by line
test_a_meter_alone = shown_by({
    "it is shared by time": (
        3, (0, HOUR_S, 2), [(0, 2 * HOUR_S)],
        [("idle", None, HOUR_S * 4 // 3), ("usage", None, HOUR_S * 2 // 3)]),
    # a minute before the job and one after it nobody held them
    "a job has its energy though it covers no whole hour": (
        2, (3_000, 4_200, 2), [(2_940, 4_260)], [("idle", None, 120), ("usage", None, 1_200)]),
    "it counts the part of a job that it covers": (
        1, (0, 2 * HOUR_S, 1), [(0, 600), (5_400, 2 * HOUR_S)], [("usage", None, 600 + 1_800)]),
}, load=lambda c, gpus, job, read: [
    c.node("a", gpus, watched=2 * HOUR_S), c.job("1", *job[:2], ["a"], job[2], account="A"),
    *(meter(c, "a", first, last, 700) for first, last in read)],
    read="select line, sum(energy_mj), sum(wall_mj) / 700000 from marts.statement_lines "
    "group by all having sum(wall_mj) > 0 order by line")  # fmt: skip


HOUR_S = 3_600
DAY = Day(date(2027, 1, 15), "UTC", START_MS, START_MS + 24 * HOUR_S * 1000)


def rising(kwh, until_h=24):
    """Return a day of an energy counter that rises evenly until an hour, and no more."""
    seconds = range(0, 24 * HOUR_S + 1, 600)
    return [(s, 1e9 + kwh * 3.6e6 * min(s / (until_h * HOUR_S), 1)) for s in seconds]


def load_node(evidence):
    """Load a node of 8 H100, the seventh of which has a 3g instance, with its prices."""
    evidence.node("n", 8)
    evidence.instance("n#6", slurm_index=6)
    evidence.watched(24 * HOUR_S)
    evidence.add("rates", gpu_model="H100", price_per_gpu_h=Decimal(2), cluster=None)
    evidence.tariff("0.15", "1.4", cluster=None)


@built_once
def example_3(node):
    """Load team A on GPUs 0-5 for 12 h and of team B on the instance for 24 h."""
    load_node(node)
    node.job("1", 0, 12 * HOUR_S, ["n"], 6, account="A", user_name="ann", gpu_type="h100")
    node.job("2", 0, 24 * HOUR_S, ["n"], 1, account="B", user_name="bob", gpu_type="3g.40gb")
    for gpu in range(6):
        node.energy(f"c/n#{gpu}", rising(8, until_h=12))
    node.energy("c/n#6", rising(7))
    node.energy("c/n#7", rising(5))


def sums(frame, column):
    """Return a column by account and line."""
    key = pl.coalesce("team", "line")
    return dict(frame.drop_nulls(column).group_by(key).agg(pl.col(column).sum()).rows())


def test_example_3_shares_idle_time_in_proportion_to_direct_cost_to_the_cent(example_3):
    exact = computed(example_3.store, DAY, Policy("proportional"))

    # the ledger counts whole milliseconds: 3/7 of a day is short of a seventh of one
    for name, near in {
        "direct_cost": {"A": 144, "B": 20.571429, "idle": 219.428571},
        "idle_share_cost": {"A": 192, "B": 27.428571, "idle": -219.428571},
        "electricity_cost": {"A": 11.73375, "B": 0.86625, "idle": 0},
    }.items():
        found = {of: float(cost) for of, cost in sums(exact, name).items()}
        assert found == pytest.approx(near, abs=2e-6), name

    billed = in_cents(exact)
    costs = {"A": Decimal("347.73"), "B": Decimal("48.87"), "idle": Decimal(0)}
    assert sums(billed, "total_cost") == costs
    assert sum(billed["total_cost"]) == Decimal("396.60")
    assert sum(billed["energy_mj"]) == 60 * 3_600_000_000
    assert sum(billed["gpu_ms"]) == 192 * 3_600_000
