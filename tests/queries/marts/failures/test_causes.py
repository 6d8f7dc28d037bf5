"""Why an attempt ended badly, how sure that is, and what to do against it."""

import pytest
from tests.queries.conftest import steps

BUS = "00000000:19:00.0"


def gpu(evidence, source, **more):
    """Load the GPU of node a."""
    row = {"cluster": "c", "node": "a", "gpu_uuid": "GPU-1", "gpu_index": 0, **more}
    evidence.load("gpus", [{"valid_from_at": evidence.at(0), **row}], source)


def xid(evidence, code, second):
    """Load an Xid as the kernel log does: by bus address."""
    evidence.add(
        "gpu_events", source="kernel-log", node="a", pci_bus_id=BUS, ts=second, kind="xid",
        ts_precision="exact", code=code, cluster=None,
    )  # fmt: skip


def cause(evidence):
    """Build and return cause, confidence, evidence and what to do of the only attempt."""
    evidence.store.build()
    return evidence.store.read(
        "select cause, cause_confidence, cause_evidence, cause_fix from marts.attempts"
    ).row(0)


@pytest.mark.parametrize("listing", ["first", "last"])
def test_an_xid_is_a_cause_though_the_inventory_names_no_bus_address(evidence, listing):
    reported = [
        lambda: gpu(evidence, "inventory", slurm_index=0),
        lambda: gpu(evidence, "dcgm", pci_bus_id=BUS, gpu_model="NVIDIA H100"),
    ]
    for tell_of in reported if listing == "first" else reversed(reported):
        tell_of()
    evidence.job("1", 0, 200, ["a"], 1, "FAILED")
    evidence.events("1", steps(1, 10, 0))
    xid(evidence, 79, 110)

    found = cause(evidence)

    assert found[:2] == ("Xid 79", "Confirmed")
    models = evidence.store.read("select distinct gpu_model from marts.ledger_segments")
    assert models.rows() == [("NVIDIA H100",)]


def test_what_to_do_against_an_xid_is_reported_with_its_losses(evidence):
    gpu(evidence, "dcgm", pci_bus_id=BUS)
    evidence.job("1", 0, 200, ["a"], 1, "FAILED")
    evidence.events("1", steps(1, 10, 0))
    xid(evidence, 79, 110)

    found = cause(evidence)

    assert found[3].startswith("Drain the node and restart it")
    fixes = evidence.store.read("select distinct fix from marts.losses where cause = 'Xid 79'")
    assert [fix.startswith("Drain the node and restart it") for (fix,) in fixes.rows()] == [True]


@pytest.mark.parametrize("said", [None, "exception"])
def test_a_job_that_ran_out_of_host_memory_is_confirmed_by_its_state(evidence, said):
    evidence.node("a", 1)
    evidence.job("1", 0, 200, ["a"], 1, "OUT_OF_MEMORY")
    failure = [{"event": "failure", "kind": said, "t": 150}] if said else []
    evidence.events("1", [*steps(1, 10, 0), *failure])

    found = cause(evidence)

    assert found[:2] == ("OUT_OF_MEMORY", "Confirmed")
    assert "host memory" in found[2]
    assert "host memory" in found[3]
