"""One fact after the other ends: what remains has the categories in their order of precedence."""

from tests.queries.conftest import built_together, durable, phase, steps
from tests.queries.rules.jobs.without_a_scheduler import phases

from goodput_queries.scope import Scope

FREE = ("not_available", "free")


@built_together
def test_free_time_takes_the_categories_in_the_order_of_their_precedence(cluster):
    """All facts hold at first, and each ends 100 s after the stronger one."""
    cluster.node("a", 2)
    cluster.node("b", 2, partitions=("p",))
    cluster.add("nodes", node="a", cpus=16, partitions=["p"])
    cluster.watched(1000)
    for place, state in enumerate(("down", "maintenance", "drained", "powered_off"), 1):
        cluster.state("a", state, 0, 100 * place)
    cluster.add("reservations", name="r", nodes=["a"], start_at=0, end_at=500)
    cluster.state("a", "planned", 0, 600)
    cluster.job("1", 0, 700, ["a"], 1, cpus=16)  # its CPUs strand the other GPU
    cluster.job("2", 800, 900, ["b"], 2, eligible=0, partition="p", gpus_requested=2)
    yield
    found = cluster.read(
        "select category from marts.category_intervals order by start_at",
        scope=Scope(gpu_uuid=cluster.gpu("a#1")),
    )

    order = cluster.store.read(
        "select category from reference.gpu_second_categories "
        "where list_contains($1, \"group\") and category <> 'free_unknown' order by precedence",
        [list(FREE)],
    )
    assert found["category"].to_list() == order["category"].to_list()


def test_each_category_has_a_precedence_of_its_own(shared_evidence):
    repeated = shared_evidence.store.read(
        "select precedence from reference.gpu_second_categories group by 1 having count(*) > 1"
    )

    assert repeated.is_empty()


@built_together
def test_what_the_job_declares_wins_over_a_gpu_without_a_process(cluster):
    """A helper process may write the checkpoint: the GPU has none of its own meanwhile."""
    cluster.watched(600)
    cluster.job_on_a_node("1", 0, 600, 1)
    saving = [*steps(1, 20, 0), phase("ckpt_save", 200, 500)]
    cluster.events("1", [*saving, durable(20, 500)], gpu_uuid=cluster.gpu("a#0"))
    cluster.samples("a#0", cluster.every(0, 600), lambda second: second <= 200)
    none = [
        {"gpu_uuid": cluster.gpu("a#0"), "ts": cluster.at(second), "processes": 0}
        for second in cluster.every(210, 600)
    ]
    cluster.load("gpu_processes", none)
    yield
    found = cluster.gpu_s()

    assert found["checkpoint_save"] == 300
    assert phases(cluster)["checkpoint_save", "ckpt_save"] == 300


@built_together
def test_an_allocation_with_no_process_is_idle_from_the_first_second(cluster):
    """Job 1 never has one; job 2 has none for less time than a pause may last."""
    for job, node in (("1", "a"), ("2", "b")):
        cluster.node(node, 1)
        cluster.job(job, 0, 100, [node], 1)
        gpu, works = f"{node}#0", lambda s, job=job: job == "2" and not 40 < s <= 60
        counts = [
            {"gpu_uuid": cluster.gpu(gpu), "ts": cluster.at(s), "processes": int(works(s))}
            for s in cluster.every(0, 100)
        ]
        cluster.load("gpu_processes", counts)
        cluster.samples(gpu, cluster.every(-10, 100), works)
    yield
    assert cluster.gpu_s() == {"idle_held": 120, "busy_unclassified": 80}
    assert set(phases(cluster)) == {("busy_unclassified", None), ("idle_held", "no_process")}
