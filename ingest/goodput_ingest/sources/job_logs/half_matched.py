"""Lines that look like a known framework's step, save or failure and have not its whole form.

Another release, a fork or a cut line: no format reads it; the line is rejected with what it lacks.
"""

import re
from typing import Final, NamedTuple


class HalfMatched(NamedTuple):
    """What such a line looks like, and what a line that is read has besides."""

    pattern: re.Pattern[str]
    reason: str


RULES: Final = tuple(
    HalfMatched(re.compile(pattern), f"looks like {what}, which has {form}; this line has not")
    for pattern, what, form in (
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
        (
            r"step=.*\bskipped=|\bstep=.*\blr=",
            "a step of DeepSpeed",
            "`[DATE TIME,MS] [LEVEL] [FILE:LINE:FUNCTION]` and `step=N, skipped=N`",
        ),
        (
            r"iter time \(s\): ",
            "a step of DeepSpeed's pipeline engine",
            "`steps: N loss: X iter time (s): N`",
        ),
        (
            r"Checkpoint global_step",
            "a save of DeepSpeed",
            "`[ENGINE] Checkpoint global_stepN is ready now!` (or `about to be saved!`)",
        ),
        (
            r"completed step:",
            "a step of MaxText",
            "`completed step: N, seconds: X`",
        ),
        (
            r"Finished (?:blocking |synchronous |async_)?save\b.*seconds",
            "a save of Orbax",
            "`Finished blocking save in N seconds` (or `Finished save in N seconds`)",
        ),
        (
            r"Train time/batch:",
            "a batch of Composer",
            "`Train time/batch: N` alone on its line",
        ),
        (
            r"Epoch \d*:.*it/s",
            "a progress bar of Lightning",
            "`Epoch N: P%|...| DONE/TOTAL [ELAPSED<LEFT]`",
        ),
        (
            r"Avg generation throughput:.*\bRunning:",
            "a line of vLLM",
            "`MM-DD HH:MM:SS [FILE:LINE]`, two throughputs in tokens/s, Running, Waiting in reqs",
        ),
        (
            r"Watchdog caught collective operation timeout",
            "a timeout of NCCL's watchdog",
            "`[Rank N]` and `WorkNCCL(SeqNum=N, OpType=X, Timeout(ms)=N) ran for N milliseconds`",
        ),
        (
            r"- Cycle: \d+ Event: (?:worker_start_started|failure_detected)\b",
            "a restart of NVRx",
            "`Node: X Rank: N Time: DATE TIME UTC`",
        ),
        (
            r"\*\*\* JOB \S+ ON \S+ CANCELLED",
            "an end by Slurm",
            "`CANCELLED AT DATETIME ***`",
        ),
        (
            r"OutOfMemoryError: CUDA out of memory",
            "a failed allocation of PyTorch",
            "`Tried to allocate N GiB`",
        ),
    )
)
_STEP = r"\b(?:global_?)?(?:step|iter(?:ation)?)s?['\"\]]?\s*[:=#]?\s*\[?\d"
PLAIN: Final = re.compile(
    rf"{_STEP}.*loss|\bloss\b.*{_STEP}"
    r"|\d/\d+ \[[\d:]+<[\d:?]+,\s*[\d.?]+\s*(?:it/s|s/it)",  # a progress bar of tqdm
    re.IGNORECASE,
)
PLAIN_MAX_CHARS: Final = 1_000
HINTS: Final = ("consumed samples", "TFLOP/s/GPU", "saved checkpoint")


def looks_like_step(text: str) -> bool:
    """Say whether a line looks like a step that a loop of no known framework prints."""
    return PLAIN.search(text[:PLAIN_MAX_CHARS]) is not None


def missing(text: str) -> str | None:
    """Return why a line that no format reads is rejected; None: it looks like none of theirs."""
    return next((rule.reason for rule in RULES if rule.pattern.search(text)), None)
