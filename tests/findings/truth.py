"""What findings a made-up fleet must have, from what was put into it, and what it may have."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from tests.findings.planted import Case

MARGIN = 1.25  # a loss nearer to the limit of its rule than this proves nothing
MIN_MS = 2_000
READ_MS = 60_000  # readings of the fleets are at most so far apart
MOST = 0.95  # of the idle time of a run, so that it is of one kind
STARTS = ("startup", "restore")
BIN_MS = 600_000
CATEGORIES = {  # rule, or name of several -> categories of a run that it is about
    "input_stall": ("data_stall",),
    "checkpoint_overhead": ("checkpoint_save",),
    "idle": ("idle_held",),
    "gang_wait": ("gang_wait", "suspended"),
    "failures": ("fault_stall", "lost_work", "failed_without_progress"),
}
LIMITS = {"checkpoint_overhead": "finding_saves_share"}
FAILURES = {  # state of the scheduler -> rule
    "FAILED": "job_failure",
    "OUT_OF_MEMORY": "job_failure",
    "CANCELLED": "time_limit",  # a limit or a cancellation
    "COMPLETED": "job_failure",  # restarted within the job
    "RUNNING": "job_failure",
    "TIMEOUT": "time_limit", "PREEMPTED": "preempted", "REQUEUED": "preempted",
    "NODE_FAIL": "infrastructure_failure",
}  # fmt: skip
ACTIVE = ("productive", "step_unsplit", "exposed_comm", "at_risk", "lost_work", "busy_unclassified")
UNCLASSIFIED = ("busy_unclassified", "unknown")
FLEET = {
    "idle_without_demand": "idle_no_demand", "idle_with_demand": "idle_with_demand",
    "stranded_gpus": "stranded", "reservation_idle": "reserved_idle",
}  # fmt: skip
STORIES = {"throttled_gpu": "thermal-throttle", "slow_rank": "straggling-rank"}


OF_RUNS = (
    *("low_use", "unused_gpus", "use_drop", "power_drop", "periodic_gaps", "steps_slower"),
    *("io_starved", "cpu_starved", "cpu_oversubscribed", "host_memory_full", "swap_in_use"),
    *("half_use", "busy_without_work", "loss_not_finite", "loss_diverged", "driver_skew"),
    *("idle_allocation", "gaps_between_steps", "communication_share", "nvlink_saturated"),
    *("small_reads", "slow_feed", "unexplained_wait", "socket_fallback"),
    *("job_misconfigured", "job_settings_differ"),
)


@dataclass
class Expected:
    """Subjects of a rule: those that must be found, and those that may be."""

    must: set[str] = field(default_factory=set)
    may: set[str] = field(default_factory=set)


def expected(folder: Path, thresholds: dict[str, float]) -> dict[str, Expected]:
    """Return what is expected of each rule, by run, node, GPU or cluster."""
    rows = lost_ms(folder, thresholds)
    found = {**_of_runs(rows, thresholds), **_of_fleet(rows, thresholds)}
    lines = (folder / "truth_notes.jsonl").read_text().splitlines()
    notes = [json.loads(line) for line in lines]
    jobs = _jobs(folder)
    found |= _of_endings(jobs, notes, found.pop("failures"))
    found |= _of_idle(spent(folder, thresholds), found.pop("idle"))
    found["unclassified_time"] = _of_unclassified(jobs, rows, thresholds)
    found["silent_node"] = _of_silences(notes, thresholds)
    return found | _of_notes(notes, _nodes_by_category(folder))


def _of_silences(notes: list[dict[str, Any]], thresholds: dict[str, float]) -> Expected:
    """Return the nodes whose monitoring was away for long; those that were out of use may be."""
    found = Expected()
    for note in notes:
        if note["kind"] == "outage":
            found.may.add(note["node"])
        elif note["kind"] == "silence: monitoring":
            is_long = note["to_ms"] - note["from_ms"] >= thresholds["silent_restart_ms"] * MARGIN
            is_used = not any(
                other["kind"] == "outage"
                and other["node"] == note["node"]
                and other["from_ms"] < note["to_ms"]
                and note["from_ms"] < (other["to_ms"] or note["to_ms"] + 1)
                for other in notes
            )
            (found.must if is_long and is_used else found.may).add(note["node"])
    return found


def _nodes_by_category(folder: Path) -> set[tuple[str, str]]:
    """Return the nodes and the categories that their GPUs have time of."""
    nodes = pl.read_csv(folder / "inventory.csv").select("gpu_uuid", "node")
    truth = pl.read_parquet(folder / "truth.parquet", columns=["gpu_uuid", "expected"])
    return set(truth.unique().join(nodes, on="gpu_uuid").select("node", "expected").iter_rows())


def labelled(folder: Path, cases: list[Case], thresholds: dict[str, float]) -> dict[str, Expected]:
    """Return what is expected of the rules about anomalies in a fleet with labelled cases."""
    rules = {rule for case in cases for rule in (case.rule, *case.also)}
    found: dict[str, Expected] = {rule: Expected() for rule in sorted(rules)}
    found |= {rule: of for rule, of in expected(folder, thresholds).items() if rule in rules}
    found |= of_use(folder, thresholds)
    found["periodic_gaps"] = _of_pauses(folder, thresholds)
    inventory = pl.read_csv(folder / "inventory.csv")
    node_of = dict(inventory.select("gpu_uuid", "node").iter_rows())
    for line in (folder / "truth_notes.jsonl").read_text().splitlines():
        note = json.loads(line)
        # GPUs of a story that are unlike the others of their job
        special = note.get("special_gpu_uuids", ())
        found["peer_sm_active"].may |= set(special)
        found["node_temperature"].may |= {node_of[gpu] for gpu in special}
    for case in cases:
        (found[case.rule].must if case.is_sure else found[case.rule].may).add(case.subject)
        for rule in case.also:
            found.setdefault(rule, Expected()).may.add(case.subject)
    return found


def of_use(folder: Path, thresholds: dict[str, float]) -> dict[str, Expected]:
    """Return the jobs of low mean activity by the readings of whole ten minutes after start-up.

    Impossible readings, over 1, are rejected and do not count. Whoever uses half of its GPUs may be
    a finding about what it waits for instead. Whoever pauses for a tenth of it may be a finding of
    `below_full_use` where no other rule says why.
    """
    held = (
        pl.read_parquet(folder / "truth.parquet")
        .filter(pl.col("run_id").is_not_null() & (pl.col("gpu_instance") == ""))
        .group_by("run_id", "gpu_uuid")
        .agg(pl.col("start_ms").min(), pl.col("end_ms").max())
    )
    limits = {
        name: thresholds[f"low_use_{name.split('_')[0]}_ratio"]
        for name in ("sm_active_ratio", "tensor_active_ratio", "dram_active_ratio")
    }
    low, half, below = Expected(), Expected(), Expected()
    readings = pl.concat(
        pl.read_parquet(file, columns=["ts", "gpu_uuid", "gpu_busy_ratio", *limits])
        for file in (folder / "telemetry").iterdir()
    ).with_columns(at_ms=pl.col("ts").dt.epoch("ms"))
    for run, of_run in held.group_by("run_id"):
        start, end = of_run["start_ms"].min(), of_run["end_ms"].max()
        mine = readings.filter(
            pl.col("gpu_uuid").is_in(of_run["gpu_uuid"].to_list())
            & pl.col("at_ms").is_between(*_whole_bins(start + BIN_MS, end), closed="left")
        )
        if mine.is_empty():
            continue
        means = mine.select(pl.col(name).filter(pl.col(name) <= 1).mean() for name in limits)
        score = max(float(means[name][0] or 0) / limits[name] for name in limits)
        minutes = (end - start) / 60_000 - 10
        least = thresholds["low_use_min_ms"] / 60_000
        if score == 0:  # that is unused_gpus
            low.may.add(str(run[0]))
        elif score * MARGIN < 1 and minutes >= least * 2:
            low.must.add(str(run[0]))
        elif score < MARGIN and minutes >= least / MARGIN:
            low.may.add(str(run[0]))
        is_half = float(means["sm_active_ratio"][0] or 0) < thresholds["half_use_ratio"] * MARGIN
        if is_half and minutes * 60_000 >= thresholds["half_use_min_ms"] / MARGIN:
            half.may.add(str(run[0]))
        pauses = 1 - float(mine["gpu_busy_ratio"].mean() or 0)  # type: ignore[arg-type] -- floats
        if pauses >= (1 - thresholds["full_use_ratio"]) / MARGIN:
            below.may.add(str(run[0]))
    return {"low_use": low, "half_use": half, "below_full_use": below}


def _whole_bins(start_ms: int, end_ms: int) -> tuple[int, int]:
    """Return begin and end of the whole ten minutes of a time, which the rules look at."""
    return -(-start_ms // BIN_MS) * BIN_MS, end_ms // BIN_MS * BIN_MS


def _of_pauses(folder: Path, thresholds: dict[str, float]) -> Expected:
    """Return the runs that pause for a large part of their time: they may do so regularly.

    So may those that report nothing: their saves are in the readings and not in the truth.
    """
    rows = lost_ms(folder, thresholds).filter(pl.col("run_id").is_not_null())
    pauses = pl.col("expected").is_in(
        ("checkpoint_save", "idle_held", "pause", "other_declared", "data_stall")
    )
    is_classified = ~pl.col("expected").is_in(("busy_unclassified", "unknown"))
    shares = rows.group_by("run_id").agg(
        share=pl.col("gpu_ms").filter(pauses).sum() / pl.col("gpu_ms").sum(),
        has_evidence=is_classified.any(),
    )
    is_large = pl.col("share") >= thresholds["period_min_share"] / MARGIN
    return Expected(set(), set(shares.filter(is_large | ~pl.col("has_evidence"))["run_id"]))


def spent(folder: Path, thresholds: dict[str, float]) -> pl.DataFrame:
    """Return the truth's GPU time, as far as evidence can show it: a row for each stretch.

    What a run that reports nothing is inactive at first is a pause, in which nothing is idle yet.
    """
    is_silent = pl.col("expected").is_in((*UNCLASSIFIED, "idle_held")).all().over("run_id")
    is_idle = is_silent & (pl.col("expected") == "idle_held") & pl.col("run_id").is_not_null()
    rows = (
        pl.read_parquet(folder / "truth.parquet")
        .sort("gpu_uuid", "gpu_instance", "start_ms")
        .with_columns(is_idle.alias("is_idle"))
    )
    stretch = pl.struct("gpu_uuid", "gpu_instance", "run_id", "is_idle").rle_id()
    rows = rows.with_columns(
        pause_ms=(pl.col("start_ms").min().over(stretch) + thresholds["idle_min_ms"]).clip(
            pl.col("start_ms"), pl.col("end_ms")
        )
    )
    pauses = rows.filter("is_idle").with_columns(end_ms="pause_ms", expected=pl.lit("pause"))
    rows = rows.with_columns(start_ms=pl.when("is_idle").then("pause_ms").otherwise("start_ms"))
    length = (pl.col("end_ms") - pl.col("start_ms")) * pl.col("slices") / 7
    return pl.concat([rows, pauses], how="vertical_relaxed").with_columns(gpu_ms=length)


def lost_ms(folder: Path, thresholds: dict[str, float]) -> pl.DataFrame:
    """Return the truth's GPU time by run and category."""
    rows = spent(folder, thresholds)
    return rows.group_by("run_id", "expected").agg(pl.col("gpu_ms").sum())


def _of_runs(rows: pl.DataFrame, thresholds: dict[str, float]) -> dict[str, Expected]:
    rows = rows.filter(pl.col("run_id").is_not_null())
    held = dict(rows.group_by("run_id").agg(pl.col("gpu_ms").sum()).rows())
    found = {rule: Expected() for rule in CATEGORIES}
    for rule, categories in CATEGORIES.items():
        share = thresholds[LIMITS.get(rule, "finding_min_share")]
        lost = _by_run(rows, categories)
        starts: dict[str, float] = {}
        if rule == "failures":  # they cost the starts after them too, of which the first is none
            again = _by_run(rows, ("restore",))
            starts = {run: ms for run, ms in _by_run(rows, STARTS).items() if run in again}
        for run in lost.keys() | starts.keys():
            ms = lost.get(run, 0.0)
            limit = max(MIN_MS, share * held[run])
            if rule == "failures":
                limit = min(limit, max(MIN_MS, thresholds["finding_ticket_ms"]))
            if ms >= limit * MARGIN:
                found[rule].must.add(run)
            elif ms + starts.get(run, 0) >= limit / MARGIN:
                found[rule].may.add(run)
    return found


def _by_run(rows: pl.DataFrame, categories: tuple[str, ...]) -> dict[str, float]:
    """Return the GPU time of each run in some categories."""
    of_rule = rows.filter(pl.col("expected").is_in(categories))
    return dict(of_rule.group_by("run_id").agg(pl.col("gpu_ms").sum()).rows())


def _jobs(folder: Path) -> pl.DataFrame:
    """Return state, team and run of each job that ran."""
    runs = pl.read_parquet(folder / "truth.parquet", columns=["job_id", "run_id"])
    jobs = pl.read_csv(folder / "sacct.txt", separator="\x1f", infer_schema=False)
    return jobs.select(
        job_id="JobID", team="Account", state=pl.col("State").str.split(" ").list.first()
    ).join(runs.drop_nulls().unique(), on="job_id")


def _of_endings(
    jobs: pl.DataFrame, notes: list[dict[str, Any]], failures: Expected
) -> dict[str, Expected]:
    """Return what is expected of the rules of failures, by how the jobs of a run ended.

    A run that ended in two ways may be a finding of either rule. A hardware fault of a GPU is one
    of the infrastructure, whatever state the scheduler gave to the job.
    """
    found = {rule: Expected() for rule in FAILURES.values()}
    faulty = {note["job_id"] for note in notes if note["kind"].startswith("xid")}
    for (run,), of_run in jobs.group_by("run_id"):
        name = str(run)
        ends = set(of_run["state"])
        if len(ends) > 1:
            ends -= {"COMPLETED", "RUNNING"}
        rules = {FAILURES[state] for state in ends if state in FAILURES}
        if faulty & set(of_run["job_id"]):
            rules.add("infrastructure_failure")
        for rule in rules:
            if name in failures.must and len(rules) == 1:
                found[rule].must.add(name)
            elif name in failures.must | failures.may:
                found[rule].may.add(name)
    return found


def _of_idle(rows: pl.DataFrame, idle: Expected) -> dict[str, Expected]:
    """Return which runs are idle between their work and which after it; of both either may be.

    Work shorter than the time between two readings may be seen or not.
    """
    found = {"idle_allocation": Expected(), "gaps_between_steps": Expected()}
    is_work = pl.col("expected").is_in(ACTIVE)
    is_seen = is_work & (pl.col("end_ms") - pl.col("start_ms") >= READ_MS)
    sides = (
        rows.filter(pl.col("run_id").is_in(idle.must | idle.may))
        .with_columns(
            (pl.col("start_ms") < pl.col("end_ms").filter(work).max().over("run_id")).alias(name)
            for name, work in (("all", is_work), ("seen", is_seen)))
        .filter(pl.col("expected") == "idle_held")
        .group_by("run_id")
        .agg(
            ((pl.col("gpu_ms") * pl.col(name)).sum() / pl.col("gpu_ms").sum()).alias(name)
            for name in ("all", "seen"))
    )  # fmt: skip
    for run, *before in sides.iter_rows():
        after = [1 - share for share in before]
        for rule, shares in (("gaps_between_steps", before), ("idle_allocation", after)):
            if run in idle.must and min(shares) > MOST:
                found[rule].must.add(run)
            elif max(shares) > 0:
                found[rule].may.add(run)
    return found


def _of_unclassified(
    jobs: pl.DataFrame, rows: pl.DataFrame, thresholds: dict[str, float]
) -> Expected:
    """Return the teams with a run of which nothing classifies most of the time."""
    is_open = pl.col("expected").is_in(UNCLASSIFIED)
    share = pl.col("gpu_ms").filter(is_open).sum() / pl.col("gpu_ms").sum()
    shares = rows.group_by("run_id").agg(share=share).join(jobs, on="run_id")
    limit = thresholds["finding_open_share"]
    return Expected(
        set(shares.filter(pl.col("share") >= limit * MARGIN)["team"]),
        set(shares.filter(pl.col("share") >= limit / MARGIN)["team"]),
    )


def _of_fleet(rows: pl.DataFrame, thresholds: dict[str, float]) -> dict[str, Expected]:
    capacity = rows["gpu_ms"].sum()
    found = {}
    for rule, category in FLEET.items():
        share = rows.filter(pl.col("expected") == category)["gpu_ms"].sum() / capacity
        limit = thresholds["finding_min_share"]
        found[rule] = Expected(
            {"atlas"} if share >= limit * MARGIN else set(),
            {"atlas"} if share >= limit / MARGIN else set(),
        )
    return found


def _of_notes(notes: list[dict[str, Any]], nodes: set[tuple[str, str]]) -> dict[str, Expected]:
    """Return what is expected of notes; nodes: with the categories of their GPUs.

    A node that is drained while its jobs go on until the end has no drained time.
    """
    found = {
        rule: Expected()
        for rule in (
            "node_down", "node_drained", "gpu_error", "link_down", "slow_benchmark", *STORIES,
        )
    }  # fmt: skip
    for note in notes:
        state = note.get("state")
        is_outage = note["kind"] == "outage" and state in ("down", "drained")
        if is_outage and (note["node"], state) in nodes:
            found[f"node_{state}"].must.add(note["node"])
        elif note["kind"].startswith("xid"):
            found["gpu_error"].must.add(note["gpu_uuid"])
        elif note["kind"] == "lost link":
            found["link_down"].must.add(note["node"])
        elif note["kind"] == "slow node":
            found["slow_benchmark"].must.add(note["node"])
        for rule, story in STORIES.items():
            if note.get("story") == story and note["steps"] > 100:
                found[rule].must.add(note["run_id"])
    return found
