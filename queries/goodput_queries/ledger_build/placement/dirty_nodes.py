"""Since when a node is placed again: what one dirty node makes dirty on itself and on others."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import duckdb
import polars as pl

from goodput_queries.ledger_build.placement.evidence import (
    FOREVER_MS,
    Claim,
    JobRun,
    Node,
    Phase,
    Slots,
)

Name = tuple[str, str]  # of a slot: gpu_uuid, gpu_instance
Stored = tuple["Node", Name, Claim]
_Times = set[tuple[Name, str, int, int]]  # slot, job run, start, end


@dataclass
class Since:
    """Since when each dirty node is placed again, by the start of job runs."""

    by_node: dict[Node, int] = field(default_factory=dict)
    is_earlier: bool = False  # something was added since it was last written

    def add(self, node: Node, ms: int) -> None:
        """Make a node dirty from a time on."""
        if ms < self.by_node.get(node, FOREVER_MS):
            self.by_node[node] = ms
            self.is_earlier = True

    def has(self, run: JobRun, node: str) -> bool:
        """Say whether a job run is placed again on a node."""
        return run.run_start_ms >= self.by_node.get((run.cluster, node), FOREVER_MS)

    def write(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Write it to temp.dirty_nodes."""
        rows = [(*node, ms) for node, ms in self.by_node.items()]
        schema = {"cluster": pl.String, "node": pl.String, "since_ms": pl.Int64}
        cursor.register("placed", pl.DataFrame(rows, schema, orient="row").to_arrow())
        cursor.execute("create or replace temp table dirty_nodes as from placed")
        cursor.unregister("placed")
        self.is_earlier = False


def add_made_up(since: Since, runs: Iterable[JobRun], made_up: set[Node]) -> None:
    """Make nodes with made-up slots dirty from the first job run on, and all nodes of their runs.

    The number of slots decides how many GPUs a job run has on each of its nodes.
    """
    for node in made_up & since.by_node.keys():
        since.add(node, 0)
    for run in runs:
        nodes = [(run.cluster, name) for name in run.nodes]
        if not made_up.isdisjoint(nodes):
            for node in nodes:
                since.add(node, 0 if node in made_up else run.run_start_ms)


def add_spread(
    since: Since, runs: Iterable[JobRun], slots: Slots, stored: Iterable[Stored]
) -> None:
    """Make all nodes of spread job runs dirty: what is free on one decides how many are on all."""
    spread = {c.job_run_key for held in slots.values() for slot in held for c in slot.claims
              if c.phase == Phase.SPREAD}  # fmt: skip
    for run in runs:
        if run.key in spread:
            for name in run.nodes:
                since.add((run.cluster, name), run.run_start_ms)
    for node, _, claimed in stored:
        if claimed.phase == Phase.SPREAD and claimed.end_ms > since.by_node[node]:
            since.add(node, claimed.run_start_ms)


def add_before_named(since: Since, slots: Slots, stored: Iterable[Stored]) -> None:
    """Make nodes dirty from assumed job runs on during which named ones claim other GPUs now."""
    before: dict[Node, _Times] = defaultdict(set)
    kept: dict[Node, list[Claim]] = defaultdict(list)
    for node, name, claimed in stored:
        if claimed.phase == Phase.NAMED:
            before[node].add((name, claimed.job_run_key, claimed.start_ms, claimed.end_ms))
        else:
            kept[node].append(claimed)
    for node, claims in kept.items():
        now = {
            (slot.name, c.job_run_key, c.start_ms, c.end_ms)
            for slot in slots[node]
            for c in slot.claims
            if c.phase == Phase.NAMED
        }
        for _, _, start_ms, end_ms in before[node] ^ now:
            for claimed in claims:
                if claimed.start_ms < end_ms and claimed.end_ms > start_ms:
                    since.add(node, claimed.run_start_ms)
