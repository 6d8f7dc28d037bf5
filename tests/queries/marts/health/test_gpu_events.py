"""Events of GPUs with the meaning of their codes: the severity that only a message says."""

import pytest
from tests.queries.conftest import built_together

BUS = "00000000:19:00.0"


@pytest.mark.parametrize(
    ("kind", "code", "message", "severity"),
    [
        ("xid", 149, "Xid (PCI:19:00): 149, NETIR_LINK_EVT  Nonfatal   XC0 i0 Link 02", "warning"),
        ("xid", 149, "Xid (PCI:19:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 02", "gpu_fatal"),
        ("xid", 149, "Xid (PCI:19:00): 149, NETIR_LINK_EVT", "varies"),
        ("xid", 79, "Xid (PCI:0000:19:00): 79, Nonfatal is not what this code is", "node_fatal"),
        ("sxid", 12028, "SXid (PCI:0000:19:00.0): 12028, Non-fatal, Link 03", "warning"),
        ("sxid", 12028, "SXid (PCI:0000:19:00.0): 12028, Fatal, Link 03", "gpu_fatal"),
        ("sxid", 12028, "SXid (PCI:0000:19:00.0): 12028, Link 03", None),
    ],
)  # fmt: skip
@built_together
def test_the_severity_is_that_of_the_code_else_the_word_in_the_message(
    cluster, kind, code, message, severity
):
    cluster.add(
        "gpus", source="inventory", node="a", gpu_uuid=cluster.gpu("a"), gpu_index=0,
        pci_bus_id=BUS, gpu_model="h100", valid_from_at=0,
    )  # fmt: skip
    cluster.xid("a", code, 60, pci_bus_id=BUS, kind=kind, message=message)
    yield
    found = cluster.read("select kind, code, severity from marts.gpu_events").rows()

    assert found == [(kind, code, severity)]
