"""What the case of a rule is given, as rows of the raw tables.

A case lists what a small cluster reports. The first key of each entry says what it is; times are
seconds from the start of the evidence, and `n0-5` are six nodes, `a/0-7` eight GPUs of node a.

| entry | rows |
|---|---|
| `node` | a node with `gpus`; with `cpus` or `partitions` it is in the scheduler's inventory |
| `watched` | the scheduler was asked from the start to then |
| `state` | a state of `node` from `start` to `end` |
| `job` | a job run `on` nodes; its GPUs are all of theirs |
| `steps` | training steps of a job of `length`, after the ones before; a list: by rank |
| `event`, `phase` | an event of rank 0 `at` a time; a phase of `length`, again `every` so often |
| `readings` | of GPUs, by `use` (busy, idle, engine), with other values `between` some times |
| `host` | of the host of a node, by the minute, over an hour |
| `engine` | a serving engine: gauges (a list: by hour), requests with their time to first token |
| `collectives` | operations of NCCL on two ranks of each node, with their bandwidths |
| `table` | rows of a raw table, of nodes, again `every` so often; `rates`: counters, per second |
"""

import itertools
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.queries.conftest import Evidence
from tests.queries.conftest import phase as phase_event
from tests.queries.loaders import Kept, loaded_at_once
from tests.queries.serving.load import HOUR, Engine, counters

from goodput_ingest.live.status import Status, write
from goodput_queries import packages

Row = dict[str, Any]
BUSY = {"engine_active_ratio": 0.95, "sm_active_ratio": 0.8, "tensor_active_ratio": 0.45,
        "dram_active_ratio": 0.5, "gpu_busy_ratio": 1.0, "power_w": 600.0, "sm_clock_hz": 1.98e9,
        "gpu_temperature_c": 62.0, "memory_used_bytes": 60 * 10**9}  # fmt: skip
IDLE = {"engine_active_ratio": 0.0, "sm_active_ratio": 0.0, "tensor_active_ratio": 0.0,
        "dram_active_ratio": 0.0, "gpu_busy_ratio": 0.0, "power_w": 75.0, "sm_clock_hz": 0.345e9,
        "gpu_temperature_c": 33.0, "memory_used_bytes": 10**9}  # fmt: skip
# as they wait in a collective that hangs (recorded session)
WAITING = {"sm_active_ratio": 0.09, "tensor_active_ratio": 0.0, "dram_active_ratio": 0.0}
USES = {
    "busy": BUSY, "idle": IDLE, "unread": {**BUSY, "power_w": None},
    "waiting": {**BUSY, **WAITING, "power_w": 125.0},
    "engine": {**dict.fromkeys(BUSY), "engine_active_ratio": 0.9},
    "utilised": {**dict.fromkeys(BUSY), "gpu_temperature_c": 50.0},  # by no profiling counter
}  # fmt: skip
CORES, MEMORY_BYTES = 64, 10**12


def load(cluster: Evidence, entries: list[Row]) -> None:
    """Load what a case is given into a cluster."""
    with loaded_at_once(cluster, Given) as given:
        for entry in entries:
            getattr(given, f"_add_{next(iter(entry))}")(**entry)


def cases(rule: str, kind: str) -> list[Row]:
    """Return the cases of a rule; what the file is given, all of them are."""
    (folder,) = packages.in_each("rules", rule, "cases")
    found = tomllib.loads((folder / f"{kind}.toml").read_text("utf-8"))
    common = found.get("given", [])
    return [{**case, "given": [*common, *case["given"]]} for case in found["case"]]


def names(text: str) -> list[str]:
    """Return the names of a range: `n0-2` is n0, n1, n2; of GPUs `n0-1/0-3` is n0/0 and so on."""
    if "/" in text:
        nodes, gpus = text.split("/")
        return [f"{n}/{g}" for n, g in itertools.product(names(nodes), names(gpus))]
    if "," in text:
        return text.split(",")
    found = re.fullmatch(r"(.*?)(\d+)-(\d+)", text)
    if found is None:
        return [text]
    return [f"{found[1]}{number}" for number in range(int(found[2]), int(found[3]) + 1)]


def times(at: float, every: float | None, to: float | None) -> Iterator[float]:
    """Yield a time, or times at a distance up to one that is left out."""
    yield at
    while every is not None and to is not None and (at := at + every) < to:
        yield at


@dataclass
class Given(Kept):
    """What the entries of a case add to a cluster."""

    gpus: dict[str, int] = field(default_factory=dict)
    ranks: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    done: dict[str, tuple[int, float]] = field(default_factory=lambda: defaultdict(lambda: (0, 0)))
    energy_j: dict[str, float] = field(default_factory=lambda: defaultdict(lambda: 1e6))

    def _add_node(self, node: str, gpus: int, **more: Any) -> None:
        listed = {key: more.pop(key) for key in ("cpus", "partitions") if key in more}
        for name in names(node):
            self.gpus[name] = gpus
            uuids = enumerate(self.gpu(f"{name}/{i}") for i in range(gpus))
            slots = [{"gpu_uuid": uuid, "gpu_index": i, "slurm_index": i} for i, uuid in uuids]
            of_model = {"gpu_model": "h100", "memory_bytes": 80 * 10**9, "valid_from_at": 0}
            self.add("gpus", *slots, node=name, **of_model | more)
            if listed:
                self.add("nodes", node=name, observed_at=0, **listed)

    def _add_watched(self, watched: float) -> None:
        self.watched(watched)

    def _add_state(self, state: str, node: str, start: float = 0, end: float | None = None) -> None:
        self.state(node, state, start, end)

    def _add_job(
        self, job: str, on: str = "a", start: float = 0, end: float = 2 * HOUR, **more: Any
    ) -> None:
        nodes = names(on)
        every = [(node, f"{node}/{i}") for node in nodes for i in range(self.gpus[node])]
        gpus = more.pop("gpus", len(every))
        self.ranks[job] = every[:gpus]
        state = more.get("state")
        self.job(job, None if state == "PENDING" else start,
                 None if state in {"PENDING", "RUNNING"} else end, nodes, gpus, **more)  # fmt: skip

    def _add_steps(
        self, steps: str, to: float, start: float | None = None, length: float = 60,
        rotate: bool = False, pause: Row | None = None, pids: bool = False, **columns: Any,
    ) -> None:  # fmt: skip
        step, end = self.done[steps]
        end = end if start is None else start
        ends = [end + n * length for n in range(1, round((to - end) / length) + 1)]
        ends = [at for at in ends if pause is None or _of_time({**pause, "is": True}, at) == {}]
        for rank, (node, gpu) in enumerate(self.ranks[steps]):
            own = [{"event": "step", "step": step + n, "t": at, "dur_s": length} | {
                       key: of[(rank - rotate * n) % len(of)] if isinstance(of, list) else of
                       for key, of in columns.items()} for n, at in enumerate(ends, 1)]  # fmt: skip
            pid = self.first_pid + rank + 50 * columns.get("attempt", 0)
            known = {"pid": pid} if pids else {}
            self.events(steps, own, rank=rank, host=node, gpu_uuid=self.gpu(gpu), **known)
        self.done[steps] = (step + len(ends), to)

    def _add_event(self, event: str, at: float, job: str = "1", **more: Any) -> None:
        self.events(job, [{"event": event, "t": at, **more}], host=self.ranks[job][0][0])

    def _add_phase(
        self, phase: str, start: float, length: float, job: str = "1", every: float | None = None,
        to: float | None = None,
    ) -> None:  # fmt: skip
        spent = [phase_event(phase, at, at + length) for at in times(start, every, to)]
        self.events(job, spent, host=self.ranks[job][0][0])

    def _add_readings(
        self, readings: str, to: float = HOUR, start: float = 0, every: float = 30,
        use: str = "busy", exact: bool = False, between: tuple[Row, ...] = (), **columns: Any,
    ) -> None:  # fmt: skip
        rows = []
        rates = columns.pop("rates", {})
        spread, has_energy = columns.pop("spread", {}), columns.pop("has_energy", True)
        for place, gpu in enumerate(names(readings)):
            for number, second in enumerate(self.every(int(start), int(to), int(every))):
                row = {"energy_j": None, "is_flagged": False, "clocks_event_reasons": None}
                row |= {**USES[use], **columns}
                for other in between:
                    row |= _of_time(other, second)
                if row.pop("missing", False):
                    continue
                row |= {name: row[name] + place * by for name, by in spread.items()}
                row |= {name: row[name] + rate * second for name, rate in rates.items()}
                if not exact and row["power_w"]:  # a healthy GPU is never twice the same
                    row["power_w"] += 2.0 * (number % 3 - 1)
                    row["gpu_temperature_c"] += number % 2
                if has_energy and row["energy_j"] is None and row["power_w"]:
                    self.energy_j[gpu] += every * row["power_w"]
                    row["energy_j"] = self.energy_j[gpu]
                rows.append({"ts": self.at(second), "gpu_uuid": self.gpu(gpu), **row})
        self.load("gpu_samples", [{"gpu_instance": "", **row} for row in rows], "dcgm")

    def _add_host(
        self, host: str, busy: float = 0.3, iowait: float = 0.01, disks: float = 0.1,
        memory: float = 0.4, swap: float = 0.0, load: float = 20.0, **counters: float,
    ) -> None:  # fmt: skip
        rates = {"cpu_total_s": CORES, "cpu_busy_s": CORES * busy, "cpu_iowait_s": CORES * iowait,
                 "disk_busy_s": disks,
                 **{f"disk_{name}": rate for name, rate in counters.items()}}  # fmt: skip
        rising = {name: lambda s, rate=rate: rate * s for name, rate in rates.items()}
        self.host(host, range(0, HOUR + 1, 60), "test", **rising, load1=load,
                  memory_total_bytes=MEMORY_BYTES, swap_total_bytes=10**11,
                  memory_available_bytes=int(MEMORY_BYTES * (1 - memory)),
                  swap_free_bytes=lambda s: int(10**11 - swap * s / HOUR))  # fmt: skip

    def _add_engine(
        self, engine: str, to: float = 2 * HOUR, tokens: Any = 10, requests: tuple[Row, ...] = (),
        **more: Any,
    ) -> None:  # fmt: skip
        gauges = {"running": 4, "waiting": 0, "cache": 0.5}
        gauges |= {key: more.pop(key) for key in gauges if key in more}
        known = ("requests_running", "requests_waiting", "kv_cache_ratio")
        made = Engine(self, engine, **more)
        readings = counters(
            {"generation_tokens": _by_hour(tokens)},
            {name: _by_hour(gauges[key]) for name, key in zip(known, gauges, strict=True)},
        )
        made.samples({s: values for s, values in readings.items() if s <= to})
        seen = [(second, of["ttft"]) for of in requests
                for second in times(of["start"], of.get("every"), of.get("to"))
                for _ in range(of.get("n", 1))]  # fmt: skip
        if seen:
            made.histogram("ttft_s", seen, self.every(0, 2 * HOUR, 300))

    def _add_collectives(
        self, collectives: str, on: str, busbw: list[float], size: int = 2**28
    ) -> None:
        self.collectives(collectives, names(on), busbw, size=size)

    def _add_status(
        self, status: str, failures: int = 0, answered: float | None = None, origin: str = "here",
        interval: float = 30,
    ) -> None:  # fmt: skip
        """Say that a live source was asked just now, and so many seconds from now it answered."""
        now = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
        answered_at = None if answered is None else now + timedelta(seconds=answered)
        write(self.store, [Status(status, origin, now, interval, answered_at, failures=failures)])

    def _add_table(
        self, table: str, source: str = "test", every: float | None = None,
        to: float | None = None, between: tuple[Row, ...] = (), **columns: Any,
    ) -> None:  # fmt: skip
        rates = columns.pop("rates", {})
        if "gpu" in columns:
            columns["gpu_uuid"] = self.gpu(columns.pop("gpu"))
        for name in {"trace_id", "benchmark_id"} & columns.keys():
            columns[name] += self.name
        if "pid" in columns:
            columns["pid"] += self.first_pid
        rows = []
        nodes = [{"node": node} for node in names(columns["node"])] if "node" in columns else [{}]
        for second, node in itertools.product(times(columns.get("ts", 0), every, to), nodes):
            row = {**columns, **node, **({"ts": second} if "ts" in columns else {})}
            row |= {name: rate * second for name, rate in rates.items()}
            for other in between:
                row |= _of_time(other, second)
            rows.append(row)
        self.add(table, *rows, source=source)


def _by_hour(value: Any) -> Any:
    return value if isinstance(value, list) else [value, value]


def _of_time(given: Row, second: float) -> Row:
    """Return the values of a time: from `start` to `to`, or again `every` so often, `for` long."""
    values = dict(given)
    start, to = values.pop("start", 0), values.pop("to", float("inf"))
    every, length = values.pop("every", None), values.pop("for", None)
    values = {**USES.get(values.pop("use", ""), {}), **values}
    is_now = start <= second < to and (every is None or (second - start) % every < length)
    return values if is_now else {}
