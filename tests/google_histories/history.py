"""A made-up training run with a known truth, as ml-goodput-measurement and Slurm would record it.

A run has one to five lives of its processes: most end by a crash, a hang or a preemption and are
followed by another, in the same job run or in a requeued one; the last one ends well or at its time
limit. Steps, blocking saves (synchronous or not), restores, evaluations and the first data load
follow each other on one clock, so that the time spent in retained steps is known exactly.
"""

import json
import random
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from goodput_ingest.run.ingest import ingest
from goodput_ingest.source import ReadOptions
from goodput_queries.database import LocalStore

T0 = 1_795_003_200.0
GPUS = 8
FIELDS = (
    *("Cluster", "JobID", "JobIDRaw", "User", "Account", "QOS", "Partition", "State", "Submit"),
    *("Eligible", "Start", "End", "ElapsedRaw", "Suspended", "NNodes", "NodeList", "ReqTRES"),
    *("AllocTRES", "JobName"),
)


@dataclass(frozen=True)
class Truth:
    """What the generator knows: seconds of the wall clock, each counted once for the gang."""

    productive_s: float  # in retained steps, without what the first step of a life took longer
    wall_s: float  # first eligible to last end
    restarts: int

    @property
    def ettr(self):
        """Effective training time ratio: productive time / first eligible to last end."""
        return self.productive_s / self.wall_s


@dataclass
class History:
    """One run: its events in the order of the clock, its job records, its truth."""

    name: str
    events: list[dict[str, Any]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    truth: Truth | None = None

    def write(self, folder, order=None):
        """Write the files; return (source, path). With `order` the events are shuffled."""
        events = list(self.events)
        if order is not None:
            order.shuffle(events)
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / name for name in ("inventory.csv", "sacct.txt", "goodput.jsonl")]
        gpus = "".join(f"c,n1,{i},{i},GPU-{i},H100,2026-11-18T11:00:00Z\n" for i in range(GPUS))
        header = "cluster,node,gpu_index,slurm_index,gpu_uuid,gpu_model,valid_from\n"
        paths[0].write_text(header + gpus)
        rows = ["\x1f".join(str(record[name]) for name in FIELDS) for record in self.records]
        paths[1].write_text("\n".join(["\x1f".join(FIELDS), *rows]) + "\n")
        paths[2].write_text("".join(json.dumps(event) + "\n" for event in events))
        return list(zip(("inventory", "slurm", "goodput-events"), paths, strict=True))


class _Writer:
    """The clock of a run under way, and what was written by then."""

    def __init__(self, seed):
        self.random = random.Random(seed)  # noqa: S311 -- histories, not secrets
        self.history = History(f"llm-{seed}")
        self.now = T0 + self.random.uniform(0, 600)
        self.step_s = self.random.uniform(2, 15)
        self.save_every = self.random.randint(8, 40)
        self.is_synchronous = self.random.random() < 0.5
        self.has_evaluation = self.random.random() < 0.4
        self.durable = -1  # the last step that a checkpoint holds
        self.durable_later = None  # an asynchronous save under way
        self.kept = {}  # step -> its seconds, of the pass that may count

    def log(self, **event):
        self.history.events.append({"job_name": self.history.name, **event})

    def spend(self, least_s, most_s):
        spent = self.random.uniform(least_s, most_s)
        self.now += spent
        return spent

    def span(self, name, least_s, most_s, **more):
        self.log(**{f"{name}_start_time": self.now, **more})
        self.spend(least_s, most_s)
        self.log(**{f"{name}_end_time": self.now, **more})

    def settle_saves(self):
        if self.durable_later is not None and self.durable_later[0] <= self.now:
            self.durable = self.durable_later[1]
            self.durable_later = None

    def save(self, step):
        """Block for a save of `step`; an asynchronous one waits for the one before and goes on."""
        began = self.now
        waited_s = 0.0
        if self.durable_later is not None:
            waited_s = max(0.0, self.durable_later[0] - self.now)
            self.now += waited_s
            self.settle_saves()
        blocked_s = self.spend(4, 20) if self.is_synchronous else self.spend(0.5, 3)
        if self.is_synchronous:
            self.durable = step
        else:
            self.durable_later = (self.now + self.random.uniform(3, 40), step)
        self.history.events.append({
            "step": step, "event_type": "save", "directory": "/ckpt",
            "synchronous": self.is_synchronous,
            "wait_for_prev_start_time": began, "wait_for_prev_duration_secs": waited_s,
            "checkpointer_blocking_start_time": began + waited_s,
            "checkpointer_blocking_duration_secs": blocked_s,
            "checkpoint_manager_blocking_start_time": began,
            "checkpoint_manager_blocking_duration_secs": self.now - began,
        })  # fmt: skip

    def restore(self, step):
        began = self.now
        spent = self.spend(5, 40)
        times = {f"checkpoint{of}_start_time": began for of in ("er", "_manager")}
        times |= {f"checkpoint{of}_duration_secs": spent for of in ("er", "_manager")}
        event = {"step": step, "event_type": "restore", "directory": "/ckpt"}
        self.history.events.append(event | times)

    def life(self, first, last, end):
        """One life of the processes: start-up, steps first..last, and how it ended."""
        self.durable_later = None
        self.spend(3, 20)
        self.log(job_start_time=self.now)
        self.span("tpu_init", 1, 10)
        self.span("training_prep", 2, 20)
        if first > 0:
            self.restore(first - 1)
        self.span("data_loading", 1, 30)
        for step in range(first, last + 1):
            is_unfinished = step == last and end in ("crash", "hang", "preempt")
            self.log(step_count=step, step_start_time=self.now)
            if step == first:
                self.spend(5, 60)  # compilation, no progress
            if is_unfinished:
                self.spend(0, self.step_s)
                break
            took = self.random.gauss(self.step_s, self.step_s * 0.01)
            self.now += took
            self.settle_saves()
            self.kept[step] = took
            if step % self.save_every == self.save_every - 1 or (step == last and end == "ok"):
                self.save(step)
            elif self.has_evaluation and step % 25 == 24:
                self.span("custom_badput_event", 5, 20, custom_badput_event_type="eval_step")
        if end == "ok":
            self.spend(1, 5)
            if self.durable_later is not None:
                self.now = max(self.now, self.durable_later[0])
                self.settle_saves()
            self.log(job_end_time=self.now)
            self.spend(1, 5)
        elif end == "hang":
            self.spend(120, 900)
        self.settle_saves()

    def record(self, number, state, eligible, start):
        eligible, start, end = (int(t) for t in (eligible, start, self.now + 1))
        self.now = float(end)
        tres = f"cpu=8,gres/gpu={GPUS},node=1"
        values = ("c", number, number, "ann", "nlp", "normal", "gpu", state, eligible, eligible,
                  start, end, end - start, "00:00:00", 1, "n1", tres, tres,
                  self.history.name)  # fmt: skip
        self.history.records.append(dict(zip(FIELDS, values, strict=True)))


STATES = {"ok": "COMPLETED", "crash": "FAILED", "hang": "FAILED", "preempt": "PREEMPTED"}
STATES["timeout"] = "TIMEOUT"


def make(seed):
    """Return the history of this seed, with its truth."""
    writer = _Writer(seed)
    draw = writer.random
    steps = draw.randint(80, 260)
    lives = draw.choice([1, 1, 2, 2, 3, 4, 5])
    first_eligible = float(int(writer.now))
    eligible = writer.now
    writer.spend(0, 300)
    start = writer.now
    number = 1
    restarts = 0
    for life in range(lives):
        first = writer.durable + 1
        is_last = life == lives - 1
        end = draw.choice(["ok", "ok", "ok", "timeout"]) if is_last else ""
        end = end or draw.choice(["crash", "crash", "hang", "preempt"])
        left = steps - 1 - first
        last = steps - 1 if is_last else first + draw.randint(1, max(2, left * 2 // 3))
        writer.life(first, max(last, first + 3), end)
        if not is_last and end != "preempt" and draw.random() < 0.4:
            restarts += 1
            continue  # restarted inside the job run
        writer.record(number, STATES[end], eligible, start)
        if not is_last:
            restarts += 1
            number += 1
            eligible = writer.now
            writer.spend(20, 600)
            start = writer.now
    kept = {k: s for k, s in writer.kept.items() if end == "ok" or k <= writer.durable}
    writer.history.truth = Truth(productive_s=sum(kept.values()),
                                 wall_s=writer.now - first_eligible, restarts=restarts)  # fmt: skip
    return writer.history


@dataclass(frozen=True)
class Measured:
    """Of the one run of a history; ettr: null where nothing of it is settled.

    ettr_hi: if all unclassified time was useful: a killed process may have finished its last save.
    """

    ettr: float | None
    ettr_hi: float | None
    restarts: int
    is_matched: bool


def measured(files, database):
    """Ingest into a new database and build; return what the run's row says."""
    with closing(LocalStore(database, threads=1)) as store:
        for source, path in files:
            ingest(store, source, [path], ReadOptions(cluster="c"))
        store.build()
        sql = "select count(*) from intermediate.int_event_lives where job_run_key is null"
        unmatched = store.read(sql).item()
        runs = store.read("select ettr_ratio, ettr_hi_ratio, restarts from marts.runs")
    is_matched = unmatched == 0 and runs.height == 1
    ettr, ettr_hi, restarts = runs.row(0) if runs.height else (None, None, 0)
    return Measured(ettr, ettr_hi, restarts, is_matched)
