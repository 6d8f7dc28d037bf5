"""How a job trains: how long its steps are, how often it saves, what goes wrong inside it.

Drawn once a job, so that its later attempts go on as the first one began. Times in milliseconds.
"""

from dataclasses import dataclass, replace

import numpy as np

from goodput_synthetic.fleet.demand import Request
from goodput_synthetic.fleet.fleet import GPUS_PER_NODE
from goodput_synthetic.fleet.workloads import WORKLOADS

SECOND = 1_000
MINUTE = 60 * SECOND
MEASURED_SHARE = 0.75  # of the crowd's jobs with events: their steps report how long they waited
MEASURED_KINDS = ("plain", "evals", "hang", "restart")
LINE_MAX_MS = 120 * SECOND  # nobody waits longer for a line of a log
KIND_STEP_MS = {"throttled": 62 * SECOND, "straggler": 15 * SECOND}
COMM_OF_NODE, COMM_OF_DOUBLING = 0.035, 0.022  # of a step: on one node, more for twice the nodes
COMM_SPREAD, COMM_MOST = 0.35, 0.3


@dataclass(frozen=True)
class Habits:
    """What repeats in a training job.

    log_every: steps that one event reports together; save_every: steps, a multiple of them;
    async_ms: from the end of the blocking part until the checkpoint is durable; is_confirmed: the
    job reports durable saves; gap_ms: undeclared idleness after each save; eval_every: saves;
    stalls: share of events with a wait for data, by stall_share of their steps; slow_windows:
    shares of the steps between which some GPUs hold up the gang, by slow_share of a step;
    comm_share: of a step, exposed communication; level: GR_ENGINE_ACTIVE inside steps.
    """

    step_ms: int
    log_every: int
    noise: float
    prolog_ms: int
    init_ms: int
    compile_ms: int
    restore_ms: int
    save_every: int
    save_ms: int
    async_ms: int
    is_confirmed: bool
    gap_ms: int
    eval_every: int
    eval_ms: int
    stalls: float
    stall_share: float
    slow_windows: tuple[tuple[float, float], ...]
    slow_share: float
    is_measured: bool
    comm_share: float
    level: float

    @property
    def line_ms(self) -> int:
        """Return how long the steps of one event take."""
        return self.step_ms * self.log_every


def habits_of(request: Request) -> Habits:
    """Return the habits of a request, the same whenever it is asked."""
    rng = np.random.default_rng([request.seed, 6])
    kind = request.kind
    is_measured, comm_share = _communication(request)
    step, log_every = _steps(request)
    line = step * log_every
    save_minutes = float(rng.uniform(10, 30)) if kind != "gaps" else float(rng.uniform(9, 16))
    saves = rng.random() < 0.9 or kind in ("gaps", "evals", "unconfirmed") or bool(request.story)
    windows: tuple[tuple[float, float], ...] = ()
    if kind == "throttled":
        windows = ((0.22, 0.34), (0.62, 0.74))
    elif kind == "straggler":
        windows = ((0.30, 0.55),)
    if "slow_from" in request.options:
        windows = ((request.options["slow_from"], request.options["slow_to"]),)
    is_starved = kind == "starved"
    drawn = Habits(
        step_ms=step,
        log_every=log_every,
        noise=float(rng.uniform(0.003, 0.012)),
        prolog_ms=int(rng.integers(3, 25) * SECOND),
        init_ms=int(rng.integers(20, 90) * SECOND + rng.integers(0, 1_000)),
        compile_ms=int(rng.integers(8, 60) * SECOND + rng.integers(0, 1_000)),
        restore_ms=int(rng.integers(15, 80) * SECOND + rng.integers(0, 1_000)),
        save_every=log_every * max(4, int(save_minutes * MINUTE / line)) if saves else 2**31,
        save_ms=int(rng.integers(4, 35) * SECOND + rng.integers(0, 1_000)),
        async_ms=int(rng.choice((0, 0, 25 * SECOND, 70 * SECOND))),
        is_confirmed=kind != "unconfirmed",
        gap_ms=int(rng.integers(150, 260) * SECOND) if kind == "gaps" else 0,
        eval_every=int(rng.integers(1, 4)) if kind == "evals" else 0,
        eval_ms=int(rng.integers(40, 160) * SECOND),
        stalls=request.options.get("stalls", 0.15) if is_starved else 0.0,
        stall_share=float(rng.uniform(0.4, 1.5)) if is_starved else 0.0,
        slow_windows=windows,
        slow_share=float(rng.uniform(0.3, 0.5)),
        level=request.options.get("level", float(rng.uniform(0.72, 0.97))),
        is_measured=is_measured,
        comm_share=comm_share,
    )
    save_ms = request.options.get("save_ms")
    return drawn if save_ms is None else replace(drawn, save_ms=int(save_ms))


def _steps(request: Request) -> tuple[int, int]:
    """Return the length of a step, and of how many of them an event reports.

    Options say it of all jobs alike, and scripted kinds have steps that show what they are for.
    """
    workload = WORKLOADS[request.workload]
    rng = np.random.default_rng([request.seed, 16])
    drawn = float(np.exp(rng.uniform(*np.log(workload.step_s)))) * SECOND
    most = rng.choice(list(workload.log_every), p=list(workload.log_every.values()))
    log_every = max(n for n in workload.log_every if n <= most and n * drawn <= LINE_MAX_MS)
    fixed = request.options.get("step_ms", KIND_STEP_MS.get(request.kind))
    return (int(drawn), log_every) if fixed is None else (int(fixed), 1)


def _communication(request: Request) -> tuple[bool, float]:
    """Return whether a job's steps report communication, and which share of a step it takes.

    It is more on more nodes; one GPU has none to report.
    """
    rng = np.random.default_rng([request.seed, 15])
    is_asked = not request.story and request.reports and request.kind in MEASURED_KINDS
    is_drawn = is_asked and request.gpus > 1 and rng.random() < MEASURED_SHARE
    doublings = np.log2(max(1.0, request.gpus / GPUS_PER_NODE))
    share = (COMM_OF_NODE + COMM_OF_DOUBLING * doublings) * rng.lognormal(0, COMM_SPREAD)
    is_measured = is_drawn or request.kind == "measured" or "measured" in request.options
    share = request.options.get("comm", min(share, COMM_MOST))
    return bool(is_measured), float(share) if request.gpus > 1 else 0.0
