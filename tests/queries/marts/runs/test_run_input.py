"""What the hosts of a run read for it, and its passes over the data."""

from tests.queries.conftest import built_together, steps

NEED = {"event": "metric", "t": 10, "extra": '{"input_bytes_per_gpu_s": 2e8}'}


def host(made, node, read_bytes_per_s, reads_per_s=None):
    rows = [
        {
            "ts": s, "disk_read_bytes": read_bytes_per_s * s, "dirty_bytes": s,
            "disk_reads": None if reads_per_s is None else reads_per_s * s,
        }
        for s in range(0, 3601, 60)
    ]  # fmt: skip
    made.add(
        "node_samples", *rows, source="node-exporter", node=node, memory_total_bytes=10**12,
        memory_available_bytes=6 * 10**11, page_cache_bytes=10**11,
    )  # fmt: skip


def gang(made, job, nodes, gpus=2):
    for node in nodes:
        for gpu in range(gpus):
            made.samples(f"{node}#{gpu}", made.every(-10, 3600), lambda _: True)
    made.job(job, 0, 3600, nodes, gpus * len(nodes), "COMPLETED")


@built_together
def test_reads_of_its_hosts_count_for_each_gpu_of_a_run(cluster):
    gang(cluster, "1", ["a", "b"])
    cluster.events("1", [*steps(1, 300, 0, 10), NEED])
    host(cluster, "a", 400_000_000, 100)
    host(cluster, "b", 200_000_000, 50)
    yield
    found = cluster.read("from marts.run_input").to_dicts()[0]

    assert (found["gpus"], found["nodes"]) == (4, 2)
    assert found["read_bytes_per_gpu_s"] == found["most_read_bytes_per_gpu_s"] == 150_000_000
    assert found["mean_read_bytes"] == 4_000_000
    assert (found["need_bytes_per_gpu_s"], found["memory_available_bytes"]) == (2e8, 6 * 10**11)


@built_together
def test_reads_of_a_host_that_two_jobs_share_are_of_neither(cluster):
    for job, gpu in (("1", 0), ("2", 1)):
        cluster.samples(f"a#{gpu}", cluster.every(-10, 3600), lambda _: True)
        cluster.job(job, 0, 3600, ["a"], 1, "COMPLETED")
    host(cluster, "a", 400_000_000)
    yield
    assert cluster.read("from marts.run_input").is_empty()


@built_together
def test_a_first_epoch_waits_longer_than_the_next(cluster):
    gang(cluster, "1", ["a"])
    epochs = [
        {**step, "data_s": wait, "extra": f'{{"epoch": {epoch + n / 10}}}'}
        for epoch, wait in ((0, 4.0), (1, 1.0))
        for n, step in enumerate(steps(10 * epoch + 1, 10 * epoch + 10, 100 * epoch, 10))
    ]
    cluster.events("1", epochs)
    yield
    columns = "epoch, steps, data_wait_ratio, median_step_s"
    found = cluster.read(f"select {columns} from marts.run_epochs order by epoch")

    assert found.rows() == [(0, 10, 0.4, 10.0), (1, 10, 0.1, 10.0)]
