"""A small made-up cluster in a database, and the rows that tests load into it, a line each."""

import functools
import itertools
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl

from goodput_queries.catalog import models
from goodput_queries.check import check
from goodput_queries.database import LocalStore
from goodput_queries.evidence.batch import Batch
from goodput_queries.ledger import ledger
from goodput_queries.scope import EVERYTHING

START = datetime(2027, 1, 15, 8, tzinfo=UTC).replace(tzinfo=None)  # a whole hour
START_MS = 1_800_000_000_000


def steady(until, watts, every=60):
    """Return readings of an energy counter that rises evenly: (second, joules) each."""
    return [(second, 1e6 + watts * second) for second in range(0, until + 1, every)]


def at(second):
    """Return the moment `second` seconds after the start."""
    return None if second is None else START + timedelta(seconds=second)


def _with_times(row):
    """Return a row whose times, given as seconds, are moments."""
    return {name: at(value) if is_time(name) and isinstance(value, int | float) else value
            for name, value in row.items()}  # fmt: skip


def is_time(column):
    """Say whether a column of the raw tables is a moment."""
    return column == "ts" or column.endswith("_at")


@dataclass
class Evidence:
    """A cluster in a database, loaded piece by piece."""

    store: LocalStore
    name: str = "c"
    first_pid: int = 100
    _parts: Any = field(default_factory=itertools.count)

    @staticmethod
    def at(second):
        """Return the moment `second` seconds after the start."""
        return at(second)

    @staticmethod
    def every(begin, end, step=10):
        """Return moments from `begin` to `end`, both included."""
        return [float(second) for second in range(begin, end + 1, step)]

    def load(self, table, rows, source="test"):
        """Load rows of a raw table; none of engines where their package is left out."""
        frame = pl.DataFrame([{"source": source, **row} for row in rows], infer_schema_length=None)
        digest = f"{self.name}-{table}-{next(self._parts)}"
        if not table.startswith("serving_") or table in models.base_tables():
            self.store.load(Batch(table, frame, source, "test", digest))

    def add(self, table, *rows, source="test", **columns):
        """Load rows with these columns in common, of this cluster, with times in seconds."""
        has_cluster = "\n    cluster " in models.base_tables()[table].sql
        common = {"cluster": self.name, **columns} if has_cluster else columns
        self.load(table, [_with_times({**common, **row}) for row in rows or [{}]], source)

    def gpu(self, name):
        """Return the UUID of a GPU that no other cluster has."""
        return f"{self.name}/{name}"

    def state(self, node, state, start, end, **columns):
        """Add a node state."""
        self.add("node_states", {"node": node, "state": state, "start_at": start, "end_at": end},
                 **columns)  # fmt: skip

    def job(
        self, job_id, start, end, nodes, gpus,
        state = "COMPLETED", **more,
    ) :  # fmt: skip
        """Add a job run; `submit` and `eligible` default to its start."""
        source, submit = more.pop("source", "test"), more.pop("submit", start or 0)
        eligible = more.pop("eligible", submit)
        row = {"cluster": self.name, "job_id": job_id, "job_id_raw": job_id,
               "submit_at": at(submit), "eligible_at": at(eligible), "start_at": at(start),
               "end_at": at(end), "state": state, "nodes": nodes, "gpus": gpus, "job_name": job_id,
               "account": "team", "user_name": "ann"}  # fmt: skip
        self.load("job_runs", [{**row, **more}], source)

    def events(self, run, events, attempt=0, source="test", **common):
        """Add job events of rank 0 unless they say otherwise; `t` is the event's second."""
        of_run = {"cluster": self.name, "run_id": run, "attempt": attempt, "rank": 0, "host": "a",
                  "reports_durability": True, **common}  # fmt: skip
        rows = [{**of_run, **event, "ts": at(event["t"])} for event in events]
        for row in rows:
            del row["t"]
        self.load("job_events", rows, source)

    def built(self):
        """Build, close and return the file, of which tests get copies."""
        self.store.build()
        with self.store.cursor() as cursor:
            cursor.execute("checkpoint")
        self.store.close()
        return Path(self.store.path)

    def build(self):
        """Bring the ledger up to date."""
        self.store.build()

    def read(self, sql, scope=EVERYTHING):
        """Return the rows of a select."""
        return self.store.read(sql, scope=scope)

    def violations(self):
        """Return how many rows of the database break what `check` asks for."""
        return _violations(self.store, self.store.commits)

    def gpu_s(self):
        """Build and return GPU-seconds by category."""
        self.build()
        return dict(ledger(self).select("category", "gpu_s").rows())

    def summary(self):
        """Build and return the ratios."""
        self.build()
        return self.read("select * from marts.goodput_summary").row(0, named=True)

    def own(self, columns, table, where="true"):
        """Return the rows that tables of all clusters have of this one, in order."""
        sql = f"select {columns} from {table} where cluster = $1 and {where} order by all"
        return self.store.read(sql, [self.name]).rows()

    def telemetry(self, node, count, source="nvml", start=0):
        """Add GPUs of a node as telemetry reports them, named `<node>-0` and so on."""
        gpus = [{"gpu_uuid": self.gpu(f"{node}-{i}"), "gpu_index": i} for i in range(count)]
        self.add("gpus", *gpus, source=source, node=node, gpu_model="h100", valid_from_at=start)

    def processes(self, gpu, pids, seconds):
        """Add the processes of a GPU; `pids(second)` lists them."""
        listed = {"pids": pids, "processes": lambda s: len(pids(s))}
        self.series("gpu_processes", seconds, listed, source="nvml", gpu_uuid=self.gpu(gpu))

    def hold(
        self, job_id, gpu = None, submit = 0, source = "test",
        **more,
    ) :  # fmt: skip
        """Add a GPU that a job run has: one of this cluster, or as `more` names it."""
        named = {} if gpu is None else {"gpu_uuid": self.gpu(gpu)}
        of_job = {"job_id_raw": job_id, "submit_at": submit, "node": "a", "method": "scontrol"}
        self.add("holds", {**of_job, **named, **more}, source=source)

    def watched(self, until):
        """Say that the scheduler watched the cluster from the start."""
        self.state("*", "up", 0, until)

    def log(self, run, lines, **common):
        """Add what a text log says: of no rank, host or attempt; `t` is the line's second."""
        of_log = {"attempt": None, "rank": None, "host": None, "reports_durability": False}
        self.events(run, lines, source="job-log", **{**of_log, **common})

    def node(self, node, gpus, *, model="h100", partitions=(), watched=None):
        """Add a node with numbered GPUs, in the inventory from the start.

        watched: until when the scheduler watches its cluster
        """
        slots = [{"gpu_uuid": f"{node}#{i}", "slurm_index": i, "gpu_index": i} for i in range(gpus)]
        self.add("gpus", *slots, node=node, gpu_model=model, valid_from_at=0)
        if partitions:
            self.add("nodes", node=node, partitions=list(partitions))
        if watched is not None:
            self.watched(watched)

    def samples(self, gpu, seconds, active, source="dcgm"):
        """Add readings of a GPU; `active(second)` says whether it worked, None for no profiling."""

        def ratio(second):
            works = active(second)
            return None if works is None else 0.9 * works

        self.readings(self.gpu(gpu), seconds, source, engine_active_ratio=ratio)

    def listed(self, node, gpu_uuid, source="inventory", **more):
        """Add an H100 that a source lists as the first of a node from the start."""
        gpu = {"gpu_uuid": gpu_uuid, "gpu_index": 0, "gpu_model": "h100", "valid_from_at": 0}
        self.add("gpus", {**gpu, **more}, source=source, node=node)

    def job_on_a_node(self, job_id, start, end, gpus, state="COMPLETED", *, watched=None, **more):
        """Add node a and a job run on all of its GPUs."""
        self.node("a", gpus, watched=watched)
        self.job(job_id, start, end, ["a"], gpus, state, **more)

    def xid(self, node, code, second, source="kernel-log", **more):
        """Add an Xid of a node; `more` names its GPU, by UUID or by PCI address."""
        named = {"node": node, "kind": "xid", "code": code, "ts": second, "ts_precision": "exact"}
        self.add("gpu_events", {**named, **more}, source=source)

    def counted(self, gpu_uuid, metric, readings, source="dcgm"):
        """Add readings of a metric that has no column of its own: (second, value) each."""
        rows = [{"ts": second, "value": float(value)} for second, value in readings]
        named = {"gpu_uuid": gpu_uuid, "gpu_instance": "", "metric": metric}
        if rows:
            self.add("gpu_samples_other", *rows, source=source, **named)

    def series(self, table, seconds, values, **of):
        """Add a reading a second of `seconds`; a value may be a function of the second."""
        rows = [{k: v(s) if callable(v) else v for k, v in values.items()} for s in seconds]
        self.add(table, *({"ts": s, **row} for s, row in zip(seconds, rows, strict=True)), **of)

    def readings(self, gpu_uuid, seconds, source="dcgm", **values):
        """Add readings of a GPU."""
        values = {"gpu_instance": "", "is_flagged": False, **values}
        self.series("gpu_samples", seconds, values, source=source, gpu_uuid=gpu_uuid)

    def host(self, node, seconds, source="node-exporter", **values):
        """Add readings of a host, or of a node's meter."""
        self.series("node_samples", seconds, values, source=source, node=node)

    def energy(self, gpu_uuid, readings):
        """Add readings of the energy counter of an active GPU: (second, joules) each."""
        rows = [{"ts": second, "energy_j": joules} for second, joules in readings]
        read = {"gpu_instance": "", "engine_active_ratio": 0.5, "is_flagged": False}
        self.add("gpu_samples", *rows, source="dcgm", gpu_uuid=gpu_uuid, **read)

    def label(self, gpu_uuid, owner, first, last, kind="pod", source="dcgm", **more):
        """Add that the series of a GPU bore a label from its first reading with it to its last."""
        seen = {"first_seen_at": first, "last_seen_at": last, "gpu_instance": "", "container": ""}
        named = {"gpu_uuid": gpu_uuid, "kind": kind, "owner": owner}
        self.add("gpu_owners", {**seen, **named, **more}, source=source)

    def instance(self, gpu_uuid, profile="3g.40gb", slurm_index=0):
        """Add a MIG instance of a GPU as the scheduler lists it."""
        named = {"gpu_uuid": gpu_uuid, "gpu_instance": f"{profile}.0", "slurm_index": slurm_index}
        self.add("gpu_instances", named, profile=profile, compute_slices=int(profile[0]))

    def tariff(self, price_per_kwh, pue="1", server_ratio="1", **more):
        """Add a price of electricity that holds at all hours of the day."""
        amounts = {"price_per_kwh": price_per_kwh, "pue": pue, "server_ratio": server_ratio}
        day = {"zone": "UTC", "from_hour": 0, "to_hour": 24}
        self.add("tariffs", {name: Decimal(of) for name, of in amounts.items()}, **day, **more)

    def collectives(
        self, name, nodes, busbw, *, size=2**28, operation="AllReduce", first=0, second=0.0
    ):
        """Add an operation for each bandwidth (in GB/s) on two ranks a node; the last is late.

        The record of a rank that waited has half of the bandwidth.
        """
        ranks = [(node, 2 * place + slot) for place, node in enumerate(nodes) for slot in range(2)]
        rows = [{"node": node, "pid": self.first_pid + rank, "rank": rank,
                 "sequence_number": first + number, "dumped_at": second + number,
                 "busbw_bytes_per_s": gb * 1e9 / (1 if rank else 2)}
                for number, gb in enumerate(busbw) for node, rank in ranks]  # fmt: skip
        self.add("collectives", *rows, comm_id=f"{self.name}-{name}", ranks=len(ranks),
                 nodes=len(set(nodes)), operation=operation, is_p2p=False, message_bytes=size,
                 exec_time_s=0.001)  # fmt: skip

    def all_reduces(self, exec_time_s, starts, first=0, pid=None, **more):
        """Add AllReduces that the NCCL Inspector logs on node a; exec_time_s: seconds by rank."""
        first_pid = self.first_pid if pid is None else pid
        rows = [{"pid": first_pid + rank, "rank": rank, "sequence_number": number,
                 "exec_time_s": seconds, "started_at": start, "dumped_at": start + 4}
                for number, start in enumerate(starts, first)
                for rank, seconds in enumerate(exec_time_s)]  # fmt: skip
        of = {"node": "a", "comm_id": self.name, "ranks": len(exec_time_s), "is_p2p": False}
        of |= {"operation": "AllReduce", **more}
        self.add("collectives", *rows, source="nccl-inspector", **of)


@dataclass
class Kept(Evidence):
    """A cluster whose rows are kept, by table and source, until they are loaded together."""

    rows: Any = field(default_factory=lambda: defaultdict(list))

    def load(self, table, rows, source="test"):
        """Keep rows."""
        self.rows[table, source] += rows


@contextmanager
def loaded_at_once(cluster, kind=Kept):
    """Give a cluster that keeps its rows, and load them at the end: each load takes time."""
    kept = kind(cluster.store, cluster.name, cluster.first_pid)
    yield kept
    for (table, source), rows in kept.rows.items():
        cluster.load(table, rows, source)


@functools.lru_cache(maxsize=1)
def _violations(store, commits):  # noqa: ARG001 -- the same until then
    return int(check(store)["violations"].sum())
