"""What jobs train: how long steps of each workload take, and how often its trainer logs them."""

from dataclasses import dataclass
from typing import Final

from goodput_synthetic.fleet.fleet import GPUS_PER_NODE


@dataclass(frozen=True)
class Workload:
    """step_s: shortest and longest step of its jobs; log_every: steps an event, with their shares.

    Trainers log each step where one takes long, and most of them every tenth to hundredth where it
    does not.
    """

    step_s: tuple[float, float]
    log_every: dict[int, float]


WORKLOADS: Final = {
    "pretrain": Workload((5, 90), {1: 1}),
    "reinforcement": Workload((15, 90), {1: 1}),  # samples, then trains
    "finetune": Workload((1, 10), {1: 0.02, 10: 0.38, 50: 0.6}),
    "evaluation": Workload((0.5, 4), {10: 0.4, 50: 0.6}),
    "vision": Workload((0.3, 2), {1: 0.01, 50: 0.29, 100: 0.7}),
}
OF_NAME: Final = {
    "pretrain": "pretrain", "grpo": "reinforcement", "finetune": "finetune", "sft": "finetune",
    "dpo": "finetune", "distill": "finetune", "eval": "evaluation", "vision": "vision",
    "ablation": "vision",
}  # fmt: skip
# names of a job's size; how often one stands there is its share
LARGE: Final = ("pretrain", "pretrain", "pretrain", "pretrain", "finetune", "sft", "grpo")
MIDDLE: Final = ("finetune", "pretrain", "sft", "dpo", "grpo", "distill", "vision")
SMALL: Final = ("finetune", "vision", "ablation", "sft", "dpo", "eval", "distill")
LARGE_GPUS: Final = 4 * GPUS_PER_NODE


def names(gpus: int) -> tuple[str, ...]:
    """Return the names that jobs of this size have, each as often as its share."""
    if gpus >= LARGE_GPUS:
        return LARGE
    return MIDDLE if gpus >= GPUS_PER_NODE else SMALL
