"""One made-up world, read more or less often and in two ways, has one ledger within a bound."""

from itertools import pairwise

import pytest
from tests.queries.conftest import durable, phase, steps

INTERVALS = (1, 5, 15, 30, 60)
KINDS = ("averages", "momentary values")
HOUR = 3600
# from when on the GPU of a job without events is active, inactive, active ...
EDGES = (
    *(0, 97.3, 141.9, 430.2, 433.7, 1000.4, 1390.8, 2000.1, 2075.6, 2600.0, 2989.9, 3300.3, HOUR),
)
PAUSES = [end - start for start, end in list(pairwise(EDGES))[1::2]]  # 3.5 to 390.4 s
# the same of a job whose steps leave gaps
GAPS = ((600, 620.5), (1200, 1300.2), (2000, 2250.7))
WITH_GAPS = (0, *(edge for gap in GAPS for edge in gap), HOUR)
# idle seconds of the first job by averages, of 1,203.6 s: what docs/accounting-rules.md states
BY_AVERAGES = {1: 1200.6, 30: 1079.6, 60: 959.6}


def active_s(edges, start, end):
    """Return for how long the GPU was active in a time; edges: active from the first on."""
    return sum(max(0, min(b, end) - max(a, start)) for a, b in list(pairwise(edges))[::2])


def world(cluster, kind, interval):
    """Load a job without events, and one whose steps leave gaps, with readings past both ends."""
    cluster.node("a", 2)
    for number, edges in enumerate((EDGES, WITH_GAPS)):
        cluster.job(str(number), 0, HOUR, ["a"], 1)
        cluster.hold(str(number), f"a#{number}")
        rows = []
        for at in [count * interval + 0.4 for count in range(-2, HOUR // interval + 3)]:
            since = at - interval if kind == "averages" else at - 0.001
            share = active_s(edges, since, at) / (at - since)
            rows.append({"ts": at, "engine_active_ratio": share, "is_flagged": False})
        of_gpu = {"gpu_uuid": cluster.gpu(f"a#{number}"), "gpu_instance": ""}
        cluster.add("gpu_samples", *rows, **of_gpu)
    events, begin = [phase("init", 0, 10)], 10
    for number, (end, after) in enumerate((*GAPS, (HOUR, HOUR))):
        events += steps(10 * number + 1, 10 * number + 10, begin, (end - begin) / 10)
        begin = after
    cluster.events("1", [*events, durable(40, HOUR)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("interval", INTERVALS)
def test_a_ledger_is_exact_to_an_interval_a_change(cluster, interval, kind):
    world(cluster, kind, interval)
    yield
    columns = "split_part(split_part(job_run_key, '/', -1), '@', 1), category, sum(gpu_ms) / 1000.0"
    whose = "job_run_key is not null group by all"
    by_job = cluster.own(columns, "marts.ledger_pieces", whose)
    found = {(job, category): float(seconds) for job, category, seconds in by_job}
    seen = [pause for pause in PAUSES if pause >= 3 * interval]
    sql = "select changes, gpu_ms / 1000.0, interval_s, unseen_s from marts.reading_precision"
    precision = cluster.read(sql)
    changes, within_s, read_every_s, unseen_s = precision.row(0)

    assert (read_every_s, unseen_s, within_s) == (interval, 3 * interval, changes * interval)
    idle = found["0", "idle_held"]
    assert sum(seen) - within_s <= idle <= sum(PAUSES) + within_s
    assert idle + found["0", "busy_unclassified"] == HOUR
    if kind == "averages":
        assert idle == BY_AVERAGES.get(interval, idle)
    # gaps between steps are whole where they last two intervals
    whole = sum(end - start for start, end in GAPS if end - start > 2 * interval)
    assert found.get(("1", "idle_held"), 0) == pytest.approx(whole, abs=0.01)
    steps_s = HOUR - 10 - sum(end - start for start, end in GAPS)
    assert found["1", "step_unsplit"] == pytest.approx(steps_s, abs=0.01)
