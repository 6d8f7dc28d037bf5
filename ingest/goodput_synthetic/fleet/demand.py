"""The jobs that teams submit: a random population by team, size and kind."""

from dataclasses import dataclass, field

import numpy as np

from goodput_synthetic.fleet.fleet import CPUS_PER_GPU, GPUS_PER_NODE, Fleet
from goodput_synthetic.fleet.outages import DAY_S
from goodput_synthetic.fleet.workloads import OF_NAME, names

TEAMS = {
    "nlp": ("amara", "bo", "chen", "dilnoza", "emre", "farah"),
    "vision": ("goran", "hana", "ines", "jomo", "kalle"),
    "speech": ("lucia", "mateo", "nadia"),
    "robotics": ("oskar", "priya", "quentin"),
    "platform": ("rosa", "sven"),
}
TEAM_SHARES = (0.40, 0.25, 0.15, 0.12, 0.08)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SIZE_SHARES = (0.34, 0.10, 0.12, 0.20, 0.08, 0.05, 0.045, 0.03, 0.035)
MEDIAN_MINUTES = (24, 25, 28, 30, 34, 38, 42, 50, 60)
SPREAD = 0.9  # of the logarithm of a job's length
LOAD = 1.05  # asked GPU time against what there is
SHORTEST_S = 240
REPORT_MIN_S = 900  # shorter jobs are scripts that nobody made talk
ENDINGS = ("COMPLETED", "FAILED", "OUT_OF_MEMORY", "TIMEOUT", "CANCELLED", "PREEMPTED")
ENDING_SHARES = (0.74, 0.08, 0.02, 0.05, 0.08, 0.03)
FLAVOURS = ("plain", "measured", "starved", "gaps", "evals", "hang", "early", "restart")
FLAVOUR_SHARES = (0.66, 0.04, 0.05, 0.06, 0.08, 0.04, 0.04, 0.03)


@dataclass(eq=False)
class Request:
    """A job as its user submits it, and what will become of it if nothing else happens.

    need_s: how long its first start runs; rest_s: how long each start after a requeue does.
    ending: its state then; kind: what it does inside (lives.py); reports: which ranks send events,
    '' none, 'first' or 'all'; fails_after_s: one of its nodes dies that long after the start;
    workload: what it trains; declared: what its first rank says of it when it begins.
    """

    job_id: int
    name: str
    user: str
    account: str
    pool: str
    gpus: int
    submit_s: int
    need_s: int
    limit_s: int
    ending: str
    kind: str
    seed: int
    reports: str = ""
    workload: str = ""
    partition: str = ""
    gres_type: str = ""
    qos: str = "normal"
    priority: int = 0
    cpus: int = 0
    wait_s: int = 0
    rest_s: int = 0
    requeues: int = 0
    fails_after_s: int | None = None
    patience_s: int | None = None
    run_id: str = ""
    reservation: str = ""
    story: str = ""
    options: dict[str, float] = field(default_factory=dict)
    declared: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Fill in what follows from the rest."""
        self.workload = self.workload or OF_NAME[names(self.gpus)[0]]
        self.partition = self.partition or self.pool
        self.gres_type = self.gres_type or self.pool
        self.run_id = self.run_id or str(self.job_id)
        self.cpus = self.cpus or self.gpus * CPUS_PER_GPU
        self.rest_s = self.rest_s or self.need_s


def crowd(fleet: Fleet, hours: int, seed: int, booked_gpu_s: dict[str, float]) -> list[Request]:
    """Return random requests that fill each pool up to LOAD, in addition to the stories' jobs."""
    rng = np.random.default_rng([seed, 3])
    total = hours * 3_600
    requests: list[Request] = []
    for pool in ("h100", "h200"):
        nodes = len(fleet.pool_nodes(pool))
        left = LOAD * nodes * GPUS_PER_NODE * total - booked_gpu_s.get(pool, 0.0)
        largest = max(GPUS_PER_NODE, nodes * GPUS_PER_NODE // 4)
        fits = np.array([size <= largest for size in SIZES])
        shares = np.where(fits, SIZE_SHARES, 0.0)
        shares /= shares.sum()
        while left > 0:
            which = int(rng.choice(len(SIZES), p=shares))
            request = _job(rng, pool, SIZES[which], MEDIAN_MINUTES[which], total, len(requests))
            requests.append(request)
            left -= request.gpus * request.need_s
    requests += _mig_jobs(rng, total, len(requests))
    return requests


def _job(
    rng: np.random.Generator, pool: str, gpus: int, median_minutes: float, total: int, number: int
) -> Request:
    length = float(rng.lognormal(np.log(median_minutes * 60), SPREAD))
    need = int(np.clip(length, SHORTEST_S, min(DAY_S, total // 2)))
    team = str(rng.choice(list(TEAMS), p=TEAM_SHARES))
    kind, reports = _kind(rng, gpus, need)
    ending = str(rng.choice(ENDINGS, p=ENDING_SHARES))
    if kind == "early":
        need, ending = int(rng.integers(SHORTEST_S, 600)), "FAILED"
    if kind == "hang":
        ending = "FAILED"
    if kind == "notebook":
        ending = str(rng.choice(("CANCELLED", "TIMEOUT")))
    if kind == "restart":
        ending = "COMPLETED"
    is_scavenger = ending == "PREEMPTED"
    dies = gpus >= GPUS_PER_NODE and ending == "COMPLETED" and rng.random() < 0.012
    limit = need if ending == "TIMEOUT" else int(need * rng.uniform(1.3, 4.0)) + 900
    stem = "" if kind == "notebook" else str(rng.choice(names(gpus)))
    return Request(
        job_id=100_000 + number,
        name=f"{stem}-{number:05}" if stem else "jupyter",
        user=str(rng.choice(TEAMS[team])),
        account=team,
        pool=pool,
        gpus=gpus,
        submit_s=_submit(rng, total),
        need_s=need,
        limit_s=limit,
        ending=ending,
        kind=kind,
        seed=int(rng.integers(2**31)),
        reports=reports,
        workload=OF_NAME.get(stem, ""),
        partition="scavenge" if is_scavenger else pool,
        qos="scavenger" if is_scavenger else "normal",
        rest_s=int(max(900, need * rng.uniform(0.3, 0.9))),
        requeues=1 if is_scavenger or dies else 0,
        fails_after_s=int(need * rng.uniform(0.3, 0.95)) if dies else None,
        wait_s=int(rng.integers(600, 7_200)) if rng.random() < 0.05 else 0,
        patience_s=int(rng.integers(1_800, 14_400)) if rng.random() < 0.15 else None,
    )


def _kind(rng: np.random.Generator, gpus: int, need_s: int) -> tuple[str, str]:
    """Return what a job does and which of its ranks send events."""
    has_events = rng.random() < (0.45 if gpus < GPUS_PER_NODE else 0.68)
    if need_s >= REPORT_MIN_S and has_events:
        kind = str(rng.choice(FLAVOURS, p=FLAVOUR_SHARES))
        return kind, "all" if gpus <= 2 * GPUS_PER_NODE and rng.random() < 0.03 else "first"
    if gpus < GPUS_PER_NODE and need_s >= REPORT_MIN_S and rng.random() < 0.35:
        return "notebook", ""
    return ("unused" if need_s >= REPORT_MIN_S and rng.random() < 0.03 else "dark"), ""


def _submit(rng: np.random.Generator, total: int) -> int:
    """Return when a job is submitted: a backlog at the opening, then more by day than by night."""
    if rng.random() < min(0.3, 2 * 3_600 / total):
        return int(rng.integers(0, 590))
    while True:
        at = int(rng.integers(600, total))
        of_day = (at % DAY_S) / DAY_S
        if rng.random() < 0.6 + 0.4 * np.sin(2 * np.pi * (of_day - 0.3)):
            return at


def _mig_jobs(rng: np.random.Generator, total: int, number: int) -> list[Request]:
    """Return jobs on parts of GPUs: notebooks on small instances, small services on large ones."""
    found: list[Request] = []
    for _ in range(max(16, total // 1_200)):
        profile = str(rng.choice(("1g.10gb", "3g.40gb", "h100"), p=(0.7, 0.2, 0.1)))
        need = int(np.clip(rng.lognormal(np.log(5_400), 0.8), 900, total // 3))
        team = str(rng.choice(list(TEAMS), p=TEAM_SHARES))
        kind = "notebook" if profile == "1g.10gb" else "dark"
        found.append(
            Request(
                job_id=100_000 + number + len(found),
                name="jupyter" if kind == "notebook" else "serve-small",
                user=str(rng.choice(TEAMS[team])),
                account=team,
                pool="mig",
                gpus=1,
                gres_type=profile,
                submit_s=int(rng.integers(0, total)),
                need_s=need,
                limit_s=need * 2,
                ending=str(rng.choice(("CANCELLED", "COMPLETED"))),
                kind=kind,
                seed=int(rng.integers(2**31)),
                patience_s=1,
                cpus=4,
            )
        )
    return found
