"""Power, energy and carbon: sums of nodes, racks and teams, idle power, accounts, head-room."""

import functools
import io
from datetime import date
from decimal import Decimal

import polars as pl
import pytest
from tests.queries.conftest import START_MS, at, built_once, durable, each, shown_by, steps

from goodput_billing.render import files, use_tables
from goodput_billing.render.wording import hours, percent
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import statement
from goodput_queries.scope import Scope
from goodput_scenarios.measured import EVERY_MODEL, measured

HOUR_MS = 3_600_000
KWH_MJ = 3.6e9
BUSY_W, CAPPED_W, IDLE_W = 600.0, 420.0, 100.0
PLACES = {"a": ("r1", "A+B"), "b": ("r1", "B + A"), "d": ("r2", "C")}  # rack, feeds
HALF_HOURS = Scope(from_ms=START_MS, to_ms=START_MS + 2 * HOUR_MS, bucket_ms=HOUR_MS // 2)


def place(made, node, **limits):
    """Add a node of one GPU."""
    made.listed(node, made.gpu(node), "test", slurm_index=0, **limits)


def read(made, node, watts, until=7200, source="dcgm", but=(), **more):
    """Load readings and an energy counter: `watts(second)` holds for the minute before it."""
    joules, rows = 1e6, []
    for second in range(0, until + 1, 60):
        if second in but:
            continue
        joules += 60 * watts(second) if second else 0
        rows.append({"gpu_uuid": made.gpu(node), "gpu_instance": "", "ts": at(second),
                     "energy_j": joules, "power_w": watts(second), "is_flagged": False,
                     "engine_active_ratio": 0.9 * (watts(second) > IDLE_W), **more})  # fmt: skip
    made.load("gpu_samples", rows, source)


@built_once
def world(made):
    """Give two hours of three nodes of one GPU: `a` works an hour, `b` is free, `c` is not read.

    Team A trains on `a` for an hour, B has it for the second one and does nothing. `a` and `b`
    are in one rack. There is an intensity and a tariff for the first hour alone. D trains on `d`
    under two power caps: slower in the second hour, with more steps per joule.
    """
    place(made, "a", power_limit_w=700.0, slowdown_temperature_c=90.0)
    for node in "bcd":
        place(made, node)
    made.add("node_racks", *({"node": n, "rack": r, "feed": f} for n, (r, f) in PLACES.items()))
    made.watched(7200)
    made.job("1", 0, 3600, ["a"], 1, account="A")
    made.job("2", 3600, 7200, ["a"], 1, account="B")
    made.events("1", [
        {"event": "job.start", "t": 0}, *steps(1, 359, 0, 10), durable(359, 3595),
        {"event": "job.end", "t": 3600},
    ])  # fmt: skip
    made.job("3", 0, 7200, ["d"], 1, account="D", job_name="sweep")
    made.events("3", [
        {"event": "job.start", "t": 0}, *steps(1, 360, 0, 10), *steps(361, 659, 3600, 12),
        durable(659, 7195), {"event": "job.end", "t": 7199},
    ])  # fmt: skip
    read(made, "d", lambda s: BUSY_W if s <= 3600 else CAPPED_W)
    caps = [(s, 700 if s < 3600 else 450) for s in range(0, 7200, 60)]
    made.counted(made.gpu("d"), "power_limit_enforced_w", caps)
    read(made, "a", lambda s: BUSY_W if s < 3600 else IDLE_W, gpu_temperature_c=80.0,
         clocks_event_reasons=4, memory_used_bytes=8 * 2**30)  # fmt: skip
    read(made, "b", lambda _: IDLE_W)
    made.add("power_feeds", {"feed": "A", "server_ratio": 1.0}, {"feed": "B", "server_ratio": 1.2},
             capacity_w=750.0, cluster=None)  # fmt: skip
    first_hour = {"valid_from_at": at(0), "valid_to_at": at(3600)}
    carbon = {"g_per_kwh": 400, "carbon_free_ratio": "0.4", "pue": "1.5", "server_ratio": 2}
    made.load("carbon", [{**{of: Decimal(amount) for of, amount in carbon.items()}, **first_hour}])
    made.tariff("0.1", "1.5", "2", cluster=None, **first_hour)


@functools.cache
def power(store, level, scope=HALF_HOURS):
    sql = (f"select *, (start_ms - {START_MS}) // 60000 as minute from marts.power_over_time "
           "where level = $1 order by name, availability, start_ms")  # fmt: skip
    return store.read(sql, [level], scope=scope, is_kept=True).to_dicts()


@functools.cache
def table(store, mart):
    return store.read(f"select * from marts.{mart}", scope=HALF_HOURS, is_kept=True).to_dicts()


# what it shows: level, its name and availability, watts by minute
@each({
    "a node has its mean": ("node", "a", None, {30: BUSY_W, 90: IDLE_W}),
    "a node without readings has none": ("node", "c", None, {30: None, 90: None}),
    "a rack has the sum of its nodes": ("rack", "r1", None, {30: BUSY_W + IDLE_W}),
    "a team has that of its GPUs": ("team", "A", "held", {30: BUSY_W}),
    "a team has that of its GPUs later": ("team", "B", "held", {90: IDLE_W}),
    "the rest is not allocated": ("team", None, "free", {90: IDLE_W}),
})  # fmt: skip
def test_power_of_half_hours(world, level, name, availability, watts):
    rows = [row for row in power(world.store, level) if row["name"] == name]
    found = {row["minute"]: row for row in rows if availability in (None, row["availability"])}

    assert {minute: found[minute]["power_w"] for minute in watts} == pytest.approx(watts)
    if name == "c":
        assert {(row["coverage_ratio"], row["read_gpus"]) for row in rows} == {(0.0, 0)}
    if name in ("a", "r1"):
        assert list(found) == [0, 30, 60, 90]
        assert found[30]["coverage_ratio"] == pytest.approx(1)


def test_the_levels_have_the_same_power_in_all_and_a_team_in_scope_its_own_alone(world):
    """A fine bucket is read from the readings."""
    minutes = Scope(from_ms=START_MS + 3_480_000, to_ms=START_MS + 3_780_000, bucket_ms=60_000)
    found = [row["power_w"] for row in power(world.store, "node", minutes) if row["name"] == "a"]
    assert found == [BUSY_W, BUSY_W, IDLE_W, IDLE_W, IDLE_W]
    of_a = Scope(from_ms=START_MS, to_ms=START_MS + HOUR_MS, bucket_ms=HOUR_MS, team="A")
    of_nodes, of_racks, of_teams = (sum(row["power_w"] or 0 for row in power(world.store, level))
                                    for level in ("node", "rack", "team"))  # fmt: skip

    assert of_racks == pytest.approx(of_nodes) == of_teams > 0
    assert {row["name"] for row in power(world.store, "team", of_a)} == {"A"}


OF_A, OF_B = ({"availability": "held", "team": team} for team in "AB")
G_PER_KWH = 400 * 1.5 * 2  # with PUE and servers
PRICE_PER_KWH = 0.1 * 1.5 * 2


def idle_kwh(row):
    return row["gpu_ms"] / HOUR_MS * IDLE_W / 1000


# what it shows: view, its row, what the row has, within which share
@each({
    "idle power is that of whole ten minutes in the category; only priced hours cost": (
        "idle_power", {"category": "idle_no_demand"},
        lambda row: {
            "power_w": IDLE_W, "energy_kwh": idle_kwh(row),
            "electricity_cost": (row["gpu_ms"] - row["untariffed_gpu_ms"]) / row["gpu_ms"]
            * idle_kwh(row) * PRICE_PER_KWH,
        }, None),
    "a free node, an hour of which has no tariff": ("idle_nodes", {"node": "b"}, lambda _: {
        "idle_s": 7200, "energy_kwh": IDLE_W / 500, "electricity_cost": None}, 0.02),
    "an account has its energy a useful hour": (
        "energy_by_account", OF_A,
        lambda row: {
            "energy_mj": BUSY_W * 3600 * 1000,
            "energy_kwh_per_useful_gpu_h": 0.6 / row["useful_ms"] * HOUR_MS,
        }, 0.02),
    "an account has its carbon a useful hour": (
        "energy_by_account", OF_A,
        lambda row: {
            "carbon_kg": row["energy_mj"] / KWH_MJ * G_PER_KWH / 1000, "carbon_free_ratio": 0.4,
            "carbon_g_per_useful_gpu_h": row["energy_kwh_per_useful_gpu_h"] * G_PER_KWH,
            "unknown_hours": 0, "unknown_carbon_kwh": 0,
        }, None),
    "idle time has the model's idle power and no useful hour": (
        "energy_by_account", OF_B,
        lambda row: {"energy_kwh_per_useful_gpu_h": None,
                     "idle_energy_kwh": row["idle_ms"] / HOUR_MS * IDLE_W / 1000}, 0.01),
    "carbon of hours without an intensity is unknown and named": (
        "energy_by_account", OF_B,
        lambda row: {"carbon_kg": None, "unknown_carbon_kwh": row["energy_kwh"],
                     "unknown_hours": 1, "unknown_from_at": at(3600), "unknown_to_at": at(7200)},
        None),
    "carbon of the known hours is not taken for all": (
        "energy_by_account", {"availability": "free"},
        lambda row: {"carbon_kg": (row["energy_kwh"] - 0.1) * G_PER_KWH / 1000,
                     "unknown_carbon_kwh": 0.1}, 0.05),
    "a step has the energy of all allocated time": (
        "run_energy", {"team": "D"},
        lambda _: {"steps": 659, "step_energy_wh": (BUSY_W + CAPPED_W) / 659}, 0.02),
    "a loaded program that does nothing, after the first ten minutes, is executing but idle": (
        "executing_idle", {"team": "B"},
        lambda _: {"power_w": IDLE_W, "idle_ms": 5 * 600_000, "energy_kwh": IDLE_W * 5 / 6000},
        None),
    "the heat margin of a rack is that of its hottest GPU": (
        "heat_margin", {"rack": "r1"},
        lambda _: {"slowdown_margin_c": 10, "hottest_node": "a", "nodes": 2, "known_nodes": 1},
        None),
    "a margin that is not known": (
        "heat_margin", {"rack": None}, lambda _: {"slowdown_margin_c": None}, None),
    "a feed carries the load of a failed one": (
        "feed_check", {"feed": "A"},
        lambda _: {"peak_w": (BUSY_W + IDLE_W) / 2, "load_w": (BUSY_W + 3 * IDLE_W) / 4,
                   "failed_feed": "B", "failover_w": BUSY_W + IDLE_W, "is_exceeded": False}, 0.02),
    "a feed that cannot carry it": (
        "feed_check", {"feed": "B"},
        lambda row: {"failover_w": 1.2 * (BUSY_W + IDLE_W), "is_exceeded": True,
                     "margin_w": 750 - row["failover_w"]}, 0.01),
    "a feed whose capacity is not known": (
        "feed_check", {"feed": "C"},
        lambda _: {"failover_w": None, "capacity_w": None, "is_exceeded": None, "single_nodes": 1,
                   "nodes": 1, "read_nodes": 1}, None),
    "head-room is against the limit of the GPU": (
        "power_headroom", {"node": "a"},
        lambda _: {"p99_limit_ratio": BUSY_W / 700, "capped_ratio": 1, "slowdown_margin_c": 10},
        0.01),
    "head-room without a limit": (
        "power_headroom", {"node": "b"},
        lambda _: {"p99_limit_ratio": None, "p99_power_w": IDLE_W}, None),
    "head-room of a node that is not read": (
        "power_headroom", {"node": "c"}, lambda _: {"p99_power_w": None, "read_gpus": 0}, None),
    "work per joule at the lower of two power caps": (
        "work_by_power_cap", {"power_cap_w": 450},
        lambda _: {"job_name": "sweep", "work_unit": "steps", "hours": 1, "work_per_gpu_s": 1 / 12,
                   "work_per_j": 299 / (CAPPED_W * 3600),
                   "gain_ratio": 299 / CAPPED_W * BUSY_W / 360 - 1}, 0.1),
    "work per joule at the higher one": (
        "work_by_power_cap", {"power_cap_w": 700},
        lambda _: {"gain_ratio": 0, "work_per_j": 360 / (BUSY_W * 3600)}, 0.02),
})  # fmt: skip
def test_figures_of_power_and_energy(world, mart, of, expected, rel):
    (row,) = (row for row in table(world.store, mart) if row.items() >= of.items())
    for name, value in expected(row).items():
        is_number = isinstance(value, int | float)
        assert row[name] == (pytest.approx(value, rel=rel) if is_number else value), name


def one_idle_part(cluster):
    place(cluster, "m")
    cluster.instance(cluster.gpu("m"))
    cluster.watched(3600)
    cluster.job("1", 0, 3600, ["m"], 1, gpu_type="3g.40gb")
    read(cluster, "m", lambda _: BUSY_W, until=3600)


def short_peaks(cluster):
    place(cluster, "a", power_limit_w=700.0)
    cluster.watched(3600)
    read(cluster, "a", lambda second: 690.0 if second % 600 == 300 else IDLE_W, until=3600)


def without_counter(cluster, holes=()):
    """Give an hour in which power rises from 0 to 600 W; holes: seconds that are not read."""
    place(cluster, "a")
    cluster.watched(3600)
    cluster.job("1", 0, 3600, ["a"], 1, account="A")
    read(cluster, "a", lambda second: second / 6, until=3600, energy_j=None, but=holes)


OF_POWER = (
    "select energy_mj, integrated_kwh, measured_ms from marts.energy_by_account "
    "where availability = 'held'"
)
test_power_of_other_clusters = shown_by({
    "without a counter energy is the integral of power": (
        without_counter, OF_POWER, [(1_080_000_000, pytest.approx(0.3), HOUR_MS)]),
    "between readings more than ten minutes apart it is not known": (
        lambda c: without_counter(c, range(1201, 2400)), OF_POWER,
        [(1_080_000_000 - 300 * 1_200_000, pytest.approx(0.2), HOUR_MS - 1_200_000)]),
    "a counter of another source takes precedence": (
        lambda c: [without_counter(c), read(c, "a", lambda _: IDLE_W, until=3600, source="nvml")],
        OF_POWER, [(IDLE_W * HOUR_MS, 0, HOUR_MS)]),
    "a GPU with one idle part has no idle power": (
        one_idle_part, "select distinct power_w from marts.idle_power where gpu_ms > 0", [(None,)]),
    "a node that worked in its last hour is not idle": (
        lambda c: [place(c, "a"), c.watched(10_800), c.job("1", 7200, 10_800, ["a"], 1)],
        "from marts.idle_nodes", []),
    "head-room sees peaks that a mean of ten minutes hides": (
        short_peaks, "select p99_power_w, mean_power_w < 200 from marts.power_headroom",
        [(pytest.approx(690, rel=0.01), True)]),
    "what no source measured is empty and not zero": (
        lambda c: [c.watched(3600), c.job_on_a_node("1", 0, 3600, 1, account="A")],
        "select gpu_ms, energy_kwh, carbon_kg, electricity_cost, measured_ratio "
        "from marts.energy_by_account where team = 'A'", [(HOUR_MS, None, None, None, 0)]),
})  # fmt: skip


def test_energies_of_accounts_add_up_to_the_millijoule(world):
    """What is not read or reports no steps is in no list."""
    assert "B" not in {row["team"] for row in table(world.store, "run_energy")}
    assert {row["team"] for row in table(world.store, "executing_idle")} == {"A", "B"}
    whole = "select sum(energy_mj)::bigint, sum(measured_ms)::bigint from marts."

    of_accounts = world.read(f"{whole}energy_by_account").row(0)

    assert of_accounts == world.read(f"{whole}statement_energy_hourly").row(0)
    assert of_accounts[0] > 0


def test_a_window_that_cuts_an_hour_has_the_energy_of_runs_by_their_time_in_it(cluster):
    """A run of the first ten minutes has nothing of what follows, and all of its own before."""
    place(cluster, "a")
    cluster.watched(3600)
    cluster.job("1", 0, 600, ["a"], 1, account="A")
    cluster.job("2", 600, 3600, ["a"], 1, account="B")
    read(cluster, "a", lambda s: BUSY_W if s <= 600 else IDLE_W, until=3600)
    yield
    runs = "select run_key, held_ms, measured_ms, energy_kwh from marts.energy_by_run order by 1"
    first, rest = (
        cluster.read(runs, scope=Scope(from_ms=START_MS + a * 1000, to_ms=START_MS + b * 1000))
        for a, b in ((0, 660), (660, 3600))
    )

    assert first["energy_kwh"].to_list() == pytest.approx([0.1, IDLE_W * 60 / 3.6e6])
    assert rest["energy_kwh"].to_list() == pytest.approx([IDLE_W * 2940 / 3.6e6])
    assert first["measured_ms"].to_list() == first["held_ms"].to_list() == [600_000, 60_000]


def test_an_intensity_of_the_cluster_and_a_later_one_take_precedence(evidence):
    place(evidence, "a")
    evidence.watched(3 * 3600)
    read(evidence, "a", lambda _: IDLE_W, until=3 * 3600)
    common = {"pue": Decimal(1), "server_ratio": Decimal(1)}
    evidence.load("carbon", [
        {"g_per_kwh": Decimal(500), **common},
        {"g_per_kwh": Decimal(300), "valid_from_at": at(3600), "valid_to_at": at(7200), **common},
        {"g_per_kwh": Decimal(100), "cluster": "c", "valid_from_at": at(7200), **common},
        {"g_per_kwh": Decimal(1), "cluster": "other", **common},
    ])  # fmt: skip
    evidence.build()

    sql = "select g_per_kwh from marts.carbon_intensity order by hour_ms"
    assert evidence.read(sql).rows() == [(500,), (300,), (100,)]


@pytest.fixture(scope="module")
def made(world):
    return statement(world.store, date(2027, 1, 15), StatementSettings())


def test_lines_of_a_statement_have_energy_and_carbon_and_their_coverage(world, made):
    lines = {(row["line"], row["team"]): row for row in made.rows.to_dicts()}
    a, b, free = lines["usage", "A"], lines["usage", "B"], lines["idle", None]

    assert a["carbon_kg"] == pytest.approx(a["energy_kwh"] * G_PER_KWH / 1000, abs=1e-6)
    assert (a["energy_kwh"], a["carbon_known_ratio"]) == (pytest.approx(0.6, rel=0.02), 1)
    assert (b["carbon_kg"], b["carbon_known_ratio"]) == (None, 0)
    assert free["carbon_known_ratio"] == pytest.approx(0.5, rel=0.1)
    assert free["measured_ms"] < free["gpu_ms"]  # `c` is not read
    of_accounts = sum(row["energy_kwh"] or 0 for row in table(world.store, "energy_by_account"))
    assert float(made.rows["energy_kwh"].sum()) == pytest.approx(of_accounts, abs=1e-5)
    shown = {row[0]: row[-2:] for row in use_tables.energy(made).rows}
    assert (shown["A"], shown["B"]) == (["0.7", "100.0 %"], ["unknown", "0.0 %"])
    assert "carbon_kg" in files.csv(made).decode().splitlines()[0].split(",")


def test_a_statement_has_the_executing_idle_of_each_account(world, made):
    idle = "select team, idle_ms, held_ms from marts.executing_idle_by_team"
    of_day = {team: tuple(of) for team, *of in world.read(idle, scope=made.day.scope).rows()}
    rows = pl.read_csv(io.BytesIO(files.csv(made)), infer_schema_length=None)
    columns = ("team", "account_executing_idle_ms", "account_memory_read_ms")
    found = rows.filter(pl.col("line") == "usage").select(columns).rows()
    assert {row[0]: row[1:] for row in found if row[2]} == of_day
    shown = {row[0]: row[1:] for row in use_tables.executing_idle(made).rows}
    assert shown.keys() == of_day.keys() == {"A", "B"}
    assert shown["B"] == [hours(of_day["B"][0]), percent(*of_day["B"])]


def test_a_cap_that_was_tried_gives_its_own_slowdown_and_one_alone_none(world):
    given = measured(world.store, "power-cap", HALF_HOURS, EVERY_MODEL)

    # steps of 12 s beside steps of 10 s
    assert float(given["slowdown_ratio"].span.lo) == pytest.approx(1 / 6, rel=0.02)
    assert float(given["cap_ratio"].span.lo) == pytest.approx(450 / 700)
    assert given["slowdown_ratio"].source.startswith("marts.work_by_power_cap: sweep at 450 W")
    first = Scope(from_ms=START_MS, to_ms=START_MS + HOUR_MS)
    assert world.read("select * from marts.work_by_power_cap", scope=first).is_empty()
    assert "slowdown_ratio" not in measured(world.store, "power-cap", first, EVERY_MODEL)
