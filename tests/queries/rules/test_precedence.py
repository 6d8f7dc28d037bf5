"""One fact after the other ends: what remains has the categories in their order of precedence."""

from tests.queries.conftest import durable, phase, steps

from goodput_queries.scope import Scope

FREE = ("not_available", "free")


def test_free_time_takes_the_categories_in_the_order_of_their_precedence(evidence):
    """All facts hold at first, and each ends 100 s after the stronger one."""
    evidence.node("a", 2)
    evidence.node("b", 2, partitions=("p",))
    evidence.add("nodes", node="a", cpus=16, partitions=["p"])
    evidence.watched(1000)
    for place, state in enumerate(("down", "maintenance", "drained", "powered_off"), 1):
        evidence.state("a", state, 0, 100 * place)
    evidence.add("reservations", name="r", nodes=["a"], start_at=0, end_at=500)
    evidence.state("a", "planned", 0, 600)
    evidence.job("1", 0, 700, ["a"], 1, cpus=16)  # its CPUs strand the other GPU
    evidence.job("2", 800, 900, ["b"], 2, eligible=0, partition="p", gpus_requested=2)
    evidence.store.build()

    found = evidence.store.read(
        "select category from marts.category_intervals order by start_at",
        scope=Scope(gpu_uuid="c/a#1"),
    )

    order = evidence.store.read(
        "select category from reference.gpu_second_categories "
        "where list_contains($1, \"group\") and category <> 'free_unknown' order by precedence",
        [list(FREE)],
    )
    assert found["category"].to_list() == order["category"].to_list()


def test_each_category_has_a_precedence_of_its_own(evidence):
    repeated = evidence.store.read(
        "select precedence from reference.gpu_second_categories group by 1 having count(*) > 1"
    )

    assert repeated.is_empty()


def test_what_the_job_declares_wins_over_a_gpu_without_a_process(evidence):
    """A helper process may write the checkpoint: the GPU has none of its own meanwhile."""
    evidence.node("a", 1)
    evidence.watched(600)
    evidence.job("1", 0, 600, ["a"], 1)
    saving = [*steps(1, 20, 0), phase("ckpt_save", 200, 500)]
    evidence.events("1", [*saving, durable(20, 500)], gpu_uuid="c/a#0")
    evidence.samples("a#0", evidence.every(0, 600), lambda second: second <= 200)
    none = [
        {"gpu_uuid": "c/a#0", "ts": evidence.at(second), "processes": 0}
        for second in evidence.every(210, 600)
    ]
    evidence.load("gpu_processes", none)

    found = evidence.gpu_s()

    assert found["checkpoint_save"] == 300
    phases = evidence.store.read(
        "select distinct phase from marts.ledger_segments where category = 'checkpoint_save'"
    )
    assert phases.to_series().to_list() == ["ckpt_save"]


def test_an_allocation_with_no_process_is_idle_from_the_first_second(evidence):
    """Job 1 never has one; job 2 has none for less time than a pause may last."""
    for job, node in (("1", "a"), ("2", "b")):
        evidence.node(node, 1)
        evidence.job(job, 0, 100, [node], 1)
        gpu, works = f"{node}#0", lambda s, job=job: job == "2" and not 40 < s <= 60
        counts = [
            {"gpu_uuid": f"c/{gpu}", "ts": evidence.at(s), "processes": int(works(s))}
            for s in evidence.every(0, 100)
        ]
        evidence.load("gpu_processes", counts)
        evidence.samples(gpu, evidence.every(-10, 100), works)

    assert evidence.gpu_s() == {"idle_held": 120, "busy_unclassified": 80}
    phases = evidence.store.read("select distinct category, phase from marts.ledger_segments")
    assert dict(phases.rows()) == {"busy_unclassified": None, "idle_held": "no_process"}
