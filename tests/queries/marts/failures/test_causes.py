"""Why an attempt ended badly, how sure that is, and what to do against it."""

import pytest
from tests.queries.conftest import built_together, steps

BUS = "00000000:19:00.0"


def failed(cluster, node, state="FAILED", *events):
    cluster.job("1", 0, 200, [node], 1, state)
    cluster.events("1", [*steps(1, 10, 0), *events], host=node)


def cause(cluster):
    """Return cause, confidence, evidence and what to do of the only attempt."""
    return cluster.read(
        "select cause, cause_confidence, cause_evidence, cause_fix from marts.attempts"
    ).row(0)


@pytest.mark.parametrize("order", [1, -1], ids=["inventory first", "inventory last"])
@built_together
def test_an_xid_is_a_cause_though_the_inventory_names_no_bus_address(cluster, order):
    """What to do against it is reported with its losses."""
    node = f"{cluster.name}-a"
    gpu = {"node": node, "gpu_uuid": f"GPU-{cluster.name}", "gpu_index": 0, "valid_from_at": 0}
    listings = [
        ("inventory", {"slurm_index": 0}),
        ("dcgm", {"pci_bus_id": BUS, "gpu_model": "NVIDIA H100"}),
    ]
    for source, known in listings[::order]:
        cluster.add("gpus", source=source, **gpu, **known)
    failed(cluster, node)
    cluster.xid(node, 79, 110, pci_bus_id=BUS)
    yield
    found = cause(cluster)
    assert found[:2] == ("Xid 79", "Confirmed")
    assert found[3].startswith("Drain the node and restart it")
    fixes = cluster.read("select distinct fix from marts.losses where cause = 'Xid 79'")
    assert [fix.startswith("Drain the node and restart it") for (fix,) in fixes.rows()] == [True]
    models = cluster.read(
        f"select distinct gpu_model from marts.ledger_pieces where cluster = '{cluster.name}'"
    )
    assert models.rows() == [("NVIDIA H100",)]


@pytest.mark.parametrize("said", [None, "exception"])
@built_together
def test_a_job_that_ran_out_of_host_memory_is_confirmed_by_its_state(cluster, said):
    cluster.node("a", 1)
    reported = [{"event": "failure", "kind": said, "t": 150}] if said else []
    failed(cluster, "a", "OUT_OF_MEMORY", *reported)
    yield
    found = cause(cluster)
    assert found[:2] == ("OUT_OF_MEMORY", "Confirmed")
    assert "host memory" in found[2]
    assert "host memory" in found[3]
