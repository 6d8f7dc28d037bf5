"""Losses of the ledger, their verdict on a run, and which jobs waited while GPUs were free."""

from tests.queries.conftest import at, durable, shown_by, steps
from tests.queries.findings import given
from tests.queries.findings.conftest import found_together, rows_together

from goodput_queries.scope import Scope

HOUR = 3600
GPUS = 4


def found(cluster, columns="rule"):
    """Return the findings without those about evidence."""
    rows = found_together(cluster, f"kind, {columns}")
    return sorted((row[1:] for row in rows if row[0] != "data quality"), key=str)


def test_the_end_by_a_node_failure_is_the_verdict_on_its_run(cluster):
    given.load(cluster, given.cases("infrastructure_failure", "fires")[0]["given"])
    yield
    rows = {row[0]: row[1:] for row in found(cluster, "rule, gpu_ms, finding_key")}
    lost, key = rows["infrastructure_failure"]

    # it is the largest finding about the run, and so the verdict on it
    (verdict,) = cluster.read("from marts.run_verdicts", Scope(run=f"{cluster.name}/1")).to_dicts()
    assert (verdict["finding_key"], verdict["gpu_ms"]) == (key, lost)
    assert verdict["confidence"] == "Confirmed"
    assert verdict["cause"].startswith("scheduler state NODE_FAIL")
    assert verdict["evidence"].endswith("of the allocated time, 1 attempt")
    assert verdict["verdict"] == f"{verdict['title']} ({verdict['cause']})"
    of_run = cluster.read("select verdict, verdict_confidence, verdict_evidence from marts.runs")
    assert of_run.row(0) == tuple(verdict[name] for name in ("verdict", "confidence", "evidence"))
    # the same among all runs
    assert cluster.read("from marts.run_verdicts").rows(named=True) == [verdict]


def test_a_fix_asks_for_what_reaches_furthest_of_its_findings(cluster):
    error = {"table": "gpu_events", "node": "a", "kind": "xid", "ts_precision": "exact"}
    codes = enumerate((119, 119, 119, 79))
    errors = [{**error, "gpu": f"a/{n}", "code": code, "ts": 7000} for n, code in codes]
    given.load(cluster, [{"node": "a", "gpus": 4}, {"watched": 7200}, *errors])
    yield
    (fix,) = (row for row in rows_together(cluster, "marts.fixes") if row["target"] == "a")
    assert fix["what_to_do"].startswith("Drain the node and restart it")


def test_a_fix_asks_for_what_gives_most_back_in_all(cluster):
    world = [{"node": "a", "gpus": 4}, {"watched": 25_200}]
    for n, state in enumerate(("FAILED", "OUT_OF_MEMORY", "FAILED")):
        job = {"job": f"{n}", "state": state, "job_name": "j", "start": n * 7_200}
        world.append(job | {"end": n * 7_200 + 6_000 + 900 * (n == 1)})
        world.append({"steps": f"{n}", "start": n * 7_200 + 60, "to": n * 7_200 + 5_900})
    given.load(cluster, world)
    yield
    (fix,) = (row for row in rows_together(cluster, "marts.fixes") if row["fix"] == "fix_job")
    assert (fix["findings"], fix["what_to_do"][:13]) == (3, "Fix the cause")


def failing_run(cluster, job_id, start, minutes, lost_s, nodes, gpus):
    """Load a run whose node a failed `lost_s` after its last save."""
    end = start + 60 * minutes
    cluster.job(job_id, start, end, nodes, gpus, state="NODE_FAIL")
    ran = steps(1, minutes, start, 60.0)
    kept = [step for step in ran if step["t"] <= end - lost_s]
    cluster.events(job_id, [*kept, durable(len(kept), kept[-1]["t"])])
    cluster.state("a", "down", end - 1, end + 300)


def test_what_a_node_cost_a_small_run_is_not_hidden_by_a_large_one(cluster):
    """Of both together it is a percent, of the small run a fifth."""
    cluster.node("a", GPUS)
    cluster.node("b", 20, watched=3 * HOUR)
    failing_run(cluster, "large", 0, 120, 60, ["a", "b"], 24)
    failing_run(cluster, "small", 7600, 10, 120, ["a"], GPUS)
    yield
    rows = found(cluster, "rule, node, share_ratio, finding_key")
    ((node, share, _),) = [row[1:] for row in rows if row[0] == "infrastructure_failure"]
    assert node == "a"
    assert share < 0.02
    verdicts = cluster.read("select run_key, finding_key from marts.run_verdicts").rows()
    keys = {row[3] for row in rows}
    assert [(run, key in keys) for run, key in verdicts] == [(f"{cluster.name}/small", True)]


def test_a_hang_that_the_scheduler_ended_is_put_on_the_rank_that_held_up_the_others(evidence):
    """The job run was preempted, but had done nothing since."""
    given.load(evidence, given.cases("hang", "fires")[0]["given"])
    evidence.build()

    rows = evidence.read("select rule, run_key, gpu_uuid from marts.loss_claims "
                         "where rule in ('hang', 'preempted') and gpu_ms > 0").rows()  # fmt: skip
    assert rows == [("hang", "c/1", "c/a/1")]
    verdicts = evidence.store.read("select run_key, rule, evidence from marts.run_verdicts")
    ((run_key, rule, text),) = verdicts.rows()
    assert (run_key, rule) == ("c/1", "hang")
    assert evidence.store.read("select hangs, verdict_evidence from marts.runs").row(0) == (1, text)
    assert text.startswith("rank 1 has not launched all_reduce 45 of dp")


def test_the_parts_of_a_loss_add_up_to_the_ledger(cluster):
    world = [{"node": "a", "gpus": GPUS}, {"watched": 2 * HOUR},
             {"job": "1", "end": 6000, "state": "FAILED"},
             {"steps": "1", "start": 600, "to": 5400, "data_s": 5, "comm_s": [10, 10, 10, 1]},
             {"state": "drained", "node": "a", "start": 6500, "end": 2 * HOUR}]  # fmt: skip
    given.load(cluster, world)
    yield
    claimed = cluster.read("select sum(gpu_ms) from marts.loss_claims").item()
    sql = """select sum(gpu_ms) from marts.ledger_blamed_by_node
        inner join reference.gpu_second_categories using (category)
        where kind in ('badput', 'unavailable', 'unknown', 'unsettled') and category not in (
            'planned', 'free_unknown', 'at_risk', 'teardown', 'maintenance', 'powered_off')"""
    lost = cluster.read(sql).item()
    assert claimed == lost > 0


TWO_H = 2 * HOUR
HOSTILE = "<img src=x>\x1b[31m [evil](https://evil.test)\u202e" + "w" * 1_000
SHOWN = "<img src=x>[31m [evil](https://evil.test"  # 40 characters


def fleet(cluster):
    """Load two nodes of four GPUs, watched and free for two hours."""
    for node in "ab":
        cluster.node(node, 4, partitions=("p",))
    cluster.watched(TWO_H)


def waits(cluster, job, start=0, end=None, *, request=None, **more):
    run = (None, None, [], 0, "PENDING") if end is None else (end, TWO_H, ["z"], 1)
    asked = {"gpus_requested": 4, "partition": "p", "submit": start, **more}
    cluster.job(job, *run, **asked)
    if request is not None:
        listed = {"job_id_raw": job, "submit_at": start, "observed_at": end or TWO_H}
        cluster.add("job_requests", **listed, reason="Resources", **request)


WAITED = """select job_id, waited_s / 3600, free_gpu_ms / 3600000 from marts.waiting_jobs
    order by job_id"""
# what it shows: jobs, rows of (job, waited h, free GPU-h)
test_jobs_that_waited = shown_by({
    "one that could use all": ([("1", {})], [("1", 2.0, 16.0)]),
    "one that could use a node": (
        [("1", {"request": {"requested_nodes": ["a"]}})], [("1", 2.0, 8.0)]),
    "one that another stands for elsewhere": (
        [("1", {"request": {"requested_nodes": ["a"]}}), ("2", {"end": HOUR, "partition": "q,p"})],
        [("1", 2.0, 8.0), ("2", 1.0, 8.0)]),
    "one that a limit holds": ([("1", {"reason": "QOSGrpGRES"})], []),
    "one that asks for another model": ([("1", {"gpu_type_requested": "a100"})], []),
}, before=fleet, load=lambda c, jobs: [waits(c, job, **of) for job, of in jobs],
    read=WAITED)  # fmt: skip


def idle_job(cluster):
    """Load a running job whose GPUs went idle after 20 of 60 minutes, and which was requeued."""
    cluster.node("a", 4)
    of = {"job_name": "train", "user_name": "ann"}
    for start, end, state in ((0, 60, "REQUEUED"), (60, None, "RUNNING")):
        cluster.job("7", start, end, ["a"], 4, state, **of)
    cluster.watched(HOUR)
    for gpu in range(4):
        cluster.samples(f"a#{gpu}", cluster.every(-10, HOUR), lambda second: second <= 1200)


COLUMNS = "user_name, team, job_name, state, severity, owner, idle_gpus, idle_since_at"
JOBS = f"; 5 jobs waiting: train0 (1), {SHOWN} (2), train2 (3) ..."
test_findings = shown_by({
    "an end that cost a GPU-hour is found however large its run": (
        lambda c: [c.node("a", GPUS), c.node("b", 60, watched=3 * HOUR),
                   failing_run(c, "1", 0, 120, 60, ["a", "b"], 64)],
        lambda c: [(ms, share < 0.01) for rule, ms, share in found(c, "rule, gpu_ms, share_ratio")
                   if rule == "infrastructure_failure"], [(64 * 60_000, True)]),
    "an idle job names its user and since when its GPUs are idle": (
        idle_job, f"select {COLUMNS} from marts.open_findings where rule = 'idle_allocation'",
        [("ann", "team", "train", "open", "note", "team", 4, at(1200))]),
    "the finding names three jobs": (
        lambda c: [fleet(c), *(waits(c, f"{n + 1}", job_name=name, gpus_requested=8 - n) for n, name
                               in enumerate(("train0", HOSTILE, "train2", "train3", "train4")))],
        lambda c: [text[-len(JOBS) :] for (text,) in found_together(c, "evidence")],
        [JOBS]),
})  # fmt: skip
