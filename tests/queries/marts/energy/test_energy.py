"""Power, energy and carbon: sums of nodes, racks and teams, idle power, accounts, head-room."""

import io
from datetime import date
from decimal import Decimal

import polars as pl
import pytest
from tests.queries.conftest import at, built_together, durable, steps

from goodput_billing.render import files, use_tables
from goodput_billing.render.wording import hours, percent
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import statement
from goodput_queries.scope import Scope
from goodput_scenarios.measured import EVERY_MODEL, measured

START_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
KWH_MJ = 3.6e9
BUSY_W, CAPPED_W, IDLE_W = 600.0, 420.0, 100.0
PLACES = {"a": ("r1", "A+B"), "b": ("r1", "B + A"), "d": ("r2", "C")}  # rack, feeds
HALF_HOURS = Scope(from_ms=START_MS, to_ms=START_MS + 2 * HOUR_MS, bucket_ms=HOUR_MS // 2)


def place(made, node, **limits):
    """Add a node of one GPU."""
    made.add(
        "gpus", node=node, gpu_uuid=made.gpu(node), gpu_index=0, slurm_index=0, gpu_model="h100",
        valid_from_at=0, **limits,
    )  # fmt: skip


def read(made, node, watts, until=7200, **more):
    """Load readings and an energy counter: `watts(second)` holds for the minute before it."""
    joules, rows = 1e6, []
    for second in range(0, until + 1, 60):
        joules += 60 * watts(second) if second else 0
        rows.append({"gpu_uuid": made.gpu(node), "gpu_instance": "", "ts": at(second),
                     "energy_j": joules, "power_w": watts(second), "is_flagged": False,
                     "engine_active_ratio": 0.9 * (watts(second) > IDLE_W), **more})  # fmt: skip
    made.load("gpu_samples", rows, "dcgm")


@pytest.fixture(scope="module")
def world(shared_evidence):
    """Give two hours of three nodes of one GPU: `a` works an hour, `b` is free, `c` is not read.

    Team A trains on `a` for an hour, B has it for the second one and does nothing. `a` and `b`
    are in one rack. There is an intensity and a tariff for the first hour alone. D trains on `d`
    under two power caps: slower in the second hour, with more steps per joule.
    """
    made = shared_evidence
    place(made, "a", power_limit_w=700.0, slowdown_temperature_c=90.0)
    place(made, "b")
    place(made, "c")
    made.add("node_racks", *({"node": n, "rack": r, "feed": f} for n, (r, f) in PLACES.items()))
    made.watched(7200)
    made.job("1", 0, 3600, ["a"], 1, account="A")
    made.job("2", 3600, 7200, ["a"], 1, account="B")
    made.events("1", [
        {"event": "job.start", "t": 0}, *steps(1, 359, 0, 10), durable(359, 3595),
        {"event": "job.end", "t": 3600},
    ])  # fmt: skip
    place(made, "d")
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
    made.add(
        "power_feeds", {"feed": "A", "server_ratio": 1.0}, {"feed": "B", "server_ratio": 1.2},
        capacity_w=750.0, cluster=None,
    )  # fmt: skip
    first_hour = {"valid_from_at": at(0), "valid_to_at": at(3600)}
    made.load("carbon", [
        {"g_per_kwh": Decimal(400), "carbon_free_ratio": Decimal("0.4"), "pue": Decimal("1.5"),
         "server_ratio": Decimal(2), **first_hour}
    ])  # fmt: skip
    made.tariff("0.1", "1.5", "2", cluster=None, **first_hour)
    made.build()
    return made.store


def power(store, level, scope=HALF_HOURS):
    rows = store.read(
        "select name, availability, (start_ms - $2) // 60000 as minute, power_w, coverage_ratio, "
        "gpus, read_gpus from marts.power_over_time where level = $1 order by all",
        [level, START_MS],
        scope=scope,
        is_kept=True,
    )
    return rows.to_dicts()


def table(store, mart):
    return store.read(f"select * from marts.{mart}", scope=HALF_HOURS, is_kept=True).to_dicts()


def by(store, mart, column):
    return {row[column]: row for row in table(store, mart)}


def accounts(store):
    return {(row["availability"], row["team"]): row for row in table(store, "energy_by_account")}


# what it shows: level, its name and availability, watts by minute
POWERS = {
    "a node has its mean": ("node", "a", None, {30: BUSY_W, 90: IDLE_W}),
    "a node without readings has none": ("node", "c", None, {30: None, 90: None}),
    "a rack has the sum of its nodes": ("rack", "r1", None, {30: BUSY_W + IDLE_W}),
    "a team has that of its GPUs": ("team", "A", "held", {30: BUSY_W}),
    "a team has that of its GPUs later": ("team", "B", "held", {90: IDLE_W}),
    "the rest is not allocated": ("team", None, "free", {90: IDLE_W}),
}


@pytest.mark.parametrize(("level", "name", "availability", "watts"), POWERS.values(), ids=POWERS)
def test_power_of_half_hours(world, level, name, availability, watts):
    rows = [row for row in power(world, level) if row["name"] == name]
    found = {row["minute"]: row for row in rows if availability in (None, row["availability"])}

    assert {minute: found[minute]["power_w"] for minute in watts} == pytest.approx(watts)
    if name == "c":
        assert {(row["coverage_ratio"], row["read_gpus"]) for row in rows} == {(0.0, 0)}
    if name in ("a", "r1"):
        assert list(found) == [0, 30, 60, 90]
        assert found[30]["coverage_ratio"] == pytest.approx(1)


def test_the_levels_have_the_same_power_in_all(world):
    sums = [
        sum(row["power_w"] or 0 for row in power(world, level))
        for level in ("node", "rack", "team")
    ]

    assert sums == pytest.approx([sums[0]] * 3)
    assert sums[0] > 0


def test_a_fine_bucket_is_read_from_the_readings(world):
    minutes = Scope(from_ms=START_MS + 3_480_000, to_ms=START_MS + 3_780_000, bucket_ms=60_000)

    found = [row["power_w"] for row in power(world, "node", minutes) if row["name"] == "a"]

    assert found == [BUSY_W, BUSY_W, IDLE_W, IDLE_W, IDLE_W]


def test_a_team_in_scope_has_its_power_alone(world):
    of_a = Scope(from_ms=START_MS, to_ms=START_MS + HOUR_MS, bucket_ms=HOUR_MS, team="A")

    assert {row["name"] for row in power(world, "team", of_a)} == {"A"}


def test_idle_power_is_that_of_whole_ten_minutes_in_the_category(world):
    found = by(world, "idle_power", "category")

    assert round(found["idle_held"]["power_w"]) == IDLE_W
    assert found["idle_no_demand"]["power_w"] == pytest.approx(IDLE_W)
    free_h = found["idle_no_demand"]["gpu_ms"] / HOUR_MS
    assert found["idle_no_demand"]["energy_kwh"] == pytest.approx(free_h * IDLE_W / 1000)


def test_idle_time_of_hours_without_a_tariff_has_no_cost(world):
    row = by(world, "idle_power", "category")["idle_no_demand"]

    priced_h = (row["gpu_ms"] - row["untariffed_gpu_ms"]) / HOUR_MS
    assert 0 < priced_h < row["gpu_ms"] / HOUR_MS
    assert row["electricity_cost"] == pytest.approx(priced_h * IDLE_W / 1000 * 0.1 * 1.5 * 2)


@built_together
def test_a_gpu_with_one_idle_part_has_no_idle_power(cluster):
    place(cluster, "m")
    cluster.instance(cluster.gpu("m"))
    cluster.watched(3600)
    cluster.job("1", 0, 3600, ["m"], 1, gpu_type="3g.40gb")
    read(cluster, "m", lambda _: BUSY_W, until=3600)
    yield
    rows = cluster.read("select * from marts.idle_power where gpu_ms > 0")

    assert rows.height > 0
    assert rows["power_w"].to_list() == [None] * rows.height


def test_energies_of_accounts_add_up_to_the_millijoule(world):
    whole = "select sum(energy_mj)::bigint, sum(measured_ms)::bigint from marts."

    of_accounts = world.read(f"{whole}energy_by_account").row(0)

    assert of_accounts == world.read(f"{whole}statement_energy_hourly").row(0)
    assert of_accounts[0] > 0


@built_together
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


def test_an_account_has_its_energy_and_carbon_a_useful_hour(world):
    row = accounts(world)["held", "A"]

    assert row["energy_mj"] == pytest.approx(BUSY_W * 3600 * 1000, rel=0.02)
    useful_h = row["useful_ms"] / HOUR_MS
    assert row["energy_kwh_per_useful_gpu_h"] == pytest.approx(0.6 / useful_h, rel=0.02)
    assert row["carbon_kg"] == pytest.approx(row["energy_mj"] / KWH_MJ * 0.4 * 1.5 * 2)
    assert row["carbon_free_ratio"] == pytest.approx(0.4)
    assert row["carbon_g_per_useful_gpu_h"] == pytest.approx(
        row["energy_kwh_per_useful_gpu_h"] * 400 * 1.5 * 2
    )
    assert (row["unknown_hours"], row["unknown_carbon_kwh"]) == (0, 0)


def test_an_account_of_idle_time_has_the_models_idle_power_and_no_useful_hour(world):
    row = accounts(world)["held", "B"]

    assert row["energy_kwh_per_useful_gpu_h"] is None
    idle_kwh = row["idle_ms"] / HOUR_MS * IDLE_W / 1000
    assert row["idle_energy_kwh"] == pytest.approx(idle_kwh, rel=0.01)
    assert row["energy_kwh"] >= row["idle_energy_kwh"] > 0


def test_carbon_of_hours_without_an_intensity_is_unknown_and_named(world):
    row = accounts(world)["held", "B"]

    assert row["carbon_kg"] is None
    assert row["unknown_carbon_kwh"] == pytest.approx(row["energy_kwh"])
    assert row["unknown_hours"] == 1
    assert (row["unknown_from_at"], row["unknown_to_at"]) == (at(3600), at(7200))


def test_carbon_of_the_known_hours_is_not_taken_for_all(world):
    row = accounts(world)["free", None]

    assert row["unknown_carbon_kwh"] == pytest.approx(0.1, rel=0.05)
    assert row["carbon_kg"] == pytest.approx(
        (row["energy_kwh"] - row["unknown_carbon_kwh"]) * 0.4 * 1.5 * 2
    )


@built_together
def test_what_no_source_measured_is_empty_and_not_zero(cluster):
    cluster.watched(3600)
    cluster.job_on_a_node("1", 0, 3600, 1, account="A")
    yield
    (row,) = cluster.read("from marts.energy_by_account where team = 'A'").to_dicts()

    assert row["gpu_ms"] == HOUR_MS
    assert (row["energy_kwh"], row["carbon_kg"], row["electricity_cost"]) == (None, None, None)
    assert row["measured_ratio"] == 0


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
    evidence.store.build()

    found = evidence.store.read("select g_per_kwh from marts.carbon_intensity order by hour_ms")

    assert found["g_per_kwh"].to_list() == [500, 300, 100]


def test_lines_of_a_statement_have_energy_and_carbon_and_their_coverage(world):
    made = statement(world, date(2027, 1, 15), StatementSettings())
    lines = {(row["line"], row["team"]): row for row in made.rows.to_dicts()}
    a, b, free = lines["usage", "A"], lines["usage", "B"], lines["idle", None]

    assert a["carbon_kg"] == pytest.approx(a["energy_kwh"] * 0.4 * 1.5 * 2, abs=1e-6)
    assert (a["energy_kwh"], a["carbon_known_ratio"]) == (pytest.approx(0.6, rel=0.02), 1)
    assert b["energy_kwh"] == pytest.approx(0.1, rel=0.1)
    assert (b["carbon_kg"], b["carbon_known_ratio"]) == (None, 0)
    assert free["carbon_known_ratio"] == pytest.approx(0.5, rel=0.1)
    assert free["measured_ms"] < free["gpu_ms"]  # `c` is not read
    of_lines = sum(row["energy_kwh"] for row in made.rows.to_dicts())
    of_accounts = sum(row["energy_kwh"] or 0 for row in accounts(world).values())
    assert of_lines == pytest.approx(of_accounts, abs=1e-5)
    shown = {row[0]: row[-2:] for row in use_tables.energy(made).rows}
    assert (shown["A"], shown["B"]) == (["0.7", "100.0 %"], ["unknown", "0.0 %"])
    assert "carbon_kg" in files.csv(made).decode().splitlines()[0].split(",")


def test_a_step_has_the_energy_of_all_allocated_time(world):
    found = by(world, "run_energy", "team")

    assert found["D"]["steps"] == 659
    assert found["D"]["step_energy_wh"] == pytest.approx((BUSY_W + CAPPED_W) / 659, rel=0.02)
    assert "B" not in found  # it reports no steps


def test_a_loaded_program_that_does_nothing_is_executing_but_idle(world):
    found = by(world, "executing_idle", "team")
    row = found["B"]

    assert set(found) == {"A", "B"}  # the memory of `d` is not read, `b` is free
    assert row["power_w"] == pytest.approx(IDLE_W)
    assert row["energy_kwh"] == pytest.approx(row["idle_ms"] / HOUR_MS * IDLE_W / 1000)
    assert row["idle_ms"] == 5 * 600_000  # after the first ten minutes of the allocation


def test_a_statement_has_the_executing_idle_of_each_account(world):
    made = statement(world, date(2027, 1, 15), StatementSettings())
    idle = "select team, idle_ms, held_ms from marts.executing_idle_by_team"
    of_day = {
        team: (idle, read) for team, idle, read in world.read(idle, scope=made.day.scope).rows()
    }

    rows = pl.read_csv(io.BytesIO(files.csv(made)), infer_schema_length=None)
    found = rows.filter(pl.col("line") == "usage")
    columns = ("team", "account_executing_idle_ms", "account_memory_read_ms")
    assert {row[0]: row[1:] for row in found.select(columns).rows() if row[2]} == of_day
    shown = {row[0]: row[1:] for row in use_tables.executing_idle(made).rows}
    assert shown.keys() == of_day.keys() == {"A", "B"}
    assert shown["B"] == [hours(of_day["B"][0]), percent(*of_day["B"])]


def test_work_per_joule_is_compared_by_the_power_cap_in_force(world):
    rows = sorted(table(world, "work_by_power_cap"), key=lambda row: row["power_cap_w"])
    low, high = rows

    assert [(r["job_name"], r["work_unit"], r["power_cap_w"], r["hours"]) for r in rows] == [
        ("sweep", "steps", 450, 1), ("sweep", "steps", 700, 1)
    ]  # fmt: skip
    assert high["work_per_j"] == pytest.approx(360 / (BUSY_W * 3600), rel=0.02)
    assert low["work_per_j"] == pytest.approx(299 / (CAPPED_W * 3600), rel=0.02)
    assert low["work_per_gpu_s"] == pytest.approx(1 / 12, rel=0.01)
    assert low["gain_ratio"] == pytest.approx(low["work_per_j"] / high["work_per_j"] - 1)
    assert high["gain_ratio"] == 0


def test_one_cap_alone_is_no_comparison(world):
    first = Scope(from_ms=START_MS, to_ms=START_MS + HOUR_MS)

    assert world.read("select * from marts.work_by_power_cap", scope=first).is_empty()
    assert "slowdown_ratio" not in measured(world, "power-cap", first, EVERY_MODEL)


def test_a_cap_that_was_tried_gives_its_own_slowdown(world):
    given = measured(world, "power-cap", HALF_HOURS, EVERY_MODEL)

    # steps of 12 s beside steps of 10 s
    assert float(given["slowdown_ratio"].span.lo) == pytest.approx(1 / 6, rel=0.02)
    assert float(given["cap_ratio"].span.lo) == pytest.approx(450 / 700)
    assert given["slowdown_ratio"].source.startswith("marts.work_by_power_cap: sweep at 450 W")


def test_the_heat_margin_of_a_rack_is_that_of_its_hottest_gpu(world):
    found = by(world, "heat_margin", "rack")

    assert (found["r1"]["slowdown_margin_c"], found["r1"]["hottest_node"]) == (10, "a")
    assert (found["r1"]["nodes"], found["r1"]["known_nodes"]) == (2, 1)
    assert found[None]["slowdown_margin_c"] is None


def test_a_feed_carries_the_load_of_a_failed_one(world):
    found = by(world, "feed_check", "feed")
    a, b, c = (found[name] for name in "ABC")

    assert a["peak_w"] == pytest.approx((BUSY_W + IDLE_W) / 2, rel=0.01)
    assert a["load_w"] == pytest.approx((BUSY_W + 3 * IDLE_W) / 4, rel=0.02)
    assert (a["failed_feed"], a["failover_w"]) == ("B", pytest.approx(BUSY_W + IDLE_W, rel=0.01))
    assert (a["margin_w"], a["is_exceeded"]) == (pytest.approx(50, rel=0.1), False)
    assert b["failover_w"] == pytest.approx(1.2 * (BUSY_W + IDLE_W), rel=0.01)
    assert (b["margin_w"], b["is_exceeded"]) == (pytest.approx(-90, rel=0.1), True)
    assert (c["failover_w"], c["capacity_w"], c["is_exceeded"]) == (None, None, None)
    assert (c["single_nodes"], c["nodes"], c["read_nodes"]) == (1, 1, 1)


@built_together
def test_headroom_sees_peaks_that_a_mean_of_ten_minutes_hides(cluster):
    place(cluster, "a", power_limit_w=700.0)
    cluster.watched(3600)
    read(cluster, "a", lambda second: 690.0 if second % 600 == 300 else IDLE_W, until=3600)
    yield
    row = cluster.read("select * from marts.power_headroom").row(0, named=True)

    assert row["p99_power_w"] == pytest.approx(690, rel=0.01)
    assert row["mean_power_w"] < 200


def test_headroom_is_against_the_limit_of_the_gpu(world):
    found = by(world, "power_headroom", "node")

    a = found["a"]
    assert a["p99_limit_ratio"] == pytest.approx(BUSY_W / 700, rel=0.01)
    assert a["capped_ratio"] == pytest.approx(1)
    assert a["slowdown_margin_c"] == pytest.approx(10)
    assert (found["b"]["p99_limit_ratio"], found["b"]["p99_power_w"]) == (None, IDLE_W)
    assert (found["c"]["p99_power_w"], found["c"]["read_gpus"]) == (None, 0)
