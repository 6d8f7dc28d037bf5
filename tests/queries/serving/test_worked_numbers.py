"""Worked numbers of the requirements about serving: W21, W22, W24, W41; others: test_models."""

import pytest
from tests.queries.conftest import START_MS
from tests.queries.serving.load import HOUR, Serving

from goodput_queries.scope import EVERYTHING, Scope

H100_PRICE = 10.0
GH200_PRICE = 9.5
HOURS = (0.0, float(HOUR), 2.0 * HOUR)
E2E_S = 10.0  # of each of 100 requests an hour
FIRST, SECOND = (
    Scope(START_MS + 1000 * HOUR * n, START_MS + 1000 * HOUR * (n + 1)) for n in (0, 1)
)


@pytest.fixture(scope="module")
def world(shared_evidence):
    """Give engines with the speeds of the requirements."""
    evidence = shared_evidence
    evidence.watched(2 * HOUR)
    serving = Serving(evidence)
    places = (
        # model, node, GPUs, GPU model, output tokens per second of all of them
        ("offload-h100", "h", 1, "h100", 0.57),
        ("offload-gh200", "g", 1, "gh200", 4.33),
        ("hopper", "hopper", 8, "h100", 8 * 100.0),
        ("nvl72", "nvl72", 72, "gb200", 72 * 340.0),
        ("batch", "batch", 8, "h100", 30_000.0),
    )
    engines = {}
    for model, node, gpus, gpu_model, speed in places:
        evidence.node(node, gpus, model=gpu_model)
        evidence.job(f"serve-{model}", 0, 2 * HOUR, [node], gpus)
        labels = [f"{node}#{n}" for n in range(gpus)]
        engines[model] = serving.engine(f"pod-{model}", model, node=node, gpus=labels)
        engines[model].samples({s: {"generation_tokens": s * speed} for s in HOURS})
    evidence.add(
        "rates", *(
            {"gpu_model": gpu_model, "price_per_gpu_h": price}
            for gpu_model, price in (("h100", H100_PRICE), ("gh200", GH200_PRICE))
        ),
        cluster=None,
    )  # fmt: skip
    tokens = [(60.0 + n, 1 / 253) for n in range(100)]
    engines["batch"].histogram("inter_token_s", tokens, HOURS[:2])
    copies = engines["offload-h100"]
    requests = [(hour * HOUR + 30.0 * n + 60, E2E_S) for hour in (0, 1) for n in range(100)]
    copies.histogram("e2e_s", requests, HOURS)
    spent = (0.0, 0.22 * 100 * E2E_S, (0.22 + 0.03) * 100 * E2E_S)
    copies.samples({s: {"kv_load_s": total} for s, total in zip(HOURS, spent, strict=True)})
    silent = serving.engine("pod-silent", "silent")
    silent.samples({s: {"generation_tokens": s} for s in (0.0, 60.0, 2.0 * HOUR)})
    serving.load()
    evidence.build()
    return evidence


@pytest.fixture(scope="module")
def models(world):
    """Give the models, of all roles together."""
    rows = world.read("select * from marts.serving_models where role is null", EVERYTHING)
    return {row["model"]: row for row in rows.to_dicts()}


def test_w21_a_token_costs_an_eighth_at_7_6_times_the_speed_and_0_95_times_the_price(models):
    old, new = models["offload-h100"], models["offload-gh200"]

    speed_up = new["output_tokens_per_gpu_s"] / old["output_tokens_per_gpu_s"]
    assert speed_up == pytest.approx(7.6, abs=0.01)
    assert old["cost_per_m_tokens"] / new["cost_per_m_tokens"] == pytest.approx(8.0, abs=0.01)


def test_w22_a_rack_is_3_4_times_as_fast_per_gpu_and_30_times_in_total(models):
    """K13: both are shown, and neither for the other."""
    old, new = models["hopper"], models["nvl72"]

    assert new["gpus"] / old["gpus"] == 9
    assert new["output_tokens_per_gpu_s"] / old["output_tokens_per_gpu_s"] == pytest.approx(3.4)
    assert new["output_tokens_per_s"] / old["output_tokens_per_s"] == pytest.approx(30.6)


def test_w24_speed_of_a_gpu_is_kept_apart_from_that_of_a_request(models):
    """K04."""
    found = models["batch"]

    assert found["output_tokens_per_s"] == pytest.approx(30_000)
    assert found["output_tokens_per_gpu_s"] == pytest.approx(3_750)
    assert found["request_tokens_per_s"] == pytest.approx(253)


def test_w41_copies_fall_from_22_to_3_percent_of_latency(world):
    """K12: at most 1.24 times as fast, were nothing else in the way."""
    sql = "select copy_ratio from marts.serving_engines where model = 'offload-h100'"
    before, after = (world.read(sql, scope).item() for scope in (FIRST, SECOND))

    assert (before, after) == (pytest.approx(0.22), pytest.approx(0.03))
    assert (1 - after) / (1 - before) == pytest.approx(1.24, abs=0.005)


def test_time_without_a_reading_for_over_an_hour_is_not_observed(world):
    sql = "select observed_ms, output_tokens from marts.serving_engines where model = 'silent'"

    assert world.read(sql).row(0) == (60_000, 60.0)
