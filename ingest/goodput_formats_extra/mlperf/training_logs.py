"""MLPerf training logs: a run is a job run with its GPUs and its window, from init to stop.

:::MLLOG {"time_ms": 1714905514036, "event_type": "INTERVAL_START", "key": "init_start", ...}

The log has no single steps: the scored part (`run_start` to `run_stop`) is one span of steps,
with the evaluations inside it as phases. The machines of a run are not logged in a way that holds
over a submission: each run has nodes of its own, which exist as long as the run, so that no free
time is made up between runs that were months apart.
"""

import itertools
import json
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

from goodput_ingest.formats import files, raw_tables
from goodput_ingest.formats.json_text import json_lines
from goodput_ingest.formats.json_text.event_lines import SCHEMA as JOB_EVENTS
from goodput_ingest.formats.json_text.json_lines import EPOCH, FieldError
from goodput_ingest.formats.json_text.mllog_lines import (
    IN_HEAD,
    Place,
    is_power,
    marked,
    place_of_log,
    time_ms,
)
from goodput_ingest.formats.parsed import Parsed, frame
from goodput_ingest.source import Batch, ReadOptions, RecordedFile, Reject
from goodput_queries.errors import IngestError

NODES_MAX, GPUS_PER_NODE_MAX = 50_000, 64  # beyond, a description is wrong or hostile
GPUS_MAX = 200_000
LOGS = {".txt", ".log", ".out", ""}
EVALUATIONS_MAX = 100_000
STATES = {"success": "COMPLETED", "aborted": "FAILED"}
EVENTS = {name: kind for name, kind in JOB_EVENTS.items() if name != "source"}
JOB_RUNS = raw_tables.only(
    *("job_runs", "cluster", "job_id", "job_id_raw", "submit_at", "start_at", "end_at", "state"),
    *("job_name", "account", "partition", "nodes", "gpus", "gpu_type", "observed_at"),
)
GPUS = raw_tables.only(
    *("gpus", "cluster", "gpu_uuid", "node", "slurm_index", "gpu_model"),
    *("valid_from_at", "valid_to_at"),
)


@dataclass
class Run:
    """A run in a log; times in milliseconds since 1970, UTC."""

    init_start: int
    run_start: int | None = None
    run_stop: int | None = None
    status: str | None = None
    times: list[int] = field(default_factory=list)
    eval_start: int | None = None
    evaluations: list[tuple[int, int]] = field(default_factory=list)

    def end(self, *, is_growing: bool) -> int | None:
        """Return its stop; without one its last line and the median distance of its lines.

        is_growing: the log may have more to say; None then.
        """
        if self.run_stop is not None or is_growing:
            return self.run_stop
        moments = sorted(set(self.times))
        distances = [later - earlier for earlier, later in itertools.pairwise(moments)]
        return moments[-1] + (int(statistics.median(distances)) if distances else 0)


@dataclass
class RunLog:
    """What a log says, gathered line by line."""

    runs: list[Run] = field(default_factory=list)
    system: dict[str, Any] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)  # submission_benchmark, submission_org
    rejects: list[Reject] = field(default_factory=list)

    def take(self, line: str) -> None:
        """Take in a line; raises FieldError where it is broken."""
        if (found := marked(line)) is None:
            return
        mark, event = found
        if mark == "SYSJSON":
            self.system = self.system or event
            return
        key = event.get("key")
        if key in ("submission_benchmark", "submission_org"):
            self.names.setdefault(key, json_lines.text(event, "value") or "")
        at_ms = time_ms(event)
        if key == "init_start":
            self._init_start(at_ms)
        elif self.runs:
            self._of_run(self.runs[-1], str(key), at_ms, event)

    def _init_start(self, at_ms: int) -> None:
        """Begin a run, unless another rank reports the start of the current one."""
        if not self.runs or (self.runs[-1].run_stop or at_ms) < at_ms:
            self.runs.append(Run(at_ms, times=[at_ms]))
        elif self.runs[-1].run_start is None:
            self.runs[-1].init_start = min(self.runs[-1].init_start, at_ms)

    def _of_run(self, run: Run, key: str, at_ms: int, event: dict[str, Any]) -> None:
        run.times.append(at_ms)
        if key == "run_start" and run.run_start is None:
            run.run_start = at_ms
        elif key == "run_stop" and run.run_stop is None:
            if at_ms < run.init_start:
                raise FieldError("run_stop lies before init_start")
            metadata = event.get("metadata")
            status = metadata.get("status") if isinstance(metadata, dict) else None
            run.run_stop, run.status = at_ms, status if isinstance(status, str) else None
        elif key == "eval_start" and run.eval_start is None:
            run.eval_start = at_ms
        elif key == "eval_stop" and run.eval_start is not None:
            if at_ms < run.eval_start:
                raise FieldError("eval_stop lies before eval_start")
            if at_ms > run.eval_start and len(run.evaluations) < EVALUATIONS_MAX:
                run.evaluations.append((run.eval_start, at_ms))
            run.eval_start = None


class Mlperf(RecordedFile):
    """The log of an MLPerf training run."""

    name: ClassVar[str] = "mlperf"
    is_followed: ClassVar[bool] = True
    needs_beginning: ClassVar[bool] = True

    def __init__(self, path: Path, options: ReadOptions) -> None:
        """Take the file and its cluster; without one, the organisation's folder is the cluster."""
        super().__init__(path, options)
        self._log = RunLog()
        self._so_far = ""

    @staticmethod
    def recognises(path: Path, head: bytes) -> bool:  # noqa: ARG004 -- the content says it all
        """Say whether some line carries the benchmark's mark and none is a power reading."""
        return IN_HEAD.search(head) is not None and not is_power(head)

    @staticmethod
    def is_companion(path: Path, head: bytes) -> bool:
        """Say whether a submission has such a file with its logs that no log needs.

        Those are the descriptions of systems (read with the log), `scaling.json`, documents, code
        and the readings of power meters.
        """
        if IN_HEAD.search(head) is not None:
            return is_power(head)
        return path.suffix not in LOGS or path.parent.parent.name == "power"

    def extract(self) -> Iterator[Batch]:
        """Yield job runs, GPUs and job events of the whole log; raise IngestError where none is."""
        for part in files.parts(self.path):
            self._take(part)
        if not self._log.runs:
            raise IngestError(
                f"{self.path}: no line says init_start; expected an MLPerf training log."
            )
        if not _size(self._system())[0]:
            raise IngestError(
                f"{self.path}: the log has no :::SYSJSON line and there is no systems/*.json "
                "next to its results folder, so the number of GPUs is unknown. Ingest the whole "
                "submission folder."
            )
        yield from self._rows()

    def read(self, part: files.Part) -> Iterator[Batch]:
        """Yield what is known by now of the runs that began to train.

        Until then other ranks may report an earlier start, and the benchmark has no name.
        """
        self._take(part)
        has_begun = any(run.run_start is not None for run in self._log.runs)
        if has_begun and b":::MLLOG" in part.data and _size(self._system())[0]:
            yield from self._rows(is_growing=True)

    def _system(self) -> dict[str, Any]:
        return self._log.system or _system_of_submission(place_of_log(self.path))

    def _rows(self, *, is_growing: bool = False) -> Iterator[Batch]:
        """Yield the rows of all runs, of a log that grows those of runs that began to train."""
        log, system, place = self._log, self._system(), place_of_log(self.path)
        nodes, gpus_per_node = _size(system)
        cluster = self.options.cluster or (place.org_name if place else None)
        cluster = cluster or log.names.get("submission_org") or "mlperf"
        base = place.run_id if place else _own_name(log, system, self.path)
        names = (_nodes_of_submission(place, nodes) if place else None) or [
            f"node_{i}" for i in range(1, nodes + 1)
        ]
        said = {
            "cluster": cluster,
            "job_name": place.benchmark if place else log.names.get("submission_benchmark"),
            "account": log.names.get("submission_org"),
            "partition": place.system if place else _text(system, "system_name"),
            "gpu_type": _text(system, "accelerator_model_name"),
        }
        tables: dict[str, list[dict[str, Any]]] = {"job_runs": [], "gpus": [], "job_events": []}
        for ordinal, run in enumerate(log.runs, 1):
            if is_growing and run.run_start is None:
                continue
            name = base if ordinal == 1 else f"{base}#{ordinal}"
            # only the run's name distinguishes events, so it includes the cluster
            run_id = f"{cluster}/{name}"
            hosts = [f"{place.org_name if place else cluster}/{name}/{node}" for node in names]
            end_ms = run.end(is_growing=is_growing)
            tables["job_runs"].append(_job_run(run, run_id, end_ms, hosts, gpus_per_node) | said)
            tables["gpus"] += _gpus(run, cluster, end_ms, hosts, gpus_per_node, said["gpu_type"])
            tables["job_events"] += _events(run, cluster, run_id)
        for table, schema in (("job_runs", JOB_RUNS), ("gpus", GPUS), ("job_events", EVENTS)):
            rejects = log.rejects if table == "job_events" else ()
            parsed = Parsed(table, frame(tables[table], schema), rejects)
            digest = self._so_far[: files.DIGEST_CHARS]
            yield parsed.batch(source=self.name, origin=str(self.path), digest=digest)

    def _meaning(self) -> tuple[object, ...]:
        """Return what identifies the run besides its content: its place in a submission."""
        place = place_of_log(self.path)
        named = (place.org_name, place.run_id) if place else (self.path.name,)
        return (self.options.cluster, *named)

    def _take(self, part: files.Part) -> None:
        """Parse the next lines."""
        log = self._log
        self._so_far = files.digest(part, self._so_far, *self._meaning())
        log.rejects += json_lines.each_line(part, log.take)


def _job_run(
    run: Run, name: str, end_ms: int | None, hosts: list[str], gpus_per_node: int
) -> dict[str, Any]:
    """Return the job run. Its hold is what the log proves: from the first init to the end."""
    state = STATES.get(run.status or "", "FAILED")
    if run.run_stop is None:
        # a log that just stops does not show how its run ended
        state = "RUNNING" if end_ms is None else "UNKNOWN"
    return {
        "job_id": name,
        "job_id_raw": name,
        "submit_at": _at(run.init_start),
        "start_at": _at(run.init_start),
        "end_at": None if end_ms is None else _at(end_ms),
        "state": state,
        "nodes": hosts,
        "gpus": len(hosts) * gpus_per_node,
        "observed_at": _at(max(run.times)),
    }


def _gpus(
    run: Run,
    cluster: str,
    end_ms: int | None,
    hosts: list[str],
    gpus_per_node: int,
    model: str | None,
) -> list[dict[str, Any]]:
    window = {
        "valid_from_at": _at(run.init_start),
        "valid_to_at": None if end_ms is None else _at(end_ms),
    }
    return [
        {
            "cluster": cluster,
            "gpu_uuid": f"{host}#{index}",
            "node": host,
            "slurm_index": index,
            "gpu_model": model,
            **window,
        }
        for host in hosts
        for index in range(gpus_per_node)
    ]


def _events(run: Run, cluster: str, run_id: str) -> list[dict[str, Any]]:
    """Return the job's own account of the run.

    `reports_durability`: an aborted run did not reach its quality target and MLPerf keeps nothing
    of it, so its steps are lost, not unknown.
    """
    events: list[tuple[str, int, dict[str, Any]]] = [("job.start", run.init_start, {})]
    if run.run_start is not None:
        init = {"phase": "init", "dur_s": (run.run_start - run.init_start) / 1000}
        events.append(("phase", run.run_start, init))
    events += [
        ("phase", stop, {"phase": "eval", "dur_s": (stop - start) / 1000})
        for start, stop in run.evaluations
    ]
    if run.run_stop is not None:
        if run.run_start is not None:
            scored_s = (run.run_stop - run.run_start) / 1000
            extra = json.dumps({"span": "run_start to run_stop", "said_by": "one rank for all"})
            events.append(("step", run.run_stop, {"step": 1, "dur_s": scored_s, "extra": extra}))
        if run.status != "success":
            msg = f"MLPerf status {run.status or 'unknown'}: the quality target was not reached"
            events.append(("failure", run.run_stop, {"kind": "other", "msg": msg}))
        events.append(("job.end", run.run_stop, {}))
    said = {"cluster": cluster, "run_id": run_id, "reports_durability": True}
    return [{**said, "event": event, "ts": _at(at), **more} for event, at, more in events]


def _at(epoch_ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=epoch_ms)


def _own_name(log: RunLog, system: dict[str, Any], path: Path) -> str:
    """Return a name for a run outside a submission: by its content, the file's name last."""
    benchmark = log.names.get("submission_benchmark") or "benchmark"
    file = json_lines.printable(path.stem, 200)
    return f"{_text(system, 'system_name') or 'system'}/{benchmark}/{file}"


def _text(system: dict[str, Any], name: str) -> str | None:
    value = system.get(name)
    return json_lines.printable(value, 200) if isinstance(value, str) and value else None


def _size(system: dict[str, Any]) -> tuple[int, int]:
    """Return nodes and GPUs a node as the system's description says; (0, 0) where it does not."""
    numbers = []
    for name in ("number_of_nodes", "accelerators_per_node"):
        value = system.get(name)
        text = str(value) if isinstance(value, str | int) else ""
        numbers.append(int(text) if text.isdecimal() and len(text) < 9 else 0)
    nodes, gpus = numbers
    fits = 0 < nodes <= NODES_MAX and 0 < gpus <= GPUS_PER_NODE_MAX and nodes * gpus <= GPUS_MAX
    return (nodes, gpus) if fits else (0, 0)


def _system_of_submission(place: Place | None) -> dict[str, Any]:
    """Return the description of the system from the submission's folder `systems`."""
    if place is None:
        return {}
    try:
        text = (place.org / "systems" / f"{place.system}.json").read_text(errors="replace")
        return json_lines.record(text)
    except (OSError, FieldError):
        return {}


def _nodes_of_submission(place: Place, nodes: int) -> list[str]:
    """Return the names that the run's power readings give its nodes, if they are as many."""
    folder = place.org / "results" / place.system / place.benchmark / "power" / place.run
    named = sorted(file.stem for file in folder.glob("node_*.txt"))
    return named if len(named) == nodes else []
