"""What the demo shows besides eventful days: jobs of the last day, each with its own evidence."""

import numpy as np

from goodput_synthetic.fleet.demand import Request
from goodput_synthetic.fleet.fleet import GPUS_PER_NODE
from goodput_synthetic.fleet.outages import DAY_S

PRIORITY = 15  # above scripted jobs, which have less of the day to themselves
FIRST_ID = 1_500
STRAY = "stray"  # the kind of a job that no scheduler started
NODE, PAIR = GPUS_PER_NODE, 2 * GPUS_PER_NODE
PRETRAINED = {"params": 7e10, "dtype": "bf16", "image": "train:2026.11"}
SCALED = {"params": 7e9, "dtype": "bf16", "framework": "torchtitan 0.2.1"}
PRETRAIN_TOKENS, SCALE_TOKENS = 65_536, 94_208  # of a step of one GPU
# pool, GPUs, hour of the day, ms a step, share of it that waits for communication, commit
SCALING = (
    ("h100", 8, 1.0, 10_000, 0.035, "4be1c07"),
    ("h200", 8, 1.0, 8_900, 0.040, "4be1c07"),
    ("h100", 16, 2.0, 10_500, 0.080, "4be1c07"),
    ("h100", 32, 3.0, 11_600, 0.160, "4be1c07"),
    ("h100", 8, 4.0, 10_060, 0.035, "4be1c07"),
    ("h100", 64, 5.0, 13_000, 0.250, "4be1c07"),
    ("h100", 8, 7.0, 10_800, 0.035, "9d02f5a"),  # the commit that made it slower
)


def declare(requests: list[Request]) -> None:
    """Let some scripted jobs report what they work and need."""
    for request in requests:
        if request.story == "llm-pretrain":
            request.options |= {"tokens": request.gpus * PRETRAIN_TOKENS, "loss": 1}
            request.declared = PRETRAINED
        if request.story == "data-starved":
            request.options |= {"iowait": 1, "epoch_steps": 150}
            request.declared = {"input_bytes_per_gpu_s": 4e8}


def exhibits(hours: int, seed: int) -> list[Request]:
    """Return the jobs of the last day; none where there is no whole day."""
    begin = hours * 3_600 - DAY_S
    rng = np.random.default_rng([seed, 19])
    found: list[Request] = []

    def job(name: str, pool: str, gpus: int, at_h: float, for_h: float, **more: object) -> None:
        need = int(for_h * 3_600)
        values: dict[str, object] = {
            "job_id": FIRST_ID + len(found),
            "name": name,
            "user": "chen",
            "account": "nlp",
            "pool": pool,
            "gpus": gpus,
            "submit_s": begin + int(at_h * 3_600),
            "need_s": need,
            "limit_s": 2 * need,
            "ending": "COMPLETED",
            "kind": "plain",
            "seed": int(rng.integers(2**31)),
            "reports": "first",
            "priority": PRIORITY,
            "story": name,
        }
        found.append(Request(**(values | more)))  # type: ignore[arg-type] # by name

    for pool, gpus, at_h, step_ms, comm, commit in SCALING:
        options = {"step_ms": step_ms, "comm": comm, "measured": 1, "tokens": gpus * SCALE_TOKENS}
        job("gpt-scaling", pool, gpus, at_h, 0.85, options=options,
            declared=SCALED | {"commit": commit})  # fmt: skip
    job("cap-study", "h100", NODE, 1.2, 4, kind="measured", user="dilnoza",
        options={"cap_w": 400, "step_ms": 53_000, "level": 0.9})  # fmt: skip
    job("llama2_70b_lora", "h100", NODE, 8, 0.5, options={"step_ms": 3_200})
    job("moe-finetune", "h100", NODE, 2, 7, ending="FAILED", user="farah",
        options={"step_ms": 40_000, "growth_gb_per_h": 1.8, "level": 0.75})  # fmt: skip
    # a node computes wrongly now and then: the next start does without it
    of_suspect: dict[str, object] = {"run_id": "reward-model", "account": "speech", "user": "nadia"}
    job("reward-model", "h100", PAIR, 2.5, 3, ending="FAILED", **of_suspect,
        options={"step_ms": 20_000, "loss": 1, "suspect": 1})  # fmt: skip
    job("reward-model", "h100", PAIR, 8, 3, **of_suspect, options={"step_ms": 20_000, "loss": 1})
    job("vla-pretrain", "h200", PAIR, 2, 3, kind="hang", ending="FAILED", reports="all",
        account="robotics", user="quentin", options={"step_ms": 30_000})  # fmt: skip
    job("vla-pretrain", "h200", PAIR, 17, 12, kind="hang", reports="all", account="robotics",
        user="quentin", options={"step_ms": 30_000, "hung_s": 2_100})  # fmt: skip
    job("debugging", "h100", 2, 10, 3, kind=STRAY, reports="")
    return found if begin >= 0 else []
