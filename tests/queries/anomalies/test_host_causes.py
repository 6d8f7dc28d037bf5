"""What on its hosts slows a job run down or endangers it."""

import pytest
from tests.queries.anomalies.conftest import BUSY, IDLE, Gpus
from tests.queries.conftest import built_together
from tests.queries.ledger_build.full_rebuild import assert_equals_full_build

HOUR = 3_600
CORES = 64
WAITING = {**BUSY, "sm_active_ratio": 0.2, "power_w": 220.0}


def host(gpus, *, busy=0.3, iowait=0.01, disks=0.1, memory=0.4, swap=0.0, load=20.0):
    """Load readings of the host of node `a`, a minute apart; swap: bytes of growth over an hour."""
    rows = [
        {
            "ts": s, "cpu_total_s": CORES * s, "cpu_busy_s": CORES * s * busy,
            "cpu_iowait_s": CORES * s * iowait, "disk_busy_s": s * disks,
            "swap_free_bytes": int(10**11 - swap * s / HOUR),
        }
        for s in range(0, HOUR + 1, 60)
    ]  # fmt: skip
    gpus.evidence.add(
        "node_samples", *rows, source="node-exporter", node="a", load1=load,
        memory_total_bytes=10**12, memory_available_bytes=int(10**12 * (1 - memory)),
        swap_total_bytes=10**11,
    )  # fmt: skip


def job(gpus, values, nodes=("a",), **more):
    """Load a job with two GPUs a node, all with these readings."""
    gpus.evidence.job("1", 0, HOUR, list(nodes), 2 * len(nodes))
    for node in nodes:
        gpus.node(node, 2, **more)
        for i in range(2):
            gpus.read(f"{node}/{i}", HOUR, values)
        gpus.evidence.add("nodes", node=node, cpus=CORES, observed_at=0)


def found(gpus):
    return [row["rule"] for row in gpus.found("host_causes")]


@pytest.mark.fires("io_starved", "cpu_starved")
@pytest.mark.parametrize(
    ("rule", "of_host"),
    [
        ("io_starved", {"iowait": 0.25}),
        ("io_starved", {"disks": 1.5}),
        ("cpu_starved", {"busy": 0.97}),
    ],
)
@built_together
def test_gpus_that_wait_for_their_host_are_found(cluster, rule, of_host):
    gpus = Gpus(cluster)
    job(gpus, WAITING)
    host(gpus, **of_host)
    yield
    (row,) = gpus.found("host_causes")

    assert (row["rule"], row["node"], row["gpu_uuid"]) == (rule, "a", None)
    # five times ten minutes outside start-up, two GPUs used for a fifth
    assert row["gpu_ms"] == pytest.approx(5 * 600_000 * 2 * 0.8, rel=1e-3)
    assert row["score"] > 1


@pytest.mark.parametrize(
    ("values", "of_host"),
    [
        pytest.param(
            BUSY, {"iowait": 0.25, "busy": 0.97}, id="busy GPUs need no explanation",
            marks=pytest.mark.quiet("io_starved", "cpu_starved"),
        ),
        pytest.param(
            IDLE, {}, id="idle GPUs of a healthy host are not its fault",
            marks=pytest.mark.quiet(
                "cpu_oversubscribed", "swap_in_use", "host_memory_full", "gpu_memory_full"
            ),
        ),
    ],
)  # fmt: skip
@built_together
def test_hosts_that_slow_nothing_down_are_not_found(cluster, values, of_host):
    gpus = Gpus(cluster)
    job(gpus, values)
    host(gpus, **of_host)
    yield
    assert found(gpus) == []


@pytest.mark.fires("cpu_oversubscribed", "swap_in_use", "host_memory_full")
@pytest.mark.parametrize(
    ("rule", "of_host"),
    [
        ("cpu_oversubscribed", {"load": 130.0}),
        ("host_memory_full", {"memory": 0.97}),
        ("swap_in_use", {"swap": 5e9}),
    ],
)
@built_together
def test_a_host_that_endangers_a_busy_job_is_found(cluster, rule, of_host):
    gpus = Gpus(cluster)
    job(gpus, BUSY)
    host(gpus, **of_host)
    yield
    (row,) = gpus.found("host_causes")

    assert (row["rule"], row["gpu_ms"], row["confidence"]) == (rule, None, "Likely")


@pytest.mark.fires("gpu_memory_full")
@built_together
def test_a_full_gpu_memory_is_found_and_not_confirmed(cluster):
    gpus = Gpus(cluster)
    job(gpus, {**BUSY, "memory_used_bytes": 79 * 10**9})
    yield
    rows = gpus.found("host_causes", "rule, gpu_uuid, confidence")

    assert [tuple(row.values()) for row in rows] == [
        ("gpu_memory_full", "a/0", "Not confirmed"), ("gpu_memory_full", "a/1", "Not confirmed"),
    ]  # fmt: skip


@pytest.mark.quiet("gpu_oversubscribed")
@pytest.mark.fires("gpu_oversubscribed")
@pytest.mark.parametrize(("processes", "is_found"), [(3, True), (1, False)])
@built_together
def test_several_processes_on_a_gpu_are_found(cluster, processes, is_found):
    gpus = Gpus(cluster)
    job(gpus, BUSY)
    rows = [{"ts": s} for s in range(0, HOUR, 60)]
    cluster.add("gpu_processes", *rows, gpu_uuid=gpus.uuid("a/0"), processes=processes)
    yield
    assert found(gpus) == ["gpu_oversubscribed"] * is_found


@pytest.mark.quiet("driver_skew")
@pytest.mark.fires("driver_skew")
@pytest.mark.parametrize(("other", "is_found"), [("570.124", True), ("550.54", False)])
@built_together
def test_driver_versions_that_differ_in_one_job_are_found(cluster, other, is_found):
    gpus = Gpus(cluster)
    gpus.evidence.job("1", 0, HOUR, ["a", "b"], 4)
    gpus.node("a", 2, driver_version="550.54")
    gpus.node("b", 2, driver_version=other)
    for gpu in ("a/0", "a/1", "b/0", "b/1"):
        gpus.read(gpu, HOUR, BUSY)
    yield
    rows = gpus.found("host_causes", "rule, node, evidence")

    text = "driver versions 550.54, 570.124 in one job"
    assert rows == [{"rule": "driver_skew", "node": None, "evidence": text}] * is_found


@pytest.mark.quiet("ecc_off")
@pytest.mark.fires("ecc_off")
@pytest.mark.parametrize(("mode", "is_found"), [(0.0, True), (1.0, False)])
@built_together
def test_ecc_that_is_off_is_found(cluster, mode, is_found):
    gpus = Gpus(cluster)
    job(gpus, BUSY)
    cluster.add(
        "gpu_samples_other", *({"ts": s} for s in range(0, HOUR, 300)), source="dcgm",
        gpu_uuid=gpus.uuid("a/0"), gpu_instance="", metric="ecc_mode", value=mode,
    )  # fmt: skip
    yield
    assert found(gpus) == ["ecc_off"] * is_found


def test_hosts_that_are_read_later_are_rolled_up_as_in_a_full_build(gpus):
    job(gpus, WAITING)
    rows = [
        {"node": "a", "ts": gpus.evidence.at(s), "cpu_total_s": float(CORES * s),
         "cpu_busy_s": 0.97 * CORES * s, "memory_total_bytes": 10**12}
        for s in range(0, HOUR + 601, 60)
    ]  # fmt: skip
    gpus.evidence.load("node_samples", rows[:20], "node-exporter")
    assert found(gpus) == []
    gpus.evidence.load("node_samples", rows[20:], "node-exporter")

    assert found(gpus) == ["cpu_starved"]
    assert_equals_full_build(gpus.evidence)
