"""A simple scheduler: one queue a pool, whole nodes for big jobs, best fit for small ones.

The first big job that does not fit has the nodes kept empty for it that are free soonest, so that
it starts some day: what stands idle then is the price, as on real clusters.
"""

import heapq
from bisect import insort
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from goodput_synthetic.fleet.demand import Request
from goodput_synthetic.fleet.fleet import CPUS_PER_NODE, GPUS_PER_NODE, Fleet, Ints
from goodput_synthetic.fleet.outages import Outage

TRIES = 40  # how many jobs that do not fit are passed over
REQUEUE_S = 121
COMES_BACK = ("NODE_FAIL", "PREEMPTED", "REQUEUED")
REQUEUED_PRIORITY = 5
DETECTION_S = (60, 300)  # a node is noticed to be dead after so long
REPAIR_SHARE = 0.06  # of a round of events


@dataclass(eq=False)
class JobRun:
    """One start of a job, or the wait for one.

    end_s: None: still running or pending when the evidence ends; died_s: when the processes really
    stopped, where the scheduler learned of it later; units: in order of node and index.
    """

    request: Request
    number: int
    submit_s: int
    eligible_s: int
    need_s: int
    start_s: int | None = None
    end_s: int | None = None
    died_s: int | None = None
    state: str = "PENDING"
    nodes: list[int] = field(default_factory=list)
    units: list[int] = field(default_factory=list)
    failed_node: int | None = None

    @property
    def rank(self) -> tuple[int, int, int]:
        """Return the place in the queue."""
        priority = self.request.priority or (REQUEUED_PRIORITY if self.number else 0)
        return (-priority, self.eligible_s, self.request.job_id)


@dataclass
class Schedule:
    """What happened: all job runs, started or not, and the outages with their real times."""

    runs: list[JobRun]
    outages: list[Outage]


class Scheduler:
    """The state of the cluster while it is played through."""

    def __init__(self, fleet: Fleet, total_s: int, repair_s: int, seed: int) -> None:
        self.fleet = fleet
        self.total_s = total_s
        self.repair_s = repair_s
        self.rng = np.random.default_rng([seed, 5])
        nodes = len(fleet.nodes)
        self.free: list[set[int]] = [set(fleet.units_of(n)) for n in range(nodes)]
        self.size = np.array([len(f) for f in self.free])
        self.free_count = self.size.copy()
        self.free_cpus = np.full(nodes, CPUS_PER_NODE)
        self.blocked = np.zeros(nodes, dtype=np.int64)
        self.busy_until = np.zeros(nodes)
        self.left_out: dict[str, int] = {}  # run id: the node that its next start does without
        self.pools = {p: fleet.pool_nodes(p) for p in ("h100", "h200", "mig")}
        self.pending: dict[str, list[tuple[tuple[int, int, int], JobRun]]] = {
            p: [] for p in self.pools
        }
        self.is_kept = np.zeros(nodes, dtype=np.bool_)
        self.node_of = [int(n) for n in fleet.unit_node]
        self.events: list[tuple[int, int, str, object]] = []
        self.order = count()
        self.runs: list[JobRun] = []
        self.outages: list[Outage] = []

    def play(self, requests: list[Request], planned: list[Outage]) -> Schedule:
        """Run all events up to the end of the time and return what happened."""
        for outage in planned:
            self._plan(outage)
        for request in requests:
            self._queue(request, 0, request.submit_s, request.submit_s + request.wait_s)
        while self.events and self.events[0][0] <= self.total_s:
            now, _, kind, what = heapq.heappop(self.events)
            touched = self._happen(now, kind, what)
            while self.events and self.events[0][0] == now:
                _, _, kind, what = heapq.heappop(self.events)
                touched |= self._happen(now, kind, what)
            if now < self.total_s:
                for pool in sorted(touched):
                    self._start_what_fits(pool, now)
        self.outages = [o for o in self.outages if o.has_begun]
        return Schedule(self.runs, self.outages)

    def _at(self, when: int, kind: str, what: object) -> None:
        heapq.heappush(self.events, (when, next(self.order), kind, what))

    def _plan(self, outage: Outage) -> None:
        self.outages.append(outage)
        self._at(outage.start_s, "block", outage)
        if outage.end_s is not None:
            self._at(outage.end_s, "unblock", outage)

    def _queue(self, request: Request, number: int, submit_s: int, eligible_s: int) -> None:
        need = request.rest_s if number else request.need_s
        run = JobRun(request, number, submit_s, eligible_s, need)
        if submit_s < self.total_s:
            self.runs.append(run)
            self._at(eligible_s, "eligible", run)
            if request.patience_s is not None:
                self._at(eligible_s + request.patience_s, "give up", run)

    def _happen(self, now: int, kind: str, what: object) -> set[str]:
        """Let an event happen; return the pools in which something may fit now."""
        if isinstance(what, Outage):
            self.blocked[what.node] += 1 if kind == "block" else -1
            if kind == "block":
                self._begin_if_empty(what.node, now)
            if kind == "block" and what.state == "down":
                for run in [r for r in self.runs if r.state == "RUNNING" and what.node in r.nodes]:
                    self._end(run, now, "NODE_FAIL", what.node)
            return {self.fleet.nodes[what.node].pool} if kind == "unblock" else set()
        assert isinstance(what, JobRun)  # noqa: S101 -- for the type checker
        pool = what.request.pool
        if kind == "eligible":
            if what.state == "PENDING":
                insort(self.pending[pool], (what.rank, what))
            return {pool}
        if kind == "give up":
            if what.start_s is None and what.state == "PENDING":
                what.state, what.end_s = "CANCELLED", now
                self.pending[pool] = [p for p in self.pending[pool] if p[1] is not what]
            return set()
        if what.end_s is None and what.state == "RUNNING":
            self._end(what, now, kind)
            return {pool}
        return set()

    def _begin_if_empty(self, node: int, now: int) -> None:
        for outage in self.outages:
            is_due = outage.node == node and outage.when_empty and not outage.has_begun
            is_now = outage.start_s <= now and (outage.end_s is None or outage.end_s > now)
            if is_due and is_now and self.free_count[node] == self.size[node]:
                outage.start_s, outage.has_begun = now, True

    def _end(self, run: JobRun, now: int, state: str, lost: int | None = None) -> None:
        """End a run; lost: the node that failed under it, if its outage is known already."""
        run.end_s, run.state = now, state
        if "suspect" in run.request.options:
            self.left_out[run.request.run_id] = run.nodes[-1]
        for unit in run.units:
            node = self.node_of[unit]
            self.free[node].add(unit)
            self.free_count[node] += 1
        for node in run.nodes:
            self.free_cpus[node] += run.request.cpus // len(run.nodes)
            if self.blocked[node]:
                self._begin_if_empty(node, now)
        if state == "NODE_FAIL":
            run.failed_node = run.nodes[len(run.nodes) // 2] if lost is None else lost
            run.died_s = now - int(self.rng.integers(*DETECTION_S))
            if lost is None:
                end_s = now + self.repair_s
                self._plan(Outage(run.failed_node, "down", now, end_s, "Not responding"))
        if state in COMES_BACK and run.number < run.request.requeues:
            self._queue(run.request, run.number + 1, now, now + REQUEUE_S)

    def _start_what_fits(self, pool: str, now: int) -> None:
        queue = self.pending[pool]
        if not queue:
            return
        self.is_kept[self.pools[pool]] = False
        has_head, failures, started = False, 0, set()
        too_big: dict[tuple[str, int], int] = {}
        for i, (_, run) in enumerate(queue):
            request = run.request
            shape = (request.gres_type, request.cpus // request.gpus)
            is_hopeless = request.gpus >= too_big.get(shape, 2**31)
            units = [] if is_hopeless else self._fit(request, pool)
            if units:
                self._start(run, units, now)
                started.add(i)
                continue
            failures += 1
            too_big[shape] = min(request.gpus, too_big.get(shape, 2**31))
            if failures > TRIES:
                break
            wanted = request.gpus // GPUS_PER_NODE
            if not has_head and 1 < wanted <= len(self.pools[pool]) and request.priority >= 0:
                self.is_kept[self._soonest(pool, wanted)] = True
                has_head = True
        self.pending[pool] = [p for i, p in enumerate(queue) if i not in started]

    def _soonest(self, pool: str, wanted: int) -> Ints:
        nodes = self.pools[pool]
        usable = nodes[self.blocked[nodes] == 0]
        is_empty = self.free_count[usable] == self.size[usable]
        when = np.where(is_empty, 0.0, self.busy_until[usable])
        soonest: Ints = usable[np.argsort(when, kind="stable")[:wanted]]
        return soonest

    def _fit(self, request: Request, pool: str) -> list[int]:
        """Return units for the request, none where it does not fit."""
        nodes = self.pools[pool]
        free = (self.blocked[nodes] == 0) & (self.free_count[nodes] > 0) & ~self.is_kept[nodes]
        if (left_out := self.left_out.get(request.run_id)) is not None:
            free &= nodes != left_out
        usable = nodes[free]
        if request.gpus > GPUS_PER_NODE:
            wanted = request.gpus // GPUS_PER_NODE
            whole = usable[self.free_count[usable] == self.size[usable]]
            if len(whole) < wanted:
                return []
            return [u for n in whole[:wanted] for u in self.fleet.units_of(int(n))]
        fits = (self.free_count[usable] >= request.gpus) & (self.free_cpus[usable] >= request.cpus)
        usable = usable[fits]
        for node in usable[np.argsort(self.free_count[usable], kind="stable")]:
            units = sorted(self.free[node])
            if pool == "mig":
                units = [u for u in units if self.fleet.unit_type(u) == request.gres_type]
            if len(units) >= request.gpus:
                return units[: request.gpus]
        return []

    def _start(self, run: JobRun, units: list[int], now: int) -> None:
        request = run.request
        run.units, run.start_s, run.state = units, now, "RUNNING"
        run.nodes = sorted({self.node_of[u] for u in units})
        for unit in units:
            node = self.node_of[unit]
            self.free[node].discard(unit)
            self.free_count[node] -= 1
        end, state = now + run.need_s, request.ending
        if run.number and state in COMES_BACK and run.number == request.requeues:
            state = "COMPLETED"
        if request.fails_after_s is not None and run.number == 0:
            end, state = now + request.fails_after_s, "NODE_FAIL"
        for node in run.nodes:
            self.free_cpus[node] -= request.cpus // len(run.nodes)
            self.busy_until[node] = max(self.busy_until[node], end)
        self._at(end, state, run)
