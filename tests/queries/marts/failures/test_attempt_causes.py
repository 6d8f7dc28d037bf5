"""Ranked causes of failed attempts, their failure chains, loss anomalies and time to repair."""

import math

import pytest
from tests.queries.conftest import built_once, durable, each, read_from_world, shown_by, steps
from tests.queries.loaders import START_MS, at

from goodput_queries.scope import Scope

BUS = "00000000:19:00.0"
END = 4_000  # of the first attempts


def by_the_minute(values):
    return [(3_500 + 60 * n, value) for n, value in enumerate(values)]


def run(made, name, node, events, state="FAILED", begin=0, end=END):
    made.job(f"job-{name}", begin, end, [node], 1, state, job_name=name)
    made.events(name, events, host=node)


def said(kind, second, msg="it broke"):
    return {"event": "failure", "kind": kind, "msg": msg, "t": second}


def load_other_causes(made, work):
    """Load runs whose end no hardware of their own explains, and Xids that explain none."""
    own = [{**step, "loss": 2.0} for step in work[:36]]
    # a log may print it on a line of its own
    later = [{**step, "event": "metric", "dur_s": None, "loss": math.nan} for step in work[36:]]
    run(made, "nan", "nan", [*own, *work[36:], *later])
    # a failure that the program handled
    run(made, "caught", "caught", [*work, said("permission", 500)])
    run(made, "app", "app", work)
    made.xid("app", 31, 3_980, pci_bus_id=BUS)
    run(made, "killed", "killed", [*work, said("sigkill", 3_990)])
    made.add("node_events", *({"ts": second} for second in (1_000, 3_985)), source="kernel-log",
             node="killed", kind="oom_kill", pid="77", process_name="python",
             message="Out of memory")  # fmt: skip
    # the same Xid 79 on a GPU whose attempt went on, and one on a GPU that nobody held
    run(made, "other", "other", work, "COMPLETED")
    made.xid("other", 79, 1_000, pci_bus_id=BUS)
    made.xid("other", 79, 4_050, pci_bus_id=BUS)


@built_once
def world(made):
    """Build a node for each run, which is named after what ended it."""
    work = steps(1, 39, 0, 100)
    of_hardware = ("bus", "twice", "ecc", "own", "late", "down")
    for node in (*of_hardware, "nan", "caught", "app", "killed", "other"):
        made.listed(node, f"GPU-{node}", "dcgm", gpu_index=3, pci_bus_id=BUS)
    made.watched(8_000)
    run(made, "bus", "bus", [*work, durable(30, 3_050), said("exception", 3_990)])
    made.xid("bus", 79, 3_980, pci_bus_id=BUS)
    made.xid("bus", 45, 3_981, pci_bus_id=BUS)
    made.counted("GPU-bus", "pcie_replay_total", by_the_minute([1, 1, 4]))
    made.job("bus2", 4_100, 7_600, ["bus"], 1, "COMPLETED", job_name="bus")
    made.events("bus", steps(31, 40, 4_100, 100), attempt=1, host="bus")

    # two lives in one job run: the Xid is of the first one, the second fails within five minutes
    run(made, "twice", "twice", work)
    made.events("twice", [{"event": "job.start", "t": 3_900}, *steps(39, 39, 3_900, 50)],
                attempt=1, host="twice")  # fmt: skip
    made.xid("twice", 94, 3_895, pci_bus_id=BUS)

    run(made, "ecc", "ecc", work)
    made.counted("GPU-ecc", "ecc_uncorrected_volatile_total", by_the_minute([0, 0, 2, 5]))
    run(made, "own", "own", [*work, said("file_not_found", 3_950)])
    made.counted("GPU-own", "ecc_uncorrected_volatile_total", by_the_minute([0, 1]))
    run(made, "late", "late", [*work, said("assertion", 3_950)])
    made.xid("late", 79, 3_990, pci_bus_id=BUS)
    run(made, "down", "down", work)
    made.add("node_states", node="down", state="down", start_at=3_960, end_at=5_000,
             reason="not responding")  # fmt: skip
    load_other_causes(made, work)


END_MS = START_MS + 1_000 * END
RUN_S = 11 * 4_000 + 3_500
RANKED = {
    "bus": [("Xid 79", "Confirmed"), ("exception", "Likely"), ("PCIe replays", "Not confirmed")],
    "ecc": [("ECC errors", "Likely")],
    "own": [("file_not_found", "Likely"), ("ECC errors", "Likely")],
    "down": [("FAILED", "Not confirmed"), ("node down", "Likely")], "nan": [("nan", "Likely")],
    "caught": [("FAILED", "Not confirmed")], "app": [("Xid 31", "Likely")],
    "killed": [("host_memory", "Likely"), ("sigkill", "Likely")],
    "late": [("Xid 79", "Confirmed"), ("assertion", "Likely")],
}  # fmt: skip
OF_RUN = ("select cause, confidence from marts.attempt_causes where run_id = '{}' and attempt = 0 "
          "order by rank")  # fmt: skip
OF_ECC, OF_BUS = (OF_RUN.format(run) for run in ("ecc", "bus"))
test_what_ended_attempts = read_from_world({
    **{f"causes of {run}, by what they prove": (OF_RUN.format(run), ranked)
       for run, ranked in RANKED.items()},
    "uncorrected errors of the GPUs that a run had, however it ended": (
        "select job_name, uncorrected_errors from marts.run_gpus inner join marts.runs "
        "using (run_key) where uncorrected_errors > 0 order by 1", [("ecc", 5), ("own", 1)]),
    "the first cause is the failure reason of the attempt": (
        """select attempts.attempt_key from marts.attempts
        left join marts.attempt_causes as causes
            on attempts.attempt_key = causes.attempt_key and causes.rank = 1
        where attempts.cause is distinct from causes.cause
            or attempts.cause_evidence is distinct from causes.evidence""", []),
    "an Xid explains one attempt of its job run": (
        "select attempt, cause, blame from marts.attempt_causes "
        "inner join intermediate.int_attempt_causes as causes using (attempt_key, cause) "
        "where run_id = 'twice' order by attempt",
        [(0, "Xid 94", "platform"), (1, "FAILED", "own")]),
    "losses of an attempt are those of the ledger": (
        """with lost as (
            select attempt_key, sum(gpu_ms)::bigint as ms from marts.ledger_scoped
            where category in ('lost_work', 'fault_stall', 'failed_without_progress') group by 1
        ), first as (from marts.attempt_causes where rank = 1)
        select attempt_key, ms, lost_gpu_ms from first full join lost using (attempt_key)
        where coalesce(ms, 0) <> coalesce(lost_gpu_ms, 0)""", []),
    "a scope has no attempts of another node": (OF_BUS, [], Scope(node="ecc")),
    "a scope shows its own attempts": (OF_ECC, RANKED["ecc"], Scope(node="ecc")),
    "a window that ends before has none": (OF_BUS, [], Scope(to_ms=START_MS + 3_000_000)),
    # a window of half-open intervals ends where the evidence of the last attempt does
    "an attempt that ended with the window failed in it": (
        OF_ECC, RANKED["ecc"], Scope(to_ms=END_MS)),
    "and not in the next": (OF_ECC, [], Scope(from_ms=END_MS)),
    "a failure chain has its events in order": (
        """select position, epoch(event_at) - 1800000000 as second, what, node, source
        from marts.failure_chains where run_id = 'bus' order by position""",
        [
            (1, 3_600, "3 PCIe replays", "bus", "GPU counters"),
            (2, 3_900, "step 39 completed, the last one", None, "job"),
            (3, 3_980, "Xid 79", "bus", "kernel log"),
            (4, 3_981, "Xid 45", "bus", "kernel log"),
            (5, 3_990, "job failure: Exception", None, "job"),
            (6, 4_000, "job ended: FAILED", None, "scheduler"),
            (7, 4_100, "attempt 1 began", None, "scheduler")]),
    "the step at which the loss became NaN": (
        "select run_id, kind, step, last_finite_step, last_finite_loss, steps, is_lasting, step_at "
        "from marts.loss_anomalies", [("nan", "not_finite", 37, 36, 2.0, 3, True, at(3_700))]),
    # Garwood: 2 events have the interval 0.2422 to 7.2247
    "time between failures and to repair by cause": (
        "select failures, restarts, mttr_s, run_ms, mtbf_s, mtbf_low_s, mtbf_high_s, class "
        "from marts.reliability_by_cause where cause = 'Xid 79'",
        [(2, 1, 200.0, 1000 * RUN_S, RUN_S / 2,
          *(pytest.approx(RUN_S / bound, rel=1e-5) for bound in (7.224688, 0.242209)),
          "hardware")]),
    "each failure has one cause": (
        "select sum(failures)::bigint from marts.reliability_by_cause", [(11,)]),
})  # fmt: skip


XID_79 = ("kernel log: Xid 79 (GPU has fallen off the bus: the driver can no longer reach it over "
          "PCIe) on bus GPU 3, 1 line")  # fmt: skip
WENT_ON = "the same Xid occurred in 1 attempt that went on"


# what it shows: run, rank of the cause, its columns
@each({
    "evidence names counts and places": (
        "bus", 1, {"evidence": XID_79, "evidence_against": WENT_ON, "lost_gpu_ms": 1_000_000},
    ),  # 9 steps rolled back, 100 s of stall
    "an error that came before speaks against it": (
        "bus", 2, {"evidence_against": "Xid 79 came 10 s before it"}),
    "counters name class and GPU": (
        "ecc", 1,
        {"left(evidence, 46)": "5 uncorrected ECC errors on ecc GPU 3 between ",
         "class": "hardware", "gpu_uuid": "GPU-ecc"}),
    "so does the job's own failure before it": (
        "late", 1,
        {"evidence_against": f"{WENT_ON}; it came 40 s after the job's own failure (assertion)"}),
    "nothing speaks against it": ("nan", 1, {"evidence_against": None}),
})  # fmt: skip
def test_evidence_for_and_against_a_cause(world, name, rank, expected):
    where = f"run_id = '{name}' and attempt = 0 and rank = {rank}"
    sql = f"select {', '.join(expected)} from marts.attempt_causes where {where}"
    assert world.store.read(sql, is_kept=True).row(0) == tuple(expected.values())


DRAINS = [{"start_at": 3_800 + second, "end_at": 3_800.5 + second} for second in range(80)]
SAID = {"event": "failure", "kind": "permission", "msg": "no"}
CHAIN = "select what, event_at from marts.failure_chains order by position"
test_an_end = shown_by({
    "a failure chain is bounded": (
        lambda c: [c.node("a", 1), run(c, "a", "a", steps(1, 39, 0, 100)),
                   c.add("node_states", *DRAINS, node="a", state="drained")],
        "select count(*), min(position), max(position), last(what order by position) "
        "from marts.failure_chains", [(50, 1, 50, "job ended: FAILED")]),
    # its time is that of the log's last line that has one, here of the start
    "an error in a log without times is not taken as handled": (
        lambda c: [c.job_on_a_node("1", 0, 210, 1, "FAILED"), c.events("1", steps(1, 20, 0)),
                   c.log("1", [{**SAID, "t": 2}])],
        "select cause, cause_at from marts.attempt_causes where rank = 1",
        [("permission", at(190))]),
    "an error in a log that was read out later is of the end": (
        lambda c: [c.job_on_a_node("1", 0, 200, 1, "FAILED"), c.log("1", [{**SAID, "t": 9_000}])],
        lambda c: c.read(CHAIN).rows()[-2:],
        [("job failure: Permission denied", at(200)), ("job ended: FAILED", at(200))]),
})  # fmt: skip


def failed(cluster, node, state="FAILED", *events):
    cluster.job("1", 0, 200, [node], 1, state)
    cluster.events("1", [*steps(1, 10, 0), *events], host=node)


@pytest.mark.parametrize("order", [1, -1], ids=["inventory first", "inventory last"])
def test_an_xid_is_a_cause_though_the_inventory_names_no_bus_address(cluster, order):
    """What to do against it is reported with its losses."""
    node = f"{cluster.name}-a"
    gpu = {"node": node, "gpu_uuid": f"GPU-{cluster.name}", "gpu_index": 0, "valid_from_at": 0}
    by_dcgm = {"pci_bus_id": BUS, "gpu_model": "NVIDIA H100"}
    for source, known in [("inventory", {"slurm_index": 0}), ("dcgm", by_dcgm)][::order]:
        cluster.add("gpus", source=source, **gpu, **known)
    failed(cluster, node)
    cluster.xid(node, 79, 110, pci_bus_id=BUS)
    yield
    found = cluster.read("select cause, cause_confidence, left(cause_fix, 29) from marts.attempts")
    assert found.row(0) == ("Xid 79", "Confirmed", "Drain the node and restart it")
    fixes = cluster.read("select distinct fix from marts.losses where cause = 'Xid 79'")
    assert fixes["fix"].str.starts_with("Drain the node and restart it").to_list() == [True]
    assert cluster.own("distinct gpu_model", "marts.ledger_pieces") == [("NVIDIA H100",)]


OUT_OF_MEMORY = [("OUT_OF_MEMORY", "Confirmed", True, True)]
# what the job reports of its end
test_a_job_that_ran_out_of_host_memory_is_confirmed_by_its_state = shown_by({
    "nothing": ([], OUT_OF_MEMORY), "an exception": ([said("exception", 150)], OUT_OF_MEMORY),
}, before=lambda c: c.node("a", 1), load=lambda c, end: failed(c, "a", "OUT_OF_MEMORY", *end),
    read="select cause, cause_confidence, contains(cause_evidence, 'host memory'), "
    "contains(cause_fix, 'host memory') from marts.attempts")  # fmt: skip
