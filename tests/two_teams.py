"""Two hours of two teams on one cluster: each on a node of its own, both on a third one.

Team `redteam` is the same in every such world; the other one differs in its names and amounts, so
that what a reader of the first team sees must not differ. Both call one of their runs `common`.
"""

from dataclasses import dataclass

import polars as pl
from tests.queries.conftest import START, Evidence, at, durable, phase, steps
from tests.queries.serving.load import Engine, counters

from goodput_queries.evidence.batch import Batch

RED = "redteam"
END_S = 7_200
H100 = "NVIDIA H100 80GB HBM3"
THERMAL = 0x40
BUSY = {
    "engine_active_ratio": 0.93, "sm_active_ratio": 0.8, "tensor_active_ratio": 0.4,
    "dram_active_ratio": 0.5, "power_w": 600.0, "sm_clock_hz": 1.9e9, "gpu_temperature_c": 62.0,
    "memory_used_bytes": 60 * 10**9, "clocks_event_reasons": 0,
}  # fmt: skip
IDLE = {
    **BUSY, "engine_active_ratio": 0.0, "sm_active_ratio": 0.0, "tensor_active_ratio": 0.0,
    "dram_active_ratio": 0.0, "power_w": 80.0,
}  # fmt: skip


@dataclass(frozen=True)
class Team:
    """A team, whose names all contain one word, and what it does."""

    word: str
    first_pid: int
    gpus: int
    fails_at: int
    step_s: float
    tokens: float
    late_s: float
    shared_from: int
    shared_until: int

    @property
    def name(self):
        """Return its account."""
        return f"{self.word}team"

    @property
    def node(self):
        """Return the node that it has for itself."""
        return f"{self.word}node"


REDS = Team("red", 100, 4, 3_000, 10.0, 4_096.0, 3.0, 0, 4_200)
COBALTS = Team("cobalt", 200, 3, 2_570, 7.0, 1_237.0, 1.7, 4_300, 6_130)
OTHERS = Team("azure", 300, 2, 4_110, 13.0, 5_519.0, 2.3, 4_400, 7_150)


def built(filled, other):
    """Return a database of the red team and another one, made once for all tests; to be copied."""
    return filled(f"two-teams-{other.word}", lambda store: load(store, other))


def load(store, other):
    """Load the evidence of the red team, then that of another one; build."""
    made = Evidence(store)
    made.watched(END_S)
    made.node("sharednode", 4, model=H100)
    for attempt, team in enumerate((REDS, other)):
        _own_node(made, team)
        _shared_node(made, team, attempt)
        _faults(made, team)
        _serving(made, team)
    made.job("redunused", 5_400, END_S, ["sharednode"], 2, account=RED, user_name="reduser")
    made.tariff("0.31", server_ratio="1.2", cluster=None)
    of_all = {"g_per_kwh": 350.0, "pue": 1.2, "server_ratio": 1.1}
    made.load("rates", [{"price_per_gpu_h": 2.5}])
    made.load("carbon", [of_all])
    for team in (REDS, other):  # files that a team has ingested, with its prices and remarks
        of_team = {"partition": f"{team.word}part", "note": team.word}
        made.load("rates", [{**of_team, "price_per_gpu_h": team.step_s}])
        made.load("rate_factors", [{**of_team, "factor": team.late_s}])
        elsewhere = {"cluster": f"{team.word}cluster", "note": team.word}
        made.load("carbon", [{**elsewhere, **of_all, "g_per_kwh": team.tokens}])
    made.load("budgets", [
        {"account": team.name, "cost_per_month": team.tokens, "quota_gpus": team.gpus}
        for team in (REDS, other)
    ])  # fmt: skip
    notes = [
        {"run_key": f"c/{team.word}run", "note": team.word, "said_by": team.word, "said_at": START}
        for team in (REDS, other)
    ]
    store.load(Batch("run_notes", pl.DataFrame(notes), "run-notes", "test", "notes"))
    store.build()


def _own_node(made, team):
    """Load a run that fails, begins again, and has a late rank, on a node with an error."""
    made.node(team.node, team.gpus, model=H100)
    owner = {"account": team.name, "user_name": f"{team.word}user", "job_name": f"{team.word}train",
             "partition": f"{team.word}part"}  # fmt: skip
    run = f"{team.word}run"
    again = team.fails_at + 300
    made.job(f"{team.word}1", 0, team.fails_at, [team.node], team.gpus, "NODE_FAIL", **owner)
    made.job(f"{team.word}2", again, END_S, [team.node], team.gpus, "RUNNING",
             submit=team.fails_at, **owner)  # fmt: skip
    for number, (begin, end) in enumerate(((0, team.fails_at), (again, END_S))):
        count = int((end - begin - 200) / team.step_s)
        for rank in range(team.gpus):
            comm_s = 0.0 if rank == 1 else team.late_s
            own = {
                "tokens": team.tokens, "loss": 2.0, "data_s": 0.5, "comm_s": comm_s,
                "extra": f'{{"epoch": {number}}}',
            }  # fmt: skip
            events = steps(1, count // 2, begin + 60, team.step_s, **own)
            noise = f'{{"{team.word}noise": {team.late_s}, "commit": "{team.word}"}}'
            events.append({"event": "metric", "t": begin + 70, "extra": noise})
            if number == 0:
                events[-2]["loss"] = float("nan")
            saved = begin + 60 + count // 2 * team.step_s
            events += [phase("ckpt_save", saved, saved + 40), durable(count // 2, saved + 40)]
            events += steps(count // 2 + 1, count, saved + 40, team.step_s, **own)
            if rank == 0 and number == 0:
                events.append({"event": "failure", "kind": "exception", "t": end - 5,
                               "msg": f"{team.word} lost its way"})  # fmt: skip
            made.events(run, events, attempt=number, rank=rank,
                        gpu_uuid=f"c/{team.node}#{rank}", host=team.node)  # fmt: skip
    for gpu in range(team.gpus):
        _readings(made, f"{team.node}#{gpu}",
                  lambda second: second < team.fails_at or second > again + 60,
                  1.0 + team.late_s / 30)  # fmt: skip
    read = [{"ts": s, "disk_read_bytes": int(team.tokens * 1e6 * s)} for s in range(0, END_S, 60)]
    host = {"node": team.node, "source": "node-exporter", "memory_total_bytes": 10**12}
    made.add("node_samples", *read, **host)
    made.job(f"{team.word}waits", None, None, [], 8 * team.gpus, "PENDING", submit=team.fails_at,
             **owner)  # fmt: skip


def _shared_node(made, team, attempt):
    """Load a run of half of the shared node, which both teams call alike, one after the other."""
    begin, end = team.shared_from, team.shared_until
    made.job(f"{team.word}shared", begin, end, ["sharednode"], 2, account=team.name,
             user_name=f"{team.word}user", job_name=f"{team.word}small")  # fmt: skip
    for rank in range(2):
        gpu = f"sharednode#{rank}"  # one of the two does nothing
        _readings(made, gpu, lambda _, is_busy=rank == 1: is_busy, team.late_s, begin, end)
        # the ledger takes it for one run: what a later attempt repeats is lost, in each world alike
        own = {"tokens": team.tokens, "data_s": team.late_s / 100, "extra": '{"epoch": 0}'}
        events = steps(1, 200, begin + 50, team.step_s, **own)
        noise = (f'{{"{team.word}noise": {team.late_s}, "commit": "{team.word}", '
                 f'"params": {team.tokens}, "dtype": "{team.word}"}}')  # fmt: skip
        events += [{"event": "metric", "t": begin + 70, "attempt": number, "extra": noise}
                   for number in (attempt, None)]  # fmt: skip
        made.events("common", events, attempt=attempt, rank=rank, host="sharednode",
                    gpu_uuid=f"c/{gpu}")  # fmt: skip


def _faults(made, team):
    """Load an Xid, a hang, transports and a replayed trace."""
    made.xid(team.node, 79, team.fails_at - 10, gpu_uuid=f"c/{team.node}#0",
             message=f"{team.word} fell off")  # fmt: skip
    ranks = [{"pid": team.first_pid + rank} for rank in range(2)]
    made.add("comm_transports", *ranks, node=team.node, comm_id=team.word, transport="NET/Socket",
             nodes=2)  # fmt: skip
    process = {"setting": "env:NCCL_IB_DISABLE", "belongs_to": "process"}
    host = {"setting": "vm.swappiness", "belongs_to": "node"}
    made.add("node_settings", process, host, node=team.node, ts=0, run_id=f"{team.word}run",
             value=team.word)  # fmt: skip
    made.add("step_replays", run_id=f"{team.word}run", trace_id=team.word, data_ranks=2, stages=2,
             steps=10, slowest_stage=1, recorded_s=3.1 + team.late_s, undelayed_s=3.0,
             compute_s=2.9, worker_means_s=2.8, stage_means_s=2.1, ideal_s=2.0,
             without_slowest_stage_s=2.5, without_slowest_workers_s=2.25,
             forward_backward_correlation=0.2)  # fmt: skip
    workers = [{"dp_rank": rank, "step_s": team.late_s + rank} for rank in range(2)]
    made.add("replayed_parts", *workers, trace_id=team.word, part="worker", stage=0)


def _serving(made, team):
    """Load an engine on a GPU of its node, with latencies and a log; both call the model alike."""
    pod, gpus = f"{team.word}pod", [f"{team.node}#0"]
    engine = Engine(made, pod, "served", node=team.node, gpus=gpus, engine="0")
    rates = {"prompt_tokens": (team.tokens, 1), "generation_tokens": (team.step_s, 1)}
    gauges = {"requests_running": (team.late_s, 0), "requests_waiting": (1, 0)}
    engine.samples(counters(rates, {**gauges, "kv_cache_ratio": (0.97, 0.1)}))
    seen = [(60.0 + n, team.late_s / 2) for n in range(40)]
    for metric in ("ttft_s", "e2e_s"):
        engine.histogram(metric, seen, (0.0, 70.0, float(team.fails_at)))
    engine.log(
        {"arrival": at - s, "ttft": s, "e2e": s, "tenant": f"{team.word}key"} for at, s in seen
    )


def _readings(made, gpu, is_busy, factor, begin=0, end=END_S):
    """Load readings of a GPU every minute, some of them throttled, with its energy counter."""
    joules, rows = 1e6, []
    for second in range(begin, end + 1, 60):
        values = BUSY if is_busy(second) else IDLE
        joules += 60 * values["power_w"] * factor
        rows.append({
            "gpu_uuid": f"c/{gpu}", "gpu_instance": "", "ts": at(second), "energy_j": joules,
            "is_flagged": False, **values, "power_w": values["power_w"] * factor + second % 7,
            "clocks_event_reasons": THERMAL if 1_200 <= second < 1_500 else 0,
        })  # fmt: skip
    made.load("gpu_samples", rows, "dcgm")
