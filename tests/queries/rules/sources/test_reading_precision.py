"""One made-up world, read more or less often and in two ways, has one ledger within a bound."""

from itertools import pairwise

import pytest
from tests.queries.conftest import built_together, durable, phase, steps

INTERVALS = (1, 5, 15, 30, 60)
KINDS = ("averages", "momentary values")
HOUR = 3600
# from when on the GPU of a job without events is active, inactive, active ...
EDGES = [
    *(0, 97.3, 141.9, 430.2, 433.7, 1000.4, 1390.8, 2000.1, 2075.6, 2600.0, 2989.9, 3300.3, HOUR)
]
PAUSES = [b - a for a, b in list(pairwise(EDGES))[1::2]]  # 3.5 to 390.4 s
# of a job with events, whose steps leave gaps without any activity
GAPS = [(600, 620.5), (1200, 1300.2), (2000, 2250.7)]


def active_s(edges, start, end):
    """Return for how long the GPU was active in a time; edges: active from the first on."""
    spans = list(pairwise(edges))[::2]
    return sum(max(0, min(b, end) - max(a, start)) for a, b in spans)


def readings(cluster, gpu, edges, kind, interval):
    """Load readings of a GPU from before its job to after it, 0.4 s beside the full seconds."""
    rows = []
    for number in range(-2, HOUR // interval + 3):
        at = number * interval + 0.4
        since = at - interval if kind == "averages" else at - 0.001
        rows.append({"ts": at, "engine_active_ratio": active_s(edges, since, at) / (at - since)})
    read = {"gpu_uuid": cluster.gpu(gpu), "gpu_instance": "", "is_flagged": False}
    cluster.add("gpu_samples", *rows, source="dcgm", **read)


def world(cluster, kind, interval):
    """Load a job without events, and one whose steps leave gaps."""
    cluster.telemetry("a", 2, source="dcgm")
    cluster.watched(HOUR)
    for number, job in enumerate("12"):
        cluster.job(job, 0, HOUR, ["a"], 1)
        cluster.add("holds", job_id_raw=job, submit_at=0, node="a", method="scontrol",
                    gpu_uuid=cluster.gpu(f"a-{number}"))  # fmt: skip
    readings(cluster, "a-0", EDGES, kind, interval)
    edges = [0, *(edge for gap in GAPS for edge in gap), HOUR]
    readings(cluster, "a-1", edges, kind, interval)
    events, number = [phase("init", 0, 10)], 1
    for start, end in pairwise([10, *(edge for gap in GAPS for edge in gap), HOUR]):
        if (start, end) not in GAPS:
            length = (end - start) / 10
            events += steps(number, number + 9, start, length)
            number += 10
    events.append(durable(number - 1, HOUR))
    cluster.events("2", events, gpu_uuid=cluster.gpu("a-1"))


def by_job(cluster):
    """Return GPU-seconds by job and category."""
    rows = cluster.read(f"""
        select split_part(split_part(job_run_key, '/', 2), '@', 1), category, sum(gpu_ms) / 1000.0
        from marts.ledger_pieces where cluster = '{cluster.name}' group by all
    """)
    return {(job, category): seconds for job, category, seconds in rows.rows()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("interval", INTERVALS)
@built_together
def test_a_ledger_is_exact_to_an_interval_a_change(cluster, interval, kind):
    world(cluster, kind, interval)
    yield
    found = by_job(cluster)
    seen = [pause for pause in PAUSES if pause >= 3 * interval]
    precision = cluster.read("select changes, gpu_ms / 1000.0, interval_s, unseen_s "
                             "from marts.reading_precision").row(0)  # fmt: skip
    changes, within_s, read_every_s, unseen_s = precision

    assert (read_every_s, unseen_s) == (interval, 3 * interval)
    assert within_s == changes * interval
    # the last pause ends with its job
    assert 2 * len(seen) - 1 <= changes <= 2 * len(PAUSES) - 1
    idle = found["1", "idle_held"]
    assert sum(seen) - within_s <= idle <= sum(PAUSES) + within_s
    assert idle + found["1", "busy_unclassified"] == HOUR
    # gaps between steps are whole where they last two intervals
    idle = sum(end - start for start, end in GAPS if end - start > 2 * interval)
    assert found["2", "idle_held"] == pytest.approx(idle, abs=0.01)
    steps_s = HOUR - 10 - sum(end - start for start, end in GAPS)
    assert found["2", "step_unsplit"] == pytest.approx(steps_s, abs=0.01)
