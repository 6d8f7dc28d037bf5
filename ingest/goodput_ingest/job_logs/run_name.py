"""Whose log it is: the run as the log names it, else as said, else by the file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from goodput_ingest.json_lines import printable

if TYPE_CHECKING:
    from pathlib import Path

RUN_ID_MAX_CHARS = 200
SAID = tuple(
    re.compile(pattern)
    for pattern in (
        rb"(?m)^\W*(?:export )?SLURM_JOB_?ID[=: ]+['\"]?(\d{1,12}(?:_\d{1,9})?)\b",
        rb"slurmstepd: error: \*\*\* (?:JOB|STEP) (\d{1,12})\b",
        rb"\bsrun --jobid[= ](\d{1,12})\b",
        rb"wandb: Syncing run (\S{1,200})",
        rb"wandb: Run data is saved locally in \S*/run-\d{8}_\d{6}-(\w{1,64})",
    )
)
JOB_NUMBER = re.compile(r"(?:^|[-_])(\d{3,12}(?:_\d{1,9})?)(?=\.(?:out|err|log|txt)(?:\.gz)?$)")
ENDINGS = re.compile(r"(?:\.(?:out|err|log|txt|jsonl|json|gz))+$")


def run_name(path: Path, head: bytes, said: str | None) -> str:
    """Return the name of the run.

    By the first of: what the log's beginning says (Slurm's job id, then wandb's name), what the
    person said, a job number that ends the file's name (`slurm-4711.out`), the file's name.
    """
    for pattern in SAID:
        if (found := pattern.search(head)) is not None:
            return printable(found[1].decode("utf-8", "replace"), RUN_ID_MAX_CHARS)
    if said is not None:
        return said
    if (number := JOB_NUMBER.search(path.name)) is not None:
        return number[1]
    return printable(ENDINGS.sub("", path.name), RUN_ID_MAX_CHARS)
