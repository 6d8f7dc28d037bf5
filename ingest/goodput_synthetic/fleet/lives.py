"""What the processes of each job run did: attempts of training, or busy and idle time."""

from dataclasses import dataclass, field, replace

import numpy as np

from goodput_synthetic.fleet.demand import Request
from goodput_synthetic.fleet.fleet import GPUS_PER_NODE, NODES_PER_RACK, Ints
from goodput_synthetic.fleet.habits import SECOND, Habits, habits_of
from goodput_synthetic.fleet.schedule import JobRun
from goodput_synthetic.fleet.training import Attempt, Ending, train

OK = ("COMPLETED",)
LIMITS = ("TIMEOUT", "CANCELLED", "PREEMPTED", "REQUEUED")
STRAGGLER = 5  # the rank that is late where one is
DOUBTFUL_S = (215, 400)  # idleness counts from 300 s on
HUNG_S = (480, 900)  # how long NCCL's watchdog waits
RANK_WAIT_SHARES = (0.6, 1.0)  # of the longest wait, that of each rank but the late one
CRASHES = (
    ("exception", "RuntimeError: CUDA error: an illegal memory access was encountered"),
    ("exception", "FileNotFoundError: shard 00412 is missing"),
    ("nan", "loss is NaN for 3 steps"),
    ("sigkill", "Signal 9 (SIGKILL) received"),
)
OUT_OF_MEMORY = ("oom", "CUDA out of memory. Tried to allocate 3.91 GiB")
HANG = ("nccl_timeout", "Watchdog caught collective operation timeout: ALLREDUCE ran 600024 ms")


@dataclass(eq=False)
class Life:
    """A job run from the inside. Times in milliseconds from the start of the fleet.

    end: of the hold, or of the evidence where it still runs; attempts: of a job that trains,
    with or without events; stretches: (start, end, is_busy) of one that does not; suspended: how
    long at its end it was stopped; special: places in the gang of the GPUs that hold it up,
    or of the one that it does not use.
    """

    run: JobRun
    begin: int
    end: int
    habits: Habits
    attempts: list[Attempt] = field(default_factory=list)
    stretches: list[tuple[int, int, bool]] = field(default_factory=list)
    suspended: int = 0
    special: tuple[int, ...] = ()

    @property
    def request(self) -> Request:
        """Return what was asked for."""
        return self.run.request

    @property
    def planned_steps(self) -> int:
        """Return how many steps it was to have: those it did, or where it did not end half more."""
        done = max((int(a.steps.number[-1]) for a in self.attempts if len(a.steps)), default=0)
        return max(1, done if self.outcome == "ok" else done * 3 // 2)

    @property
    def outcome(self) -> str:
        """Return how the job run ended: ok, limit, failed, or running."""
        if self.run.end_s is None:
            return "running"
        if self.run.state in OK:
            return "ok"
        return "limit" if self.run.state in LIMITS else "failed"


def rank_waits(life: Life, attempt: Attempt, rank: int) -> Ints:
    """Return how long a rank waits for the others in each step, ms; one rank reports for all.

    Where all ranks report, one of them is late, and the others wait for it, each for its own time.
    """
    waits = attempt.steps.wait
    if life.request.reports != "all":
        return waits
    steps = len(waits)
    of_gang = np.random.default_rng([life.request.seed, 17, attempt.number])
    of_rank = np.random.default_rng([life.request.seed, 18, attempt.number, rank])
    is_late = of_gang.integers(len(life.run.units), size=steps) == rank
    own = (waits * of_rank.uniform(*RANK_WAIT_SHARES, steps)).astype(np.int64)
    return np.where(is_late, 0, own)


def live(runs: list[JobRun], total_s: int) -> list[Life]:
    """Return the life of each job run that started, in order of the runs."""
    found: list[Life] = []
    resumes: dict[str, tuple[int, int]] = {}  # run id: step to go on with, attempts so far
    for run in runs:
        if run.start_s is None:
            continue
        end_s = total_s if run.end_s is None else run.end_s
        life = Life(run, run.start_s * SECOND, end_s * SECOND, habits_of(run.request))
        if life.end > life.begin:
            _live_one(life, resumes)
            found.append(life)
    return found


def _live_one(life: Life, resumes: dict[str, tuple[int, int]]) -> None:
    request = life.request
    rng = np.random.default_rng([request.seed, 7, life.run.number])
    if request.kind == "notebook":
        life.stretches = _notebook(life, rng)
    elif request.kind == "unused":
        life.stretches = [(life.begin, life.end, False)]
    elif request.kind == "suspended":
        life.suspended = (life.end - life.begin) * 2 // 5 // SECOND * SECOND
        life.stretches = [
            (life.begin, life.end - life.suspended, True),
            (life.end - life.suspended, life.end, False),
        ]
    else:
        resume, number = resumes.get(request.run_id, (1, 0))
        _train(life, resume, number, rng)
        last = life.attempts[-1]
        kept = max([resume - 1, *(a.durable_step for a in life.attempts)])
        resumes[request.run_id] = (kept + 1, last.number + 1)
        if "hot_rack" in request.options:
            life.special = _places_in(life.run, request.options["hot_rack"])
        elif request.kind == "throttled":
            life.special = tuple(range(GPUS_PER_NODE, 2 * GPUS_PER_NODE))
        elif request.kind == "straggler":
            life.special = (STRAGGLER,)
        elif request.kind == "spare":
            life.special = (request.gpus - 1,)


def _places_in(run: JobRun, rack: float) -> tuple[int, ...]:
    """Return the places in the gang of the GPUs that stand in a rack."""
    return tuple(
        place
        for place in range(len(run.units))
        if run.nodes[place // GPUS_PER_NODE] // NODES_PER_RACK == rack
    )


def _train(life: Life, resume: int, number: int, rng: np.random.Generator) -> None:
    habits, begin = life.habits, life.begin
    if life.request.kind == "restart" and life.outcome in ("ok", "running"):
        crash = Ending("failed", int(rng.integers(60, 240)) * SECOND, CRASHES[3])
        middle = begin + int((life.end - begin) * rng.uniform(0.4, 0.6))
        first = train(habits, number, begin, middle, resume, crash, rng)
        life.attempts.append(first)
        # torchrun starts the processes again: there is no prolog
        resume, number, begin = max(first.durable_step + 1, resume), number + 1, middle
        habits = replace(habits, prolog_ms=0)
    ending = _ending(life, rng)
    attempt = train(habits, number, begin, life.end, resume, ending, rng)
    if life.run.died_s is not None:
        attempt.died = life.run.died_s * SECOND
    elif life.outcome == "failed" and life.request.kind != "hang":
        attempt.died = attempt.work_end if len(attempt.steps) else life.end
    life.attempts.append(attempt)


def _ending(life: Life, rng: np.random.Generator) -> Ending:
    state, kind = life.run.state, life.request.kind
    if life.outcome == "running":
        return Ending("running", int(life.request.options.get("hung_s", 0)) * SECOND)
    if life.outcome == "ok":
        return Ending("ok", int(rng.integers(4, 25)) * SECOND + life.habits.save_ms)
    if life.outcome == "limit":
        return Ending("limit", int(rng.integers(1, 8)) * SECOND)
    if state == "NODE_FAIL" and life.run.died_s is not None:
        return Ending("failed", life.end - life.run.died_s * SECOND)
    length_s = (life.end - life.begin) // SECOND
    if kind == "hang":
        hung = min(int(rng.integers(*HUNG_S)), length_s // 3)
        return Ending("failed", hung * SECOND, HANG)
    failure = CRASHES[int(rng.integers(len(CRASHES)))]
    if "loss" in life.request.options:
        failure = CRASHES[2]
    if state == "OUT_OF_MEMORY":  # of the host: the kernel kills it
        failure = CRASHES[3]
    if "growth_gb_per_h" in life.request.options:
        failure = OUT_OF_MEMORY
    if "xid" in life.request.options:
        failure = ("xid", "CUDA error: uncorrectable ECC error encountered")
    tail = int(rng.integers(12, 60)) * SECOND
    return Ending("failed", tail, failure, has_steps=kind != "early")


def _notebook(life: Life, rng: np.random.Generator) -> list[tuple[int, int, bool]]:
    """Return work in bursts and thinking between them: well under 300 s, or well over."""
    stretches = []
    at, is_busy = life.begin, False
    while at < life.end:
        if is_busy:
            length = int(rng.lognormal(np.log(240), 0.7))
        elif rng.random() < 0.45:
            length = int(rng.integers(40, 210))
        else:
            length = int(np.clip(rng.lognormal(np.log(1_500), 0.8), 420, 14_400))
        until = min(at + length * SECOND + int(rng.integers(0, 1_000)), life.end)
        # what the end of the job cuts short is not left so near to 300 s that readings decide
        is_doubtful = not is_busy and DOUBTFUL_S[0] < (until - at) // SECOND < DOUBTFUL_S[1]
        stretches.append((at, until, is_busy or is_doubtful))
        at, is_busy = until, not is_busy
    return stretches
