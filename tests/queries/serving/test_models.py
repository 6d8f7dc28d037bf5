"""What models and engines do in total, on one GPU and for one request, and what tokens cost."""

import functools
import io
from dataclasses import replace
from datetime import UTC, date, datetime

import polars as pl
import pytest
from tests.queries.conftest import START_MS, built_once, each, read_from_world, shown_by
from tests.queries.findings import given
from tests.queries.serving.load import GPU_POWER_W, HOUR, PRICE, Engine, fleet

from goodput_billing.render import files, use_tables
from goodput_billing.statement.account_measures import SERVED_COLUMNS
from goodput_billing.statement.one_account import of_account
from goodput_billing.statement.settings import StatementSettings
from goodput_billing.statement.statement import statement
from goodput_queries.scope import EVERYTHING, Scope

HOUR_MS = 1000 * HOUR
FIRST = Scope(START_MS, START_MS + HOUR_MS)
SECOND = Scope(START_MS + HOUR_MS, START_MS + 2 * HOUR_MS)


@built_once
def world(evidence):
    """Give the fleet of `load.py`, built."""
    fleet(evidence)


@functools.cache
def models(store, scope):
    """Return the rows of models by name and role."""
    rows = store.read("from marts.serving_models", scope=scope, is_kept=True).to_dicts()
    return {(row["model"], row["role"]): row for row in rows}


ENERGY_J = GPU_POWER_W * HOUR
TOKENS = (50 + 100) * HOUR  # of `llama` in the first hour, of which the second has twice as many


# what it shows (W25, K04, K05, K11, K13): model, scope, role, columns
@each({
    "cost and energy are those of the GPU, whatever it did": (
        "llama", FIRST, None,
        {"cost": PRICE, "energy_j": ENERGY_J, "cost_per_m_tokens": PRICE / TOKENS * 1e6,
         "joules_per_m_tokens": ENERGY_J / TOKENS * 1e6, "reason": "",
         "output_tokens": 100 * HOUR, "cost_per_request": PRICE / HOUR}),
    "all time has each token once": ("llama", EVERYTHING, None, {"output_tokens": 300 * HOUR}),
    "twice the tokens on the same GPU halve the cost of a token": (
        "llama", SECOND, None,
        {"cost": PRICE, "cost_per_m_tokens": PRICE / TOKENS * 1e6 / 2,
         "joules_per_m_tokens": ENERGY_J / TOKENS * 1e6 / 2, "output_tokens": 200 * HOUR}),
    # by the seconds that requests spent in prefill and decode: one and three
    "cost of input and output tokens adds up to the cost": (
        "llama", FIRST, None,
        {"input_share_ratio": 0.25, "cost_per_m_input_tokens": PRICE / 4 / (50 * HOUR) * 1e6,
         "cost_per_m_output_tokens": PRICE * 3 / 4 / (100 * HOUR) * 1e6}),
    # one request at a tenth of a second a token
    "speed is shown in total, per GPU and per request": (
        "llama", SECOND, None,
        {"output_tokens_per_s": 200, "output_tokens_per_gpu_s": 200, "request_tokens_per_s": 10}),
    "speed of two GPUs": ("moe", SECOND, None,
                          {"gpus": 2, "output_tokens_per_s": 150, "output_tokens_per_gpu_s": 75}),
    "input is of prefill and output of decode, a token counts once": (
        "moe", FIRST, None,
        {"input_tokens": 9 * HOUR, "output_tokens": 4 * HOUR, "engines": 2, "cost": 2 * PRICE,
         "cost_per_m_input_tokens": PRICE / (9 * HOUR) * 1e6,
         "cost_per_m_output_tokens": PRICE / (4 * HOUR) * 1e6}),
    "a role has its own row": ("moe", FIRST, "prefill", {"output_tokens": HOUR}),
    # W23, K03: 30 to 50 times as fast
    "a slow engine": ("moe", FIRST, "decode", {"output_tokens_per_gpu_s": 4}),
    "a fast engine": ("moe", SECOND, "decode", {"output_tokens_per_gpu_s": 150}),
    "a frontend has no GPU and no cost": ("moe", FIRST, "frontend", {"cost": None}),
    "idle serving has a cost": ("rare", EVERYTHING, None, {"idle_ms": HOUR_MS, "idle_cost": PRICE}),
    "an hour with requests is not idle": ("rare", FIRST, None, {"idle_cost": 0}),
    "without a token there is no cost of one": ("rare", SECOND, None, {"cost_per_m_tokens": None}),
})  # fmt: skip
def test_figures_of_a_model(world, name, scope, role, expected):
    found = models(world.store, scope)[name, role]
    assert {column: found[column] for column in expected} == pytest.approx(expected)
    if expected.get("cost_per_m_tokens", 0) is None:
        assert found["reason"].startswith("no token was counted")


ENGINES = "select model, sum(gpus) from marts.serving_engines group by model order by model"
ONE_GPU, OTHERS, OWN = replace(FIRST, gpu_uuid="c/n1#0"), ("other",), ("team",)
COST_OF_INPUT = f"cost_per_m_input_tokens * {50 * HOUR / 1e6}"
COST_OF_OUTPUT = f"cost_per_m_output_tokens * {100 * HOUR / 1e6}"
BY_ACCOUNT = (f"select team, engines, round({COST_OF_INPUT}, 6), round({COST_OF_OUTPUT}, 6) "
              "from marts.serving_tokens_by_account")  # fmt: skip
test_engines_and_accounts = read_from_world({
    "an engine has its place and owner (K06, K07, K08)": (
        "select gpu_uuid, gpus, gpu_method, node, team, run_id from marts.serving_engines "
        "where endpoint = 'pod-0'", [("c/n1#0", 1, "label", "n1", "team", "serve")]),
    # it does not report preemptions
    "an engine has its gauges and cache": (
        "select round(kv_cache_ratio, 6), kv_cache_max_ratio, kv_full_ratio, "
        "round(prefix_hit_ratio, 6), round(running_requests, 6), running_max, "
        "round(waiting_requests, 6), queue_ms, preemptions from marts.serving_engines "
        "where endpoint = 'pod-0'", [(0.6, 0.8, 0, 0.666667, 15, 20, 0.5, HOUR_MS, None)]),
    "a GPU has its engine": (ENGINES, [("llama", 1.0)], ONE_GPU),
    "another team has none": (ENGINES, [], replace(FIRST, team="other")),
    "a reader of another team sees none": (ENGINES, [], replace(FIRST, teams=OTHERS)),
    "a reader of the team sees all": (
        "select model from marts.serving_engines group by model order by model",
        [("llama",), ("moe",), ("rare",)], replace(FIRST, teams=OWN)),
    "rates over time add up engines": (
        "select model, round(output_tokens_per_s), case model when 'llama' "
        "then waiting_requests end from marts.serving_over_time order by bucket_ms, model",
        [("llama", 100, 0), ("moe", 4, None), ("rare", 10, None), ("llama", 200, 1),
         ("moe", 150, None), ("rare", 0, None)], replace(EVERYTHING, bucket_ms=HOUR_MS)),
    "input and output of an account add up to its cost": (
        BY_ACCOUNT, [("team", 1, round(PRICE / 4, 6), round(PRICE * 3 / 4, 6))], ONE_GPU),
    "which another team does not see": (BY_ACCOUNT, [], replace(FIRST, teams=OTHERS)),
})  # fmt: skip


def test_tokens_of_an_account_are_on_its_statement(world, tmp_path):
    """All four GPUs are of one account; `rare` does not say what of its time is prefill."""
    ended = datetime(2027, 1, 16, 1, tzinfo=UTC)
    of_day = (world.store, date(2027, 1, 15), StatementSettings())
    made = statement(*of_day, closes_now=True, now=ended)
    tokens = (150 + 2 * 9, 300 + 4 + 150 + 10)
    million = sum(tokens) * HOUR / 1e6
    rows = pl.read_csv(io.BytesIO(files.csv(made)))

    usage = rows.filter(pl.col("line") == "usage").row(0, named=True)
    served = {"input_tokens": tokens[0] * HOUR, "output_tokens": tokens[1] * HOUR,
              "cost_per_m_tokens": 8 * PRICE / million, "cost_per_m_input_tokens": None,
              "joules_per_m_tokens": 4 * GPU_POWER_W * 2 * HOUR / million}  # fmt: skip
    assert {of: usage[f"account_served_{of}"] for of in served} == pytest.approx(served)
    assert rows.filter(pl.col("line") == "idle")["account_served_output_tokens"].count() == 0

    shown = use_tables.served(of_account(world.store, made, "team")).rows
    assert shown == [["team", "604,800", "1,670,400", "12.66", "unknown", "unknown", "6.33",
                      "unknown", "unknown"]]  # fmt: skip
    page, bill = files.write(made, tmp_path, ["html", "focus"])
    assert "Served tokens" in page.read_text()
    assert "tokens" not in bill.read_text()
    assert not set(made.bookings[0].rows.columns) & set(SERVED_COLUMNS), "no closed row has them"


HOURS = (0.0, float(HOUR), 2.0 * HOUR)
E2E_S = 10.0  # of each of 100 requests an hour


def copying(cluster):
    """Load an engine whose copies fall from 22 to 3 % of latency."""
    engine = Engine(cluster, "pod-offload", "offload")
    requests = [(hour * HOUR + 30.0 * n + 60, E2E_S) for hour in (0, 1) for n in range(100)]
    engine.histogram("e2e_s", requests, HOURS)
    spent = (0.0, 0.22 * 100 * E2E_S, (0.22 + 0.03) * 100 * E2E_S)
    engine.samples({s: {"kv_load_s": total} for s, total in zip(HOURS, spent, strict=True)})


COPIES = "select copy_ratio from marts.serving_engines"
test_w41_copies_fall_from_22_to_3_percent_of_latency = shown_by({
    "K12": (copying, lambda c: [c.read(COPIES, hour).item() for hour in (FIRST, SECOND)],
            [pytest.approx(0.22), pytest.approx(0.03)]),
    "time without a reading for over an hour is not observed": (
        lambda c: Engine(c, "pod-silent", "silent").samples(
            {s: {"generation_tokens": s} for s in (0.0, 60.0, 2.0 * HOUR)}),
        "select observed_ms, output_tokens from marts.serving_engines", [(60_000, 60.0)]),
})  # fmt: skip


@pytest.mark.parametrize(("from_s", "found"), [(0, 1), (HOUR + 60, 0)])
def test_a_queue_that_is_over_is_no_finding_of_a_later_window(cluster, from_s, found):
    """Of two replicas one has a queue in the first hour while the other is idle."""
    given.load(cluster, given.cases("queue_beside_idle", "fires")[0]["given"])
    yield
    sql = "select count(*) from marts.findings where rule = 'queue_beside_idle'"
    assert cluster.read(sql, Scope(START_MS + 1000 * from_s)).item() == found
