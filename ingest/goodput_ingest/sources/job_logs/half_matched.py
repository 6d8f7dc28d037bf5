"""Lines that look like a known framework's step, save or failure and have not its whole form.

Another release, a fork or a cut line: no format reads it; the line is rejected with what it lacks.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple


class HalfMatched(NamedTuple):
    """What such a line looks like, and what a line that is read has besides."""

    pattern: re.Pattern[str]
    reason: str

    @classmethod
    def of(cls, pattern: str, looks_like: str, has: str) -> "HalfMatched":
        """Return the rule of a pattern with its sentence."""
        reason = f"looks like {looks_like}, which has {has}; this line has not"
        return cls(re.compile(pattern), reason)


RULES: Final = tuple(
    HalfMatched.of(*rule)
    for rule in (
        (
            r"(?<!, )iteration\b.*(?:\| (?:elapsed time|consumed samples)|time per iteration)",
            "an iteration of Megatron",
            "`iteration N/ TOTAL |` and `elapsed time per iteration (ms): N |`",
        ),
        (
            r"\bsaved checkpoint(?=.*\biteration\b)",
            "a finished save of Megatron",
            "`successfully saved checkpoint from iteration N` (or `at iteration N`)",
        ),
        (
            r"Training epoch\b.*\biteration\b",
            "an iteration of NeMo",
            "`iteration N/TOTAL |` and `global_step: N |`",
        ),
        (
            r"Global Checkpoint (?:Save|Load)\b",
            "a save or load of NeMo",
            "a rank and `Save duration: Ns` (or `Time spent in load_checkpoint: Ns`)",
        ),
        (
            r"Async checkpoint save for step|[Ss]ave.{0,40}finalized success",
            "a finished save of NeMo",
            "`Async checkpoint save for step N (PATH) finalized successfully`",
        ),
        (
            r"\[titan\].*\bstep:.*\bloss:",
            "a step of torchtitan",
            "`[titan] DATE TIME - NAME - LEVEL - step: N  loss: X`",
        ),
        (
            r"\b(?:Num Epochs|Total optimization steps) =",
            "a total of the Hugging Face Trainer",
            "a whole number behind `=`",
        ),
        (
            r"\{'(?:loss|eval_loss|eval_runtime|train_runtime)': ",
            "a dictionary of the Hugging Face Trainer",
            "its closing brace on the same line",
        ),
    )
)
HINTS: Final = ("consumed samples", "TFLOP/s/GPU", "saved checkpoint")


def missing(text: str, rules: Iterable[HalfMatched]) -> str | None:
    """Return why a line that no format reads is rejected; None: it looks like none of theirs."""
    return next((rule.reason for rule in rules if rule.pattern.search(text)), None)
