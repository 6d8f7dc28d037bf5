"""Serving in the ledger: model load, standby, and requests within the objective or not."""

import random
from math import inf

from tests.queries.conftest import each, shown_by, steps
from tests.queries.loaders import loaded_at_once
from tests.queries.serving.engines import buckets, busy, engine, request, scrapes
from tests.queries.serving.load import Engine

from goodput_queries.objectives.serving import ServingObjective

OBJECTIVES = (
    ServingObjective("limited-e2e*", e2e_s=4),
    ServingObjective("limited*", ttft_s=0.5, inter_token_s=0.05),
)
PHASES = """select category, coalesce(phase, '') as phase, sum(gpu_ms)::bigint as gpu_ms
    from marts.ledger_scoped_by_node where category not in ('idle_no_demand', 'free_unknown')
    group by all order by all"""


def phases(cluster):
    """Return GPU-milliseconds by category and phase."""
    return {(c, p): ms for c, p, ms in cluster.read(PHASES).rows()}


def held(cluster, gpus=1, state="COMPLETED"):
    """Load a node that one job has for an hour, without events and readings."""
    cluster.store.serving_objectives = OBJECTIVES
    cluster.job_on_a_node("1", 0, 3600, gpus, state, watched=3600)


def test_the_serving_example_in_numbers(cluster):
    """Load 600 s, standby 1200 s, then 1800 s of which 3/4 of the tokens are within."""
    held(cluster, gpus=4)
    busy(cluster, engine(cluster), 600, 3600, since=1800)
    requests = [request(cluster, f"{minute}", start, start + 60, ttft=0.1 if minute % 4 else 2.0,
                        output_tokens=2000) for minute, start in enumerate(range(1800, 3600, 60))
                if minute < 28]  # fmt: skip
    requests.append(request(cluster, "long", 3480, 3600, output_tokens=4000, ttft=0.1))
    cluster.load("serving_requests", requests)
    yield
    assert phases(cluster) == {
        ("startup", "model_load"): 4 * 600_000,
        ("idle_held", "standby"): 4 * 1_200_000,
        # 7 of 30 minutes began with a slow first token
        ("productive", "serving"): 4 * 1_380_000,
        ("lost_work", "slo_miss"): 4 * 420_000,
    }


OTHER = {"model": "other"}


# what it shows: the model (of `limited` there is an objective), its scrapes, GPU-ms by phase
@each({
    "a model without an objective is not split": (
        OTHER, lambda c, of: busy(c, of, 600, 3600, since=1800),
        {("startup", "model_load"): 600_000, ("idle_held", "standby"): 1_200_000,
         ("step_unsplit", "serving"): 1_800_000}),
    "an objective without latencies leaves the time open": (
        {}, lambda c, of: busy(c, of, 0, 3600), {("at_risk", "objective_unknown"): 3_600_000}),
    "a restart is start-up and counts from zero": (
        OTHER, lambda c, of: [busy(c, of, 0, 1200), busy(c, of, 1800, 3600, since=1790)],
        {("step_unsplit", "serving"): 1_200_000 + 1_800_000 + 25_000,
         ("startup", "model_load"): 575_000}),
    "an idle engine may fall silent and one that vanishes is unknown": (
        OTHER,
        lambda c, of: scrapes(c, of, [*range(0, 601, 10), *range(1200, 1801, 10)], lambda _: 7),
        {("idle_held", "standby"): 1_800_000, ("unknown", ""): 1_800_000}),
    "a gap in which tokens were generated is unknown": (
        OTHER,
        lambda c, of: [scrapes(c, of, range(0, 601, 10), lambda _: 7),
                       scrapes(c, of, range(1000, 3601, 10), lambda _: 8)],
        {("idle_held", "standby"): 600_000 + 2_600_000, ("step_unsplit", "serving"): 25_000,
         ("unknown", ""): 375_000}),
    "steps of a training job win": (
        {},
        lambda c, of: [c.events("1", [{"event": "job.start", "t": 0}, *steps(1, 360, 0)]),
                       busy(c, of, 0, 3600)], {("step_unsplit", ""): 3_600_000}),
})  # fmt: skip
def test_phases_of_an_engine(cluster, model, scraped, expected):
    held(cluster)
    scraped(cluster, engine(cluster, **model))
    yield
    assert phases(cluster) == expected
    assert cluster.violations() == 0


def failed(cluster):
    held(cluster, state="FAILED")
    cluster.events("1", [{"event": "failure", "kind": "oom", "t": 3599}])
    busy(cluster, engine(cluster, **OTHER), 0, 3600)


def apart(cluster):
    """Load a decode engine, which reports no first token: the gateway of its model does."""
    held(cluster)
    decode = engine(cluster, role="decode")
    gateway = engine(cluster, "web", role="frontend", product="inference-gateway")
    busy(cluster, decode, 0, 3600)
    buckets(cluster, decode, "inter_token_s", {0.05: 9, inf: 9})
    buckets(cluster, gateway, "ttft_s", {0.5: 2, inf: 4})


def requests_alone(cluster):
    cluster.store.serving_objectives = OBJECTIVES
    gpu, of = f"GPU-{cluster.name}", {"endpoint": "llm/chat-0:8000"}
    listed = {"gpu_uuid": gpu, "gpu_index": 0, "slurm_index": 0, "gpu_model": "h100"}
    cluster.add("gpus", listed, node="a", valid_from_at=0)
    cluster.watched(3600)
    cluster.job("1", 0, 3600, ["a"], 1)
    cluster.load("serving_requests", [
        request(cluster, "1", 0, 600, ttft=599.0, **of),
        request(cluster, "2", 900, 1200, output_tokens=10_000, **of),
        request(cluster, "3", 3000, 3600, status="error", **of),
    ])  # fmt: skip
    cluster.label(gpu, "llm/chat-0", 0, 3600)


# what it shows: what is loaded, GPU-ms by phase
test_phases_of_requests = shown_by({
    "a failed job that served has made progress": (
        failed, {("step_unsplit", "serving"): 3_600_000}),
    "the engines of a model share its latencies": (
        apart, {("productive", "serving"): 1_800_000, ("lost_work", "slo_miss"): 1_800_000}),
    # between requests the engine is on standby; after 15 minutes without one it is unknown
    "requests without samples are enough": (
        requests_alone,
        {("lost_work", "slo_miss"): 600_000 + 600_000, ("idle_held", "standby"): 300_000,
         ("productive", "serving"): 300_000, ("unknown", ""): 1_800_000}),
}, read=phases)  # fmt: skip


def test_histograms_bound_the_share(cluster):
    """First tokens in time: 80 %; gaps between tokens: 70 to 90 %; so 50 to 80 % for both."""
    held(cluster)
    of = engine(cluster)
    busy(cluster, of, 0, 3600)
    buckets(cluster, of, "ttft_s", {0.1: 0, 0.5: 8, inf: 10})
    buckets(cluster, of, "inter_token_s", {0.02: 70, 0.1: 90, inf: 100})
    yield
    assert phases(cluster) == {
        ("productive", "serving"): 1_800_000,
        ("at_risk", "objective_unknown"): 1_080_000,
        ("lost_work", "slo_miss"): 720_000,
    }
    summary = cluster.read("from marts.goodput_summary").to_dicts()[0]
    assert (summary["goodput_ratio"], summary["goodput_hi_ratio"]) == (0.5, 0.8)
    assert summary["communication_ratio"] is None, "requests communicate, but not in steps"
    ladder = cluster.read("from marts.evidence_ladder").to_dicts()[0]
    assert (ladder["rung"], ladder["coverage"], ladder["ratio"]) == ("goodput", 1.0, 0.5)


LOADS = 100
TTFT_S, INTER_TOKEN_S = 0.5, 0.05
BUCKETS = {
    "ttft_s": (0.1, 0.25, 0.5, 1.0, inf),  # the limit is a bound, so that the share is exact
    "inter_token_s": (0.01, 0.025, 0.04, 0.075, 0.1, inf),  # the limit lies inside a bucket
}
SHARES = """select endpoint,
        coalesce(sum(end_ms - start_ms) filter (category = 'productive'), 0)::bigint as within,
        coalesce(sum(end_ms - start_ms) filter (category = 'at_risk'), 0)::bigint as open,
        sum(end_ms - start_ms)::bigint as busy, any_value(method) as method
    from intermediate.int_serving_timeline
    where category in ('productive', 'at_risk', 'lost_work') group by all"""


def load(number):
    """Return the time to the first token and between tokens of some requests."""
    rng = random.Random(number)  # noqa: S311 -- a made-up load, no secret
    slow = round(rng.random(), 3)  # whole milliseconds, as times are stored
    return [
        (rng.choice([0.05, 0.2, 0.5, 0.6, 2 * slow]), rng.choice([0.005, 0.03, 0.05, 0.06, slow]))
        for _ in range(rng.randint(1, 40))
    ]


def test_bounds_of_histograms_contain_the_share_of_the_request_log(evidence):
    """Requests of a load have equally many tokens, so that a share of requests is one of tokens."""
    objective = ServingObjective(ttft_s=TTFT_S, inter_token_s=INTER_TOKEN_S)
    evidence.store.serving_objectives = (objective,)
    evidence.node("a", 1, watched=3600)
    truth = {}
    with loaded_at_once(evidence) as kept:
        for number in range(LOADS):
            latencies = load(number)
            scrapes(kept, engine(kept, endpoint=f"h{number}"), (0, 590), lambda second: second)
            made = Engine(kept, f"h{number}", "limited", node="a", engine="0")
            for metric, values in zip(BUCKETS, zip(*latencies, strict=True), strict=True):
                seen = [(1, value) for value in values]
                made.histogram(metric, seen, (0, 590), BUCKETS[metric])
            tokens = 2 + number % 50
            kept.load("serving_requests", [
                request(kept, f"{number}-{place}", 10 + place,
                        10 + place + ttft_s + (tokens - 1) * inter_token_s + 1e-4, ttft=ttft_s,
                        output_tokens=tokens, endpoint=f"r{number}")
                for place, (ttft_s, inter_token_s) in enumerate(latencies)
            ])  # fmt: skip
            are_within = [a <= TTFT_S and b <= INTER_TOKEN_S for a, b in latencies]
            truth[number] = sum(are_within) / len(latencies)
    evidence.store.build()

    found = {row["endpoint"]: row for row in evidence.store.read(SHARES).to_dicts()}
    exact = 0
    for number, share in truth.items():
        log, bounds = found[f"r{number}"], found[f"h{number}"]
        assert (log["method"], bounds["method"]) == ("requests", "histograms")
        assert log["open"] == 0
        assert abs(log["within"] / log["busy"] - share) < 2 / log["busy"], number
        lo, hi = bounds["within"], bounds["within"] + bounds["open"]
        assert lo - 1 <= share * bounds["busy"] <= hi + 1, number
        exact += hi - lo <= 1
    assert 0 < exact < LOADS / 2, "histograms rarely tell all, and never more than they know"
