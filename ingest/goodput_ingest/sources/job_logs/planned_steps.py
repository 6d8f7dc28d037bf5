"""How many steps a run is to have, where its log prints it, so that its end can be forecast.

Megatron, Nanotron and NeMo print it with each iteration, OLMo with each step, torchtitan and the
Trainer of Hugging Face at their start. NeMo prints the last iteration where it counts them from 0,
and of later epochs others. Trainers that count batches of an epoch do not say it.
"""

import re
from typing import Final

PLANNED_STEPS: Final = "planned_steps"  # kind of the event
PLANNED: Final = re.compile(
    r"(?<!, )\biteration:?\s{1,20}\d{1,12} ?/\s{0,20}(\d{1,12}) \|"
    r"|\[step=\d{1,12}/(\d{1,12})[,\]]"
    r"|\bTotal optimization steps = ([\d,]{1,15})\s*$"
    r"|'global_step/max_steps': '\d{1,12}/(\d{1,12})'"
    r"|\bTrainer\b.* initialized\b.*, total steps (\d{1,12}) \(warmup "
)
NEMO: Final = re.compile(
    r"Training epoch 0, iteration (\d{1,12})/(\d{1,12}) \|.*\bglobal_step: (\d{1,12}) \|"
)


class PlannedSteps:
    """What the lines of a log say of the planned steps since the last life began."""

    def __init__(self) -> None:
        """Begin with nothing known."""
        self.number: int | None = None
        self.is_reported = False

    def take(self, text: str) -> None:
        """Keep the first number that a line of this life has."""
        if self.is_reported or self.number is not None:
            return
        if (found := PLANNED.search(text)) is not None:
            digits = next(filter(None, found.groups())).replace(",", "")
            self.number = int(digits or 0) or None
        elif (found := NEMO.search(text)) is not None:
            iteration, total, step = map(int, found.groups())
            self.number = total + (iteration == step)

    def begin(self) -> None:
        """Take note that a life begins, whose log prints it again."""
        if self.is_reported:
            self.number, self.is_reported = None, False

    def news(self) -> int | None:
        """Return the number where it is known and was not returned for this life."""
        if self.is_reported or self.number is None:
            return None
        self.is_reported = True
        return self.number
