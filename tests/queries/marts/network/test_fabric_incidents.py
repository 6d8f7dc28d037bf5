"""One fault of a switch or baseboard is one incident, whatever number of links shows it."""

from tests.queries.conftest import built_together

UP_S, DOWN_S, LENGTH_S = 600, 1_200, 3_600


@built_together
def test_links_that_fail_together_are_one_incident_and_findings_say_so_once(cluster):
    """Of six nodes four lose a link at one time, one alone, and one keeps all."""
    for node in "abcdef":
        cluster.node(node, 2)
    cluster.job("1", 0, LENGTH_S, ["a", "b"], 4)
    cluster.load(
        "link_samples",
        [
            {
                "cluster": cluster.name, "node": node, "kind": "infiniband", "device": device,
                "port": "1",
                "is_up": not (down and down <= second < down + 1_200), "ts": cluster.at(second),
            }
            for node, device, down in (
                ("a", "mlx5_1", DOWN_S), ("b", "mlx5_1", DOWN_S), ("c", "mlx5_1", DOWN_S),
                ("d", "mlx5_1", DOWN_S), ("e", "mlx5_0", 2_400), ("f", "mlx5_1", 0),
            )
            for second in range(0, LENGTH_S, 600)
        ],
    )  # fmt: skip
    cluster.add(
        "gpu_events", *(
            {"node": node, "gpu_uuid": cluster.gpu(f"{node}{index}"), "ts": second}
            for node, index, second in (("c", 0, 100), ("c", 1, 160), ("f", 0, 100))
        ),
        kind="xid", code=74, message="NVLink", ts_precision="exact",
    )  # fmt: skip
    yield
    found = cluster.read(
        "select kind, members, nodes, shared, run_ids, gpus, confidence, end_at is null "
        "from marts.fabric_incidents order by kind"
    ).rows()
    assert found == [
        ("infiniband", 4, 4, "device mlx5_1/1", ["1"], 4, "Likely", False),
        ("nvlink", 2, 1, "node c", [], 0, "Likely", True),
    ]

    rules = cluster.read(
        "select rule, node, evidence from marts.findings "
        "where rule in ('fabric_fault', 'link_down', 'gpu_error') order by rule, node nulls first"
    ).rows()
    assert [(rule, node) for rule, node, _ in rules] == [
        ("fabric_fault", None),
        ("fabric_fault", "c"),
        ("gpu_error", "f"),
        ("link_down", "e"),
    ]
    assert rules[0][2] == (
        "4 links down on 4 nodes at one time, all of device mlx5_1/1; it touched 1 run on 4 GPUs"
    )
