"""Ports as share of their line rate: by hour, and of racks."""

import pytest
from tests.queries.conftest import built_together

GB = 1e9
HOUR_S = 3_600


def port(cluster, node, gb_per_s, *, speed=12.5, second=0, device="eth0", source="test"):
    """Load an hour of readings of a port that sends so many GB/s."""
    cluster.add(
        "link_samples",
        *(
            {"ts": float(second + at), "tx_bytes": int(at * gb_per_s * GB), "rx_bytes": at}
            for at in range(0, HOUR_S, 600)
        ),
        source=source, node=node, kind="ethernet", device=device, port="", is_up=True,
        speed_bytes_per_s=None if speed is None else speed * GB,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("gpus", "ratio"), [pytest.param(8, 0.64, id="8 GPUs"), pytest.param(16, 1.28, id="16 GPUs")]
)
@built_together
def test_gpus_that_send_1_gb_per_s_each_share_a_port_of_100_gbit_per_s(cluster, gpus, ratio):
    cluster.node("a", gpus)
    port(cluster, "a", gpus * 1.0)
    yield
    rows = cluster.read("select line_rate_ratio, bytes_per_s from marts.line_rates").rows()
    assert rows == [(pytest.approx(ratio), pytest.approx(gpus * GB))]


@built_together
def test_a_port_without_a_speed_has_no_share_and_two_sources_are_one_port(cluster):
    cluster.node("a", 1)
    port(cluster, "a", 1.0, speed=None)
    port(cluster, "a", 1.0, device="eth1")
    port(cluster, "a", 1.0, device="eth1", source="other")
    yield
    rows = cluster.read(
        "select device, line_rate_ratio from marts.line_rates order by device"
    ).rows()
    assert rows == [("eth0", None), ("eth1", pytest.approx(0.08))]


@built_together
def test_a_rack_has_the_sum_of_its_ports_in_its_busiest_hour(cluster):
    """Two nodes with two GPUs of 900 GB/s of NVLink each; the second hour has more traffic."""
    for node, first, then in (("a", 1.0, 5.0), ("b", 2.0, 10.0)):
        cluster.node(node, 2, model="NVIDIA H100 80GB HBM3")
        cluster.add("node_racks", node=node, rack="r1")
        port(cluster, node, first)
        port(cluster, node, then, second=HOUR_S)
    yield
    (row,) = cluster.read("from marts.rack_line_rates").to_dicts()
    assert (row["rack"], row["nodes"], row["ports"]) == ("r1", 2, 2)
    assert (row["busiest_at"], row["line_bytes_per_s"]) == (cluster.at(HOUR_S), 25 * GB)
    assert row["line_rate_ratio"] == pytest.approx(0.6)
    assert row["gpu_link_bytes_per_s"] == 3_600 * GB
