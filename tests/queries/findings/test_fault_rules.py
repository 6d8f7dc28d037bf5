"""Rules about faults of GPUs, nodes, links and losses: when each fires, when it is quiet."""

import pytest
from tests.queries.conftest import built_together, steps
from tests.queries.findings.conftest import found_together, rules_together
from tests.queries.findings.test_losses import GPUS, HOUR, run

THERMAL, POWER_CAP = 0x40, 0x4
LATE = 3  # the rank


def xid(evidence, code, second, gpu=LATE):
    evidence.add(
        "gpu_events", node="a", gpu_uuid=f"{evidence.name}/a#{gpu}", ts=second, kind="xid",
        ts_precision="exact", code=code,
    )  # fmt: skip


def waiting_for_a_rank(evidence):
    """Load a run in which three ranks wait 9 s of each minute for the fourth."""
    run(evidence, per_rank=lambda rank, _event: {"comm_s": 1 if rank == LATE else 10})


@pytest.mark.fires("faulty_gpu", "gpu_error")
@built_together
def test_waits_for_a_gpu_are_put_on_its_hardware_error_in_the_hour_after_it(cluster):
    waiting_for_a_rank(cluster)
    xid(cluster, 94, 60 + 1)
    yield
    rows = {row[0]: row[1:] for row in found_together(cluster, "rule, gpu_uuid, severity, gpu_ms")}
    gpu, severity, faulty_ms = rows["faulty_gpu"]
    assert (gpu, severity) == (f"{cluster.name}/a#{LATE}", "critical")
    assert faulty_ms == pytest.approx(60 * 9000 * (GPUS - 1), rel=0.04), "one hour of two"
    assert rows["slow_rank"][2] == pytest.approx(faulty_ms, rel=0.04), "the other one"
    assert rows["gpu_error"][0] == gpu


@pytest.mark.quiet("faulty_gpu", "gpu_error", "bad_node")
@built_together
def test_an_error_of_the_application_makes_no_gpu_faulty(cluster):
    waiting_for_a_rank(cluster)
    xid(cluster, 13, 60 + 1)
    yield
    assert rules_together(cluster) == {"slow_rank"}


def slower_in_the_second_hour(evidence, reasons):
    ran = [*steps(1, 58, 60, 60.0), *steps(59, 98, HOUR - 60, 90.0)]
    run(evidence, ran)
    for gpu in range(GPUS):
        hot = [(s, gpu == LATE and s > HOUR - 60) for s in evidence.every(0, 2 * HOUR, 30)]
        evidence.add(
            "gpu_samples",
            *({"ts": s, "clocks_event_reasons": reasons if is_hot else 0} for s, is_hot in hot),
            source="dcgm", gpu_uuid=evidence.gpu(f"a#{gpu}"), gpu_instance="",
            engine_active_ratio=0.9,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("reasons", "gpu_ms"),
    [
        pytest.param(THERMAL, 40 * 30_000 * GPUS, marks=pytest.mark.fires("throttled_gpu")),
        pytest.param(POWER_CAP, None, marks=pytest.mark.quiet("throttled_gpu")),
    ],
    ids=["hot", "power cap"],
)
@built_together
def test_steps_that_a_hot_gpu_makes_longer_are_put_on_it(cluster, reasons, gpu_ms):
    slower_in_the_second_hour(cluster, reasons)
    yield
    rows = found_together(cluster, "rule, gpu_uuid, gpu_ms")
    found = [row[1:] for row in rows if row[0] == "throttled_gpu"]
    expected = [(cluster.gpu(f"a#{LATE}"), pytest.approx(gpu_ms, rel=0.05))] if gpu_ms else []
    assert found == expected


@pytest.mark.fires("bad_node")
@built_together
def test_a_node_whose_memory_cannot_be_repaired_is_to_be_replaced(cluster):
    cluster.add("gpus", node="a", gpu_uuid=f"{cluster.name}/a#0", gpu_index=0, valid_from_at=0)
    cluster.watched(HOUR)
    cluster.add(
        "gpu_samples_other", *({"ts": second} for second in (0, 60)), source="dcgm",
        gpu_uuid=f"{cluster.name}/a#0", gpu_instance="", metric="row_remap_failed", value=1.0,
    )  # fmt: skip
    yield
    rows = found_together(cluster, "rule, node, severity, what_to_do")
    (row,) = [row for row in rows if row[0] == "bad_node"]
    assert row[1:3] == ("a", "critical")
    assert row[3].startswith("Replace")


def transports(evidence, *rows):
    for node in ("a", "b"):
        evidence.node(node, 1)
    evidence.watched(HOUR)
    processes = [
        {"node": node, "pid": evidence.first_pid + number, "transport": transport}
        for number, (node, transport) in enumerate(rows)
    ]
    evidence.add("comm_transports", *processes, comm_id=evidence.name, nodes=2)


FALL_BACK = "1 process of NCCL use NET/Socket between nodes"


@pytest.mark.parametrize(
    ("used", "expected"),
    [
        pytest.param(
            [("a", "NET/Socket"), ("b", "NET/IB/GDRDMA")],
            [("socket_fallback", "a", "warning", "Confirmed", FALL_BACK)],
            id="beside InfiniBand", marks=pytest.mark.fires("socket_fallback"),
        ),
        pytest.param(
            [("a", "NET/Socket"), ("b", "NET/Socket"), ("b", "P2P/CUMEM")], [],
            id="where nothing else was seen", marks=pytest.mark.quiet("socket_fallback"),
        ),
    ],
)  # fmt: skip
@built_together
def test_sockets_beside_infiniband_are_a_fall_back(cluster, used, expected):
    transports(cluster, *used)
    yield
    assert found_together(cluster, "rule, node, severity, confidence, evidence") == expected


def losses(evidence, loss_of):
    ran = steps(1, 119, 60, 60.0)
    run(evidence, [step | {"loss": loss_of(step["step"])} for step in ran])


@pytest.mark.fires("loss_diverged")
@pytest.mark.quiet("loss_not_finite")
@built_together
def test_a_loss_that_stays_far_over_the_steps_before_it_diverged(cluster):
    losses(cluster, lambda step: 2.0 if step <= 80 else 50.0)
    yield
    rows = found_together(cluster, "rule, run_key, since_at, severity, confidence, evidence")
    ((rule, run_key, since_at, severity, confidence, text),) = rows
    assert (rule, run_key, severity) == ("loss_diverged", f"{cluster.name}/1", "info")
    assert (since_at, confidence) == (cluster.at(60 + 81 * 60), "Confirmed")
    assert text.startswith("from step 81 of attempt 0 on, in 39 logged steps")


@pytest.mark.quiet("loss_diverged", "loss_not_finite")
@built_together
def test_single_high_losses_and_a_slow_rise_are_no_divergence(cluster):
    losses(cluster, lambda step: 50.0 if step % 20 == 0 else 2.0 + step / 100)
    yield
    assert rules_together(cluster) == set()


@pytest.mark.fires("loss_not_finite")
@pytest.mark.quiet("loss_diverged")
@built_together
def test_a_loss_that_is_not_a_number_is_found_with_its_step(cluster):
    losses(cluster, lambda step: 2.0 if step <= 80 else float("nan"))
    yield
    ((rule, severity, text),) = found_together(cluster, "rule, severity, evidence")
    assert (rule, severity) == ("loss_not_finite", "warning")
    assert text.endswith("the last finite loss was 2.0 at step 80")
