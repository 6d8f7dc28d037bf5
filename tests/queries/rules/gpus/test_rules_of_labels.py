"""Labels on series of GPUs: they name GPUs of known jobs, and holds without a scheduler."""

import pytest
from tests.queries.conftest import built_in, each, shown_by
from tests.queries.rules.jobs.unscheduled import holds


def working(cluster, gpu, until):
    cluster.samples(gpu, cluster.every(0, until), lambda _: True)


def job_runs(cluster, columns):
    return cluster.own(columns, "intermediate.int_job_runs")


def labelled(cluster):
    """Load what telemetry alone reports: four GPUs, read for a thousand seconds."""
    cluster.telemetry("n", 4, "dcgm")
    for index in range(4):
        working(cluster, f"n-{index}", 1000)


def pod(cluster, gpu, first, last, **more):
    cluster.label(cluster.gpu(f"n-{gpu}"), "nlp/a", first, last, **more)


test_what_labels_say = shown_by({
    "a pod on the series of GPUs has held them": (
        lambda c: [pod(c, 0, 100, 900), pod(c, 1, 100, 900)],
        lambda c: (c.gpu_s(), job_runs(c, "job_id, job_name, team, state, gpus, is_inferred")),
        ({"busy_unclassified": 1600, "free_unknown": 2400},
         [("nlp/a", "a", "nlp", "UNKNOWN", 2, True)])),
    "two sources that see one label report one hold": (
        lambda c: [pod(c, 0, 100, 600), pod(c, 0, 90, 900, source="prometheus")], holds,
        [("n-0", "nlp/a", 90, 900, "label")]),
    "ids on series go before what the scheduler numbers": (
        lambda c: [c.job("4711", 100, 900, ["n"], 1),
                   c.label(c.gpu("n-1"), "4711", 130, 900, kind="hpc_job"),
                   c.hold("4711", submit=100, node="n", slurm_index=0)],
        holds, [("n-1", "4711", 100, 900, "hpc_job")]),
    "labels name the user and the partition of a job": (
        lambda c: c.label(c.gpu("n-0"), "5", 100, 900, "hpc_job", user_name="u", partition="p"),
        lambda c: job_runs(c, "user_name, partition"), [("u", "p")]),
    # exporters are scraped at moments of their own: that is no gang wait
    "parts of an owner that are read apart do not wait for each other": (
        lambda c: [pod(c, 0, 100, 900), pod(c, 1, 130, 900)], lambda c: set(c.gpu_s()),
        {"busy_unclassified", "free_unknown"}),
}, before=labelled)  # fmt: skip


def test_a_label_on_the_latest_reading_goes_on_until_its_exporter_has_gone(cluster):
    """It has gone while others of its cluster are read on."""
    labelled(cluster)
    cluster.label(cluster.gpu("n-0"), "nlp/a", 100, 1000)
    cluster.label(cluster.gpu("n-1"), "nlp/b", 100, 900)
    ended = ("n-1", "nlp/b", 100, 900, "label")
    yield
    assert holds(cluster) == [("n-0", "nlp/a", 100, None, "label"), ended]
    assert job_runs(cluster, "job_id, state, outcome") == [
        ("nlp/a", "RUNNING", "running"), ("nlp/b", "UNKNOWN", "limit")]  # fmt: skip
    cluster.telemetry("m", 1, "dcgm")
    working(cluster, "m-0", 2000)
    yield
    assert holds(cluster) == [("n-0", "nlp/a", 100, 1000, "label"), ended]
    assert job_runs(cluster, "state, outcome") == [("UNKNOWN", "limit")] * 2


# what it shows: (id, begin, end, GPUs) of the scheduler's records; (GPU, owner, first, last) of
# labels, those of digits with the id of a job; what was held: GPU, owner, begin, end, method
@each({
    "a label that is away for minutes, as while an exporter restarts, has not gone": (
        [], [(0, "nlp/a", 100, 200), (0, "nlp/a", 700, 900)],
        [("n-0", "nlp/a", 100, 900, "label")]),
    "a label that is read once after minutes has not gone before": (
        [], [(0, "nlp/a", 100, 200), (0, "nlp/a", 700, 700), (1, "nlp/a", 700, 700)],
        [("n-0", "nlp/a", 100, 700, "label")]),
    "a label that comes back later is another start": (
        [], [(0, "nlp/a", 0, 100), (0, "nlp/a", 800, 900)],
        [("n-0", "nlp/a", 0, 100, "label"), ("n-0", "nlp/a", 800, 900, "label")]),
    "job ids go before pods on a GPU that has both": (
        [], [(0, "nlp/a", 100, 900), (0, "4711", 100, 900)], [("n-0", "4711", 100, 900, "label")]),
    "from its first record on the scheduler alone reports": (
        [("77", 500, 700, 1)], [(0, "nlp/a", 0, 900)],
        [("n-0", "77", 500, 700, "assumed"), ("n-0", "nlp/a", 0, 500, "label")]),
    "the id of a job on series names its GPUs": (
        [("4711", 100, 900, 2)], [(1, "4711", 130, 900), (3, "4711", 130, 900)],
        [("n-1", "4711", 100, 900, "hpc_job"), ("n-3", "4711", 100, 900, "hpc_job")]),
    "an id that lingers on a GPU names it for its own job alone": (
        [("1", 100, 500, 1), ("2", 500, 900, 1)], [(2, "1", 100, 800), (3, "2", 510, 900)],
        [("n-2", "1", 100, 500, "hpc_job"), ("n-3", "2", 500, 900, "hpc_job")]),
    "the third GPU of a job of which exporters name two is another one of the node": (
        [("4711", 100, 900, 3)], [(2, "4711", 130, 900), (3, "4711", 130, 900)],
        [("n-0", "4711", 100, 900, "assumed"), ("n-2", "4711", 100, 900, "hpc_job"),
         ("n-3", "4711", 100, 900, "hpc_job")]),
})  # fmt: skip
def test_what_labels_hold(cluster, jobs, labels, expected):
    labelled(cluster)
    for job_id, start, end, gpus in jobs:
        cluster.job(job_id, start, end, ["n"], gpus)
    for gpu, owner, first, last in labels:
        kind = "hpc_job" if owner.isdigit() else "pod"
        cluster.label(cluster.gpu(f"n-{gpu}"), owner, first, last, kind)
    yield
    assert holds(cluster) == expected
    starts = {(owner, begin) for _, owner, begin, *_ in expected}
    assert len(job_runs(cluster, "job_run_key")) == len(starts)


@pytest.mark.parametrize("polls", [(800,), (200, 500, 800)])
@built_in(3)
def test_polls_that_see_a_label_again_and_again_give_what_one_look_gives(cluster, polls):
    cluster.telemetry("n", 1, "dcgm")
    working(cluster, "n-0", 1000)
    for second in polls:
        cluster.label(cluster.gpu("n-0"), "nlp/a", 100, second)
        yield
    assert holds(cluster) == [("n-0", "nlp/a", 100, 800, "label")]
    assert cluster.gpu_s() == {"busy_unclassified": 700, "free_unknown": 300}


def lingering(last):
    return lambda c: c.label(c.gpu("n-2"), "4711", 130, last, kind="hpc_job")


BY_ID = [("n-2", "4711", 100, 900, "hpc_job")]
# what it shows: what is loaded before each of three builds, what is held after each
test_what_comes_later = shown_by({
    "a scheduler that reports earlier times takes them back": (
        [lambda c: pod(c, 0, 100, 900), lambda c: c.job("77", 50, 60, ["n"], 1), lambda _: None],
        [[("n-0", "nlp/a", 100, 900, "label")], *[[("n-0", "77", 50, 60, "assumed")]] * 2]),
    "an id that comes after a build moves the hold": (
        [lambda c: c.job("4711", 100, 900, ["n"], 1), lingering(300), lingering(900)],
        [[("n-0", "4711", 100, 900, "assumed")], BY_ID, BY_ID]),
}, before=labelled, read=holds, builds=3)  # fmt: skip
