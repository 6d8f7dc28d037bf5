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


# what it shows: GPUs of the node, its ports, their share of the line rate
RATES = {
    "8 GPUs that send 1 GB/s each share a port of 100 Gbit/s": (8, [{}], [("eth0", 0.64)]),
    "16 such GPUs": (16, [{}], [("eth0", 1.28)]),
    "a port without a speed has no share, and two sources are one port": (
        1, [{"speed": None}, {"device": "eth1"}, {"device": "eth1", "source": "other"}],
        [("eth0", None), ("eth1", 0.08)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("gpus", "ports", "expected"), RATES.values(), ids=RATES)
@built_together
def test_line_rates_of_ports(cluster, gpus, ports, expected):
    cluster.node("a", gpus)
    for of_port in ports:
        port(cluster, "a", gpus * 1.0, **of_port)
    yield
    sql = "select device, line_rate_ratio, bytes_per_s from marts.line_rates order by device"
    assert cluster.read(sql).rows() == [
        (device, ratio and pytest.approx(ratio), ratio and pytest.approx(gpus * GB))
        for device, ratio in expected
    ]


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
