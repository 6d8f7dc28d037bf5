"""How far a run came and when, what its hosts read for it, its goodput by wall clock, its lane."""

import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from tests.queries.conftest import (
    built_once,
    durable,
    each,
    phase,
    read_from_world,
    shown_by,
    steps,
)
from tests.queries.loaders import START_MS

from goodput_ingest.source import ReadOptions
from goodput_ingest.sources.job_logs.source import JobLog
from goodput_queries.ledger import ledger
from goodput_queries.scope import Scope

CASES = sorted(Path(__file__).with_name("wall_clock_cases").iterdir())
PARTS = ("wall", "lost", "rescheduling", "resuming", "saving")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_log_gives_the_parts_and_the_ratio(cluster, case):
    given = json.loads((case / "case.json").read_text())
    cluster.node("a", 1)
    for run, start, end, state in given["jobs"]:
        cluster.job(run, start, end, ["a"], 1, state=state)
    options = ReadOptions(cluster=cluster.name, run_id="7", zone=ZoneInfo("UTC"))
    for log in sorted(case.glob("*.log")):
        for batch in JobLog(log, options).extract():
            cluster.store.load(batch)
    yield
    (run,) = cluster.read("select * from marts.run_wall_clock").rows(named=True)
    found = {f"{part}_s": run[f"{part}_ms"] / 1000 for part in PARTS}
    assert {**found, "goodput": round(run["nvcre_goodput_ratio"], 6)} == given["expected"]


MEASURED, UNMEASURED = steps(1, 100, 20, comm_s=1.0, straggler_s=1.0), steps(101, 299, 1025)


@pytest.mark.parametrize("window", [(0, 3600), (615, 1234), (1019, 1027), (3000, 3100)])
# what a rank reports
@each({
    "its own waits": lambda rank: steps(1, 300, 20, comm_s=1 + rank / 4, straggler_s=2 - rank / 2,
                                        data_s=0.5),
    "waits of rank 0 alone": lambda rank: steps(
        1, 300, 20, **({"comm_s": 1.0, "straggler_s": 0.5} if rank == 0 else {})),
    "waits for data, which do not split a step": lambda rank: steps(1, 300, 20, data_s=1.0 + rank),
    "steps around a save of 5 s": lambda rank: [
        *MEASURED, *([] if rank else [phase("ckpt_save", 1020, 1025)]), *UNMEASURED],
})  # fmt: skip
def test_a_lane_adds_up_to_the_ledger(cluster, window, evidence):
    cluster.job_on_a_node("7", 0, 3600, 2, watched=3600)
    for rank in range(2):
        of_gpu = {"rank": rank, "gpu_uuid": f"a#{rank}"}
        cluster.events("7", [*evidence(rank), durable(300, 3030)], **of_gpu)

    yield

    first, last = (START_MS + 1000 * second for second in window)
    scope = Scope(first, last, cluster=cluster.name, run=f"{cluster.name}/7")
    drawn = Counter()
    lane = "category, epoch_ms(start_at), epoch_ms(end_at), share_ratio from marts.run_timeline"
    for category, start, end, share in cluster.read(f"select {lane}", scope).rows():
        drawn[category] += 2 * share * (min(end, last) - max(start, first))
    found = ledger(cluster.store, by=["category"], scope=scope)
    expected = dict(found.select("category", "gpu_ms").rows())
    assert {name: round(ms) for name, ms in drawn.items()} == expected

    whole = Scope(first, last, cluster=cluster.name, bucket_ms=600_000)  # of GPUs, in bins
    bins = "select category, sum(gpu_ms)::bigint from marts.category_bins group by all"
    lanes = {name: ms for name, ms in cluster.read(bins, whole).rows() if ms}
    found = ledger(cluster.store, by=["category"], scope=replace(whole, bucket_ms=None))
    assert lanes == dict(found.select("category", "gpu_ms").rows())


NEED = {"event": "metric", "t": 10, "extra": '{"input_bytes_per_gpu_s": 2e8}'}


def host(made, node, read_bytes_per_s, reads_per_s=0):
    made.host(node, range(0, 3601, 60), disk_read_bytes=lambda s: read_bytes_per_s * s,
              dirty_bytes=lambda s: s, disk_reads=lambda s: reads_per_s * s,
              memory_total_bytes=10**12, memory_available_bytes=6 * 10**11, page_cache_bytes=10**11,
              cpu_busy_s=lambda s: s, cpu_total_s=lambda s: 4 * s)  # fmt: skip


def gang(made, job, nodes, gpus=2):
    for node in nodes:
        for gpu in range(gpus):
            made.samples(f"{node}#{gpu}", made.every(-10, 3600), lambda _: True)
    made.job(job, 0, 3600, nodes, gpus * len(nodes), "COMPLETED")


EPOCHS = [
    {**step, "data_s": wait, "extra": f'{{"epoch": {epoch + n / 10}}}'}
    for epoch, wait in ((0, 4.0), (1, 1.0))
    for n, step in enumerate(steps(10 * epoch + 1, 10 * epoch + 10, 100 * epoch, 10))
]
PLAN = {"event": "metric", "t": 5, "extra": '{"planned_steps": 1101}'}
WITH_A_PAUSE = [*steps(1, 51, 0), *steps(52, 101, 1010)]


def run(made, *lives, end=None, plan=PLAN, price=36, until=1510):
    """Load a run of two GPUs, and what each of its lives reports."""
    made.watched(until)
    if price:
        made.add("rates", gpu_model="h100", price_per_gpu_h=Decimal(price))
    made.job_on_a_node("1", 0, end, 2, "RUNNING" if end is None else "COMPLETED")
    for attempt, events in enumerate(lives):
        of_first = [plan] if plan and attempt == 0 else []
        made.events("1", [*of_first, *events], attempt=attempt)


ENDS = f"""select done_steps, round(progress_ratio, 3), pace_s, stepping_s,
    (epoch_ms(expected_end_at) - {START_MS}) // 1000, (epoch_ms(earliest_end_at) - {START_MS}) // 1000,
    expected_rest_cost, earliest_rest_cost
    from marts.run_forecasts"""  # noqa: E501 -- a column each
IN_2000 = {"event": "metric", "t": 5, "extra": '{"planned_steps": 2000}'}
INTERVAL = f"""select round((epoch_ms(columns(['expected_end_at', 'low_end_at', 'high_end_at'])) - {START_MS}) / 3.6e6, 2),
    round(columns(['expected_rest_cost', 'low_rest_cost', 'high_rest_cost']), 0) from marts.run_forecasts"""  # noqa: E501 -- a column each
test_what_is_read_of_runs = shown_by({
    # accounting alone: allocated time, and no word of what the GPUs did in it
    "a run of which nothing is measured has no goodput": (
        lambda c: c.job_on_a_node("1", 0, 1000, 1),
        "select goodput_of_held_ratio, goodput_of_held_hi_ratio from marts.runs", [(None, 1)]),
    "reads of a host that two jobs share are of neither": (
        lambda c: [gang(c, "1", ["a"], 1), c.job("2", 0, 3600, ["a"], 1),
                   c.samples("a#1", c.every(-10, 3600), lambda _: True), host(c, "a", 400_000_000)],
        "from marts.run_input", []),
    "reads of its hosts count for each GPU of a run": (
        lambda c: [gang(c, "1", ["a", "b"]), c.events("1", [*steps(1, 300, 0, 10), NEED]),
                   host(c, "a", 400_000_000, 100), host(c, "b", 200_000_000, 50)],
        "select gpus, nodes, read_bytes_per_gpu_s, mean_read_bytes, most_read_bytes_per_gpu_s, "
        "need_bytes_per_gpu_s, memory_available_bytes, columns('u.*_ratio') from marts.run_input",
        [(4, 2, 150_000_000, 4_000_000, 150_000_000, 2e8, 6 * 10**11, 0.25, 0.4)]),
    "a first epoch waits longer than the next": (
        lambda c: [gang(c, "1", ["a"]), c.events("1", EPOCHS)],
        "select epoch, steps, data_wait_ratio, median_step_s from marts.run_epochs order by epoch",
        [(0, 10, 0.4, 10.0), (1, 10, 0.1, 10.0)]),
    "numbers that a job reports under names of its own are shown, and the plan is not": (
        lambda c: run(c, [{**PLAN, "t": at, "extra": f'{{"noise.scale": {at}, "note": "x"}}'}
                          for at in (30, 10, 20)]),
        "select * exclude (run_key) from marts.run_metrics", [("noise.scale", 3, 10, 30, 10, 30)]),
    "a run ends at its pace with its pauses, at the earliest at that of its steps": (
        lambda c: run(c, WITH_A_PAUSE), ENDS,
        [(101, 0.092, 15.0, 10.0, 16_510, 11_510, 300.0, 200.0)]),
    "a run that stands ends later with each second": (
        lambda c: run(c, WITH_A_PAUSE, until=2510), ENDS,
        [(101, 0.092, 25.0, 10.0, 27_510, 12_510, 500.0, 200.0)]),
    "without a price it ends as well": (
        lambda c: run(c, WITH_A_PAUSE, price=None), ENDS,
        [(101, 0.092, 15.0, 10.0, 16_510, 11_510, None, None)]),
    "steps that are reported ten at a time count as ten": (
        lambda c: run(c, [{"event": "step", "step": 10 * n, "t": 100 * n, "dur_s": 100}
                          for n in range(1, 11)], until=1000),
        ENDS, [(100, 0.091, 10.0, 10.0, 11_010, 11_010, 200.2, 200.2)]),
    "steps that are done again slow the pace": (
        lambda c: run(c, steps(1, 50, 0), steps(1, 51, 1000)), ENDS,
        [(51, 0.046, 30.0, 10.0, 33_010, 12_010, 630.0, 210.0)]),
    "what is done again from the start has no pace yet": (
        lambda c: run(c, steps(1, 50, 0), steps(1, 1, 1000)), ENDS,
        [(1, 0.001, None, None, None, None, None, None)]),
    "hours alike end it in a narrow interval": (
        lambda c: run(c, steps(1, 500, 0, 40), until=20_000, plan=IN_2000), INTERVAL,
        [(22.22, 22.22, 22.22, 1200.0, 1200.0, 1200.0)]),
    "an hour in five without a step widens it": (
        lambda c: run(c, [*steps(1, 180, 0, 40), *steps(181, 410, 10_800, 40)], until=20_000,
                      plan=IN_2000),
        INTERVAL, [(27.11, 20.4, 45.54, 1552.0, 1068.0, 2879.0)]),
    "four hours of which one has all steps set no end": (
        lambda c: run(c, [*steps(1, 2, 0, 40), *steps(3, 90, 14_400, 40)], until=17_900,
                      plan=IN_2000),
        INTERVAL, [(111.57, 24.9, None, 7674.0, 1434.0, None)]),
    "a run that ended has no forecast": (
        lambda c: run(c, WITH_A_PAUSE, end=1600), "from marts.run_forecasts", []),
    "a run that does not say how many steps it is to have has none": (
        lambda c: run(c, WITH_A_PAUSE, plan=None), "from marts.run_forecasts", []),
})  # fmt: skip


@each((24, 0.02), (24, 0.1), (8, 0.02), (4, 0.0))
def test_of_a_hundred_runs_some_95_end_in_their_interval(store, hours, down):
    """Hours of 90 steps give or take 15, of which some are lost to outages."""
    chance = np.random.default_rng(7)
    steps_of = chance.normal(90, 15, (1000, 400)).clip(0) * (chance.random((1000, 400)) >= down)
    past, future = steps_of[:, :hours], steps_of[:, hours:].cumsum(axis=1)
    rows = [past.mean(axis=1), past.std(axis=1, ddof=1), (future < 2700).sum(axis=1) + 0.5]

    found = store.read(
        f"""select avg((ended between found.low and coalesce(found.high, 'inf'))::int) from (
            select ended, hours_until(2700, mean, deviation, {hours}) as found from (
                select unnest($1::double[]) as mean, unnest($2::double[]) as deviation,
                    unnest($3::double[]) as ended))""",
        [row.tolist() for row in rows],
    ).item()

    assert 0.92 <= found <= 0.99


SCOPE = Scope(from_ms=START_MS, to_ms=START_MS + 3_600_000)


@built_once
def world(made):
    """Give two job runs that waited, one that waits, one whose dependency is not met, no GPUs."""
    made.node("a", 8, watched=3600)
    made.job("1", 600, 700, ["a"], 1, submit=0, account="nlp", gpus_requested=1)
    made.job("2", 800, 900, ["a"], 8, submit=0, eligible=600, account="nlp", gpus_requested=8)
    pending = {"observed_at": made.at(3600), "submit": 3000, "account": "cv", "gpus_requested": 16}
    made.job("3", None, None, [], None, "PENDING", reason="QOSMaxGRESPerUser", **pending)
    made.job("4", None, None, [], None, "PENDING", eligible=None, reason="Dependency", **pending)
    made.job("5", 100, 200, ["a"], 0, submit=0, account="web", gpus_requested=0)
    made.job("6", None, 900, [], None, submit=0, account="nlp", gpus_requested=4, state="CANCELLED")


WAITS = "from marts.queue_waits where group_by = '{}' order by name"
OF_TEAM = (f"select started, waiting, wait_p50_s, wait_max_s, round(wait_p90_s), longest_waiting_s "
           f"{WAITS.format('team')}")  # fmt: skip
NLP, CV = (replace(SCOPE, team=team) for team in ("nlp", "cv"))
test_queue_waits = read_from_world({
    "a wait goes from eligible to start": (OF_TEAM, [(2, 0, 400, 600, 560, None)], NLP),
    "what waits is counted until the end of the window": (
        f"select name, started, waiting, waiting_gpus, wait_p50_s, longest_waiting_s "
        f"{WAITS.format('team')}", [("cv", 0, 1, 16, None, 600)], CV),
    "job runs that wait at the end of an earlier window": (
        f"select started, waiting, longest_waiting_s {WAITS.format('team')}", [(0, 2, 300)],
        replace(Scope(from_ms=START_MS, to_ms=START_MS + 300_000), team="nlp")),
    "reasons are those of the scheduler, where it gives one": (
        f"select name, started, waiting {WAITS.format('reason')}",
        [("QOSMaxGRESPerUser", 0, 1), ("not given", 2, 0)], SCOPE),
    "sizes are by the GPUs asked for": (
        f"select name, started {WAITS.format('size')}",
        [("1 GPU", 1), ("2 to 8 GPUs", 1), ("9 to 64 GPUs", 0)], SCOPE),
})  # fmt: skip
