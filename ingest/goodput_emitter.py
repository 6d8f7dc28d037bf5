"""Write job events from a training job, so that Goodput knows its steps, phases and checkpoints.

One file without dependencies, for Python 3.8 and later: copy it beside the training script, or
import it where Goodput is installed. It never fails the job: whatever goes wrong in here is
reported once on stderr, and from then on nothing is written.

    import goodput_emitter as goodput

    with goodput.run("llama-7b"):
        with goodput.phase("restore"):
            start = load_checkpoint()
        for k in range(start, steps):
            with goodput.step(k) as step:
                with step.data_wait():
                    batch = next(batches)
                step.loss(train(batch))
            if k % 500 == 0:
                with goodput.phase("ckpt_save"):
                    save(k)
                goodput.durable(k)

Every rank may do so; a run that only rank 0 reports is applied to all of its GPUs. The events and
their fields are described in docs/job-events.md of the project.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import math
import os
import platform
import re
import sys
import threading
import time
from collections import deque
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VERSION = 1
MSG_MAX_CHARS = 300  # of an exception; job logs have the whole
RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK")
UUIDS = ("GPU-", "MIG-")
SIZES = (
    *("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "HOROVOD_SIZE"),
    *("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
)
LIVES_MAX = 100  # that are numbered of a step of a Slurm job, and steps of a start of the job
NUMBERED_FROM_S = 1_577_836_800  # 2020: numbers of attempts have 31 bits
UNMEASURED_MAX = 100  # steps that wait for what the GPU measures
START_MAX_S = 600.0  # before the first life; a process that is older did something else until then


class Emitter:
    """One process's job events, appended to a file line by line.

    path: a file, or a folder that gets a file a rank; default $JOB_EVENTS, else job_events.jsonl.
    run_id: the training task across restarts; default $RUN_ID, else the scheduler's job id, else
     the name of the script.
    fields: added to every event; rank, local_rank, host, pid and gpu_uuid are found by themselves,
     and attempt, the number of the gang's life, where all its ranks find the same.
    """

    def __init__(
        self, run_id: str | None = None, path: str | os.PathLike[str] | None = None, **fields: Any
    ) -> None:
        self.run_id = _run_id(run_id) or os.environ.get("RUN_ID") or os.environ.get("SLURM_JOB_ID")
        self.run_id = self.run_id or Path(sys.argv[0] or "python").stem
        self.path = Path(path or os.environ.get("JOB_EVENTS") or "job_events.jsonl")
        self.identity: dict[str, Any] = {
            "run_id": self.run_id,
            "rank": _first_number(RANKS) or 0,
            "host": platform.node(),
            "pid": os.getpid(),
            "local_rank": _first_number(LOCAL_RANKS),
            "gpu_uuid": None,
            **fields,
        }
        self._number: int | None = None  # of the attempt, as this emitter found it
        self._file: int | None = None
        self._is_broken = False
        self._lock = threading.RLock()
        self._steps: deque[Step] = deque()  # completed, with what the GPU has yet to measure
        self.is_in_run = False
        self.is_alive = False  # between job.start and how the process ended
        self.current_step: Step | None = None  # between its begin and its end

    def emit(self, event: str, *, ts: float | None = None, **fields: Any) -> None:
        """Write one event; `ts` is epoch seconds, default now. Never raises."""
        self._write_steps()
        self._write(event, ts, fields)

    def complete(self, step: Step) -> None:
        """Write a completed step once the GPU has measured it; the training loop never waits."""
        self._steps.append(step)
        self._write_steps()

    def _write_steps(self, *, is_end: bool = False) -> None:
        """Write completed steps in their order; at the end also those that are not measured."""
        with self._lock:
            while self._steps:
                are_many = len(self._steps) > UNMEASURED_MAX
                if not (is_end or are_many or self._steps[0].is_measured()):
                    return
                step = self._steps.popleft()
                self._write("step", step.ended_s, step.row())

    def _write(self, event: str, ts: float | None, fields: dict[str, Any]) -> None:
        if self._is_broken or not self.is_own:
            return  # a forked child, as a data loader's worker, is not the rank
        try:
            if self.identity["gpu_uuid"] is None:
                self.identity["gpu_uuid"] = _gpu_uuid(self.identity["local_rank"])
            row = {"v": VERSION, "ts": time.time() if ts is None else ts, "event": event}
            row.update(self.identity)
            row.update(fields)
            row = {name: value for name, value in row.items() if value is not None}
            line = json.dumps(row, default=str) + "\n"
            with self._lock:
                if self._file is None:
                    self._file = self._opened()
                # one write a line: lines of several processes in one file do not mix
                os.write(self._file, line.encode())
        except Exception as error:
            self._is_broken = True
            _report(f"{self.path}: {error}; no more job events are written")

    def _opened(self) -> int:
        path = self.path
        if path.is_dir():
            run_id = re.sub(r"[^\w.-]", "_", str(self.run_id))[:100]
            path = path / f"{run_id}.rank{self.identity['rank']}.jsonl"
        elif path.parent != Path():
            path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def is_of(self, run_id: str | None, path: str | os.PathLike[str] | None) -> bool:
        """Say whether this process writes these events here; None: wherever it does."""
        is_path = path is None or Path(path).resolve() == self.path.resolve()
        return _run_id(run_id) in (None, self.run_id) and is_path and self.is_own

    @property
    def is_own(self) -> bool:
        """Say whether it is of this process, not of the one that forked it."""
        return bool(self.identity["pid"] == os.getpid())

    def begin(self) -> None:
        """Write `job.start` where a life has not begun yet.

        The process's first life began when the process did: imports are start-up of the job.
        """
        if not self.is_alive:
            self.is_alive = True
            if self.identity.get("attempt") == self._number:  # the job does not give one
                self._number = _attempt(str(self.run_id), self.identity["rank"])
                self.identity["attempt"] = self._number
            self.emit("job.start", ts=_begin_of_first_life())

    @contextlib.contextmanager
    def run(self) -> Iterator[Emitter]:
        """One life of this process: `job.start`, then `job.end`, or `failure` for an exception.

        Inside itself it changes nothing.
        """
        if self.is_in_run:
            yield self
            return
        self.is_in_run = True
        self.begin()
        try:
            yield self
        except BaseException as error:
            self.ended(error)
            raise
        finally:
            self.is_in_run = False
        self.ended()

    def ended(self, error: BaseException | None = None) -> None:
        """Write once how the life ended: `failure` with the exception, or `job.end`."""
        if not self.is_alive:
            return
        self.is_alive = False
        if isinstance(error, SystemExit) and error.code in (None, 0):
            error = None
        for step in self._steps if error is None else ():
            step.wait()
        self._write_steps(is_end=True)
        if error is None:
            self.emit("job.end")
        else:
            self.emit("failure", kind=_kind(error), msg=_message(error))

    @contextlib.contextmanager
    def phase(self, name: str, **fields: Any) -> Iterator[None]:
        """Time that is no training step: init compile restore ckpt_save data_wait eval custom:X.

        It is blocking time of the gang. A phase left by an exception ends there, too.
        """
        self.emit("phase.start", phase=name, **fields)
        try:
            yield
        finally:
            self.emit("phase.end", phase=name, **fields)

    def step(self, number: int, **fields: Any) -> Step:
        """One training step, as a context; `fields` go with it (tokens, samples, flops, ...)."""
        return Step(self, number, fields)

    def model(
        self,
        params: float | None = None,
        dtype: str | None = None,
        is_sparse: bool | None = None,
        **fields: Any,
    ) -> None:
        """Say what the job trains, so that its MFU is known.

        params: parameters that a token uses: of a mixture of experts the active ones.
        dtype: of the matrix multiplications: bf16 (default), fp16, fp8, tf32, fp32.
        is_sparse: whether they use the 2:4 sparsity of the tensor cores; default no.
        """
        self.emit("metric", params=params, dtype=dtype, is_sparse=is_sparse, **fields)

    def versions(self, commit: str | None = None, image: str | None = None, **fields: Any) -> None:
        """Say what the run runs with, so that a slower one can be explained.

        commit: of the code; image: of the container; framework, cuda_version, nccl_version and
        env_hash (of the installed packages) are found by themselves where they are not given.
        """
        found = {} if self._is_broken else _versions()
        self.emit("metric", **{**found, "commit": commit, "image": image, **fields})

    def plan(self, steps: int) -> None:
        """Say how many steps the run is to have in all, so that its end can be forecast."""
        self.emit("metric", planned_steps=steps)

    def durable(self, step: int, **fields: Any) -> None:
        """Say that a checkpoint that holds `step` can be restored from: written, not just begun."""
        self.emit("ckpt.durable", step=step, **fields)

    def failure(self, kind: str, msg: str = "", **fields: Any) -> None:
        """Say what went wrong: oom nccl_timeout xid sigkill exception nan preempted other."""
        self.emit("failure", kind=kind, msg=msg[:MSG_MAX_CHARS], **fields)


class Step:
    """One training step under way; it is written when it ends, and not if an exception ends it.

    Its parts are measured on the GPU where PyTorch uses one, by events in the current stream: a
    step is written when these have happened, with the time of its end.
    """

    def __init__(self, emitter: Emitter, number: int, fields: dict[str, Any]) -> None:
        self.emitter = emitter
        self.number = number
        self.fields = fields
        self.ended_s = 0.0
        self.is_whole = True  # else its loss is still to come
        self._began = 0.0
        self._seconds: dict[str, float] = {}  # by field, of the process
        self._spans: list[tuple[str, Any, Any]] = []  # field, events of the GPU around a part
        self._loss: tuple[Any, Any] | None = None  # and the event after its copy from the GPU

    def begin(self) -> Step:
        """Start the step's clock; for call-backs that cannot use `with`."""
        self._began = time.perf_counter()
        self.emitter.current_step = self
        return self

    def end(self, **fields: Any) -> None:
        """Write the completed step with its duration; `fields` go with it."""
        dur_s = round(time.perf_counter() - self._began, 6)
        self.ended_s = time.time()
        self.fields = {"dur_s": dur_s, **self.fields, **fields}
        self.emitter.current_step = None
        self.emitter.complete(self)

    def loss(self, value: Any) -> None:
        """Give the step its loss: a number, or a tensor, for which nothing waits."""
        with contextlib.suppress(Exception):
            is_cuda = getattr(value, "is_cuda", False)
            value = value.detach() if hasattr(value, "detach") else value
            if is_cuda:
                self._loss = value.to("cpu", non_blocking=True), _mark()
            else:
                self._loss = float(value), None

    def data_wait(self) -> contextlib.AbstractContextManager[None]:
        """Add the time inside to `data_s`, the step's wait for its input."""
        return self._part("data_s", is_of_process=True)

    def forward(self) -> contextlib.AbstractContextManager[None]:
        """Add the time inside to `fwd_s`."""
        return self._part("fwd_s")

    def backward(self) -> contextlib.AbstractContextManager[None]:
        """Add the time inside to `bwd_s`, with its collectives and the waits in them."""
        return self._part("bwd_s")

    def optimizer(self) -> contextlib.AbstractContextManager[None]:
        """Add the time inside to `opt_s`."""
        return self._part("opt_s")

    def communication(self) -> contextlib.AbstractContextManager[None]:
        """Add the time inside to `comm_s`: collectives that nothing overlaps, waits in them."""
        return self._part("comm_s")

    @contextlib.contextmanager
    def _part(self, field: str, *, is_of_process: bool = False) -> Iterator[None]:
        began = time.perf_counter()
        first = None if is_of_process else _mark()
        try:
            yield
        finally:
            last = None if first is None else _mark()
            if last is not None:
                self.span(field, first, last)
            else:
                took_s = time.perf_counter() - began
                self._seconds[field] = self._seconds.get(field, 0.0) + took_s

    def span(self, field: str, first: Any, last: Any) -> None:
        """Add the time between two events of the GPU to a field."""
        self._spans.append((field, first, last))

    def is_measured(self) -> bool:
        """Say whether the GPU has come to the end of all parts, and the loss from it."""
        return self.is_whole and all(_has_happened(mark) for mark in self._marks())

    def wait(self) -> None:
        """Wait until the GPU has come to the end of the parts."""
        for mark in self._marks():
            with contextlib.suppress(Exception):
                mark.synchronize()

    def _marks(self) -> list[Any]:
        marks = [last for _, _, last in self._spans]
        return marks if self._loss is None or self._loss[1] is None else [*marks, self._loss[1]]

    def row(self) -> dict[str, Any]:
        """Return the fields of the event, without those whose parts are not all measured."""
        measured = dict(self._seconds)
        for field, first, last in self._spans:
            measured[field] = measured.get(field, 0.0) + _seconds_between(first, last)
        found: dict[str, Any] = {
            field: round(took_s, 6) for field, took_s in measured.items() if math.isfinite(took_s)
        }
        if self._loss is not None and (self._loss[1] is None or _has_happened(self._loss[1])):
            with contextlib.suppress(Exception):  # a tensor of several values is no loss
                loss = float(self._loss[0])
                found["loss"] = loss if math.isfinite(loss) else str(loss)
        return {"step": self.number, **found, **self.fields}

    def __enter__(self) -> Step:
        return self.begin()

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if kind is None:
            self.end()


def _mark() -> Any:
    """Return an event that the GPU comes to in its current stream; None: PyTorch uses no GPU."""
    with contextlib.suppress(Exception):
        cuda: Any = sys.modules["torch"].cuda
        if cuda.is_initialized() and not cuda.is_current_stream_capturing():
            mark = cuda.Event(enable_timing=True)
            mark.record()
            return mark
    return None


def _has_happened(mark: Any) -> bool:
    """Say whether the GPU has come to an event; not if CUDA has failed."""
    with contextlib.suppress(Exception):
        return bool(mark.query())
    return False


def _seconds_between(first: Any, last: Any) -> float:
    """Return the GPU's time between two events; NaN where it has not come to them."""
    with contextlib.suppress(Exception):
        if _has_happened(last):
            return float(first.elapsed_time(last)) / 1000
    return math.nan


def _run_id(run_id: str | None) -> str | None:
    """Return the run as `goodput run` names it, whose child this is, else as it is given."""
    return os.environ.get("GOODPUT_RUN_ID") or run_id


def _first_number(names: tuple[str, ...]) -> int | None:
    return next(iter(_numbers(names)), None)


def _numbers(names: tuple[str, ...]) -> list[int]:
    values = [os.environ.get(name, "") for name in names]
    return [int(value) for value in values if value.isdecimal()]


def _attempt(run_id: str, rank: int) -> int | None:
    """Return the number of the gang's life that begins, higher than those of its lives before.

    None: it is not sure that all ranks find the same number, and each life another one. Processes
    that srun starts take the restarts of their job, the step, and the lives in the step. A process
    on its own takes the second in which its life begins.
    """
    life = _lives[run_id] = _lives.get(run_id, -1) + 1
    if (given := _first_number(("GOODPUT_ATTEMPT",))) is not None:  # that of `goodput run`
        return given + life + (_first_number(("TORCHELASTIC_RESTART_COUNT",)) or 0)
    if rank != (_first_number(RANKS) or 0):
        return None  # the program starts its ranks by itself
    step, restarts = _first_number(("SLURM_STEP_ID",)), _restarts_in_step()
    if step is not None and restarts is not None:
        start = min(_first_number(("SLURM_RESTART_COUNT",)) or 0, LIVES_MAX**2)
        of_step = min(restarts + life, LIVES_MAX - 1)
        return (start * LIVES_MAX + min(step, LIVES_MAX - 1)) * LIVES_MAX + of_step
    is_gang = max(_numbers(SIZES), default=1) > 1 or "TORCHELASTIC_RUN_ID" in os.environ
    if is_gang and run_id not in _seconds:
        return None
    now_s = int(time.time()) - NUMBERED_FROM_S
    _seconds[run_id] = max(now_s, _seconds.get(run_id, -1) + 1)
    return _seconds[run_id]


def _restarts_in_step() -> int | None:
    """Return how often torchrun restarted the gang in its step of a Slurm job, 0 without torchrun.

    None: the gang is not what one srun started, as under a shell that may start several programs,
    or agents of torchrun on several nodes, which count apart, may restart it.
    """
    is_torchrun = "TORCHELASTIC_RUN_ID" in os.environ
    starter = os.getppid() if is_torchrun else os.getpid()
    processes = _first_number(("GROUP_WORLD_SIZE",) if is_torchrun else ("WORLD_SIZE",))
    tasks = _first_number(("SLURM_STEP_NUM_TASKS",))
    is_of_srun = _first_number(("SLURM_TASK_PID",)) == starter
    if not is_of_srun or tasks is None or processes not in (None, tasks):
        return None
    if not is_torchrun:
        return 0
    if tasks == 1:
        return _first_number(("TORCHELASTIC_RESTART_COUNT",))
    return 0 if _first_number(("TORCHELASTIC_MAX_RESTARTS",)) == 0 else None


def _gpu_uuid(local_rank: int | None) -> str | None:
    """Return the UUID of this rank's GPU where it is known without asking a driver.

    CUDA_VISIBLE_DEVICES may hold UUIDs; PyTorch knows it once the job has begun to use CUDA.
    """
    visible = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    index = 0 if len(visible) == 1 else local_rank
    if index is not None and index < len(visible) and visible[index].startswith(UUIDS):
        return visible[index]
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None  # asking would start CUDA in a process that may fork later
    uuid = getattr(cuda.get_device_properties(cuda.current_device()), "uuid", None)
    return None if uuid is None else f"GPU-{uuid}"


def _begin_of_first_life() -> float | None:
    """Return when this process began, epoch seconds, once; None: it is now, or not known.

    A notebook's process, or one much older than the job, began for something else.
    """
    global _has_lived  # noqa: PLW0603 -- a process begins once
    if _has_lived == os.getpid() or "ipykernel" in sys.modules or hasattr(sys, "ps1"):
        return None
    _has_lived = os.getpid()
    with contextlib.suppress(Exception):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        began_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")  # since boot
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - began_s
        if 0 <= age_s <= START_MAX_S:
            return time.time() - age_s
    return None


def _versions() -> dict[str, str]:
    """Return the versions of PyTorch, of what it was built with, and of all packages as a hash."""
    found: dict[str, str] = {}
    with contextlib.suppress(Exception):
        packages = sorted({f"{d.metadata['Name']}=={d.version}" for d in metadata.distributions()})
        found["env_hash"] = hashlib.sha256("\n".join(packages).encode()).hexdigest()[:12]
    with contextlib.suppress(Exception):
        torch: Any = sys.modules["torch"]
        found["framework"] = f"torch {torch.__version__}"
        found["cuda_version"] = str(torch.version.cuda)
        found["nccl_version"] = ".".join(map(str, torch.cuda.nccl.version()))
    return found


def _kind(error: BaseException) -> str:
    name = type(error).__name__
    text = str(error)
    if isinstance(error, MemoryError) or "OutOfMemory" in name or "out of memory" in text:
        return "oom"
    if "NCCL" in text and ("timeout" in text.lower() or "timed out" in text.lower()):
        return "nccl_timeout"
    return "exception"


def _message(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:MSG_MAX_CHARS]


def _report(text: str) -> None:
    with contextlib.suppress(Exception):
        sys.stderr.write(f"goodput_emitter: {text}\n")


# The functions below share one emitter a process: the one that `run` opened, else one of defaults.
_current: Emitter | None = None
_has_lived: int | None = None  # the process that has
_lives: dict[str, int] = {}  # of this process by run: lives before the last one
_seconds: dict[str, int] = {}  # of this process by run: number of its last life


def current() -> Emitter:
    """Return the process's emitter, with defaults where `run` was not called.

    A forked child inherits it and writes nothing, until it calls `run` itself.
    """
    global _current  # noqa: PLW0603 -- the point of it: call sites deep in a trainer need no handle
    if _current is None:
        _current = Emitter()
    return _current


@contextlib.contextmanager
def run(
    run_id: str | None = None, path: str | os.PathLike[str] | None = None, **fields: Any
) -> Iterator[Emitter]:
    """One life of this process under `run_id`; see `Emitter` for what the arguments mean.

    A life that a call-back has begun goes on, under its run and path; after its end another begins.
    """
    global _current  # noqa: PLW0603 -- as above
    if _current is None or not _current.is_of(run_id, path):
        _current = Emitter(run_id, path)
    _current.identity.update(fields)
    with _current.run() as emitter:
        yield emitter


def phase(name: str, **fields: Any) -> contextlib.AbstractContextManager[None]:
    """Time that is no training step; see `Emitter.phase`."""
    return current().phase(name, **fields)


def step(number: int, **fields: Any) -> Step:
    """One training step, as a context; see `Emitter.step`."""
    return current().step(number, **fields)


def model(
    params: float | None = None,
    dtype: str | None = None,
    is_sparse: bool | None = None,
    **fields: Any,
) -> None:
    """Say what the job trains, so that its MFU is known; see `Emitter.model`."""
    current().model(params, dtype, is_sparse, **fields)


def versions(commit: str | None = None, image: str | None = None, **fields: Any) -> None:
    """Say what the run runs with; see `Emitter.versions`."""
    current().versions(commit, image, **fields)


def plan(steps: int) -> None:
    """Say how many steps the run is to have in all; see `Emitter.plan`."""
    current().plan(steps)


def durable(step: int, **fields: Any) -> None:
    """Say that a checkpoint that holds `step` can be restored from."""
    current().durable(step, **fields)


def failure(kind: str, msg: str = "", **fields: Any) -> None:
    """Say what went wrong; see `Emitter.failure`."""
    current().failure(kind, msg, **fields)


def measure_communication(model: Any) -> None:
    """Measure `comm_s` of the steps of a `DistributedDataParallel` model, on every rank.

    It is the time from the last gradient of a step to the end of their all-reduce: what the
    backward does not hide, with the waits for late ranks. Takes the place of a communication hook.
    """
    try:
        torch_hooks = "torch.distributed.algorithms.ddp_comm_hooks.default_hooks"
        all_reduce = importlib.import_module(torch_hooks).allreduce_hook

        def hook(group: Any, bucket: Any) -> Any:
            under_way = current().current_step
            first = _mark() if under_way is not None and bucket.is_last() else None
            reduced = all_reduce(group, bucket)
            if under_way is None or first is None:
                return reduced

            def measured(future: Any) -> Any:
                if (last := _mark()) is not None:  # in a stream that waits for the collective
                    under_way.span("comm_s", first, last)
                return future.value()

            return reduced.then(measured)

        hook.__annotations__ = {}  # PyTorch refuses types that are written otherwise than its own
        model.register_comm_hook(None, hook)
    except Exception as error:
        _report(f"communication is not measured: {error}")


def hf_callback(run_id: str | None = None, path: str | os.PathLike[str] | None = None) -> Any:
    """Return a `TrainerCallback` for `transformers.Trainer(callbacks=[...])`.

    Steps with their loss, evaluations and saves are written, and tokens where Trainer counts them
    (`include_num_input_tokens_seen`). Trainer saves synchronously, so a finished save is
    durable. Trainer has no hook for exceptions: put `trainer.train()` into `with run():` for those.
    """
    base = importlib.import_module("transformers").TrainerCallback
    return type("GoodputCallback", (_HfHooks, base), {})(_shared(run_id, path))


def lightning_callback(
    run_id: str | None = None, path: str | os.PathLike[str] | None = None
) -> Any:
    """Return a `Callback` for `lightning.Trainer(callbacks=[...])` (or pytorch_lightning's).

    Steps with their loss, forward, backward and optimizer, restores, validations, saves and
    exceptions are written. Saves of an asynchronous checkpoint plugin
    are not called durable: call `durable(step)` where the plugin says so.
    """
    try:
        module = importlib.import_module("lightning.pytorch")
    except ImportError:
        module = importlib.import_module("pytorch_lightning")
    return type("GoodputCallback", (_LightningHooks, module.Callback), {})(_shared(run_id, path))


def _shared(run_id: str | None, path: str | os.PathLike[str] | None) -> Emitter:
    """Return the emitter of the `run()` that the call-back is made in, else that of its life."""
    global _current  # noqa: PLW0603 -- as above
    is_in_run = _current is not None and _current.is_in_run and _current.is_own
    if _current is None or not (is_in_run or _current.is_of(run_id, path)):
        _current = Emitter(run_id, path)
    _current.begin()
    return _current


class _HfHooks:
    """What transformers.Trainer calls: (args, state, control, **more)."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.current_step: Step | None = None
        self.ended_step: Step | None = None  # whose loss may come
        self.tokens = 0  # that the gang had seen before the step
        self.mark_s = time.time()
        self.is_in_eval = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self.emitter.begin()
        self.tokens = getattr(state, "num_input_tokens_seen", 0)
        if getattr(state, "max_steps", 0) > 0:
            self.emitter.plan(state.max_steps)

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._end_step()
        self.current_step = self.emitter.step(state.global_step + 1).begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if self.current_step is not None:
            tokens, self.tokens = self.tokens, getattr(state, "num_input_tokens_seen", 0)
            is_first_rank = self.emitter.identity["rank"] == 0  # they are those of the gang
            self.current_step.is_whole = False
            self.current_step.end(
                step=state.global_step,
                tokens=(self.tokens - tokens or None) if is_first_rank else None,
            )
            self.ended_step, self.current_step = self.current_step, None
        self.mark_s = time.time()

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **more: Any
    ) -> None:
        if self.ended_step is not None and logs is not None and "loss" in logs:
            self.ended_step.loss(logs["loss"])

    def _end_step(self) -> None:
        """Let the last step be written: what Trainer logs of it has come."""
        if self.ended_step is not None:
            self.ended_step.is_whole = True
            self.ended_step = None

    def on_prediction_step(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._end_step()
        if not self.is_in_eval:
            self.is_in_eval = True
            self.emitter.emit("phase.start", phase="eval")

    def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        if self.is_in_eval:
            self.is_in_eval = False
            self.emitter.emit("phase.end", phase="eval")
        self.mark_s = time.time()

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._end_step()
        now_s = time.time()
        dur_s = round(now_s - self.mark_s, 6)
        self.emitter.emit("phase", ts=now_s, phase="ckpt_save", dur_s=dur_s)
        self.emitter.durable(state.global_step)
        self.mark_s = time.time()

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._end_step()
        if not self.emitter.is_in_run:
            self.emitter.ended()


class _LightningHooks:
    """What lightning.Trainer calls: (trainer, module, ...)."""

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.current_step: Step | None = None
        self.part = contextlib.ExitStack()  # of the step, that is under way
        self.saved_step: int | None = None
        self.set_up_s = 0.0
        self.has_restored = False
        self.has_failed = False

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        if stage == "fit":
            self.has_failed = self.has_restored = False
            self.emitter.begin()
            self.set_up_s = time.time()

    def on_load_checkpoint(self, trainer: Any, module: Any, checkpoint: Any) -> None:
        self.has_restored = True

    def on_sanity_check_start(self, trainer: Any, module: Any) -> None:
        self._end_restore()

    def on_train_start(self, trainer: Any, module: Any) -> None:
        self._end_restore()
        with contextlib.suppress(Exception):  # without end: no integer
            self.emitter.plan(int(trainer.estimated_stepping_batches))

    def _end_restore(self) -> None:
        """Write the restore, from the end of the set-up: Lightning has no hook for its start."""
        if self.has_restored:
            self.has_restored = False
            now_s = time.time()
            dur_s = round(now_s - self.set_up_s, 6)
            self.emitter.emit("phase", ts=now_s, phase="restore", dur_s=dur_s)

    def _end_save(self, trainer: Any) -> None:
        """End a save at the hook after it: Lightning has none for its end."""
        if self.saved_step is None:
            return
        self.emitter.emit("phase.end", phase="ckpt_save")
        plugin = getattr(trainer.strategy, "checkpoint_io", None)
        if "Async" not in type(plugin).__name__:
            self.emitter.durable(self.saved_step)
        self.saved_step = None

    def on_train_batch_start(self, trainer: Any, *more: Any) -> None:
        self._end_save(trainer)
        if self.current_step is None:  # a step may take several batches
            self.current_step = self.emitter.step(trainer.global_step + 1).begin()
        self.part.enter_context(self.current_step.forward())

    def on_before_backward(self, *more: Any) -> None:
        self._next_part(Step.backward)

    def on_after_backward(self, *more: Any) -> None:
        self.part.close()

    def on_before_optimizer_step(self, *more: Any) -> None:
        self._next_part(Step.optimizer)

    def _next_part(self, part: Callable[[Step], contextlib.AbstractContextManager[None]]) -> None:
        self.part.close()
        if self.current_step is not None:
            self.part.enter_context(part(self.current_step))

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, *more: Any) -> None:
        self.part.close()
        if self.current_step is not None and outputs is not None:
            self.current_step.loss(outputs["loss"] if isinstance(outputs, dict) else outputs)
        if self.current_step is not None and trainer.global_step >= self.current_step.number:
            self.current_step.end(step=trainer.global_step)
            self.current_step = None

    def on_validation_start(self, trainer: Any, *more: Any) -> None:
        self._end_save(trainer)
        self.emitter.emit("phase.start", phase="eval")

    def on_validation_end(self, trainer: Any, *more: Any) -> None:
        self.emitter.emit("phase.end", phase="eval")

    def on_save_checkpoint(self, trainer: Any, *more: Any) -> None:
        self._end_save(trainer)
        self.saved_step = trainer.global_step
        self.emitter.emit("phase.start", phase="ckpt_save")

    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        self.has_failed = True
        if not self.emitter.is_in_run:
            self.emitter.ended(exception)

    def teardown(self, trainer: Any, module: Any, stage: str) -> None:
        self._end_save(trainer)
        if stage == "fit" and not self.has_failed and not self.emitter.is_in_run:
            self.emitter.ended()
