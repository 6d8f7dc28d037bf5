"""What findings a made-up fleet must have, from what was put into it, and what it may have."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from tests.findings.faults import Case

MARGIN = 1.25  # a loss nearer to the limit of its rule than this proves nothing
MIN_MS = 2_000
STARTS = ("startup", "restore")
BIN_MS = 600_000
CATEGORIES = {  # rule -> categories of a run that it is about
    "input_stall": ("data_stall",),
    "checkpoint_overhead": ("checkpoint_save",),
    "idle_allocation": ("idle_held",),
    "gang_wait": ("gang_wait", "suspended"),
    "failures": ("fault_stall", "lost_work", "failed_without_progress"),
}
LIMITS = {"checkpoint_overhead": "finding_saves_share"}
FAILURES = ("job_failure", "time_limit", "preempted", "hang", "infrastructure_failure")
FLEET = {
    "idle_with_demand": "idle_with_demand",
    "stranded_gpus": "stranded",
    "reservation_idle": "reserved_idle",
}
STORIES = {"throttled_gpu": "thermal-throttle", "slow_rank": "straggling-rank"}


OF_RUNS = (
    *("low_use", "unused_gpus", "use_drop", "power_drop", "periodic_gaps", "steps_slower"),
    *("io_starved", "cpu_starved", "cpu_oversubscribed", "host_memory_full", "swap_in_use"),
)


@dataclass
class Expected:
    """Subjects of a rule: those that must be found, and those that may be."""

    must: set[str] = field(default_factory=set)
    may: set[str] = field(default_factory=set)


def expected(folder: Path, thresholds: dict[str, float]) -> dict[str, Expected]:
    """Return what is expected of each rule, by run, node, GPU or cluster."""
    found = {**_of_runs(folder, thresholds), **_of_fleet(folder, thresholds)}
    lines = (folder / "truth_notes.jsonl").read_text().splitlines()
    return found | _of_notes([json.loads(line) for line in lines], _nodes_by_category(folder))


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
    found["low_use"] = _of_low_use(folder, thresholds)
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
        found[case.rule].must.add(case.subject)
        for rule in case.also:
            found.setdefault(rule, Expected()).may.add(case.subject)
    return found


def _of_low_use(folder: Path, thresholds: dict[str, float]) -> Expected:
    """Return the jobs of low mean activity by the readings of whole ten minutes after start-up.

    Impossible readings, over 1, are rejected and do not count.
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
    found = Expected()
    readings = pl.concat(
        pl.read_parquet(file, columns=["ts", "gpu_uuid", *limits])
        for file in (folder / "telemetry").iterdir()
    ).with_columns(at_ms=pl.col("ts").dt.epoch("ms"))
    for run, of_run in held.group_by("run_id"):
        start, end = of_run["start_ms"].min(), of_run["end_ms"].max()
        assert isinstance(start, int)
        assert isinstance(end, int)
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
            found.may.add(str(run[0]))
        elif score * MARGIN < 1 and minutes >= least * 2:
            found.must.add(str(run[0]))
        elif score < MARGIN and minutes >= least / MARGIN:
            found.may.add(str(run[0]))
    return found


def _whole_bins(start_ms: int, end_ms: int) -> tuple[int, int]:
    """Return begin and end of the whole ten minutes of a time, which the rules look at."""
    return -(-start_ms // BIN_MS) * BIN_MS, end_ms // BIN_MS * BIN_MS


def _of_pauses(folder: Path, thresholds: dict[str, float]) -> Expected:
    """Return the runs that pause for a large part of their time: they may do so regularly.

    So may those that report nothing: their saves are in the readings and not in the truth.
    """
    rows = lost_ms(folder).filter(pl.col("run_id").is_not_null())
    pauses = pl.col("expected").is_in(
        ("checkpoint_save", "idle_held", "other_declared", "data_stall")
    )
    is_classified = ~pl.col("expected").is_in(("busy_unclassified", "unknown"))
    shares = rows.group_by("run_id").agg(
        share=pl.col("gpu_ms").filter(pauses).sum() / pl.col("gpu_ms").sum(),
        has_evidence=is_classified.any(),
    )
    is_large = pl.col("share") >= thresholds["period_min_share"] / MARGIN
    return Expected(set(), set(shares.filter(is_large | ~pl.col("has_evidence"))["run_id"]))


def lost_ms(folder: Path) -> pl.DataFrame:
    """Return the truth's GPU time by run and category, as far as evidence can show it."""
    length = (pl.col("end_ms") - pl.col("start_ms")) * pl.col("slices") / 7
    return (
        pl.read_parquet(folder / "truth.parquet")
        .with_columns(length.alias("gpu_ms"))
        .group_by("run_id", "expected")
        .agg(pl.col("gpu_ms").sum())
    )


def _of_runs(folder: Path, thresholds: dict[str, float]) -> dict[str, Expected]:
    rows = lost_ms(folder).filter(pl.col("run_id").is_not_null())
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


def _of_fleet(folder: Path, thresholds: dict[str, float]) -> dict[str, Expected]:
    rows = lost_ms(folder)
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
        for rule in ("node_down", "node_drained", "gpu_error", "link_down", *STORIES)
    }
    for note in notes:
        state = note.get("state")
        is_outage = note["kind"] == "outage" and state in ("down", "drained")
        if is_outage and (note["node"], state) in nodes:
            found[f"node_{state}"].must.add(note["node"])
        elif note["kind"].startswith("xid"):
            found["gpu_error"].must.add(note["gpu_uuid"])
        elif note["kind"] == "lost link":
            found["link_down"].must.add(note["node"])
        for rule, story in STORIES.items():
            if note.get("story") == story and note["steps"] > 100:
                found[rule].must.add(note["run_id"])
    return found
