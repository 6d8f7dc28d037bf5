"""Several sources report one attempt: one is used for its steps, others add what it lacks."""

import pytest
from tests.queries.conftest import durable, each, phase, printed, shown_by, steps

from goodput_queries.scope import Scope


@pytest.mark.parametrize("attempt", [None, 0])
@pytest.mark.parametrize("off_s", [0, -7200, -300, 55, 300, 7200])
def test_a_log_whose_clock_is_off_lengthens_no_step(cluster, off_s, attempt):
    """Nor does one that prints the same steps, and its start, by the same clock."""
    cluster.job_on_a_node("1", 0, 30_000, 1)
    ran = [*steps(1, 5, 10_010), *steps(6, 12, 10_100)]
    events = [*ran, {**phase("ckpt_save", 10_060, 10_080), "step": 5}]
    cluster.events("1", events, attempt=attempt)
    yield
    alone = cluster.gpu_s()
    assert (alone["step_unsplit"], alone["checkpoint_save"]) == (120, 20)

    begun = [] if off_s else [{"event": "job.start", "t": 10_005}]
    lines = [*begun, *printed(ran), events[-1]]
    cluster.log("1", [{**line, "t": line["t"] + off_s} for line in lines])
    yield
    assert cluster.gpu_s() == alone
    assert cluster.read("select attempts from marts.runs").item() == 1


def test_a_log_keeps_the_attempts_that_the_job_numbers_over_job_runs(cluster):
    cluster.job_on_a_node("7", 0, 100, 1, "FAILED", job_name="r")
    cluster.job("8", 150, 310, ["a"], 1, job_name="r")
    first, second = steps(1, 8, 10), steps(5, 18, 160)
    cluster.events("r", [*first, durable(4, 50)], attempt=0)
    cluster.events("r", second, attempt=1)
    yield
    alone = cluster.gpu_s()

    said = [{"event": "failure", "kind": k, "t": t} for k, t in (("exception", 94), ("nan", 95))]
    cluster.log("r", [*printed(first), *said])
    cluster.log("r", [{"event": "job.start", "t": 152}, *printed(second)])
    yield
    assert cluster.gpu_s() == alone
    sql = f"""select attempt, kind from intermediate.int_attempts
        left join intermediate.int_reported_failures using (attempt_key)
        where int_attempts.cluster = '{cluster.name}' order by all"""
    assert cluster.read(sql).rows() == [(0, "nan"), (1, None)]


# what it shows: state of the job run, its own events, those of its log, GPU-s of some categories
@each({
    "a step that the job began and only the log ended counts": (
        "COMPLETED", [*steps(1, 5, 10), {"event": "step.start", "step": 6, "t": 60}],
        [{"event": "step", "step": 5, "t": 60.4}, {"event": "step", "step": 6, "t": 72}],
        {"step_unsplit": 62}),
    "steps before and after those of the job count": (
        "COMPLETED", [{**step, "attempt": None} for step in steps(6, 10, 60)], steps(1, 15, 10),
        {"step_unsplit": 150}),
    "a phase that only the log reports counts": (
        "COMPLETED", [*steps(1, 5, 10), *steps(6, 12, 80)], [phase("ckpt_save", 60, 78)],
        {"checkpoint_save": 18}),
    "of a phase that both report the job has the last word": (
        "COMPLETED", [*steps(1, 5, 10), phase("ckpt_save", 60, 79), *steps(6, 12, 80)],
        [phase("ckpt_save", 56, 85)], {"checkpoint_save": 19, "step_unsplit": 120}),
    "a save that only the log proves keeps steps": (
        "FAILED", steps(1, 8, 10), [durable(6, 75)], {"step_unsplit": 60, "lost_work": 20}),
})  # fmt: skip
def test_a_log_adds_what_the_job_does_not_report(cluster, state, events, log, expected):
    cluster.job_on_a_node("1", 0, 200, 1, state)
    cluster.events("1", events)
    cluster.log("1", log)
    yield
    found = cluster.gpu_s()
    assert {category: found[category] for category in expected} == expected
    steps_found = {row["step"] for row in (*events, *log) if row["event"] == "step"}
    assert cluster.read("select steps from marts.attempts").item() == len(steps_found)


def test_a_log_that_cannot_report_saves_makes_no_doubt_of_what_the_job_says(cluster):
    cluster.job_on_a_node("1", 0, 100, 1, "FAILED")
    cluster.job("2", 100, 200, ["a"], 1)
    ran = steps(1, 8, 10)
    cluster.events("1", [*ran, durable(6, 75)])
    cluster.events("2", steps(7, 9, 110))
    yield
    alone = cluster.gpu_s()

    cluster.log("1", printed(ran))
    yield
    assert cluster.gpu_s() == alone


def waits(*ranks, is_named=False):
    """Return what loads 15 steps of four ranks, with the waits that each reports."""
    begun = {"event": "job.start", "t": 1}

    def load(cluster):
        cluster.job_on_a_node("1", 0, 200, 4)
        for rank, of_steps in enumerate(ranks):
            ran = [] if of_steps is None else steps(1, 15, 10, **of_steps)
            gpu = cluster.gpu(f"a#{rank}") if is_named else None
            cluster.events("1", [begun, *ran], rank=rank, gpu_uuid=gpu)

    return load


def spent(cluster):
    found = cluster.gpu_s()
    return [found.get(name) for name in ("data_stall", "exposed_comm", "straggler_wait")]


OF_RANK_0 = {"data_s": 2.0, "comm_s": 1.0, "straggler_s": 1.0}
TOKENS = "select sum(tokens) from marts.train_steps"
PRINTED = [{**row, "tokens": 50.0} for row in printed(steps(1, 8, 10))]
test_what_ranks_and_logs_report = shown_by({
    "rank 0 reports the waits of silent ranks": (waits(OF_RANK_0), spent, [120, 60, 60]),
    "rank 0 reports those of ranks that only start": (
        waits(OF_RANK_0, None, None, None), spent, [120, 60, 60]),
    "and of those that name their GPUs": (
        waits(OF_RANK_0, None, None, None, is_named=True), spent, [120, 60, 60]),
    "rank 0 reports those of ranks that step": (waits(OF_RANK_0, {}, {}, {}), spent, [120, 60, 60]),
    "where several ranks report waits each counts for itself": (
        waits({"data_s": 2.0}, {"data_s": 2.0}, {}, {}), spent, [2 * 30, None, None]),
    "tokens that only the log counts are counted": (
        lambda c: [c.job_on_a_node("1", 0, 100, 1), c.events("1", steps(1, 8, 10)),
                   c.log("1", PRINTED)], lambda c: c.read(TOKENS, Scope(run=f"{c.name}/1")).item(),
        400),
})  # fmt: skip


READ_S = range(0, 7_201, 30)


def disagreements(cluster):
    return cluster.read("select fact, said from marts.disagreeing_instruments").rows()


def gpu(cluster, watts, counted_w):
    """Add a GPU whose power readings and counter are of these powers, for two hours."""
    node = f"{cluster.name}-n"
    cluster.telemetry(node, 1)
    counted = {"power_w": watts, "energy_j": lambda s: counted_w * s, "gpu_busy_ratio": 1.0}
    cluster.readings(cluster.gpu(f"{node}-0"), READ_S, "nvml", **counted)


# what it shows: power by its readings, by the counter, at the node's meter: what disagrees
test_energy = shown_by({
    "a counter of half the power": (400.0, 200.0, None, ["energy of a GPU"]),
    "within a tenth": (400.0, 380.0, None, []),
    "a meter that has less than the GPU": (400.0, 400.0, 300.0, ["energy of a node"]),
    "a server draws more than its GPU": (400.0, 400.0, 700.0, []),
}, read=lambda c: [fact for fact, _ in disagreements(c)], load=lambda c, watts, counted, meter_w: [
    gpu(c, watts, counted),
    meter_w and c.host(f"{c.name}-n", READ_S, "ipmi", power_w=meter_w)])  # fmt: skip


def test_both_figures_are_said(cluster):
    gpu(cluster, 400.0, 200.0)
    yield
    ((_, said),) = disagreements(cluster)
    assert said.endswith("kWh")
    assert "its counter has 0.38" in said
    assert "its power readings 0.76" in said


def test_a_job_that_failed_and_a_scheduler_that_completed_it(cluster):
    cluster.job_on_a_node("7", 0, 900, 1)
    failure = {"event": "failure", "kind": "cuda_error", "t": 810}
    cluster.events("7", [*steps(1, 80, 0), failure])
    cluster.job("8", 900, 1800, ["a"], 1, state="FAILED")
    cluster.events("8", [*steps(1, 80, 900), {**failure, "t": 1710}])
    yield
    said = "the scheduler has COMPLETED, the job reports cuda_error at 2027-01-15 08:13:30"
    assert disagreements(cluster) == [("outcome", said)]
