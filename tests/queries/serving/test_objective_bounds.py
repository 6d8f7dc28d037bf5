"""The bounds that histograms give contain the share that a request log gives."""

import random
from math import inf

from tests.queries.conftest import Evidence
from tests.queries.serving.engines import engine, request, scrapes

from goodput_queries.serving_objectives import ServingObjective

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


def histogram(values, of, metric):
    """Return two readings of a histogram: empty, and with these values."""
    return [
        {
            **of, "metric": metric, "ts": Evidence.at(second), "le_s": le_s,
            "observations": sum(value <= le_s for value in values) if second else 0,
        }
        for second in (0, 590)
        for le_s in BUCKETS[metric]
    ]  # fmt: skip


def test_bounds_of_histograms_contain_the_share_of_the_request_log(evidence):
    """Requests of a load have equally many tokens, so that a share of requests is one of tokens."""
    evidence.store.serving_objectives = (
        ServingObjective(ttft_s=TTFT_S, inter_token_s=INTER_TOKEN_S),
    )
    evidence.node("a", 1)
    evidence.watched(3600)
    buckets = []
    requests = []
    truth = {}
    for number in range(LOADS):
        latencies = load(number)
        of = engine(evidence, endpoint=f"h{number}")
        for place, metric in enumerate(BUCKETS):
            buckets += histogram([values[place] for values in latencies], of, metric)
        scrapes(evidence, of, (0, 590), lambda second: second)
        tokens = 2 + number % 50
        requests += [
            request(
                evidence, f"{number}-{place}", 10 + place,
                10 + place + ttft_s + (tokens - 1) * inter_token_s + 1e-4,
                ttft=ttft_s, output_tokens=tokens, endpoint=f"r{number}",
            )
            for place, (ttft_s, inter_token_s) in enumerate(latencies)
        ]  # fmt: skip
        truth[number] = sum(a <= TTFT_S and b <= INTER_TOKEN_S for a, b in latencies) / len(
            latencies
        )
    evidence.load("serving_histograms", buckets)
    evidence.load("serving_requests", requests)
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
