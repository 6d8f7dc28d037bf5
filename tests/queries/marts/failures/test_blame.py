"""Who caused lost GPU time: one rule for the ledger, losses, statements and credits."""

from pathlib import Path

import polars as pl
from tests.queries.conftest import durable, each, phase, shown_by, steps

from goodput_queries.ledger import ledger
from goodput_queries.scope import Scope

REFERENCE = Path(__file__).parents[4] / "queries/goodput_queries/sql/reference"


def lines(cluster):
    """Return own waste, infrastructure waste and credit of each team in GPU-seconds."""
    sql = """select team, sum(own_waste_ms) // 1000, sum(platform_waste_ms) // 1000,
            sum(credit_ms) // 1000
        from marts.statement_lines where line = 'usage' group by team"""
    found = cluster.read(sql)
    return {team: tuple(map(int, rest)) for team, *rest in found.rows()}


def failure(kind, second=150, **more):
    return {"event": "failure", "kind": kind, "t": second, **more}


OWN = (200, 0, 0)
NOBODYS = (0, 0, 0)
# the attempt lasts 200 s and saves nothing
# state of an attempt, what the job says; waste of its own and of the infrastructure, credit:
# credits are for failures of the infrastructure alone, not for an operator's policy
test_the_cause_of_an_ending_decides_whose_waste_it_is = shown_by({
    "NODE_FAIL": ("NODE_FAIL", None, (0, 200, 200)), "PREEMPTED": ("PREEMPTED", None, (0, 200, 0)),
    "REQUEUED": ("REQUEUED", None, (0, 200, 0)), "FAILED": ("FAILED", None, OWN),
    "TIMEOUT": ("TIMEOUT", None, OWN), "CANCELLED": ("CANCELLED", None, OWN),
    "a crash before a requeue": ("REQUEUED", failure("exception"), OWN),
    "a requeue that the job asked for": (
        "REQUEUED", failure("preempted", msg="Requeued SLURM job: 1"), OWN),
    "SIGTERM at a time limit": ("TIMEOUT", failure("preempted"), OWN),
    "a NCCL timeout that nothing explains": ("FAILED", failure("nccl_timeout", 190), NOBODYS),
    "a signal that nothing explains": ("FAILED", failure("sigkill", 190), NOBODYS),
}, read=lambda c: lines(c)["team"], load=lambda c, state, said: [
        c.job_on_a_node("1", 0, 200, 1, state),
        c.events("1", [*steps(1, 10, 0), *([said] if said else [])])])  # fmt: skip


# what happened on the node meanwhile, cause of the loss
@each({
    "a hardware Xid when it began": (
        lambda c: c.xid("a", 79, 110, gpu_uuid=c.gpu("a#0")), "Xid 79"),
    "the node went down": (
        lambda c: c.state("a", "down", 200, None), "nccl_timeout on a node that went down"),
})  # fmt: skip
def test_a_hardware_xid_when_the_hang_began_is_the_cause_of_a_nccl_timeout(cluster, happens, cause):
    """A job steps for 100 s, hangs for 1,900 s and is ended by NCCL's watchdog."""
    cluster.job_on_a_node("1", 0, 2000, 1, "FAILED")
    cluster.events("1", [*steps(1, 10, 0), durable(10, 100), failure("nccl_timeout", 1990)])
    happens(cluster)
    yield
    assert lines(cluster) == {"team": (0, 1900, 1900)}
    causes = cluster.read("select cause from marts.losses where category = 'fault_stall'")
    assert causes["cause"].to_list() == [cause]


def test_every_cause_is_listed_once_with_a_reason():
    rows = pl.read_csv(REFERENCE / "blame_by_cause.csv")
    assert rows.select("applies_to", "cause").is_unique().all()
    assert set(rows["blame"]) <= {"own", "platform", "unsettled"}
    assert rows["reason"].null_count() == 0


def test_ledger_losses_and_statement_say_the_same_of_who_caused_it(cluster):
    cluster.node("a", 2)
    for number, state in enumerate(("PREEMPTED", "FAILED", "COMPLETED")):
        start, first = 300 * number, 5 * number
        cluster.job(f"{number}", start, start + 200, ["a"], 2, state, job_name="r")
        ran = [*steps(first + 1, first + 10, start), durable(first + 5, start + 50)]
        cluster.events("r", ran, attempt=number)
    yield
    own, platform, _ = lines(cluster)["team"]
    expected = {"own": own * 1000, "platform": platform * 1000}
    for table in ("losses", "ledger_blamed_by_node", "waste_by_team where team = 'team'"):
        sql = f"select blame, sum(gpu_ms)::bigint from marts.{table} group by blame"
        assert dict(cluster.read(sql).rows()).items() >= expected.items(), table
    by_blame = ledger(cluster.store, by=["blame"], scope=Scope(cluster=cluster.name))
    assert dict(by_blame.select("blame", "gpu_ms").rows()).items() >= expected.items()
    whole = cluster.read("select wasted_ms from marts.goodput_summary").item()
    lost = cluster.read("select sum(gpu_ms)::bigint from marts.waste_by_team").item()
    assert lost == whole > own + platform > own > 0


def test_the_phase_that_lost_most_reports_the_cause_not_the_longest_in_one_hour(cluster):
    """Initialisation takes 100 s of one hour, compilation 70 s of that and 70 s of the next."""
    cluster.job_on_a_node("1", 3420, 4000, 1, watched=4000)
    cluster.events("1", [
        {"t": 3420, "event": "job.start"}, phase("init", 3420, 3520),
        phase("compile", 3530, 3670), {"t": 3770, "event": "step", "step": 1, "dur_s": 100.0},
        {"t": 4000, "event": "job.end"},
    ])  # fmt: skip
    yield
    hours = "phase, hour_ms, sum(gpu_ms) as ms", "marts.ledger_pieces"
    by_hour = cluster.own(*hours, "category = 'startup' group by 1, 2")
    assert max(by_hour, key=lambda row: row[2])[0] == "init", "the longest in one hour"
    cause = cluster.read("select cause from marts.losses where category = 'startup'")
    assert cause.item() == "Compilation (first step)"
