"""Contradictions and gaps in the evidence are named once each, with the GPU time concerned.

Each case is a cluster of one database: one that is not to be named would raise the number.
"""

from tests.queries.conftest import Evidence, durable, each, printed, shown_by, steps

BUILT_ALONE = True


def named(cluster, kind, columns="n, example"):
    """Return what is said of a kind of contradiction in all clusters."""
    sql = f"select {columns} from marts.data_quality where kind = $1 order by all"
    return cluster.store.read(sql, [kind], is_kept=True).rows()


def kind(name, columns="n, example"):
    """Return what reads a kind of contradiction."""
    return lambda cluster: named(cluster, name, columns)


def clocks(cluster):
    for job, off_s in (("1", 7200), ("2", 3)):
        cluster.node(job, 1)
        cluster.job(job, 0, 30_000, [job], 1)
        ran = steps(1, 12, 10_010)
        cluster.events(job, ran, host=job)
        cluster.log(job, [{**line, "t": line["t"] + off_s} for line in ran])


def cut_gpu(cluster):
    gpu = {"gpu_uuid": cluster.gpu("g"), "source": "dcgm", "valid_from_at": 0}
    cluster.add("gpus", {"node": "m", "gpu_index": 0, "gpu_model": "h100", **gpu})
    profiles = enumerate(("9g.90gb", "4g.40gb", "3g.40gb", "2g.20gb"))
    parts = [{"gpu_instance": str(n), "profile": profile, "compute_slices": int(profile[0])}
             for n, profile in profiles]  # fmt: skip
    cluster.add("gpu_instances", *parts, **gpu)


def labels(cluster, *owners):
    """Load a GPU a node, whose series bear a label from a second on."""
    for node, (owner, start) in zip("ab", owners, strict=False):
        cluster.telemetry(node, 1, "dcgm")
        cluster.samples(f"{node}-0", cluster.every(0, 1000), lambda s: 100 < s <= 900)
        of_job = "hpc_job" if owner[0].isdigit() else "pod"
        cluster.label(cluster.gpu(f"{node}-0"), owner, start, 900, of_job)


def works(node, start, end, active):
    """Return what loads work on node a, and a job; without one the work would be somebody's."""
    return lambda c: [c.node("a", 1), c.node("b", 1), c.job("1", start, end, [node], 1),
                      c.samples("a#0", c.every(0, 200), active)]  # fmt: skip


HELD = "select job_id, sum(gpu_ms)::bigint from marts.ledger_scoped group by all order by 1"
DIFFERENCES = "select reason, job_runs, gpu_ms from marts.statement_differences"
SPLITS = {"data_stall": 40, "straggler_wait": 40, "exposed_comm": 20}
BUSY = kind("busy with no job", "n, gpu_ms")
test_what_is_named = shown_by({
    "of two jobs on one GPU the later start has it and the overlap is reported": (
        lambda c: [c.job_on_a_node("1", 0, 100, 1), c.job("2", 60, 100, ["a"], 1)],
        lambda c: (c.read(HELD).rows(), kind("overlapping holds", "n, gpu_ms")(c)),
        ([("1", 60_000), ("2", 40_000)], [(1, 40_000)])),
    "two sources whose clocks disagree": (
        clocks, lambda c: (1, f"{c.name}/1#0: +7200 s") in kind("clocks that disagree")(c), True),
    "a running job that later listings leave out": (
        lambda c: [c.job_on_a_node("1", 0, None, 2, "RUNNING", elapsed_s=600, source="slurm"),
                   c.job("2", 9_000, 9_100, ["a"], 1, source="slurm")],
        kind("running jobs that vanished"), lambda c: [(1, f"{c.name}/1@1800000000")]),
    "losses in a step are cut at its end and reported": (
        lambda c: [c.job_on_a_node("1", 0, 100, 1),
                   c.events("1", steps(1, 10, 0, data_s=4.0, straggler_s=4.0, comm_s=4.0))],
        lambda c: (c.gpu_s(), kind("splits that exceed their step", "example")(c)),
        lambda c: (SPLITS, [(f"{c.name}/1#0",)])),
    "a table that numbers GPUs which another source names": (
        lambda c: [c.add("gpus", *({"gpu_uuid": uuid, "valid_from_at": 0}
                                   for uuid in (c.gpu("U"), f"{c.name}-t#3")),
                         node=f"{c.name}-t", gpu_index=3),
                   *(c.readings(uuid, range(0, 601, 60), gpu_busy_ratio=0.9)
                     for uuid in (c.gpu("U"), f"{c.name}-t#3"))],
        lambda c: (sum(c.gpu_s().values()),
                   kind("readings of GPUs without a UUID", "n, gpu_ms")(c)),
        (600, [(1, 600_000)])),
    "MIG instances beyond a whole GPU": (
        cut_gpu, kind("instances beyond a whole GPU"),
        lambda c: [(2, f"{c.gpu('g')}/0 (9g.90gb)")]),
    "what is known from labels alone": (
        lambda c: labels(c, ("nlp/a", 100)),
        lambda c: (c.read(DIFFERENCES).rows(), kind("job runs known from labels alone", "n")(c)),
        ([("known from labels of telemetry alone", 1, -800_000)], [(1,)])),
    # the exporter of one node writes more than the id
    "labels whose job the scheduler does not have": (
        lambda c: [labels(c, ("4711", 0), ("4711.batch", 100)),
                   c.job("4711", 0, 1000, ["a", "b"], 2)],
        kind("labels of unknown jobs", "n, gpu_ms, example"), [(1, 800_000, "4711.batch on b")]),
    "GPUs that no record names of a run without a scheduler": (
        lambda c: c.log("r", steps(1, 10, 0), host="a"),
        lambda c: ((1, True) in kind("GPUs placed by assumption", "n, what like 'no record%'")(c),
                   c.read("select what_to_do like 'No record%' from marts.statement_unmatched "
                          "where kind like 'placed%'").rows()),
        (True, [(True,)])),
    "unplaced time, with its GPU-hours": (
        lambda c: [c.node("a", 2), c.job("1", 0, 5000, [], 2), c.job("2", 0, 1000, ["a"], 3)],
        kind("allocated, GPUs not placed", "gpu_ms, n"), [(1_000_000, 1), (10_000_000, 1)]),
    "collectives of processes that no run has": (
        lambda c: [c.job_on_a_node("1", 0, 5000, 2),
                   c.all_reduces([0.1], range(100, 110), ranks=2, comm_name="")],
        kind("collectives of unknown ranks", "n, gpu_ms"), [(1, 13_000)]),
    # of three such the first: the others have a job but for less than a reading
    "work where no job was": (works("b", 0, 100, lambda s: s <= 100), BUSY, [(1, 100_000)]),
    "not work of a job that begins between two readings": (
        works("a", 105, 200, lambda s: s > 100), BUSY, [(1, 100_000)]),
    "not work of a job that ends between two readings": (
        works("a", 0, 95, lambda s: s <= 100), BUSY, [(1, 100_000)]),
})  # fmt: skip


OFF = {0: 600, 1: 900, 2: -3600}  # seconds by which events of a host lie off their jobs


def test_hosts_whose_events_all_lie_off_their_holds_by_a_like_amount_are_named(cluster):
    """Another one, whose job saves as it ends, is none whose clock disagrees."""
    for host, off in OFF.items():
        node = f"off{host}"
        cluster.node(node, 1)
        for job in range(3):
            start = 10_000 + job * 2000
            cluster.job(f"{host}-{job}", start, start + 1000, [node], 1)
            ran = steps(1, 98, start + 10 + off)
            cluster.events(f"{host}-{job}", ran, attempt=0, host=node)
    cluster.node("late", 1)
    cluster.job("late", 0, 600, ["late"], 1, "TIMEOUT")
    cluster.events("late", [*steps(1, 58, 10), durable(58, 625)], attempt=None, host="late")
    yield
    rows = named(cluster, "clocks that disagree", "n, example, what_to_do, what")
    ((n, example),) = (row[:2] for row in rows if "chrony" in row[2] and "a host" in row[3])
    assert n == len(OFF)
    assert example.startswith("off2: ")
    assert abs(int(example.split(": ")[1].split(" s")[0]) - OFF[2]) <= 20


def test_a_log_under_another_name_whose_clock_is_off_is_named_with_its_offset(cluster):
    """Of jobs on other nodes, one starts again and the others say nothing twice."""
    for job, node in enumerate(("k7", "k8", "k9", "k10"), start=7):
        cluster.node(node, 2)
        cluster.job(str(job), 0, 1000, [node], 2, job_name="train.sh")
    ran = steps(1, 27, 10)
    cluster.events("exp-7", ran, host="k7")
    cluster.log("7", [{**row, "t": row["t"] + 400} for row in printed(ran)[::2]])
    first, second = steps(1, 11, 10), steps(9, 22, 140)
    cluster.events("exp-8", [*first, durable(8, 92)], attempt=0, host="k8")
    cluster.events("exp-8", second, attempt=1, host="k8")
    cluster.log("8", [*printed(first), {"event": "job.start", "t": 128}, *printed(second)])
    cluster.events("exp-9", steps(1, 18, 10), host="k9")  # another training
    cluster.log("9", printed(steps(1, 27, 410)))
    cluster.events("exp-10", ran, host="k10")  # the same one again, at its own pace
    again = [{**row, "t": 400 + 1.3 * row["t"]} for row in ran]
    cluster.log("10", printed(again))
    yield
    of_run = "7 (text log) +400 s from exp-7 (job events)"
    example = f"{cluster.name}/7@{1_800_000_000}: {of_run}"
    assert (1, example) in named(cluster, "clocks that disagree")


# what it shows: job runs, begin of the events and their host, why they match none of them
@each({
    "a host that nobody knows": (1, 10, "elsewhere", "in no inventory"),
    "a host without a job then": (1, 1000, "a", "no job was allocated GPUs"),
    "a host of several jobs": (2, 10, "a", "several jobs"),
    "no host, and a job of that id in two clusters": (1, 10, None, "job of another cluster"),
})  # fmt: skip
def test_the_finding_says_why_events_match_no_job(evidence, jobs, start, host, why):
    evidence.node("a", 2)
    for job in range(jobs):
        evidence.job(str(job), 0, 100, ["a"], 1)
    if host is None:  # of the only cluster that has its job it would be
        Evidence(evidence.store, "d").job("0", 0, 100, ["a"], 1)
        evidence.log("0", steps(1, 8, start), cluster=None)
    else:
        evidence.events("r", steps(1, 8, start), host=host)
    evidence.build()

    ((what, example),) = named(evidence, "unmatched job events", "what, example")
    assert why in what
    assert example == ("0 attempt 0 (cluster c)" if host is None else "r attempt 0")
