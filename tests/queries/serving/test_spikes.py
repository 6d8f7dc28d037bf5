"""Latency spikes of engines and what happened to their GPUs, hosts and links meanwhile (K02)."""

import pytest
from tests.queries.conftest import built_once
from tests.queries.loaders import loaded_at_once
from tests.queries.serving.load import HOUR, Engine
from tests.tables import each

from goodput_queries.scope import Scope

SPIKE = range(3600, 4200)  # ten minutes of two hours
HW_THERMAL = 0x40
MINUTES = [60.0 * minute for minute in range(121)]


@built_once
def world(made):
    """Give engines with a spike at the same time; on each node one thing happens, or none."""
    with loaded_at_once(made) as evidence:
        evidence.watched(2 * HOUR)
        for number in range(1, 9):
            node = f"n{number}"
            evidence.node(node, 2)
            evidence.job(f"serve-{number}", 0, 2 * HOUR, [node], 1)
            engine = Engine(evidence, f"e-{number}", f"m-{number}", node=node, gpus=[f"{node}#0"])
            latency(engine)
            waits = {s: 30.0 * (number == 6 and s in SPIKE) for s in MINUTES}
            read = {s: {"requests_running": 8.0, "requests_waiting": n} for s, n in waits.items()}
            engine.samples(read)
        throttled(evidence, "n1#0", SPIKE)
        throttled(evidence, "n2#0", range(2 * HOUR))  # as it is all the time it explains no spike
        evidence.xid("n2", 74, 3590, gpu_uuid="c/n2#0")
        hosts(evidence)
        evidence.job("noisy", 3570, 5000, ["n4"], 1, account="other")
        port = {"node": "n5", "kind": "infiniband", "device": "mlx5_0", "port": "1"}
        is_up = {"is_up": lambda s: not 3600 <= s < 3900}
        evidence.series("link_samples", MINUTES, is_up, **port)
        quiet(evidence)


def latency(engine, spike=SPIKE, usual=0.3, slow=4.0):
    """Load two requests a second, of which a few always take longer."""
    seen = [(float(s), slow if s in spike else 0.9 if s % 100 == 0 else usual)
            for s in range(30, 2 * HOUR, 2)]  # fmt: skip
    engine.histogram("ttft_s", seen, MINUTES[::5])


def throttled(evidence, gpu, seconds):
    reasons = {"clocks_event_reasons": lambda s: HW_THERMAL * (s in seconds)}
    evidence.readings(f"c/{gpu}", range(0, 2 * HOUR, 60), engine_active_ratio=0.9, **reasons)


def hosts(evidence):
    """Of one node segments are sent again, of all others hardly any."""
    bad = {s: 499.0 * sum(60.0 * n - 60 in SPIKE for n in range(int(s) // 60 + 1)) for s in MINUTES}
    for node, more in (("n3", bad), ("n7", dict.fromkeys(MINUTES, 0.0))):
        again = lambda s, more=more: s / 60 + 1 + more[s]  # noqa: E731
        evidence.host(node, MINUTES, cpu_total_s=lambda s: s * 8, cpu_busy_s=lambda s: s * 2,
                      tcp_sent_segments=lambda s: s * 100.0,
                      tcp_retransmitted_segments=again)  # fmt: skip


def quiet(evidence):
    """Load engines that are slow all the time, only after their start, or of few requests."""
    latency(Engine(evidence, "slow", "slow"), spike=range(2 * HOUR))
    started = [(float(s), 30.0 if 3600 < s < 3608 else 0.3) for s in range(2 * HOUR)]
    Engine(evidence, "new", "new", restarts=(3600.0,)).histogram("ttft_s", started, MINUTES)
    few = [(s, 4.0 if s in SPIKE else 0.3) for s in MINUTES[1:]]
    Engine(evidence, "few", "few").histogram("ttft_s", few, MINUTES[::5])
    times = {float(s): 2.5 if s in SPIKE else 0.5 for s in range(0, 2 * HOUR, 10)}
    requests = ({"arrival": s, "ttft": ttft, "e2e": 9.0} for s, ttft in times.items())
    Engine(evidence, "logged", "logged").log(requests)


@pytest.fixture(scope="module")
def spikes(world):
    """Give spikes by endpoint."""
    rows = world.read("select * from marts.serving_spikes order by endpoint").to_dicts()
    assert len({row["endpoint"] for row in rows}) == len(rows)
    return {row["endpoint"]: row for row in rows}


def test_a_spike_is_found_with_the_bounds_of_its_buckets(spikes):
    """Slow from the start, after a restart, or of few requests is none."""
    assert set(spikes) == {*(f"e-{number}" for number in range(1, 9)), "logged"}
    found = spikes["e-1"]
    assert (found["end_ms"] - found["start_ms"]) / 60_000 == pytest.approx(10, abs=5)
    assert (found["metric"], found["method"]) == ("ttft_s", "histogram")
    assert (found["p95_s"], found["usual_p95_s"]) == (2.5, 0.5)
    exact = spikes["logged"]
    assert (exact["method"], exact["p95_s"], exact["usual_p95_s"]) == ("requests", 2.5, 0.5)


# engine, what happened to it; what is so at all times or not measured is no cause
@each(
    ("e-1", "throttling", "clocks of GPU 0 lowered by heat, power brake or the board in 90.9 %"),
    ("e-2", "gpu_event", "Xid 74 of GPU 0 at 08:59:50"),
    ("e-3", "host_network", "8.3 % of the TCP segments of n3 sent again, 0.0 % before"),
    ("e-4", "neighbour", "job noisy began on 1 GPU of n4 at 08:59:30"),
    ("e-5", "link_down", "link mlx5_0 of n5 down at 09:00:00"),
    ("e-6", "queue", "27.0 requests waiting, 3.0 before"),
    *((engine, None, None) for engine in ("e-7", "e-8", "logged")),
)
def test_what_happened_meanwhile_is_its_cause(spikes, endpoint, cause, evidence):
    assert spikes[endpoint]["cause"] == cause
    found = spikes[endpoint]["evidence"]
    assert found is None if evidence is None else found.startswith(evidence)


def test_a_reader_of_one_team_does_not_see_the_jobs_of_others(world):
    sql = "select cause from marts.serving_spikes where endpoint = 'e-4'"
    assert world.read(sql, Scope(teams=("team",))).rows() == [(None,)]
