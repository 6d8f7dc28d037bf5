"""Metrics of GPUs by ten minutes: what a bucket says, and which buckets a build replaces."""

from tests.queries.conftest import START_MS, built_once, read_from_world

from goodput_queries.scope import Scope

TEN_MINUTES_MS = 600_000
MIG = "GPU-mig"


def load(evidence, gpu, rows, instance="", source="dcgm"):
    """Load samples: (second, metrics) each."""
    readings = [{"ts": second, **metrics} for second, metrics in rows]
    evidence.add("gpu_samples", *readings, source=source, gpu_uuid=gpu, gpu_instance=instance)


def buckets(evidence, gpu):
    found = evidence.store.read("from marts.gpu_metrics", scope=Scope(gpu_uuid=gpu)).to_dicts()
    return {row["start_ms"]: row for row in found}


@built_once
def world(made):
    for number, gpu in enumerate(("GPU-a", "GPU-b", MIG)):
        made.listed("n", gpu, "test", gpu_index=number)
    load(made, "GPU-a", [
        (0, {"power_w": 100.0, "energy_j": 5000.0, "clocks_event_reasons": 0}),
        (60, {"power_w": 400.0, "energy_j": 5600.0, "clocks_event_reasons": 4}),
        (120, {"power_w": None, "energy_j": 200.0, "clocks_event_reasons": 4 | 32}),
        (180, {"power_w": 250.0, "energy_j": 300.0, "clocks_event_reasons": None}),
        (1260, {"power_w": 300.0}),
    ])  # fmt: skip
    load(made, "GPU-b", [(s, {"power_w": 200.0, "sm_active_ratio": 0.5}) for s in (0, 60)])
    load(made, "GPU-b", [(30, {"power_w": 999.0})], source="second-exporter")
    for instance, active in (("1", 0.2), ("2", 0.6)):
        rows = [(s, {"power_w": 500.0, "sm_active_ratio": active}) for s in (0, 300, 700)]
        load(made, MIG, rows, instance)


FIRST, LATE = START_MS, START_MS + 2 * TEN_MINUTES_MS
METRICS = "from marts.gpu_metrics where gpu_uuid = '{}' order by gpu_instance, start_ms"
OF_A = METRICS.format("GPU-a")
test_metrics_by_ten_minutes = read_from_world({
    "ten minutes without a sample have no row": (
        f"select start_ms, samples {OF_A}", [(FIRST, 4), (LATE, 1)]),
    "reasons are counted and not averaged": (
        "select clocks_event_reasons.power_cap, clocks_event_reasons.sw_thermal, "
        f"clocks_event_reasons.n {OF_A} limit 1", [(2, 1, 3)]),
    "of two sources the one with more samples is shown": (
        f"select source, power_w.mean {METRICS.format('GPU-b')}", [("dcgm", 200.0)]),
    "instances have their own rows": (
        f"select gpu_instance, round(sm_active_ratio.mean::double, 6) {METRICS.format(MIG)}",
        [("1", 0.2), ("1", 0.2), ("2", 0.6), ("2", 0.6)]),
    # 250 W and 200 W of whole GPUs, 500 W of the partitioned one; activity of two of them
    "the power of a node counts a partitioned GPU once": (
        "select power_w, gpus, thermal_gpus, energy_j from marts.node_metrics order by start_ms",
        [(950.0, 3, 1, 900.0), (500.0, 1, None, None), (300.0, 1, None, None)]),
    "so does its activity": (
        "select round(sm_active_ratio::double, 6) from marts.node_metrics "
        "order by start_ms limit 1", [(0.45,)]),
    "mean, least, most, last and number of samples": (
        f"select power_w {OF_A} limit 1",
        [({"mean": 250.0, "min": 100.0, "max": 400.0, "last": 250.0, "n": 3},)]),
    "a metric and a counter that no sample has are null and not zero": (
        f"select sm_active_ratio.mean, energy_j.gain, energy_j.n {OF_A} offset 1",
        [(None, None, 0)]),
    # 600 J before the driver was loaded again, 300 J since
    "energy is the increase of its counter over a reset": (
        f"select energy_j {OF_A} limit 1",
        [({"first": 5000.0, "last": 300.0, "gain": 900.0, "n": 4},)]),
    "a window has the buckets it touches": (
        f"select start_ms {OF_A}", [(START_MS,)],
        Scope(from_ms=START_MS + 5 * 60_000, to_ms=START_MS + 2 * TEN_MINUTES_MS)),
})  # fmt: skip


def test_a_late_sample_changes_its_own_bucket_alone(cluster):
    gpu = cluster.gpu("a")
    load(cluster, gpu, [(s, {"power_w": 100.0, "energy_j": s}) for s in range(0, 7200, 300)])
    yield
    before = buckets(cluster, gpu)
    load(cluster, gpu, [(1250, {"power_w": 700.0, "energy_j": 1250.0})])
    yield
    after = buckets(cluster, gpu)
    changed = [start - START_MS for start in after if after[start] != before[start]]
    assert changed == [2 * TEN_MINUTES_MS]
